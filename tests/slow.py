"""Slow, obvious references for the fast kernels: the steps of the papers, literally."""

from fractions import Fraction
from functools import cache
from itertools import combinations
from math import inf

import numpy as np


def distance(a, b):
    """Return the squared distance, summed column by column as in the kernels, so that ties are the same."""
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += (x - y) * (x - y)
    return total


def mean(X, records):
    return [sum(X[i][j] for i in records) / len(records) for j in range(len(X[0]))]


def farthest(X, records, point):
    return max(records, key=lambda i: (distance(X[i], point), -i))


def nearest(X, records, point, count):
    return sorted(records, key=lambda i: (distance(X[i], point), i))[:count]


def as_labels(groups, n):
    labels = np.full(n, -1)
    for number, group in enumerate(groups):
        labels[list(group)] = number
    assert (labels >= 0).all()
    return labels


def mdav(X, k):
    left, groups = set(range(len(X))), []
    while len(left) >= 2 * k:
        r = farthest(X, left, mean(X, sorted(left)))
        ends = [r]
        if len(left) >= 3 * k:
            ends.append(farthest(X, left, X[r]))
        for end in ends:
            group = nearest(X, left, X[end], k)
            groups.append(group)
            left -= set(group)
    groups.append(left)
    return as_labels(groups, len(X))


def v_mdav(X, k, gamma):
    left, groups = set(range(len(X))), []
    centre = mean(X, sorted(left))
    while len(left) >= k:
        group = nearest(X, left, X[farthest(X, left, centre)], k)
        left -= set(group)
        while len(group) < 2 * k - 1 and len(left) > 1:
            inside, candidate = min((min(distance(X[i], X[g]) for g in group), i) for i in left)
            outside = min(distance(X[i], X[candidate]) for i in left - {candidate})
            if not inside < gamma * gamma * outside:
                break
            group.append(candidate)
            left.remove(candidate)
        groups.append(group)
    return as_labels(_with_leftovers(X, groups, left), len(X))


def _gather(X, left, seed, k):
    group = [seed if seed in left else nearest(X, left, X[seed], 1)[0]]
    left.remove(group[0])
    while len(group) < k:
        group += nearest(X, left, mean(X, group), 1)
        left.remove(group[-1])
    return group


def _with_leftovers(X, groups, left):
    """Run the last loop of the pseudocode: the group grows with each record, so its centroid moves."""
    groups = [list(group) for group in groups]
    for record in sorted(left):
        nearest_group = min(range(len(groups)), key=lambda g: (distance(X[record], mean(X, groups[g])), g))
        groups[nearest_group].append(record)
    return groups


def diameter(X, k):
    left, groups = set(range(len(X))), []
    while len(left) >= 2 * k:
        pairs = ((distance(X[a], X[b]), -a, -b) for a in left for b in left if a < b)
        _, a, b = max(pairs)
        groups.append(_gather(X, left, -a, k))
        groups.append(_gather(X, left, -b, k))
    if len(left) >= k:
        groups.append(left)
        left = set()
    return as_labels(_with_leftovers(X, groups, left), len(X))


def centroid(X, k):
    left, groups = set(range(len(X))), []
    while len(left) >= k:
        groups.append(_gather(X, left, farthest(X, left, mean(X, sorted(left))), k))
    return as_labels(_with_leftovers(X, groups, left), len(X))


def spanning_tree(X, metric):
    """Kruskal: edges in order of length, then record numbers, each that joins two trees; the longest first."""
    n = len(X)
    label, edges = list(range(n)), []
    for length, a, b in sorted((metric(X[i], X[j]), i, j) for i in range(n) for j in range(i + 1, n)):
        if label[a] != label[b]:
            edges.append((length, a, b))
            label = [label[a] if other == label[b] else other for other in label]
    edges.sort(key=lambda edge: (-edge[0], edge[1], edge[2]))
    return [edge[1:] for edge in edges], [edge[0] for edge in edges]


