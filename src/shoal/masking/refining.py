"""A partition on its way to its release: records are moved once more, to lower the loss of what is released."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap

import numpy as np

from shoal.algorithms.refinement import ANCESTOR, MEAN, MEDIAN, MODE, Variables, refine
from shoal.core.measures import Scaling, canonical_labels, number_through
from shoal.core.types import Floats, Ints, State
from shoal.masking.coding import Coding, Embedding

__all__ = ["refined", "variables_of"]

RELEASES = {"median": MEDIAN, "mode": MODE, "ancestor": ANCESTOR}


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
        columns, coordinates = (np.flatnonzero(~np.isnan(table[rows[0]])) for table in (X, Z))
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
    """Return what stands for a group in each column, and how far values lie from it."""
    values, codings = scale.apply(X), embedding.codings
    apart = [coding for coding in codings if coding is not None and not coding.ordered]
    most = max([len(coding.coordinates) for coding in apart], default=1)
    depth = max([1, *(coding.ancestors.shape[1] for coding in apart if coding.ancestors is not None)])
    squares, ancestors = np.zeros((len(apart), most, most)), np.zeros((len(apart), most, depth), dtype=np.int64)
    for t, unordered in enumerate(apart):
        _fill(unordered, squares[t], ancestors[t])
    table, t = np.zeros(len(codings), dtype=np.int64), 0
    for j, coding in enumerate(codings):
        if coding is not None and coding.ordered:
            seen = ~np.isnan(X[:, j])
            values[:, j] = np.where(seen, coding.coordinates[np.where(seen, X[:, j], 0).astype(np.int64), 0], np.nan)
        elif coding is not None:
            values[:, j] = X[:, j]
            table[j] = t
            t += 1
    release = np.array([MEAN if coding is None else RELEASES[coding.release] for coding in codings], dtype=np.int64)
    return Variables(release, values, table, squares, ancestors)


def _fill(coding: Coding, squares: Floats, ancestors: Ints) -> None:
    """Write the squared distances of values and nodes, and the ancestors of each value; above the root is the root."""
    places = coding.coordinates
    lengths = np.square(places).sum(axis=1)
    n = len(places)
    squares[:n, :n] = np.maximum(lengths[:, None] + lengths - 2 * places @ places.T, 0.0)
    np.fill_diagonal(squares, 0.0)
    if coding.ancestors is not None:
        values, depth = coding.ancestors.shape
        ancestors[:values, :depth] = coding.ancestors
        ancestors[:values, depth:] = coding.ancestors[:, -1:]
