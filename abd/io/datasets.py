"""Growing HDF5 datasets with one row per frame, and disk space for them, which is reserved before HDF5 writes: a write that
fails in the middle leaves its file, and the process, unusable.

A frame has any number of contacts, and of states on its path. `/contacts/<column>` and `/paths/<column>` hold those of all
frames; the rows of frame t begin at `offset[t]` of the group and end before `offset[t + 1]`. A block of frames in memory has the
numbers of rows in `counts`.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import h5py
import numpy as np

from abd.errors import AbdError

RAGGED = CONTACTS, PATHS = "/contacts/", "/paths/"
"""Groups with any number of rows per frame."""
COUNTS, OFFSET = "counts", "offset"
FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
SPARE = 1 << 16
"""Bytes of headers and attributes that a write may add to its data."""
PER_CHUNK = 1 << 12
"""Bytes that HDF5's index may grow by for one more chunk."""
_CHUNK_BYTES = 1 << 16


class DiskFull(AbdError):
    """The disk is full; data flushed before the error is complete."""

    def __init__(self, path: str | Path, count: int, reason: str):
        remedy = "The file has not been written: free some space"
        if ".part" not in Path(path).suffixes:
            remedy = "The file contains all data flushed before: free some space, then continue with --resume"
        super().__init__(f"{path}: {reason}; {count} bytes do not fit. {remedy}")


def stacked(frames: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Join the values of single frames to a block with frames, or rows of ragged groups, as the first axis."""
    return {
        name: (np.concatenate if name.startswith(RAGGED) else np.stack)([values[name] for values in frames])
        for name in frames[0]
    }


def series(file: h5py.File, name: str) -> h5py.Dataset:
    """Return the dataset of one name of a block."""
    return file[_offset(name) if is_count(name) else name]


def is_count(name: str) -> bool:
    """Return whether a name of a block holds the numbers of rows of a ragged group."""
    return name.startswith(RAGGED) and name.endswith("/" + COUNTS)


def _offset(name: str) -> str:
    return name.removesuffix(COUNTS) + OFFSET


def create(file: h5py.File, name: str, rows: np.ndarray, frames: int) -> None:
    """Create the empty dataset of one name of a block; its chunks hold all expected frames or about 64 KiB."""
    if name.startswith(RAGGED) and not is_count(name):
        frames = 1 << 30
    shape, dtype = rows.shape[1:], rows.dtype
    row_bytes = max(1, dtype.itemsize * int(np.prod(shape)))
    chunk = (max(1, min(frames + 1, _CHUNK_BYTES // row_bytes)), *(max(1, extent) for extent in shape))
    # HDF5 has no chunks for an extent of 0 (a joint without coordinates) unless it may grow.
    limit = (None, *(extent or None for extent in shape))
    fill = np.nan if dtype.kind == "f" else None
    path, first = (_offset(name), 1) if is_count(name) else (name, 0)
    file.create_dataset(path, (first, *shape), dtype, maxshape=limit, chunks=chunk, fillvalue=fill)


def extend(dataset: h5py.Dataset, rows: np.ndarray) -> None:
    """Append rows (k, ...) of the dataset's type.

    The low-level interface is used because a scene of many joints has thousands of datasets.
    """
    handle = dataset.id
    start, tail = handle.shape[0], handle.shape[1:]
    handle.set_extent((start + len(rows), *tail))
    if rows.size == 0:
        return
    target = handle.get_space()
    target.select_hyperslab((start, *(0 for _ in tail)), rows.shape)
    handle.write(h5py.h5s.create_simple(rows.shape), target, rows)


def growth(dataset: h5py.Dataset, rows: int) -> int:
    """Return the maximum growth of a file [bytes] when a chunked dataset gets `rows` more rows."""
    length = dataset.chunks[0]
    start = len(dataset)
    chunks = -(-(start + rows) // length) + (-start // length)
    return chunks * (int(np.prod(dataset.chunks)) * dataset.dtype.itemsize + PER_CHUNK)


def reserve(file: h5py.File, count: int) -> None:
    """Reserve `count` bytes and `SPARE` behind the end of an open file, all of which has been flushed.

    Raises `DiskFull` if the file system, the quota or the limit on files has no space; the file is as it was."""
    if count <= 0 or file.driver != "sec2":  # other drivers write to memory
        return
    try:
        os.posix_fallocate(file.id.get_vfd_handle(), file.id.get_filesize(), count + SPARE)
    except OSError as error:
        if error.errno in FULL:
            raise DiskFull(file.filename, count + SPARE, error.strerror) from None


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
            raise DiskFull(path, len(image), error.strerror) from None
        raise
