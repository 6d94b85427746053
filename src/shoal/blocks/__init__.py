"""Division of a large table into blocks of manageable size, by counting records instead of moving them."""
