"""Engines: where blocks are found and masked when a table does not fit in memory."""
