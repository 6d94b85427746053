"""Formats of tables, one module each: they read a file or an object as a `Table`, and write it back."""
