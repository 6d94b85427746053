r"""Pair weights of records in a kd-tree, and queries for all records with small weights to given records.

For groups of s records and duals π, let c = s/(s−1), and let b_ij be the price of cuts that the pair i, j receives
(`optimize.cuts.pair_prices`). The weight of the pair is

    w_ij = D_ij − c (π_i + π_j) + s b_ij.

The weights of the pairs in a group sum to at most s times its reduced cost (`optimize.pricing`). No pair is stored; D
is computed on demand. Let P be a set of m records with mean y, and v another record. Then

    Σ_{u∈P} w_uv ≥ m|v − y|² + Σ_u |u − y|² − c Σ_u π_u − m c π_v,

with equality if no cut has a price. Every v whose weights to P sum to at most a given gap therefore satisfies
|v − y|² − cπ_v ≤ (gap − Σ|u − y|² + cΣπ_u)/m. A query of the tree finds all such v; every node stores its bounding box
and its greatest π. The greatest π of the whole table would make every query wide: a record far from all others has a
large π, but only queries that reach this record should visit it.

**Rounding.** The coordinates of a record of P are first subtracted, so all errors are relative to the distances within
the query, even if values are near 1e9. A query adds κ = (d + s² + 32) 2⁻⁵⁰, relative to all terms of its sum. Each term
results from fewer than d + s² + 32 operations, each with a relative error of at most 2⁻⁵³.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints
from shoal.kernels.kdtree import KdTree

__all__ = ["PairWeights", "make_pair_weights", "query", "weight"]


class PairWeights(NamedTuple):
    """The components of the pair weights for groups of one size; records are positions in the tree."""

    rows: Floats  # (n, d)
    boxes: Floats  # (nodes, 2, d)
    right: Ints  # for each node, as in `KdTree`
    leaf: int  # records per leaf
    duals: Floats
    greatest: Floats  # the greatest dual in each node
    factor: float  # c
    kappa: float  # κ
    first: Ints  # the pairs of record i with a price are first[i] … first[i + 1] − 1
    partner: Ints
    price: Floats  # s b_ij, rounded down


def make_pair_weights(tree: KdTree, duals: Floats, size: int, pairs: tuple[Ints, Ints, Floats]) -> PairWeights:
    """Prepare the weights for groups of one size; `pairs` holds the pair prices per record (first, partner, price)."""
    d, leaf = tree.rows.shape[1], tree.leaves.shape[2]
    kappa = (d + size * size + 32) * 2.0**-50
    first, partner, price = pairs
    return PairWeights(
        tree.rows, tree.boxes, tree.right, leaf, duals, _greatest(tree.right, leaf, duals), size / (size - 1.0), kappa,
        first, partner, price,
    )  # fmt: skip


@kernel
def _greatest(right: Ints, leaf: int, duals: Floats) -> Floats:
    """Return the greatest dual in every node of the tree, where children come after their parents."""
    out = np.empty(len(right))
    for node in range(len(right) - 1, -1, -1):
        if right[node] > 0:
            out[node] = max(out[node + 1], out[right[node]])
            continue
        start = (-1 - right[node]) * leaf
        best = -np.inf
        for v in range(start, min(start + leaf, len(duals))):
            best = max(best, duals[v])
        out[node] = best
    return out


@kernel(counted=False, inner=True)
def weight(w: PairWeights, i: int, j: int) -> float:
    """Return the weight of the pair i, j."""
    total: float = 0.0
    for t in range(w.rows.shape[1]):
        delta = w.rows[i, t] - w.rows[j, t]
        total += delta * delta
    total -= w.factor * (w.duals[i] + w.duals[j])
    for at in range(w.first[i], w.first[i + 1]):
        if w.partner[at] == j:
            total += w.price[at]
            break
    return total


@kernel(counted=False, inner=True)
def _limit(w: PairWeights, group: Ints, m: int, gap: float, shift: Floats) -> float:
    """Return the limit of |v − y|² − cπ_v, rounded up; write the mean y, minus the first record, to `shift`."""
    spread, duals, size = 0.0, 0.0, abs(gap)
    for t in range(len(shift)):
        base = w.rows[group[0], t]
        shift[t] = 0.0
        for a in range(1, m):
            shift[t] += w.rows[group[a], t] - base
        shift[t] /= m
        for a in range(m):
            delta = w.rows[group[a], t] - base - shift[t]
            spread += delta * delta
    for a in range(m):
        duals += w.factor * w.duals[group[a]]
        size += w.factor * abs(w.duals[group[a]])
    return (gap - spread + duals + w.kappa * (size + spread)) / m + w.kappa * spread


@kernel(counted=False, inner=True)
def _reach(w: PairWeights, limit: float, dual: float) -> float:
    """Return the greatest |v − y|² that a record v with the given dual may have, rounded up."""
    return (limit + w.factor * (dual + w.kappa * abs(dual))) * (1.0 + w.kappa)


@kernel(counted=False, inner=True)
def query(w: PairWeights, group: Ints, m: int, gap: float, out: Ints, shift: Floats, stack: Ints) -> int:
    """Find all records whose weights to the first m records of a group may sum to at most `gap`; return their number.

    The records are written to `out` and may include the m records. If their number exceeds the room of `out`, some are
    not written. `shift` (d,) and `stack` (DEPTH,) are scratch arrays.
    """
    d, base = len(shift), w.rows[group[0]]
    limit = _limit(w, group, m, gap, shift)
    stack[0], top, count = 0, 0, 0
    while top >= 0:
        node = stack[top]
        top -= 1
        near = 0.0
        for t in range(d):
            low, high = w.boxes[node, 0, t] - base[t], w.boxes[node, 1, t] - base[t]
            delta = max(low - shift[t], shift[t] - high, 0.0)
            near += delta * delta
        if near > _reach(w, limit, w.greatest[node]):
            continue
        if w.right[node] > 0:
            stack[top + 1], stack[top + 2] = w.right[node], node + 1
            top += 2
            continue
        start = (-1 - w.right[node]) * w.leaf
        for v in range(start, min(start + w.leaf, len(w.rows))):
            near = 0.0
            for t in range(d):
                delta = w.rows[v, t] - base[t] - shift[t]
                near += delta * delta
            if near <= _reach(w, limit, w.duals[v]):
                if count < len(out):
                    out[count] = v
                count += 1
    return count
