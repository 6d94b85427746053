"""Reading and writing of files compressed by gzip or Zstandard, as their last ending specifies (``people.csv.gz``)."""

from __future__ import annotations

import gzip
from pathlib import Path

from shoal.tables.formats.arrow_files import naming_file

__all__ = ["read_bytes", "write_bytes"]

LEVEL = 6  # the default of the gzip command


def read_bytes(path: Path) -> bytes:
    """Return the decompressed bytes of a file."""
    raw = path.read_bytes()
    with naming_file(path):
        if path.suffix.lower() == ".gz":
            return gzip.decompress(raw)
        import pyarrow as pa

        return bytes(pa.input_stream(pa.py_buffer(raw), compression="zstd").read())


def write_bytes(path: Path, raw: bytes) -> None:
    """Write bytes to a compressed file; equal bytes give equal files."""
    if path.suffix.lower() == ".gz":
        packed = gzip.compress(raw, LEVEL, mtime=0)
    else:
        import pyarrow as pa

        packed = pa.compress(raw, codec="zstd", asbytes=True)  # stores the length, so that damage is detected
    path.write_bytes(packed)
