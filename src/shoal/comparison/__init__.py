"""Comparison of methods, group sizes and promises on one table, by loss and risk."""
