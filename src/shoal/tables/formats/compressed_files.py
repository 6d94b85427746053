"""Compressed files in and out: gzip and Zstandard, by the last ending of the name (``people.csv.gz``)."""

from __future__ import annotations

import gzip
from pathlib import Path

from shoal.tables.formats.arrow_files import naming_file

__all__ = ["read_bytes", "write_bytes"]

LEVEL = 6  # of gzip's own command


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file, decompressed if its name says that they are compressed."""
    raw, ending = path.read_bytes(), path.suffix.lower()
    with naming_file(path):
        if ending == ".gz":
            return gzip.decompress(raw)
        if ending == ".zst":
            import pyarrow as pa

            return bytes(pa.input_stream(pa.py_buffer(raw), compression="zstd").read())
    return raw


def write_bytes(path: Path, raw: bytes) -> None:
    """Write bytes to a file, compressed if its name says so; the same bytes make the same file."""
    ending = path.suffix.lower()
    if ending == ".gz":
        raw = gzip.compress(raw, LEVEL, mtime=0)
    elif ending == ".zst":
        import pyarrow as pa

        raw = pa.compress(raw, codec="zstd", asbytes=True)  # with its length, so that damage is noticed
    path.write_bytes(raw)