def k_ward(X, k):
    """Domingo-Ferrer and Mateo-Sanz 2002: all pairs of groups are compared before each union."""

    def increase(a, b):
        return len(a) * len(b) / (len(a) + len(b)) * distance(mean(Z, a), mean(Z, b))

    def divide(records):
        if len(records) < 2 * k:
            return [records]
        for i in records:
            for j, value in enumerate(X[i]):
                # Deviations, as in the kernel, so that ties are the same ties.
                Z[i][j] = value - X[records[0]][j]
        _, a, b = max((distance(Z[a], Z[b]), -a, -b) for a in records for b in records if a < b)
        left, groups = set(records), []
        for end in (-a, -b):
            groups.append(sorted(nearest(Z, left, Z[end], k)))
            left -= set(groups[-1])
        groups += [[record] for record in left]
        while min(map(len, groups)) < k:
            groups.sort()
            pairs = ((a, b) for a in groups for b in groups if a < b and min(len(a), len(b)) < k)
            a, b = min(pairs, key=lambda pair: (increase(*pair), pair[0][0], pair[1][0]))
            groups = [group for group in groups if group not in (a, b)] + [sorted(a + b)]
        return [part for group in groups for part in divide(group)]

    Z = [[0.0] * len(X[0]) for _ in X]
    return as_labels(divide(list(range(len(X)))), len(X))


def exact_sse(values):
    """Return the SSE in rational arithmetic, without rounding."""
    numbers = [Fraction(value) for value in values]
    return sum(x * x for x in numbers) - sum(numbers) ** 2 / len(numbers)


def exact_optimum(values, k):
    """Return the least SSE over all partitions of sorted values into runs of at least k."""
    ordered = sorted(values)

    @cache
    def best(start):
        if start == len(ordered):
            return Fraction(0)
        ends = range(start + k, len(ordered) + 1)
        return min((exact_sse(ordered[start:end]) + best(end) for end in ends), default=Fraction(10**40))

    return best(0)


def shortest_path(values, k):
    """Return the optimal SSE by the plain O(kn) recurrence with arc lengths from scratch."""
    x = np.sort(values)
    length = [0.0] + [inf] * len(x)
    for j in range(k, len(x) + 1):
        for i in range(max(0, j - 2 * k + 1), j - k + 1):
            if length[i] < inf:
                group = x[i:j] - x[i]
                length[j] = min(length[j], length[i] + float(np.square(group - group.mean()).sum()))
    return length[-1]


