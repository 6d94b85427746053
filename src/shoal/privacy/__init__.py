"""Differentially private publication through microaggregation.

J. Soria-Comas and J. Domingo-Ferrer, Differentially private data publishing via optimal univariate microaggregation
and record perturbation (2018). Bounds, budgets, partitions, noise, guarantee and ledger have a file each. Records that
are drawn from a model of noisy counts start in `synthesis`.
"""
