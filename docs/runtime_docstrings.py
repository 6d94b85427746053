"""Signatures and docstrings that are generated at import from a request; mkdocstrings reads only sources."""

import inspect
from importlib import import_module
from typing import Any

from griffe import Docstring, Extension, Function, Parameter, ParameterKind, Parameters

KINDS = {
    inspect.Parameter.POSITIONAL_OR_KEYWORD: ParameterKind.positional_or_keyword,
    inspect.Parameter.KEYWORD_ONLY: ParameterKind.keyword_only,
    inspect.Parameter.VAR_KEYWORD: ParameterKind.var_keyword,
}


class RuntimeDocstrings(Extension):
    """Extension that reads documentation generated from a request (`shoal.mask`, …) from the imported function."""

    def on_function(self, *, func: Function, **_: Any) -> None:
        """Replace the signature and the docstring if the latter has a line *parameters*."""
        if func.docstring is None or "*parameters*" not in map(str.strip, func.docstring.value.splitlines()):
            return
        function = getattr(import_module(func.module.path), func.name)
        func.docstring = Docstring(str(inspect.getdoc(function)), parent=func, parser="numpy")
        func.parameters = Parameters(*map(_parameter, inspect.signature(function).parameters.values()))


def _parameter(part: inspect.Parameter) -> Parameter:
    default = None if part.default is inspect.Parameter.empty else repr(part.default)
    return Parameter(part.name, kind=KINDS[part.kind], default=default)
