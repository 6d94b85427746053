"""Engines for tables larger than memory: local processes, Dask and Spark."""
