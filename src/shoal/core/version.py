"""The version of this package."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.3.0.dev0"
