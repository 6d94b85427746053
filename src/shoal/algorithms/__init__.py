"""One algorithm per file: records ``(n, d)`` and k in, labels out. `registry` lists them."""
