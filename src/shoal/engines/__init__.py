"""Engines for tables that do not fit in memory: local processes, Dask, Spark."""
