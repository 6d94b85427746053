"""The foundation of all packages: errors, types, measures, progress, the compiler of kernels."""
