"""The optimiser: anytime search, column generation, proven lower bounds, decomposition."""
