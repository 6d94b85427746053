"""Kinds of columns, one module per kind, for reading, comparing, aggregating and writing cells."""
