"""Compiled functions that know arrays only: trees, pools, scans, sorts. They trust their arguments."""
