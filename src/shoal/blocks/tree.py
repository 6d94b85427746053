"""A 2^d-tree built from counts: nodes with more than L records are split at their midpoints until none remain.

A. Solanas, A. Martínez-Ballesté, J. Domingo-Ferrer and J. M. Mateo-Sanz, A 2^d-tree-based blocking method for
microaggregating very large data sets, ARES 2006, Section 2.2. Records are not moved. For every open node, a round
counts the records in each occupied box several levels below the node, and the counts alone determine the splits. Only
occupied children exist. A node whose records all have the same bins is not split further.

The bits of a record's bins, most significant first and column by column, form its Morton code; a node is a prefix of
this code. split="all" uses one bit of every column at a time (2^d children, as in the paper). split="one" uses a single
bit, from one column after the other, so nodes are split no further than needed. split="univariate" is the paper's
comparison: n/L equal intervals of the first column, in one round. split="sorted" is the method of the paper's
introduction. Records in the order of one column are cut every L records, so only nodes on a cut are split.

A round takes O(n d) time and O(boxes) memory; a uniform table needs one or two rounds. The number of levels per round
affects the speed but never the leaves. If the first round is not enough, a sample of the records determines the number
of levels worth counting (`deepen`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.blocks.quantisation import BITS, Bins, Frame, quantise, quantise_record
from shoal.blocks.rule import Split
from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints

__all__ = [
    "CODE_BITS",
    "Counts",
    "Tree",
    "beginning_of_runs",
    "combine_counts",
    "count_boxes",
    "deepen",
    "grow",
    "is_open",
    "leaf_order",
    "locate",
    "new_tree",
    "runs_of",
]

CODE_BITS = 40  # the lower bits of a key contain a code, the upper bits the node
EXTRA_BOXES = 64  # maximum number of boxes that a round counts below any node to save rounds
SORTED_BITS = 6  # extra bits per round for sorted records, beyond those that separate the cuts
USUAL_BITS = 20  # maximum number of bits per round, unless a single split needs more
CODE_SHIFT = np.uint64(CODE_BITS)
ONE = np.uint64(1)
TOP = np.uint64(BITS - 32)
WORD = np.uint64(32)
HASH = np.uint64(0x9E3779B97F4A7C15)
HASH_SHIFT = np.uint64(32)


class Tree(NamedTuple):
    """Nodes and their children, in arrays. A node without children is open because its records are not counted yet."""

    bit: Ints  # (nodes,): the first bit of the code that distinguishes the children
    width: Ints  # (nodes,): the number of these bits; −m for m equal intervals of the first column
    first: Ints  # (nodes,): the first child
    children: Ints  # (nodes,): the number of children
    start: Bins  # (children,): the smallest code of the child
    target: Ints  # (children,): the node of the child, or −1 − leaf
    rank: Ints  # (nodes,): the number of the root's records before the node in Morton order
    total: Ints  # (nodes,): the number of records of the root
    sizes: Ints  # (leaves,): the number of records
    same: Ints  # (leaves,): 1 if all records have the same bins


class Counts(NamedTuple):
    """The occupied boxes below the open nodes, with a key made of node and code."""

    keys: Bins
    counts: Ints
    low: Bins  # (boxes, d): the minimum and maximum bin of the records in every column
    high: Bins


def new_tree(sizes: Ints, d: int, L: int, split: Split) -> Tree:
    """Return the tree before the first round: one node per root; small roots are leaves."""
    nodes = np.zeros(len(sizes), dtype=np.int64)
    small = sizes <= L
    leaves = np.flatnonzero(small)
    first = nodes.copy()
    first[small] = np.arange(len(leaves))
    return Tree(
        bit=nodes,
        width=_widths(sizes, nodes, d, L, split),
        first=first,
        children=small.astype(np.int64),
        start=np.zeros(len(leaves), dtype=np.uint64),
        target=-1 - np.arange(len(leaves)),
        rank=nodes,
        total=sizes,
        sizes=sizes[leaves],
        same=np.zeros(len(leaves), dtype=np.int64),
    )


def is_open(tree: Tree) -> bool:
    """Return True if another round of counting is needed."""
    return bool((tree.children == 0).any())


def count_boxes(X: Floats, roots: Ints, frame: Frame, tree: Tree) -> Counts:
    """Count the records in each occupied box below the open nodes."""
    widths = tree.width[tree.children == 0]
    capacity = sum(-int(w) if w < 0 else 1 << int(w) for w in widths)
    room = min(len(X), capacity)
    slots = np.full(1 << max(4, (2 * room).bit_length()), -1, dtype=np.int64)
    d = X.shape[1]
    table = Counts(
        keys=np.empty(room, dtype=np.uint64),
        counts=np.zeros(room, dtype=np.int64),
        low=np.empty((room, d), dtype=np.uint64),
        high=np.empty((room, d), dtype=np.uint64),
    )
    nodes = _descend(X, roots, frame, tree) if tree.children.any() else roots
    boxes = _count(X, nodes, frame, tree, slots, table)
    order = np.argsort(table.keys[:boxes])
    return Counts(table.keys[order], table.counts[order], table.low[order], table.high[order])


def combine_counts(first: Counts, second: Counts) -> Counts:
    """Add the counts of two parts of the records."""
    if np.array_equal(first.keys, second.keys):
        # A fast path: parts of a large table usually occupy the same boxes.
        low, high = np.minimum(first.low, second.low), np.maximum(first.high, second.high)
        return Counts(first.keys, first.counts + second.counts, low, high)
    keys = np.concatenate([first.keys, second.keys])
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    return Counts(
        keys[starts],
        np.add.reduceat(np.concatenate([first.counts, second.counts])[order], starts),
        np.minimum.reduceat(np.concatenate([first.low, second.low])[order], starts),
        np.maximum.reduceat(np.concatenate([first.high, second.high])[order], starts),
    )


def deepen(tree: Tree, X: Floats, roots: Ints, frame: Frame, share: float, L: int, split: Split) -> Tree:
    """Let the next round count more levels below open nodes where a sample of the records shows that this pays off.

    `X` and `roots` are the sample, a `share` of all records.
    """
    d = X.shape[1]
    step = d if split == "all" else 1
    Q = quantise(X, frame)
    nodes: Ints = -1 - locate(X, roots, frame, tree)
    order = np.argsort(nodes, kind="stable")
    open_nodes = np.flatnonzero(tree.children == 0)
    starts: Ints = np.searchsorted(nodes[order], np.append(open_nodes, len(tree.bit)))
    width = tree.width.copy()
    for node, a, b in zip(open_nodes.tolist(), starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        widest = min(CODE_BITS // step * step, BITS * d - int(tree.bit[node]))
        if widest > width[node] > 0:
            codes = np.sort(_codes(Q, order[a:b], int(tree.bit[node]), widest))
            cap = max(EXTRA_BOXES, 8 * int((b - a) / (share * L)))
            width[node] = _worthwhile(codes, int(width[node]), widest, step, share * L, cap)
    return tree._replace(width=width)


def grow(tree: Tree, counted: Counts, d: int, L: int, k: int, split: Split) -> Tree:
    """Split the open nodes by the counts below them; children that are still too large become open nodes."""
    nodes = (counted.keys >> CODE_SHIFT).astype(np.int64)
    codes = counted.keys & np.uint64((1 << CODE_BITS) - 1)
    step = d if split == "all" else 1
    before = np.r_[0, np.cumsum(counted.counts)]
    cuts = _cuts(nodes, codes, before, tree, step, L, k if split == "sorted" else 0)
    sizes = np.add.reduceat(counted.counts, cuts)
    low, high = np.minimum.reduceat(counted.low, cuts), np.maximum.reduceat(counted.high, cuts)
    same = (low == high).all(axis=1)
    parents = nodes[cuts]
    owners, at, many = np.unique(parents, return_index=True, return_counts=True)
    rank = tree.rank[parents] + before[cuts] - np.repeat(before[cuts[at]], many)
    total = tree.total[parents]
    fits = sizes <= L
    if split == "sorted":
        fits = runs_of(rank, total, L, k) == runs_of(rank + sizes - 1, total, L, k)
    leaf = fits | same | (split == "univariate")
    opened = np.flatnonzero(~leaf)
    # Bits that all records of a node share do not distinguish them, so the next round starts after these bits.
    bit = _first_bits(low[opened], high[opened], d, split)
    first, children = tree.first.copy(), tree.children.copy()
    first[owners], children[owners] = len(tree.start) + at, many
    target = np.empty(len(cuts), dtype=np.int64)
    target[opened] = len(tree.bit) + np.arange(len(opened))
    target[leaf] = -1 - (len(tree.sizes) + np.arange(leaf.sum()))
    zeros = np.zeros(len(opened), dtype=np.int64)
    return Tree(
        bit=np.r_[tree.bit, bit],
        width=np.r_[tree.width, _widths(sizes[opened], bit, d, L, split)],
        first=np.r_[first, zeros],
        children=np.r_[children, zeros],
        start=np.r_[tree.start, codes[cuts]],
        target=np.r_[tree.target, target],
        rank=np.r_[tree.rank, rank[opened]],
        total=np.r_[tree.total, total[opened]],
        sizes=np.r_[tree.sizes, sizes[leaf]],
        same=np.r_[tree.same, same[leaf].astype(np.int64)],
    )


def leaf_order(tree: Tree, roots: int) -> Ints:
    """Return the leaves in Morton order, root by root."""
    order = []
    stack = list(range(roots))[::-1]
    targets, first, children = tree.target.tolist(), tree.first.tolist(), tree.children.tolist()
    while stack:
        node = stack.pop()
        if node < 0:
            order.append(-1 - node)
        else:
            stack.extend(reversed(targets[first[node] : first[node] + children[node]]))
    return np.array(order, dtype=np.int64)


def _widths(sizes: Ints, bit: Ints, d: int, L: int, split: Split) -> Ints:
    """Return the number of bits for the next round, which divide a uniform node into children of up to L records."""
    if split == "univariate":
        return -np.maximum(1, np.ceil(sizes / L)).astype(np.int64)
    step = d if split == "all" else 1
    target = np.ceil(np.log2(np.maximum(sizes / L, 2.0))).astype(np.int64)
    if split == "sorted":
        target += SORTED_BITS
    usual = max(step, USUAL_BITS // step * step)
    widths: Ints = np.minimum(np.minimum(-(-target // step) * step, usual), BITS * d - bit)
    return widths


def _first_bits(low: Bins, high: Bins, d: int, split: Split) -> Ints:
    """Return the first bit of the Morton code in which records between two corners differ."""
    differ = low ^ high
    level = np.full(differ.shape, BITS, dtype=np.int64)
    for bit in range(BITS):
        level -= (differ >> np.uint64(bit)) > 0
    positions: Ints = d * level if split == "all" else d * level + np.arange(d)
    first: Ints = positions.min(axis=1, initial=BITS * d)
    return first


@kernel
def _code(q: Bins, bit: int, width: int) -> np.uint64:
    """Return `width` bits of a record's Morton code, or its interval number if `width` is negative."""
    if width < 0:
        interval: np.uint64 = ((q[0] >> TOP) * np.uint64(-width)) >> WORD
        return interval
    d = len(q)
    # Divisions are slow, and most codes start at the first bit.
    level, j = (bit // d, bit % d) if bit else (0, 0)
    code = np.uint64(0)
    while width > 0:
        shift = np.uint64(BITS - 1 - level)
        stop = min(d, j + width)
        for column in range(j, stop):
            code = code << ONE | (q[column] >> shift) & ONE
        width -= stop - j
        level += 1
        j = 0
    return code


@kernel
def _count(X: Floats, nodes: Ints, frame: Frame, tree: Tree, slots: Ints, table: Counts) -> int:
    """Count the records of each box in a hash table with open addressing; return the number of boxes."""
    n, d = X.shape
    bit, width = tree.bit, tree.width
    keys, counts, lowest, highest = table
    last = len(slots) - 1
    q = np.empty(d, dtype=np.uint64)
    boxes = 0
    for i in range(n):
        node = nodes[i]
        if node < 0:
            continue
        quantise_record(X[i], frame, q)
        key = np.uint64(node) << CODE_SHIFT | _code(q, bit[node], width[node])
        slot = np.int64((key * HASH) >> HASH_SHIFT) & last
        while slots[slot] >= 0 and keys[slots[slot]] != key:
            slot = (slot + 1) & last
        box = slots[slot]
        if box < 0:
            box = slots[slot] = boxes
            keys[box] = key
            for j in range(d):
                lowest[box, j] = highest[box, j] = q[j]
            boxes += 1
        counts[box] += 1
        for j in range(d):
            lowest[box, j] = min(lowest[box, j], q[j])
            highest[box, j] = max(highest[box, j], q[j])
    return boxes


@kernel
def _codes(Q: Bins, members: Ints, bit: int, width: int) -> Bins:
    codes = np.empty(len(members), dtype=np.uint64)
    for i in range(len(members)):
        codes[i] = _code(Q[members[i]], bit, width)
    return codes


@kernel
def _worthwhile(codes: Bins, width: int, widest: int, step: int, full: float, cap: int) -> int:
    """Return the number of bits to count for sorted codes so that no box exceeds `full`, within the limit `cap`."""
    while width + step <= widest:
        shift = np.uint64(widest - width)
        boxes, largest, run = 0, 0, 0
        for i in range(len(codes)):
            run = run + 1 if i and codes[i] >> shift == codes[i - 1] >> shift else 1
            boxes += run == 1
            largest = max(largest, run)
        if largest <= full or boxes > cap:
            break
        width += step
    return width


@kernel
def _cuts(nodes: Ints, codes: Bins, before: Ints, tree: Tree, step: int, L: int, k: int) -> Ints:
    """Return the boxes at which children begin; a child is a range of at most L records or a single code.

    With k > 0, a child is a range of records of the same run.
    """
    width, rank, total = tree.width, tree.rank, tree.total
    cuts = np.empty(len(nodes), dtype=np.int64)
    count = 0
    ends, used = np.empty(len(nodes) + 1, dtype=np.int64), np.empty(len(nodes) + 1, dtype=np.int64)
    a = 0
    while a < len(nodes):
        node, start = nodes[a], before[a]
        end = a
        while end < len(nodes) and nodes[end] == node:
            end += 1
        # A stack of consecutive ranges: the end of each, and the number of bits that its codes share.
        ends[0], used[0] = end, 0
        depth = 1
        while depth:
            depth -= 1
            b, bits = ends[depth], used[depth]
            fits = before[b] - before[a] <= L
            if k:
                first_rank, last_rank = rank[node] + before[a] - start, rank[node] + before[b] - 1 - start
                fits = run_of(first_rank, total[node], L, k) == run_of(last_rank, total[node], L, k)
            if width[node] >= 0 and (fits or bits >= width[node]):
                cuts[count] = a
                count += 1
                a = b
            elif width[node] < 0:
                for box in range(a, b):
                    cuts[count] = box
                    count += 1
                a = b
            else:
                shift = np.uint64(width[node] - bits - step)
                for box in range(b - 1, a - 1, -1):
                    if box == b - 1 or codes[box] >> shift != codes[box + 1] >> shift:
                        ends[depth], used[depth] = box + 1, bits + step
                        depth += 1
    return cuts[:count]


def locate(X: Floats, roots: Ints, frame: Frame, tree: Tree) -> Ints:
    """Return the leaf of each record."""
    leaves: Ints = -1 - _descend(X, roots, frame, tree)
    return leaves


# Finding a child takes less time than passing arrays or unpacking them from a tuple, hence a single loop.
@kernel
def _descend(X: Floats, roots: Ints, frame: Frame, tree: Tree) -> Ints:
    """Return the open node that contains each record, or −1 − leaf."""
    bit, width, first, children, start, target = tree[:6]
    nodes = np.empty(len(X), dtype=np.int64)
    q = np.empty(X.shape[1], dtype=np.uint64)
    for i in range(len(X)):
        quantise_record(X[i], frame, q)
        node = roots[i]
        while node >= 0 and children[node]:
            low, high = first[node], first[node] + children[node] - 1
            if low < high:
                code = _code(q, bit[node], width[node])
                # If most boxes are occupied, the code is the position of the child.
                guess = low + np.int64(code) if width[node] >= 0 and code <= np.uint64(high - low) else low
                if start[guess] == code:
                    low = high = guess
                while low < high:
                    middle = (low + high + 1) // 2
                    if start[middle] <= code:
                        low = middle
                    else:
                        high = middle - 1
            node = target[low]
        nodes[i] = node
    return nodes


@kernel
def run_of(rank: int, total: int, L: int, k: int) -> int:
    """Return the run of the record with a given rank, among `total` records of a root.

    Records of equal value are cut in input order. The last k records of a root stay together. If the last run would
    otherwise be too short, it begins earlier, so every run has k to L records.
    """
    return (total - 1) // L if rank >= total - k else rank // L


@kernel
def runs_of(rank: Ints, total: Ints, L: int, k: int) -> Ints:
    """Return the runs of several records."""
    runs = np.empty(len(rank), dtype=np.int64)
    for i in range(len(rank)):
        runs[i] = run_of(rank[i], total[i], L, k)
    return runs


def beginning_of_runs(total: int, L: int, k: int) -> Ints:
    """Return the rank of the first record of each run.

    Examples
    --------
    >>> beginning_of_runs(21, L=10, k=3).tolist()
    [0, 10, 18]
    """
    begins = np.arange(0, total, L)
    begins[-1] = min(begins[-1], max(0, total - k))
    return begins
