"""Proof at any size: lower bounds in O(n) memory, from groups of near records that a kd-tree finds."""
