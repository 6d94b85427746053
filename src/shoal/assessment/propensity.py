"""A classifier that distinguishes a table from its release: the worse it does, the more useful the release."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from shoal.core.measures import standardise
from shoal.core.types import Floats

__all__ = ["Propensity", "propensity"]

# The classifier of `propensity` sees at most so many records of each table, and products of so many columns.
PROPENSITY_RECORDS = 20_000
PROPENSITY_PRODUCTS = 20


@dataclass(frozen=True)
class Propensity:
    """The success of a classifier that distinguishes released records from original ones.

    Parameters
    ----------
    pmse
        Mean squared distance of the fitted propensities from ½: 0 if it cannot, ¼ if it always can.
    auc
        How often it would rank a released record above an original one: 0.5 by chance, 1 always.
    records
        How many records of each table it saw.
    """

    pmse: float
    auc: float
    records: int


def propensity(Z: Floats, W: Floats, *, seed: int = 0) -> Propensity | None:
    """Fit a logistic regression that guesses which table a record is from, and return how well it does.

    The propensity-score measure of Woo, Reiter, Oganian and Karr (2009). The classifier sees the standardised columns,
    their squares and their products: group means keep every mean, so a linear one would be blind by construction.
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
        # Where nothing tells the tables apart there is nothing to descend to, and the solver says so.
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier.fit(features, released)
    score = classifier.predict_proba(features)[:, 1]
    return Propensity(float(np.square(score - 0.5).mean()), _auc(score), len(complete))


def _features(Z: Floats) -> Floats:
    """Return the columns, their squares and, unless there are very many, their products."""
    d = Z.shape[1]
    first, second = np.triu_indices(d) if d <= PROPENSITY_PRODUCTS else (np.arange(d), np.arange(d))
    return np.column_stack([Z, Z[:, first] * Z[:, second]])


def _auc(score: Floats) -> float:
    """Return how often a score of the second half exceeds one of the first half; a tie counts half."""
    from scipy.stats import rankdata

    n = len(score) // 2
    return float((rankdata(score)[n:].sum() - n * (n + 1) / 2) / n**2)
