"""Differentially private publication through microaggregation.

J. Soria-Comas and J. Domingo-Ferrer, Differentially private data publishing via optimal univariate microaggregation and
record perturbation (2018). Bounds, budgets, partitions, noise, guarantee and ledger are separate modules; `synthesis`
draws records from a model of noisy counts.
"""
