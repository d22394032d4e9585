"""Datasets with one row per frame that grow during a run."""

from __future__ import annotations

from dataclasses import dataclass

import h5py
import numpy as np

from abd.io.ragged import Ragged

_CHUNK_BYTES = 1 << 16


@dataclass
class Rows:
    """The group of a `Ragged` value; `offset` and `columns` are its datasets."""

    offset: h5py.Dataset
    columns: dict[str, h5py.Dataset]


def opened(item: h5py.Dataset | h5py.Group) -> h5py.Dataset | Rows:
    """Return the dataset of one value per frame."""
    if isinstance(item, h5py.Dataset):
        return item
    return Rows(item["offset"], {name: one for name, one in item.items() if name != "offset"})


def create(file, name: str, rows: np.ndarray | Ragged, frames: int) -> h5py.Dataset | Rows:
    """Empty dataset for one value of every frame; its blocks hold all expected frames or about 64 KiB."""
    if isinstance(rows, Ragged):
        offset = create(file, f"{name}/offset", rows.counts, frames)
        extend(offset, np.zeros(1, dtype=np.int64))
        return Rows(offset, {key: create(file, f"{name}/{key}", one, 1 << 30) for key, one in rows.columns.items()})
    shape, dtype = rows.shape[1:], rows.dtype
    row_bytes = max(1, dtype.itemsize * int(np.prod(shape)))
    chunk = (max(1, min(frames + 1, _CHUNK_BYTES // row_bytes)), *(max(1, extent) for extent in shape))
    # HDF5 has no blocks for an extent of 0 (a joint without coordinates) unless it may grow.
    limit = (None, *(extent or None for extent in shape))
    fill = np.nan if dtype.kind == "f" else None
    return file.create_dataset(name, (0, *shape), dtype, maxshape=limit, chunks=chunk, fillvalue=fill)


def columns(dataset: h5py.Dataset | Rows, rows: np.ndarray | Ragged) -> list[tuple[h5py.Dataset, np.ndarray]]:
    """Return the datasets, each with its rows."""
    if isinstance(dataset, Rows):
        return [(dataset.offset, rows.counts), *((column, rows.columns[name]) for name, column in dataset.columns.items())]
    return [(dataset, rows)]


def as_stored(dataset: h5py.Dataset | Rows, rows: np.ndarray | Ragged) -> np.ndarray | Ragged:
    """Convert rows to the number types of the file."""
    if isinstance(dataset, Rows):
        parts = {name: np.asarray(rows.columns[name], dtype=column.dtype) for name, column in dataset.columns.items()}
        return Ragged(rows.counts, parts)
    return np.ascontiguousarray(rows, dtype=dataset.dtype)


def extend(dataset: h5py.Dataset | Rows, rows: np.ndarray | Ragged) -> None:
    """Append rows (k, ...), by the low-level interface: a scene of many joints has thousands of datasets."""
    if isinstance(dataset, Rows):
        for name, column in dataset.columns.items():
            extend(column, rows.columns[name])
        extend(dataset.offset, dataset.offset[-1] + np.cumsum(rows.counts))
        return
    rows = as_stored(dataset, rows)
    handle = dataset.id
    start, tail = handle.shape[0], handle.shape[1:]
    handle.set_extent((start + len(rows), *tail))
    if rows.size == 0:
        return
    target = handle.get_space()
    target.select_hyperslab((start, *(0 for _ in tail)), rows.shape)
    handle.write(h5py.h5s.create_simple(rows.shape), target, rows)
