"""Compressed files in and out: gzip and Zstandard, by the last ending of the name (``people.csv.gz``)."""

from __future__ import annotations

import gzip
from pathlib import Path

from shoal.tables.formats.arrow_files import naming_file

__all__ = ["read_bytes", "write_bytes"]

LEVEL = 6  # of gzip's own command


def read_bytes(path: Path) -> bytes:
    """Return the bytes that a compressed file holds."""
    raw = path.read_bytes()
    with naming_file(path):
        if path.suffix.lower() == ".gz":
            return gzip.decompress(raw)
        import pyarrow as pa

        return bytes(pa.input_stream(pa.py_buffer(raw), compression="zstd").read())


def write_bytes(path: Path, raw: bytes) -> None:
    """Write bytes to a compressed file; the same bytes make the same file."""
    if path.suffix.lower() == ".gz":
        packed = gzip.compress(raw, LEVEL, mtime=0)
    else:
        import pyarrow as pa

        packed = pa.compress(raw, codec="zstd", asbytes=True)  # with its length, so that damage is noticed
    path.write_bytes(packed)
