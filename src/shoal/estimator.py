"""Microaggregator, a scikit-learn transformer that masks records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from shoal.algorithms.partition import LARGEST_EXPONENT
from shoal.core.checks import check_k, plain_array
from shoal.core.errors import InputError
from shoal.core.measures import Scaling, group_sizes, scaling
from shoal.core.messages import parameter
from shoal.core.progress import watch
from shoal.core.types import Floats, Ints
from shoal.masking.aggregate import mask_bucket
from shoal.masking.group import BucketPlan
from shoal.masking.request import MaskRequest
from shoal.masking.summary import losses
from shoal.masking.verification import verify

__all__ = ["Microaggregator"]


class Microaggregator(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Transformer that replaces every record by the mean of its group of at least k similar records.

    Parameters
    ----------
    k
        Minimum group size.
    method
        A name from `shoal.methods`, or a function ``f(X, k)`` as for `shoal.partition`; it must group whole records.
    standardize
        Compare records on columns of mean 0 and variance 1.
    options
        Options of the method.
    effort
        Search effort of ``"auto"``: ``"fast"``, ``"good"`` (default) or ``"best"``.
    random_state
        Random seed of a method.

    Attributes
    ----------
    labels_
        The group of each record.
    sizes_
        The number of records in each group.
    centroids_
        The mean of each group.
    loss_
        Information loss 100·SSE/SST on the compared columns.

    Notes
    -----
    ``fit_transform`` returns the k-anonymous result. ``transform`` replaces a fitted record by the mean of its group,
    and any other record by the nearest centroid. Pipelines need ``transform`` for predictions, but it protects neither
    new records nor a selection of the fitted records. With ``set_output(transform="pandas")`` the result keeps the
    index of the input, as scikit-learn expects; `shoal.mask` drops the index.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [1.2, 0.1], [9.0, 5.0], [9.2, 5.3]])
    >>> Microaggregator(k=2).fit_transform(X).round(2).tolist()
    [[1.1, 0.05], [1.1, 0.05], [9.1, 5.15], [9.1, 5.15]]
    """

    labels_: Ints
    sizes_: Ints
    centroids_: Floats
    loss_: float

    def __init__(
        self,
        k: int = 3,
        method: str | Callable[..., Any] = "auto",
        *,
        standardize: bool = True,
        options: dict[str, Any] | None = None,
        effort: str | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.k = k
        self.method = method
        self.standardize = standardize
        self.options = options
        self.effort = effort
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Group the records.

        Parameters
        ----------
        X
            Records ``(n, d)``.
        y
            Not used.
        """
        records = validate_data(self, _unmasked(X), dtype=np.float64, ensure_min_samples=2)
        request = MaskRequest(
            k=self.k, method=self.method, effort=self.effort, seed=self.random_state, options=self.options or {}
        )
        request = request.settled(range(records.shape[1]))
        if not request.entry.whole_records:
            raise InputError(
                f"{parameter('method')} must group whole records, got {self.method!r}. Use shoal.mask for this method."
            )
        check_k(self.k, len(records))
        self._scaling = scaling(records) if self.standardize else _unscaled(records)
        plan = BucketPlan.of_numbers(request, records.shape[1], self._scaling, whole=True)
        arrays = {"X": records, "block": np.zeros(len(records), dtype=np.int64)}
        answers, bucket = watch(lambda state: mask_bucket(arrays, state, plan), len(records), title=request.entry.name)
        verify(answers["released"], self.k)
        self.labels_ = answers["group"]
        self.sizes_ = group_sizes(self.labels_)
        self.centroids_ = answers["released"][np.unique(self.labels_, return_index=True)[1]]
        self.loss_ = losses([bucket]).loss
        # Equal records may be in several groups; transform() uses the group of the first.
        self._groups = {
            record.tobytes(): int(group) for record, group in zip(records[::-1], self.labels_[::-1], strict=True)
        }
        return self

    def fit_predict(self, X: ArrayLike, y: object = None) -> Ints:
        """Group the records and return the group of each."""
        return self.fit(X).labels_

    def fit_transform(self, X: ArrayLike, y: object = None) -> Any:
        """Group the records and return the group means, the k-anonymous result."""
        self.fit(X)
        return self.centroids_[self.labels_]

    def transform(self, X: ArrayLike) -> Any:
        """Return the mean of each record's group, or the nearest centroid if the record was not fitted."""
        check_is_fitted(self)
        records = validate_data(self, _unmasked(X), dtype=np.float64, reset=False)
        groups = np.array([self._groups.get(record.tobytes(), -1) for record in records], dtype=np.int64)
        new = np.flatnonzero(groups < 0)
        if len(new):
            from scipy.spatial import cKDTree

            centroids, coordinates = (self._scaling.apply(values) for values in (self.centroids_, records[new]))
            _, nearest = cKDTree(centroids).query(coordinates)
            groups[new] = nearest
        return self.centroids_[groups]


def _unscaled(X: Floats) -> Scaling:
    """Return a scaling that keeps records unchanged, or divides them by a power of two if squares would overflow."""
    d, exponent = X.shape[1], int(np.frexp(np.abs(X).max())[1])
    reach = 2.0 ** (exponent if exponent > LARGEST_EXPONENT else 0) / 2
    return Scaling(np.zeros(d), np.full(d, reach), np.zeros(d), np.ones(d))


def _unmasked(X: ArrayLike) -> ArrayLike:
    """Replace cells under a NumPy mask by NaN, because scikit-learn refuses NaN but ignores the mask."""
    return plain_array(X) if isinstance(X, np.ma.MaskedArray) else X
