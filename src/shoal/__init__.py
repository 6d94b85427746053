"""shoal: microaggregation. Hide every record in a group of at least k similar ones.

The public names are imported on first use, so that ``import shoal`` and ``shoal --help`` stay fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.algorithms.registry import methods
    from shoal.errors import (
        FileError,
        InputError,
        NotKAnonymousWarning,
        PrivacyWarning,
        ShoalError,
        VerificationError,
    )
    from shoal.grouping import partition
    from shoal.optimize.certificate import verify_bound

__version__ = "0.1.0"

__all__ = [
    "FileError",
    "InputError",
    "NotKAnonymousWarning",
    "PrivacyWarning",
    "ShoalError",
    "VerificationError",
    "methods",
    "partition",
    "verify_bound",
]

_HOMES = {
    "methods": "shoal.algorithms.registry",
    "partition": "shoal.grouping",
    "verify_bound": "shoal.optimize.certificate",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'shoal' has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "shoal.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
