"""Hash chain over the constants and frames of a trajectory, which detects every change.

Frames are written in blocks. ``/chain/hash`` (B, 32) of a block is the SHA-256 of the previous hash, of the values of all its
frames in the order of their names, and of the total number of frames, ``/chain/frames`` (B,). The first hash is that of the
constants; ``@chain`` is that of the last block that counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import h5py
import numpy as np

COUNTERS = ("frames", "chain")
"""Attributes of the file that change with the frames."""
GROUPS = ("chain", "checkpoint", "certificate")
"""Groups of the file that are not constant."""


def seed(file: h5py.File) -> bytes:
    """Return the hash of all constants: attributes, and datasets of fixed size."""
    digest = hashlib.sha256()
    _update(digest, file, "")

    def visit(name: str, item) -> None:
        if name.partition("/")[0] not in GROUPS:
            _update(digest, item, name)

    file.visititems(visit)
    return digest.digest()


def block_hash(before: bytes, block: dict[str, np.ndarray], frames: int) -> bytes:
    """Return the hash of a block of frames that ends at frame number `frames`."""
    digest = hashlib.sha256(before)
    for name in sorted(block):
        digest.update(np.ascontiguousarray(block[name]))
    digest.update(frames.to_bytes(8, "little"))
    return digest.digest()


def hashes(file: h5py.File, frames: int, values: Callable[[int, int], dict]) -> Iterator[tuple[int, int, bytes, bytes]]:
    """Yield the first frame, the end, the hash and the stored hash of every block of the first frames.

    Later blocks, which may be incomplete after a crash, are not read. values: (start, end) -> values of these frames."""
    last, start, block = seed(file), 0, 0
    ends, stored = file["chain/frames"], file["chain/hash"]
    while start < frames:
        end = int(ends[block])
        last = block_hash(last, values(start, end), end) if start < end <= frames else b""
        yield start, end, last, stored[block].tobytes()
        start, block = end, block + 1


def _update(digest, item, name: str) -> None:
    digest.update(name.encode())
    for key in sorted(item.attrs):
        if name or key not in COUNTERS:
            digest.update(key.encode())
            digest.update(_plain(item.attrs[key]))
    if isinstance(item, h5py.Dataset) and None not in item.maxshape:
        digest.update(_plain(item[()]))


def _plain(value) -> bytes:
    """Convert a value to bytes that depend only on the value."""
    array = np.asarray(value)
    if array.dtype.kind in "OSU":
        return repr([one.decode() if isinstance(one, bytes) else str(one) for one in array.ravel().tolist()]).encode()
    return f"{array.dtype.str}{array.shape}".encode() + array.tobytes()
