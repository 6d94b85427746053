"""Formats of tables, one per module: each reads files or objects as a `Table` and writes them back."""
