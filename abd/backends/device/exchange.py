"""Input arrays of other libraries: NumPy, DLPack or `__cuda_array_interface__`."""

from __future__ import annotations

import numpy as np

_ON_HOST, _ON_CUDA = (1, 3), 2
"""Device types of DLPack: host memory, pageable and pinned; CUDA device."""


def host_rows(values, shape: tuple[int, int], what: str, device: str) -> np.ndarray:
    """Copy float64 rows to the host.

    Args:
        values: (n, 12) float64 array on the host or on `device`, or nested lists of numbers.
        shape: required shape; what: name in messages; device: device of the simulation.

    Raises:
        ValueError: wrong shape or type, a value that is not finite, or an array on another device.
    """
    found = fetched(values, what, device)
    if found.dtype != np.float64:
        raise ValueError(f"{what} must be float64, not {found.dtype}: convert them explicitly")
    if found.shape != shape:
        raise ValueError(f"{what} must have the shape {shape}, not {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError(f"{what} of row {int(np.flatnonzero(~np.isfinite(found).all(axis=1))[0])} are not finite")
    return found


def fetched(values, what: str, device: str) -> np.ndarray:
    """Copy an array on the host or on `device` to the host without type conversion; nested lists become float64.

    Raises:
        ValueError: the array is on another device.
    """
    if isinstance(values, np.ndarray):
        return np.array(values, order="C")
    place = _place(values)
    if place is None:
        return np.array(values, dtype=float)
    if place not in ("host", device):
        raise ValueError(f"{what} are on {place}, but the simulation is on {device}: copy them to {device}, or to the host")
    import warp as wp

    if not isinstance(values, wp.array):
        values = wp.from_dlpack(values) if hasattr(values, "__dlpack__") else wp.array(values, device=device)
    return np.array(values.numpy(), order="C")


def _place(values) -> str | None:
    """Location of an array of another library: "host" or "cuda:N"; None if it is not an array."""
    if hasattr(values, "__dlpack_device__"):
        kind, number = values.__dlpack_device__()
        if kind in _ON_HOST:
            return "host"
        return f"cuda:{number}" if kind == _ON_CUDA else f"a device of DLPack's type {kind}"
    if hasattr(values, "__cuda_array_interface__"):
        import warp as wp

        return str(wp.get_cuda_device())
    return None
