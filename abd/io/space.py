"""Disk space, reserved before HDF5 writes: a write that fails in the middle leaves its file, and the process, unusable."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path

import h5py
import numpy as np

from abd.errors import AbdError

FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
SPARE = 1 << 16
"""Bytes of headers and attributes that a write may add to its data."""
PER_CHUNK = 1 << 12
"""Bytes that HDF5's index may grow by for one more chunk."""
EOF_PLACES = {0: 40, 1: 44, 2: 28, 3: 28}
"""Where each version of the superblock has the end of the file, an address of 8 bytes."""


class DiskFull(AbdError):
    """The disk is full; data flushed before the error is complete."""

    def __init__(self, path: str | Path, count: int, reason: str):
        remedy = "The run has not started: free some space"
        if Path(path).suffix != ".part":
            remedy = "The file contains all data flushed before: free some space, then continue with --resume"
        super().__init__(f"{path}: {reason}; {count} bytes do not fit. {remedy}")


def reserve(file: h5py.File, count: int) -> None:
    """Reserve `count` bytes and `SPARE` behind the end of an open file, all of which has been flushed.

    Raises:
        DiskFull: the file system, the quota or the limit on files has no space; the file is as it was.
    """
    if count <= 0 or not hasattr(os, "posix_fallocate"):
        return
    if file.driver != "sec2":
        return  # files in memory and files written through other drivers
    handle = file.id.get_vfd_handle()
    try:
        os.posix_fallocate(handle, _end(handle), count + SPARE)
    except OSError as error:
        if error.errno in FULL:
            raise DiskFull(file.filename, count + SPARE, error.strerror) from error


def growth(dataset: h5py.Dataset, rows: int) -> int:
    """Return the maximum growth of a file [bytes] when a chunked dataset gets `rows` more rows."""
    length = dataset.chunks[0]
    start = len(dataset)
    chunks = -(-(start + rows) // length) + (-start // length)
    return chunks * (int(np.prod(dataset.chunks)) * dataset.dtype.itemsize + PER_CHUNK)


def write_whole(path: Path, image: bytes) -> None:
    """Write a whole file; remove it if the write fails."""
    try:
        with path.open("wb") as file:
            file.write(image)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        if error.errno in FULL:
            raise DiskFull(path, len(image), error.strerror) from error
        raise


def _end(handle: int) -> int:
    """End of the space that HDF5 has given out, from the superblock."""
    head = os.pread(handle, 64, 0)
    return struct.unpack_from("<Q", head, EOF_PLACES[head[8]])[0]
