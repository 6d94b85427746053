"""Blocks: a large table cut into pieces of manageable size from counts of records, never by moving them."""
