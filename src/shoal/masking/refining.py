"""A partition on its way to its release: records are moved once more, to lower the loss of what is released."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap

import numpy as np

from shoal.algorithms.refinement import ANCESTOR, MEAN, MEDIAN, MODE, Variables, refine
from shoal.core.measures import Scaling, canonical_labels, number_through
from shoal.core.types import Floats, Ints, State
from shoal.kinds.kind import Embedding

__all__ = ["refined", "variables_of"]

RELEASES = {"mean": MEAN, "median": MEDIAN, "mode": MODE, "ancestor": ANCESTOR}


def refined(
    X: Floats,
    labels: Ints,
    cells: Sequence[tuple[Ints, Ints]],
    k: int,
    embedding: Embedding,
    scale: Scaling,
    *,
    steps: int,
    seed: int | None,
    state: State,
) -> Ints:
    """Return the labels after so many steps a record of `refine`, in each cell or block on its own.

    Parameters
    ----------
    X
        The records, categories as codes.
    labels
        Their groups; none crosses a cell.
    cells
        Of each cell: its records (and the coordinates that they do not miss).
    k, embedding, scale
        As records were grouped.
    steps, seed, state
        See `refine`.
    """
    Z, variables = embedding.apply(X, scale), variables_of(X, embedding, scale)

    def moved(rows: Ints, _: Ints) -> Ints:
        columns, coordinates = (np.flatnonzero(~np.isnan(table[rows[0]])) for table in (variables.values, Z))
        own = canonical_labels(labels[rows])
        if not len(columns):
            return own
        here = variables._replace(
            release=variables.release[columns],
            values=np.ascontiguousarray(variables.values[np.ix_(rows, columns)]),
            table=variables.table[columns],
        )
        place = np.ascontiguousarray(Z[np.ix_(rows, coordinates)])
        return refine(place, own, k, here, steps=steps, seed=seed, state=state)

    return number_through(len(X), (rows for rows, _ in cells), starmap(moved, cells))


def variables_of(X: Floats, embedding: Embedding, scale: Scaling) -> Variables:
    """Return what represents a group in each variable, and how far values lie from it."""
    Z, codings = scale.apply(X), embedding.codings
    parts = [coding.variables(X, j, Z) for j, coding in enumerate(codings)]
    widths = [part.shape[1] for part in parts]
    unordered = [(coding.squares(), coding.lineage) for coding in codings if not coding.ordered]
    most = max([len(near) for near, _ in unordered], default=1)
    depth = max([lineage.shape[1] for _, lineage in unordered], default=1)
    squares, ancestors = np.zeros((len(unordered), most, most)), np.zeros((len(unordered), most, depth), dtype=np.int64)
    for t, (near, lineage) in enumerate(unordered):
        squares[t, : len(near), : len(near)] = near
        ancestors[t, : len(lineage), : lineage.shape[1]] = lineage
        ancestors[t, : len(lineage), lineage.shape[1] :] = lineage[:, -1:]
    without_order = np.array(embedding.without_order, dtype=np.int64)
    table = np.where(without_order, np.cumsum(without_order) - 1, 0)
    release = np.array([RELEASES[coding.release] for coding in codings], dtype=np.int64)
    values = np.ascontiguousarray(np.hstack(parts))
    return Variables(np.repeat(release, widths), values, np.repeat(table, widths), squares, ancestors)
