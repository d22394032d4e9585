"""Errors for failed allocations: requested and free memory, and remedies."""

from __future__ import annotations

import re

from abd.errors import OutOfMemory

_FAILED = re.compile(r"failed to allocate|unable to allocate|out of memory", re.IGNORECASE)
_REQUEST = re.compile(r"allocat\w*\s+([\d,.]+)\s*(bytes|[KMGT]iB)", re.IGNORECASE)
_UNITS = {"bytes": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


class memory_watched:
    """Context that converts memory errors of Warp, CuPy and NumPy into `OutOfMemory`.

    Args:
        device: name of the device in use.
    """

    def __init__(self, device: str):
        self._device = device

    def __enter__(self) -> None:
        pass

    def __exit__(self, _, error: BaseException | None, __) -> None:
        if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and _FAILED.search(str(error))):
            raise OutOfMemory(_description(str(error), self._device)) from error


def _description(message: str, device: str) -> str:
    requested = requested_bytes(message)
    wanted = f"requested {in_units(requested)}" if requested else (message.strip() or "no details are known")
    if not device.startswith("cuda") or "'cpu'" in message:
        return f"out of memory on the CPU: {wanted}; use fewer bodies, or close other programs"
    free, total, name = _memory_of(device)
    return (
        f"out of memory on {device} ({name}): {wanted}, free are {in_units(free)} of {in_units(total)}; use fewer bodies, "
        "a smaller solver.d_hat (fewer contacts are listed), another GPU (--device cuda:N), or --device cpu; "
        "`nvidia-smi` lists other processes that use memory"
    )


def requested_bytes(message: str) -> int:
    """Requested bytes in an error message, 0 if it does not state them."""
    found = _REQUEST.search(message)
    if not found:
        return 0
    return int(float(found[1].replace(",", "").rstrip(".")) * _UNITS[found[2].lower()])


def in_units(count: int) -> str:
    """Format a number of bytes with a binary unit."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def _memory_of(device: str) -> tuple[int, int, str]:
    """Free and total bytes of a CUDA device, and its name."""
    import warp as wp

    found = wp.get_device(device)
    return found.free_memory, found.total_memory, found.name
