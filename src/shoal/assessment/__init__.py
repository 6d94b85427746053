"""Measures of the utility and the risk of a release: one file per measure, one entrance (`shoal.assess`)."""
