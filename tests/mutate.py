"""Run mutmut on the code that decides if a release is safe: ``make mutants``, and ``python tests/mutate.py show NAME``.

mutmut passes over functions with a decorator. Kernels and properties are most of what is to be mutated here, and can
be: kernels run as they are written (NUMBA_DISABLE_JIT), and a property needs its decorator once, on the function that
chooses the mutant. What is replaced here is private to mutmut, so its version is bounded in pyproject.toml.
"""

import os

import libcst as cst
from mutmut.__main__ import cli
from mutmut.mutation import file_mutation

MUTABLE = {"kernel", "property"}


def decorators(node):
    return {getattr(found.decorator, "func", found.decorator).value for found in node.decorators}


def skip(visitor, node, _real=file_mutation.MutationVisitor._skip_node_and_children):
    is_mutable = isinstance(node, cst.FunctionDef) and node.decorators and decorators(node) <= MUTABLE
    return False if is_mutable else _real(visitor, node)


def arrange(function, mutants, class_name, _real=file_mutation.function_trampoline_arrangement):
    before, (chooser, *copies), after, names = _real(function, mutants, class_name)
    if decorators(function) == {"property"}:
        copies = [copy.with_changes(decorators=[]) for copy in copies]
    return before, [chooser, *copies], after, names


if __name__ == "__main__":
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    file_mutation.MutationVisitor._skip_node_and_children = skip
    file_mutation.function_trampoline_arrangement = arrange
    cli()
