"""Docstrings that are completed when a module is imported, for mkdocstrings, which reads sources alone."""

import inspect
from importlib import import_module
from typing import Any

from griffe import Docstring, Extension, Function


class RuntimeDocstrings(Extension):
    """Take the docstring of a function that is made from its parameters (`shoal.mask`) from the function itself."""

    def on_function(self, *, func: Function, **_: Any) -> None:
        """Replace the docstring where it says *parameters*."""
        if func.docstring is not None and "*parameters*" in func.docstring.value and func.name == "mask":
            home = import_module(func.module.path)
            func.docstring = Docstring(str(inspect.getdoc(getattr(home, func.name))), parent=func, parser="numpy")
