"""Microaggregation: hide every record in a group of at least k similar records.

Public names are imported on first use, so that ``import shoal`` and ``shoal --help`` stay fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shoal.core.version import __version__ as __version__

if TYPE_CHECKING:
    from shoal.algorithms.optimize.certificate import verify_bound
    from shoal.algorithms.partition import partition
    from shoal.algorithms.registry import methods
    from shoal.algorithms.spanning_tree import SpanningTree, spanning_tree
    from shoal.assessment.measurement import assess
    from shoal.comparison.around import compare_around
    from shoal.comparison.compare import compare
    from shoal.core.errors import (
        DataBoundsWarning,
        FileError,
        FormulaWarning,
        GroupsAsGivenWarning,
        InputError,
        LargeBudgetWarning,
        NotKAnonymousWarning,
        PrivacyWarning,
        PrivateExplorationWarning,
        SeededNoiseWarning,
        ShoalError,
        UnevenBudgetWarning,
        UnprotectedColumnWarning,
        VerificationError,
    )
    from shoal.core.progress import Progress, watching
    from shoal.estimator import Microaggregator
    from shoal.inspection.inspect import Inspection, inspect
    from shoal.kinds.date import Date
    from shoal.kinds.hierarchy import Hierarchy
    from shoal.kinds.nominal import Nominal
    from shoal.kinds.ordinal import Ordinal
    from shoal.kinds.place import Place
    from shoal.masking.mask import mask
    from shoal.masking.release import Release
    from shoal.masking.request import MaskRequest
    from shoal.privacy.mechanism import publish
    from shoal.privacy.publication import Publication
    from shoal.promises.closeness import Closeness
    from shoal.promises.diversity import Diversity
    from shoal.roles.roles_file import Roles

__all__ = [
    "Closeness",
    "DataBoundsWarning",
    "Date",
    "Diversity",
    "FileError",
    "FormulaWarning",
    "GroupsAsGivenWarning",
    "Hierarchy",
    "InputError",
    "Inspection",
    "LargeBudgetWarning",
    "MaskRequest",
    "Microaggregator",
    "Nominal",
    "NotKAnonymousWarning",
    "Ordinal",
    "Place",
    "PrivacyWarning",
    "PrivateExplorationWarning",
    "Progress",
    "Publication",
    "Release",
    "Roles",
    "SeededNoiseWarning",
    "ShoalError",
    "SpanningTree",
    "UnevenBudgetWarning",
    "UnprotectedColumnWarning",
    "VerificationError",
    "assess",
    "compare",
    "compare_around",
    "inspect",
    "mask",
    "methods",
    "partition",
    "publish",
    "spanning_tree",
    "verify_bound",
    "watching",
]

_HOMES = {
    "Closeness": "shoal.promises.closeness",
    "Date": "shoal.kinds.date",
    "Diversity": "shoal.promises.diversity",
    "Hierarchy": "shoal.kinds.hierarchy",
    "Nominal": "shoal.kinds.nominal",
    "Ordinal": "shoal.kinds.ordinal",
    "Place": "shoal.kinds.place",
    "Inspection": "shoal.inspection.inspect",
    "MaskRequest": "shoal.masking.request",
    "Microaggregator": "shoal.estimator",
    "Progress": "shoal.core.progress",
    "Publication": "shoal.privacy.publication",
    "Release": "shoal.masking.release",
    "Roles": "shoal.roles.roles_file",
    "assess": "shoal.assessment.measurement",
    "compare": "shoal.comparison.compare",
    "compare_around": "shoal.comparison.around",
    "inspect": "shoal.inspection.inspect",
    "mask": "shoal.masking.mask",
    "SpanningTree": "shoal.algorithms.spanning_tree",
    "methods": "shoal.algorithms.registry",
    "partition": "shoal.algorithms.partition",
    "spanning_tree": "shoal.algorithms.spanning_tree",
    "publish": "shoal.privacy.mechanism",
    "verify_bound": "shoal.algorithms.optimize.certificate",
    "watching": "shoal.core.progress",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'shoal' has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "shoal.core.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
