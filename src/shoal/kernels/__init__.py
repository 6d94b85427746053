"""Compiled functions that know arrays only: trees, pools, scans, sorts. They trust what they are given."""
