"""Measures of the utility and the risk of a release: one module per measure, and one entry point (`shoal.assess`)."""
