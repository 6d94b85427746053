"""One process from which many runs fork their workers: starting it takes longer than masking most test tables."""

import os
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from shoal.engines import local, process_pool
from shoal.engines.process_pool import Template
from shoal.masking import mask

__all__ = ["open_template", "sharing"]


@contextmanager
def open_template():
    """Yield the process from which workers of the local engine are forked; None without forks."""
    template = Template() if process_pool.FORKS else None
    yield template
    if template is not None:
        template.close()


@contextmanager
def sharing(template):
    """Make all runs in this block fork their workers from one process."""

    @contextmanager
    def start(*_):
        if template is None or not process_pool.FORKS:
            yield None
            return
        template.run(os.chdir, Path.cwd())
        with patch.object(template, "close"), patch.object(template, "kill"):
            yield template

    # One worker per run unless a test requests more: other tests use the other cores.
    with patch.object(mask, "start_template", start), patch.object(local.os, "cpu_count", return_value=1):
        yield
