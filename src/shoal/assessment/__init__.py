"""Measures of the utility and the risk of a release: one file per measure, one entry point (`shoal.assess`)."""
