"""Allocations that fail, told as an error with what was asked for, what is free, and what to do."""

from __future__ import annotations

import re

from abd.errors import OutOfMemory

_FAILED = re.compile(r"failed to allocate|unable to allocate|out of memory", re.IGNORECASE)
_ASKED = re.compile(r"allocat\w*\s+([\d,.]+)\s*(bytes|[KMGT]iB)", re.IGNORECASE)
_UNITS = {"bytes": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


class memory_watched:
    """Turns what Warp, cupy and numpy raise for want of memory into `OutOfMemory`, while the context lasts; other errors pass.

    Args:
        device: name of the device that works meanwhile.
    """

    def __init__(self, device: str):
        self._device = device

    def __enter__(self) -> None:
        pass

    def __exit__(self, _, error: BaseException | None, __) -> None:
        if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and _FAILED.search(str(error))):
            raise OutOfMemory(_told(str(error), self._device)) from error


def _told(said: str, device: str) -> str:
    asked = asked_bytes(said)
    wanted = f"asked for {in_units(asked)}" if asked else f"it said: {said.strip() or 'nothing'}"
    if not device.startswith("cuda") or "'cpu'" in said:
        return f"out of memory on the processor: {wanted}; take fewer bodies, or close other programs"
    free, total, name = _memory_of(device)
    return (
        f"out of memory on {device} ({name}): {wanted}, free are {in_units(free)} of {in_units(total)}; take fewer bodies, "
        "a smaller solver.d_hat (fewer contacts are listed), another GPU (--device cuda:N), or --device cpu; "
        "`nvidia-smi` lists who else holds memory"
    )


def asked_bytes(said: str) -> int:
    """The number of bytes that a message says were asked for, 0 where it does not say."""
    found = _ASKED.search(said)
    if not found:
        return 0
    return int(float(found[1].replace(",", "").rstrip(".")) * _UNITS[found[2].lower()])


def in_units(count: int) -> str:
    """Bytes for people."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def _memory_of(device: str) -> tuple[int, int, str]:
    """Free and total bytes of a CUDA device, and what it is called."""
    import warp as wp

    found = wp.get_device(device)
    return found.free_memory, found.total_memory, found.name
