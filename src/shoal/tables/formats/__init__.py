"""Formats of tables, one per module. Each module reads files or objects as a `Table` and writes them back."""
