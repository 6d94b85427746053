# %% [markdown]
# # From a table to a release
#
# The steward of a register of 3,000 firms (that do not exist) is asked for a file for research. This is the whole
# way: look, choose, try, mask, check, and what to put on the table of the board.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl

import shoal
from shoal.demo import firms

table = firms()
table.write_csv("firms.csv")

# %% [markdown]
# ## Look
#
# `inspect` proposes what each column is for. No value of an identifier is printed.

# %%
found = shoal.inspect("firms.csv", k=5)
print(found)

# %% [markdown]
# It takes every number for a key, and region and sector for strata. We judge: outsiders can know how many a firm
# employs, what it sells, pays and owns, and its sector; its profit is what researchers want as it is. So four keys are
# masked within the region, profit is released and watched as confidential, and sector, weight and research are left
# out: together, a sector and a weight single out almost every firm.

# %%
keys = ["employees", "sales", "wages", "assets"]
dropped = ["sector", "weight", "research"]
alone = table.select(pl.struct("region", *keys).is_unique().sum()).item()
print(f"{alone:,} of {table.height:,} firms are unique by these")

# %% [markdown]
# ## Choose k
#
# Loss against risk for four k; the board will ask why this one.

# %%
compared = shoal.compare(table, [3, 5, 10, 20], columns=keys, by="region", methods=["mdav", "auto"])
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
for method in ("mdav", "auto"):
    runs = sorted((trial for trial in compared.trials if trial.method == method), key=lambda trial: trial.k)
    axes.plot([run.loss for run in runs], [100 * run.risk for run in runs], "o-", label=method)
for run in runs:
    axes.annotate(f"k = {run.k}", (run.loss, 100 * run.risk), textcoords="offset points", xytext=(-8, -14))
axes.set(xlabel="information loss, %", ylabel="records at risk, %", ylim=(0, None))
_ = axes.legend()

# %% [markdown]
# The step from 3 to 5 takes most of the risk for the least loss; from 10 to 20 it is the other way round. We take 5.
#
# ## Mask
#
# The release is counted again before anybody gets it; `verified` says what was counted, and of which columns.

# %%
release = shoal.mask(
    "firms.csv",
    5,
    columns=keys,
    by="region",
    confidential=["profit"],
    output="masked.csv",
    labels="labels.csv",
)
print(release)
masked = pl.read_csv("masked.csv")
alone = masked.select(pl.struct("region", *keys).is_unique().sum()).item()
print(f"{alone:,} of {masked.height:,} firms are unique by region and keys")

# %% [markdown]
# By region and keys no firm is unique, so an outsider can single out none, and the summary says so. Profit is sensitive
# and exact: the file is safe only if nobody outside knows a firm's profit. If somebody does, profit must be masked too.
#
# ## Check
#
# What changed for those who use the file, and what an intruder who holds the originals would find.

# %%
measured = shoal.assess(table.drop(dropped), masked, k=5, columns=keys, by="region", model="profit ~ sales + employees")
print(f"loss {measured.utility.loss:.2f} %, right links {100 * measured.risk.linkage.share:.1f} %")
for frame, name in ((table, "before"), (masked, "after")):
    totals = frame.group_by("region").agg(pl.col("sales").sum() / 1e3).sort("region")
    print(f"sales by region in thousands, {name}:", [round(total, 1) for total in totals["sales"]])

# %% [markdown]
# The total sales of every region are what they were: means keep them.
#
# ## For the record
#
# The report may be published with the table; the manifest repeats the run to the byte and stays in the house, like
# the labels.

# %%
release.report("report.html", original="firms.csv", output="masked.csv")
release.manifest("manifest.json", source="firms.csv", output="masked.csv")
for name in ("masked.csv", "report.html", "manifest.json", "labels.csv"):
    print(f"{name:14} {Path(name).stat().st_size:>9,} bytes")
print(release.command("firms.csv", "masked.csv"))
