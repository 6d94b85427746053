"""Compiled functions on arrays: trees, pools, scans and sorts. They do not check their arguments."""
