# %% [markdown]
# # Near the optimum: column generation in parts
#
# J. Castro, C. Gentile and E. Spagnolo-Arrizabalaga, *An optimization-based decomposition heuristic for the
# microaggregation problem* (2022). The best partition solves an integer programme with a column for every possible
# group. Column generation solves it for hundreds of records. The paper therefore divides the table, solves the parts,
# and repairs their borders by swaps. Its Table 1 shows the loss after each step on Tarragona.

# %%
import matplotlib.pyplot as plt
from _tables import reference

import shoal

# %% [markdown]
# ## Table 1: the loss after each step, k = 3
#
# *Step 2* is the better of MDAV and V-MDAV, *Step 3* swaps, *Step 5* solves s parts, *Step 7* swaps again. With fewer
# parts the loss is lower and the time longer.

# %%
PAPER = {40: (14.96, 14.85), 20: (14.83, 14.81)}
X = reference("tarragona").to_numpy().astype(float)
EXACT = {"integers": "float", "decimals": "all"}  # the loss of the groups, not of rounded means
steps = {s: shoal.mask(X, 3, method="decomposition", subsets=s, subset_limit=5.0, **EXACT).facts for s in PAPER}
print(" s   step 2   step 3   step 5    paper   step 7    paper")
for s, (step5, step7) in PAPER.items():
    two, three, five, seven = (steps[s][f"step {number} loss"] for number in (2, 3, 5, 7))
    print(f"{s:2} {two:8.2f} {three:8.2f} {five:8.2f} {step5:8.2f} {seven:8.2f} {step7:8.2f}")

# %% [markdown]
# ## shoal's own search
#
# `search` uses the same ideas in a different order: annealing first, then integer programmes over the groups it has
# seen. `auto`, the default, only anneals.

# %%
losses = {"mdav": shoal.mask(X, 3, method="mdav", **EXACT).loss}
losses |= {f"decomposition, s = {s}": facts["step 7 loss"] for s, facts in steps.items()}
losses["auto"] = shoal.mask(X, 3, **EXACT).loss
losses["search"] = shoal.mask(X, 3, method="search", steps=200_000, **EXACT).loss
figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
axes.barh(list(losses), list(losses.values()), color="#1f6f8b")
axes.bar_label(axes.containers[0], fmt="%.2f", padding=3)
axes.set(xlabel="information loss, %", xlim=(0, 1.15 * max(losses.values())))
axes.invert_yaxis()

# %% [markdown]
# `bound=True` [proves](../docs/how-to/prove.md) how near this is to the optimum.