def released_cost(places, codes, labels, how, ancestors=None):
    """Sum the squared distances to the value of each group in one column; codes index points of values and nodes."""
    total = 0.0
    for group in set(labels):
        own = sorted(code for code, label in zip(codes, labels, strict=True) if label == group)
        if how == "median":
            stands = places[own[(len(own) - 1) // 2]]
        elif how == "mode":
            stands = places[min(own, key=lambda code: (-own.count(code), code))]
        elif how == "ancestor":
            ways = [list(ancestors[code]) for code in own]
            stands = places[next(node for node in ways[0] if all(node in way for way in ways))]
        else:
            stands = np.mean([places[code] for code in own], axis=0)
        total += sum(float(np.square(places[code] - stands).sum()) for code in own)
    return total


def model(histogram, table, model, ordered):
    """Return a group's measure and whether a model allows it, from value counts in the group and in the table."""
    p, q = histogram / histogram.sum(), table / table.sum()
    if hasattr(model, "t"):
        if ordered:
            apart = sum(abs((p - q)[: i + 1].sum()) for i in range(len(p))) / max(1, len(p) - 1)
        else:
            apart = np.abs(p - q).sum() / 2
        return apart, apart <= model.t + 1e-12
    if model.kind == "distinct":
        return (histogram > 0).sum(), (histogram > 0).sum() >= model.least
    if model.kind == "entropy":
        entropy = -sum(share * np.log(share) for share in p if share > 0)
        return entropy, entropy >= np.log(model.least) - 1e-12
    counts = sorted(histogram.tolist(), reverse=True)
    rare = sum(counts[int(model.least) - 1 :])
    return (counts[0] / rare if rare else inf), counts[0] < model.c * rare


def least_sse(Z, columns, models, k):
    """Return the least SSE of all partitions into groups of at least k that models allow; infinity without any."""
    n = len(Z)
    cost = [0.0] * (1 << n)
    for subset in range(1, 1 << n):
        group = [i for i in range(n) if subset >> i & 1]
        counts = [np.bincount(column.codes[group], minlength=len(column.counts)) for column in columns]
        allowed = len(group) >= k and all(
            model(counts[place], columns[place].counts, asked, columns[place].ordered)[1] for place, asked in models
        )
        cost[subset] = float(np.square(Z[group] - Z[group].mean(axis=0)).sum()) if allowed else inf
    best = [0.0] + [inf] * ((1 << n) - 1)
    for records in range(1, 1 << n):
        # The group of the lowest record, and the best partition of the rest.
        group = records
        while group:
            if group & records & -records:
                best[records] = min(best[records], cost[group] + best[records ^ group])
            group = (group - 1) & records
    return best[-1]


def closeness_first(X, codes, k, t):
    """Algorithm 3 of Soria-Comas et al. 2015: a record of every run, one more where a run has more than groups left."""
    n = len(X)
    size = max(k, int(np.ceil(n / (2 * (n - 1) * t + 1) - 1e-12)))
    size += (n % size) // (n // size)
    count, lengths = n // size, [n // size] * size
    for extra in range(n % size):
        lengths[size // 2 - (size % 2 == 0 and extra % 2 == 0)] += 1
    order = sorted(range(n), key=lambda i: (codes[i], i))
    runs = [set(order[sum(lengths[:r]) : sum(lengths[: r + 1])]) for r in range(size)]
    left, groups, point = set(range(n)), [], None
    for number in range(count - 1):
        point = mean(X, sorted(left)) if number % 2 == 0 else point
        point = X[farthest(X, left, point)]
        group = [nearest(X, run & left, point, 1)[0] for run in runs]
        left -= set(group)
        longer = [run & left for run in runs if len(run & left) > count - number - 1]
        group += nearest(X, longer[0], point, 1) if longer else []
        left -= set(group)
        groups.append(group)
    return as_labels([*groups, left], n)


def k_first(X, k, lacking):
    """Algorithm 2 of Soria-Comas et al. 2015, before groups are merged; `lacking` says how far a group is from t."""
    left, groups, point = set(range(len(X))), [], None
    while len(left) >= 2 * k:
        point = mean(X, sorted(left)) if len(groups) % 2 == 0 else point
        point = X[farthest(X, left, point)]
        near = nearest(X, left, point, len(left))
        group, others = near[:k], near[k:]
        while lacking(group) > 0 and others:
            other = others.pop(0)
            tried = [[*group[:place], other, *group[place + 1 :]] for place in range(k)]
            best = min(tried, key=lacking)
            group = best if lacking(best) < lacking(group) else group
        groups.append(group)
        left -= set(group)
    return as_labels([*groups, left], len(X))


def merge_worst(X, labels, lacking):
    """Algorithm 1 of Soria-Comas et al. 2015: the group that lacks most is merged with the nearest."""
    groups = [np.flatnonzero(labels == group).tolist() for group in range(labels.max() + 1)]
    while len(groups) > 1 and max(map(lacking, groups)) > 0:
        worst = max(groups, key=lacking)
        others = [group for group in groups if group is not worst]
        near = min(others, key=lambda group: np.square(X[group].mean(axis=0) - X[worst].mean(axis=0)).sum())
        groups = [worst + near if group is worst else group for group in groups if group is not near]
    return as_labels(groups, len(X))


def minimal_uniques(codes):
    """All sets of columns, each record against all others: (record, set) of every minimal sample unique."""
    n, d = codes.shape

    def unique(i, chosen):
        return all(tuple(codes[i, chosen]) != tuple(codes[j, chosen]) for j in range(n) if j != i)

    def minimal(i, chosen):
        fewer = [[c for c in chosen if c != left] for left in chosen] if len(chosen) > 1 else []
        return unique(i, chosen) and not any(unique(i, part) for part in fewer)

    sets = [list(chosen) for size in range(1, d + 1) for chosen in combinations(range(d), size)]
    return [(i, tuple(chosen)) for i in range(n) for chosen in sets if minimal(i, chosen)]


def dominated(values, labels, released, weights, units):
    """p %-rule, p = 10: the second largest member of a group subtracts itself from the total, and has the largest.

    Amounts below zero count by their size: whoever subtracts does not know that others cancel out.
    """
    count = of = 0
    for group in sorted(set(labels)):
        rows = [i for i, label in enumerate(labels) if label == group and not np.isnan(values[i])]
        if not rows:
            continue
        members = {}
        for i in rows:
            members[units[i]] = members.get(units[i], 0) + Fraction(weights[i]) * Fraction(values[i])
        largest, _, *others = [*sorted(map(abs, members.values()), reverse=True), 0, 0]
        error = Fraction(released[rows[0]]) * sum(Fraction(weights[i]) for i in rows) - sum(members.values())
        error = abs(error) if min(members.values()) < 0 else error
        count += abs(sum(others) + error) < largest / 10
        of += 1
    return count, of
