"""The jobs of new users in benchmarks/jobs.py whose tables are at hand everywhere."""

import sys

import pytest
from conftest import ROOT

BENCHMARKS = ROOT / "benchmarks"
if not BENCHMARKS.exists():
    pytest.skip("not run from a checkout", allow_module_level=True)
sys.path.insert(0, str(BENCHMARKS))
import jobs  # noqa: E402

sys.path.remove(str(BENCHMARKS))
AT_HAND = ("generated", "diabetes (scikit-learn)")


@pytest.mark.parametrize("job", jobs.JOBS, ids=lambda job: job.name)
def test_a_newcomer_gets_a_release_that_other_means_confirm(job, tmp_path):
    if job.source not in AT_HAND:
        pytest.skip(f"needs {job.source}: run python benchmarks/jobs.py")
    assert jobs.run(job, tmp_path).wrong == ()


def test_there_are_32_jobs():
    assert len({job.name for job in jobs.JOBS}) == 32
