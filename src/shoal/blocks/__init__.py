"""Blocks: a large table is divided into parts of manageable size by counting records, never by moving them."""
