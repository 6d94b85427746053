"""Promises on groups in addition to k records: diversity, closeness and distinct units."""
