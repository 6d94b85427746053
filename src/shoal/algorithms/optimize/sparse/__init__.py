"""Proofs for tables of any size: lower bounds in O(n) memory, from groups of near records in a kd-tree."""
