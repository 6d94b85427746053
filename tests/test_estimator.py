"""Microaggregator as scikit-learn sees it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import shoal
from shoal import Microaggregator
from shoal.core.errors import InputError

X = np.random.default_rng(0).lognormal(size=(60, 3))


@parametrize_with_checks([Microaggregator(), Microaggregator(k=2, method="projection", standardize=False)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_fit_transform_is_masking():
    masker = Microaggregator(k=4)
    release = shoal.mask(X, 4)
    assert np.array_equal(masker.fit_transform(X), release.data)
    assert np.array_equal(masker.labels_, release.labels)
    assert np.array_equal(masker.fit_predict(X), release.labels)
    assert masker.loss_ == pytest.approx(release.loss)
    assert np.array_equal(np.sort(masker.sizes_), release.sizes)


def test_options_reach_the_method():
    labels = Microaggregator(k=3, method="v-mdav", options={"gamma": 1.1}, standardize=False).fit_predict(X)
    assert np.array_equal(labels, shoal.partition(X, 3, "v-mdav", gamma=1.1))


def test_equal_records_in_two_groups_stay_k_anonymous():
    records = np.repeat([[1.0], [2.0]], [4, 5], axis=0)
    _, counts = np.unique(Microaggregator(k=3).fit_transform(records), return_counts=True)
    assert counts.min() >= 3


def test_new_records_get_the_nearest_group():
    masker = Microaggregator(k=2).fit([[0.0], [1.0], [10.0], [11.0]])
    assert masker.transform([[0.9], [9.0], [1.0]]).tolist() == [[0.5], [10.5], [0.5]]


def test_in_a_pipeline_with_pandas_output():
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=range(100, 160))
    masked = Microaggregator(k=3).set_output(transform="pandas").fit_transform(frame)
    assert list(masked.columns) == ["a", "b", "c"]
    assert masked.index.equals(frame.index)
    pipeline = make_pipeline(MinMaxScaler(), Microaggregator(k=3), LinearRegression())
    assert pipeline.fit(frame, frame["a"]).predict(frame).shape == (60,)


def test_refusals():
    with pytest.raises(InputError, match="must group whole records, got 'individual-ranking'"):
        Microaggregator(method="individual-ranking").fit(X)
    with pytest.raises(InputError, match="k=61, but the table has 60 records"):
        Microaggregator(k=61).fit(X)


def test_masked_cells_are_refused_as_missing():
    """scikit-learn would use the values below the mask."""
    masked = np.ma.masked_values(X, X[3, 1])
    with pytest.raises(ValueError, match="Input X contains NaN"):
        Microaggregator(k=4).fit(masked)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        Microaggregator(k=4).fit(X).transform(masked)
