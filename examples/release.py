# %% [markdown]
# # From a table to a release
#
# A researcher requests a file from the steward of a register of 3,000 (fictitious) firms. This example shows all steps:
# inspect the table, choose k, mask, check, and document the release for the board.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl

import shoal
from shoal.demo import firms

table = firms()
table.write_csv("firms.csv")

# %% [markdown]
# ## Inspect
#
# `inspect` proposes a role for each column. It prints no values of identifiers.

# %%
found = shoal.inspect("firms.csv", k=5)
print(found)

# %% [markdown]
# It proposes every number as a key, and region and sector as strata. We decide: outsiders may know a firm's employees,
# sales, wages, assets and sector; researchers need the exact profit. So four keys are masked within the region, profit
# is released as a sensitive column, and sector, weight and research are left out: together, sector and weight single
# out almost every firm.

# %%
keys = ["employees", "sales", "wages", "assets"]
dropped = ["sector", "weight", "research"]
alone = table.select(pl.struct("region", *keys).is_unique().sum()).item()
print(f"{alone:,} of {table.height:,} firms are unique by these")

# %% [markdown]
# ## Choose k
#
# Compare loss and risk for four values of k; the board will ask for the reason.

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
# The step from 3 to 5 removes most risk for the least loss; the step from 10 to 20 does the opposite. We choose 5.
#
# ## Mask
#
# The release is recounted before it is handed out; `verified` shows the counts and their columns.

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
# By region and keys no firm is unique, so an outsider can single out none, as the summary shows. Profit is sensitive
# and exact: the file is safe only if no outsider knows a firm's profit. If someone does, profit must be masked too.
#
# ## Check
#
# `assess` measures the changes for users of the file, and the success of an intruder who has the original table.

# %%
measured = shoal.assess(table.drop(dropped), masked, k=5, columns=keys, by="region", model="profit ~ sales + employees")
print(f"loss {measured.utility.loss:.2f} %, right links {100 * measured.risk.linkage.share:.1f} %")
for frame, name in ((table, "before"), (masked, "after")):
    totals = frame.group_by("region").agg(pl.col("sales").sum() / 1e3).sort("region")
    print(f"sales by region in thousands, {name}:", [round(total, 1) for total in totals["sales"]])

# %% [markdown]
# The total sales of every region are unchanged: means preserve totals.
#
# ## For the record
#
# The report may be published with the table. The manifest reproduces the run exactly; it stays inside, like the labels.

# %%
release.report("report.html", original="firms.csv", output="masked.csv")
release.manifest("manifest.json", source="firms.csv", output="masked.csv")
for name in ("masked.csv", "report.html", "manifest.json", "labels.csv"):
    print(f"{name:14} {Path(name).stat().st_size:>9,} bytes")
print(release.command("firms.csv", "masked.csv"))
