"""Comparison of methods, group sizes and promises on one table: loss and risk of each."""
