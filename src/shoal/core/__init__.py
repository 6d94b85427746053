"""Foundation of all packages: errors, types, measures, progress and the kernel compiler."""
