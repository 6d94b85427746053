# %% [markdown]
# # Differential privacy with less noise
#
# J. Soria-Comas and J. Domingo-Ferrer, *Differentially private data publishing via optimal univariate
# microaggregation and record perturbation* (2018). Noise has to hide what one record can change. It can change a
# value by the width Δ of its domain, but the mean of k values by Δ/k only: averaging first costs information and
# saves noise. Figure 3 of the paper shows both, against k.

# %%
import warnings

import matplotlib.pyplot as plt
from _tables import reference

import shoal

# These methods protect values with the groups taken as given; shoal's default protects the groups too.
warnings.simplefilter("ignore", shoal.PrivacyWarning)

# %% [markdown]
# ## Figure 3: squared error against group size, ε = 1
#
# Census, four columns, domains from 0 to 1.5 times the greatest value; the budget is shared by the width of the
# domain. Errors are expected ones, before values are brought back into their domain (the paper measures after that).

# %%
census = reference("census").select("FICA", "FEDTAX", "INTVAL", "POTHVAL")
bounds = {name: (0.0, 1.5 * census[name].max()) for name in census.columns}
sizes = (2, 5, 10, 20, 40, 70, 100, 140, 200, 300)


def noisy(method, k):
    """Expected squared error of a release."""
    release = shoal.publish(census, 1.0, bounds=bounds, method=method, k=k, budget="sensitivity")
    return sum(release.expected_sse.values())


def bare(method, k):
    """Squared error of masking alone, without noise and without its promise."""
    masked = shoal.mask(census, k, method=method).data
    return sum(((census[name] - masked[name]) ** 2).sum() for name in census.columns)


curves = {
    "MDAV_DP": [noisy("mdav", k) for k in sizes],
    "MDAV_IR_DP": [noisy("mdav-ir", k) for k in sizes],
    "OPT_DP": [noisy("optimal", 2)] * len(sizes),
    "MDAV": [bare("mdav", k) for k in sizes],
    "MDAV_IR": [bare("individual-ranking", k) for k in sizes],
}
figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, curve in curves.items():
    axes.plot(sizes, curve, "o-" if "DP" in name else "--", markersize=3, label=name)
axes.set(xlabel="group size k", ylabel="squared error", xscale="log", yscale="log")
_ = axes.legend()

# %%
best = min(zip(curves["MDAV_IR_DP"], sizes, strict=True))
print(f"MDAV_IR_DP at its best, k = {best[1]}: {best[0]:.2e}")
print(f"OPT_DP, which chooses groups for the noise: {curves['OPT_DP'][0]:.2e}")

# %% [markdown]
# With k the error of averaging grows and that of noise falls. `optimal` (OPT_DP) counts both while it cuts the sorted
# column, and is below all of them. What these methods promise is the weaker of two promises: [differential
# privacy](../docs/differential-privacy.md) says what the groups tell, and what to take instead.
