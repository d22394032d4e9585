"""Arrays that others bring: anything that numpy, DLPack or `__cuda_array_interface__` can read."""

from __future__ import annotations

import numpy as np

_ON_HOST, _ON_CUDA = (1, 3), 2
"""Device types of DLPack: plain and pinned memory of the host; a CUDA device."""


def host_rows(values, shape: tuple[int, int], what: str, device: str) -> np.ndarray:
    """A float64 copy on the host of rows that may be anywhere this device reaches.

    Args:
        values: (n, 12) of float64; nested lists of numbers are taken as well.
        shape: that it must have; what: its name in messages.
        device: of the simulation; arrays on the host, and on this device, are taken.

    Raises:
        ValueError: another shape or type, a value that is not finite, or an array on another device.
    """
    found = _fetched(values, what, device)
    if found.dtype != np.float64:
        raise ValueError(f"{what} are {found.dtype}, not float64: convert them, so that no digit is lost unseen")
    if found.shape != shape:
        raise ValueError(f"{what} have the shape {found.shape}, not {shape}")
    if not np.isfinite(found).all():
        raise ValueError(f"{what} of row {int(np.flatnonzero(~np.isfinite(found).all(axis=1))[0])} are not finite")
    return found


def _fetched(values, what: str, device: str) -> np.ndarray:
    """A copy on the host, of the type that it came with."""
    if isinstance(values, np.ndarray):
        return np.array(values, order="C")
    place = _place(values)
    if place is None:
        return np.array(values, dtype=float)
    if place not in ("host", device):
        raise ValueError(f"{what} are on {place}, the simulation is on {device}: copy them there, or to the host")
    import warp as wp

    if not isinstance(values, wp.array):
        values = wp.from_dlpack(values) if hasattr(values, "__dlpack__") else wp.array(values, device=device)
    return np.array(values.numpy(), order="C")


def _place(values) -> str | None:
    """Where an array of another library lives: "host" or "cuda:N"; None for what is no array."""
    if hasattr(values, "__dlpack_device__"):
        kind, number = values.__dlpack_device__()
        if kind in _ON_HOST:
            return "host"
        return f"cuda:{number}" if kind == _ON_CUDA else f"a device of DLPack's type {kind}"
    if hasattr(values, "__cuda_array_interface__"):
        import warp as wp

        return str(wp.get_cuda_device())
    return None
