# %% [markdown]
# # Blocks for very large tables
#
# A. Solanas, A. Martínez-Ballesté, J. Domingo-Ferrer and J. M. Mateo-Sanz, *A 2^d-tree-based blocking method for
# microaggregating very large data sets* (2006). MDAV takes time in n². Cut into blocks it takes time in n, but what
# lies on both sides of a cut cannot share a group. The paper cuts space in 2^d boxes, again and again, until a box
# holds at most L records, and compares that with intervals of one column.

# %%
import matplotlib.pyplot as plt
import numpy as np
from _tables import reference

import shoal


def sse(X, k, **blocking):
    """SSE on standardised columns, which is what the paper prints."""
    return shoal.mask(X, k, method="mdav", **blocking).loss / 100 * X.size


# %% [markdown]
# ## Table 5: what blocks cost, on EIA
#
# Beside it what the paper prints for this table. It does not say which column its intervals cut; here it is the
# first, so that figures of intervals differ.

# %%
PAPER = {(100, 3): (663.435, 456.846), (200, 3): (503.281, 464.589),
         (100, 5): (1651.86, 713.095), (200, 5): (1179.25, 734.925)}  # fmt: skip
X = reference("eia").to_numpy().astype(float)
print("  L  k   intervals    paper   2^d-tree    paper   no blocks")
for (L, k), (intervals, tree) in PAPER.items():
    found = [sse(X, k, block=L, split=split) for split in ("univariate", "all")]
    print(f"{L:3} {k:2} {found[0]:11.1f} {intervals:8.1f} {found[1]:10.1f} {tree:8.1f} {sse(X, k, block=0):11.1f}")

# %% [markdown]
# ## Figure 8: the more columns, the more it matters
#
# Uniform records, k = 3: 20,000 where the paper has 250,000, and blocks of 2,000.

# %%
dimensions, rng = range(2, 9), np.random.default_rng(0)
curves = {"univariate": [], "all": [], "one": []}
for d in dimensions:
    X = rng.uniform(-10_000, 10_000, (20_000, d))
    for split, curve in curves.items():
        curve.append(sse(X, 3, block=2000, split=split))

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
for (_, curve), name in zip(
    curves.items(), ("intervals of one column", "2^d-tree", "one column at a time"), strict=True
):
    axes.plot(dimensions, curve, "o-", label=name)
axes.set(xlabel="columns d", ylabel="SSE", yscale="log")
_ = axes.legend()

# %% [markdown]
# The third curve is shoal's own: a box is cut in one column at a time. With many columns 2^d boxes are too many, most
# of them nearly empty, so above five columns shoal cuts like this unless it is told otherwise (`split`).
