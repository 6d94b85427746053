"""Kernels: functions that are compiled to machine code."""
