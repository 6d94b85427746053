"""Microaggregation algorithms, one per file. Each takes records ``(n, d)`` and k; `registry` lists them all."""
