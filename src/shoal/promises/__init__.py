"""Promises about groups beyond k records."""
