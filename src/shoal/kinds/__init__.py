"""Kinds of columns, one file per kind: reading, comparing, aggregating and writing cells."""
