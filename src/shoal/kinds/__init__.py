"""Kinds of columns, one file per kind: how cells are read, compared, replaced by that of a group, and written back."""
