"""Blocks: divide a large table into parts of manageable size by counting records instead of moving them."""
