"""Memory: peak use, available memory, and limits such as "2GB"."""

from __future__ import annotations

import re
from pathlib import Path

from shoal.core.errors import InputError, ShoalError
from shoal.core.messages import parameter

__all__ = ["available_memory", "lacks_memory", "peak_bytes", "peak_memory", "read_memory"]

# Peak resident memory, and the pages of files in current resident memory.
MARKS = {"VmHWM", "RssFile"}
CONTROL_GROUPS = Path("/sys/fs/cgroup")
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


# Error messages of libraries and the system when memory runs out for a library, a thread or a process.
LACKING = (
    "failed to map segment",
    "failed to spawn",
    "spawn threads",
    "start new thread",
    "worker thread",
    "cannot allocate memory",
    "resource temporarily unavailable",
    "pyobject pointer is null",  # Python had no memory for an object requested by a Rust library
)


def lacks_memory(error: BaseException | None) -> bool:
    """Return True if an error or one of its causes means that memory ran out.

    Examples
    --------
    >>> lacks_memory(MemoryError()), lacks_memory(RuntimeError("can't start new thread")), lacks_memory(ValueError("x"))
    (True, True, False)
    """
    if error is None:
        return False
    foreign = not isinstance(error, ShoalError)  # shoal's own messages may contain file and column names
    lacking = isinstance(error, MemoryError) or (foreign and any(words in str(error).lower() for words in LACKING))
    return lacking or lacks_memory(error.__cause__ or error.__context__)


def read_memory(limit: str | int) -> int:
    """Return a memory limit in bytes.

    Examples
    --------
    >>> read_memory("2GB"), read_memory("512 MB")
    (2000000000, 512000000)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(limit))
    if match is None or match[2].upper() not in UNITS or not 0 < float(match[1]) < 1e18:
        raise InputError(f"{parameter('memory')} must be a size such as '2GB' or '512MB', got {limit!r}.")
    return int(float(match[1]) * UNITS[match[2].upper()])


def available_memory() -> int:
    """Return the memory in bytes that is available without swapping and within the container's limit.

    If the system does not report the available memory, return 4 GB.
    """
    free = 4 * 10**9
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
    except OSError:
        pass
    return min([free, *_container_rooms(CONTROL_GROUPS)])


def _container_rooms(root: Path) -> list[int]:
    """Return the unused memory of this process's control groups (versions 1 and 2) in bytes."""
    rooms = []
    for folder, limit_name, usage_name in (
        (root, "memory.max", "memory.current"),
        (root / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        try:
            limit, usage = ((folder / name).read_text(encoding="ascii").strip() for name in (limit_name, usage_name))
        except OSError:
            continue
        # Without a limit, the file reads "max" or, in version 1, a number larger than any memory.
        if limit.isdigit():
            rooms.append(max(0, int(limit) - int(usage)))
    return rooms


def peak_bytes() -> int:
    """Return the peak memory of this process in bytes, without pages of files.

    Pages of programs and libraries are shared by all processes and reclaimed by the system when needed. Their
    number would depend on earlier file reads.
    """
    try:
        # VmHWM counts this process alone; the value of getrusage may be inherited from the parent process.
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        kilobytes = {
            name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines) if name in MARKS
        }
        return (kilobytes["VmHWM"] - kilobytes["RssFile"]) * 1024 - _shared_bytes()
    except (OSError, KeyError):
        pass
    try:
        import resource
    except ImportError:  # not available on every system
        return 0
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _shared_bytes() -> int:
    """Return the memory in bytes shared with forks of this process, without this process's own share."""
    # Pages that are shared now were shared at the peak.
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    kilobytes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    return (kilobytes["Anonymous"] - kilobytes["Pss_Anon"]) * 1024


def peak_memory() -> str:
    """Return the peak memory of this process as text for people."""
    return f"{peak_bytes() / 1e6:.0f} MB"
