"""What everything rests on: errors, types, measures, progress, the compiler of kernels."""
