# %% [markdown]
# # Differential privacy with less noise
#
# J. Soria-Comas and J. Domingo-Ferrer, *Differentially private data publishing via optimal univariate
# microaggregation and record perturbation* (2018). Noise must hide the effect of any single record. A record can change
# a value by the width Δ of its domain, but the mean of k values only by Δ/k: averaging first costs information and
# saves noise. Figure 3 of the paper shows both by k.

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
from _tables import reference

import shoal

# These methods protect values but treat the groups as fixed; shoal's default protects the groups too.
warnings.simplefilter("ignore", shoal.PrivacyWarning)

# %% [markdown]
# ## Figure 3: squared error against group size, ε = 1
#
# Census, four columns, domains from 0 to 1.5 times the largest value; each column's share of the budget is proportional
# to the width of its domain. As in the paper, released values are clipped to their domain before errors are measured.
# Solid curves are means of 30 releases; bars span two standard errors on each side.

# %%
census = reference("census").select("FICA", "FEDTAX", "INTVAL", "POTHVAL")
bounds = {name: (0.0, 1.5 * census[name].max()) for name in census.columns}
sizes = (2, 5, 10, 20, 40, 70, 100, 140, 200, 300)


def squared_error(released):
    """Return the squared error of a release, record by record."""
    return sum(((census[name] - released[name]) ** 2).sum() for name in census.columns)


def noisy(method, k=None, releases=30):
    """Return the mean squared error of noisy releases and its standard error. Seeds are for figures only."""
    options = {"bounds": bounds, "method": method, "k": k, "budget": "sensitivity"}
    errors = [squared_error(shoal.publish(census, 1.0, seed=seed, **options).data) for seed in range(releases)]
    return np.mean(errors), np.std(errors, ddof=1) / np.sqrt(releases)


def bare(columns, k):
    """Return the squared error of MDAV on separate sets of columns, without noise or differential privacy."""
    exact = {"method": "mdav", "integers": "float", "decimals": "all"}
    masked = [shoal.mask(census.select(names), k, columns=names, **exact).data for names in columns]
    return squared_error({name: table[name] for table in masked for name in table.columns})


curves = {
    "MDAV_DP": [noisy("mdav", k) for k in sizes],
    "MDAV_IR_DP": [noisy("mdav-ir", k) for k in sizes],
    "OPT_DP": [noisy("optimal")] * len(sizes),  # chooses its own group sizes
}
without = {
    "MDAV": [bare([census.columns], k) for k in sizes],
    "MDAV_IR": [bare([[name] for name in census.columns], k) for k in sizes],
}
figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, curve in curves.items():
    means, errors = np.transpose(curve)
    axes.errorbar(sizes, means, 2 * errors, fmt="o-", markersize=3, label=name)
for name, curve in without.items():
    axes.plot(sizes, curve, "--", label=name)
axes.set(xlabel="group size k", ylabel="squared error", xscale="log", yscale="log")
_ = axes.legend()

# %%
(least, error), size = min(zip(curves["MDAV_IR_DP"], sizes, strict=True))
print(f"MDAV_IR_DP at its best, k = {size}: {least:.2e} ± {error:.0e}")
optimal, error = curves["OPT_DP"][0]
print(f"OPT_DP, which chooses groups for the noise: {optimal:.2e} ± {error:.0e}")
for name, curve in without.items():
    above = [k for k, value in zip(sizes, curve, strict=True) if value > optimal]
    print(f"{name} without noise loses more than OPT_DP for k = {', '.join(map(str, above)) or 'none of these'}")

# %% [markdown]
# As k grows, the error of averaging rises and that of noise falls. `optimal` (OPT_DP) considers both when it cuts the
# sorted column: on Census it loses less than the other two noisy methods at every k shown. Masking without noise loses
# less than `optimal` for small groups, but does not promise differential privacy. The noisy methods keep the weaker of
# two promises: [differential privacy](../docs/differential-privacy.md) explains what the groups disclose, and which
# methods to use instead.
