"""Propensity score: the worse a classifier distinguishes a table from its release, the more useful the release."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from shoal.core.measures import standardise
from shoal.core.types import Floats

__all__ = ["Propensity", "propensity"]

# Limits on the number of records per table, and on the number of columns whose products are features.
PROPENSITY_RECORDS = 20_000
PROPENSITY_PRODUCTS = 20


@dataclass(frozen=True)
class Propensity:
    """The success of a classifier that distinguishes released records from original ones.

    Parameters
    ----------
    pmse
        Mean squared distance of the fitted propensities from ½: 0 if the classifier cannot distinguish the tables, ¼ if
        it always can.
    auc
        The probability that the classifier ranks a released record above an original one: 0.5 by chance, 1 for perfect
        distinction.
    records
        The number of records per table that the classifier saw.
    """

    pmse: float
    auc: float
    records: int


def propensity(Z: Floats, W: Floats, *, seed: int = 0) -> Propensity | None:
    """Fit a logistic regression that predicts the source table of a record, and return its performance.

    This is the propensity-score measure of Woo, Reiter, Oganian and Karr (2009). The classifier sees the standardised
    columns, their squares and their products: group means preserve every mean, so a linear classifier could not
    distinguish the tables.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    complete = np.flatnonzero(~np.isnan(Z).any(axis=1))
    if len(complete) < 2:
        return None
    if len(complete) > PROPENSITY_RECORDS:
        complete = np.random.default_rng(seed).choice(complete, PROPENSITY_RECORDS, replace=False)
    features = standardise(np.vstack([_features(Z[complete]), _features(W[complete])]))
    released = np.repeat([0, 1], len(complete))
    classifier = LogisticRegression(solver="newton-cholesky", max_iter=200)
    with warnings.catch_warnings():
        # If nothing distinguishes the tables, the solver cannot descend and warns.
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier.fit(features, released)
    score = classifier.predict_proba(features)[:, 1]
    return Propensity(float(np.square(score - 0.5).mean()), _auc(score), len(complete))


def _features(Z: Floats) -> Floats:
    """Return the columns, their squares and, for up to `PROPENSITY_PRODUCTS` columns, their products."""
    d = Z.shape[1]
    first, second = np.triu_indices(d) if d <= PROPENSITY_PRODUCTS else (np.arange(d), np.arange(d))
    return np.column_stack([Z, Z[:, first] * Z[:, second]])


def _auc(score: Floats) -> float:
    """Return the share of pairs in which a score of the second half exceeds one of the first half; ties count half."""
    from scipy.stats import rankdata

    n = len(score) // 2
    return float((rankdata(score)[n:].sum() - n * (n + 1) / 2) / n**2)
