"""Writer of trajectory.h5; `abd.io.trajectory` reads it, `abd.io.layout` and `abd.io.frame` define its layout.

A process may be killed, and a disk be full, at any moment. Four rules keep all announced frames readable:

- The file is created under another name with its first frame, and then renamed.
- Disk space is reserved before each write (`abd.io.datasets`), so that a full disk stops a run between frames.
- Frames are collected in memory, written together, flushed, and then counted in the attribute `frames`. A checkpoint is
  written with them to the older of two slots (`abd.io.checkpoint`).
- A resumed run copies the counted frames to a new file. A file that was not closed is never written again.

Values are not compressed: they have full precision and hardly shrink.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter

import h5py
import numpy as np

from abd.io.chain import block_hash, seed
from abd.io.checkpoint import create_slots, slot_growth, to_bytes, write_slot
from abd.io.datasets import DiskFull, create, extend, growth, is_count, reserve, series, stacked, write_whole
from abd.io.layout import write_constants
from abd.model import Model

_WAITING_BYTES = 1 << 28
"""Largest size of the frames in memory [bytes]."""
_FLUSH_FRACTION = 0.05
"""Largest fraction of the wall time for flushing; a small scene is flushed at every frame."""


class TrajectoryWriter:
    """Writes a new trajectory file.

    Args:
        path: the file; an existing one is replaced when the new one contains its first frames.
        model: the scene.
        blocks: first frames, path -> values (k, ...); at least one block.
        checkpoint: of the last of these frames.
        frames: expected number of frames, for the chunk size; not a limit.
        attributes: attributes of the file: scene, device, digest.
    """

    def __init__(
        self,
        path: str | Path,
        model: Model,
        blocks: Iterable[dict[str, np.ndarray]],
        checkpoint: dict,
        *,
        frames: int = 100,
        attributes: dict | None = None,
    ):
        self.path = Path(path)
        self._waiting: list[dict[str, np.ndarray]] = []
        self._waiting_bytes = 0
        begin = perf_counter()
        part = self.path.with_name(self.path.name + ".part")
        blocks = iter(blocks)
        first = next(blocks)
        with h5py.File(part, "w", driver="core", backing_store=False) as file:
            write_constants(file, model, {**(attributes or {}), "frames": 0, "chain": np.bytes_(64 * b"0")})
            create_slots(file.create_group("checkpoint"))
            for name, rows in first.items():
                create(file, name, rows, frames)
            create(file, "chain/frames", np.zeros(0, dtype=np.int64), frames)
            create(file, "chain/hash", np.zeros((0, 32), dtype=np.uint8), frames)
            self._hash = seed(file)
            file.flush()
            image = file.id.get_file_image()
        write_whole(part, image)
        try:
            self._open(part, first)
            for block in (first, *blocks):
                self._extend(block)
            for _ in range(2):
                # Both slots, so that neither is created in the file during the run, which may be killed.
                self._finish(checkpoint)
            self._file.close()
        except DiskFull:
            self._file.close()
            part.unlink()
            raise
        os.replace(part, self.path)
        self._open(self.path, first)
        self._flushed, self._cost = perf_counter(), perf_counter() - begin

    def _open(self, path: Path, names: Iterable[str]) -> None:
        # Without HDF5's lock a running simulation can be read; the lock of the run's directory excludes a second writer.
        self._file = h5py.File(path, "r+", locking=False)
        self._series = {name: series(self._file, name) for name in names}
        self._chain = [self._file[f"chain/{name}"] for name in ("frames", "hash")]

    def __len__(self) -> int:
        """Number of frames, including those in memory."""
        return len(self._series["/time"]) + len(self._waiting)

    def append(self, values: dict[str, np.ndarray]) -> None:
        """Add one frame: path -> value, see `abd.io.frame.Frame`."""
        if values.keys() != self._series.keys():
            raise ValueError(f"frame lacks or adds {sorted(values.keys() ^ self._series.keys())}")
        self._waiting.append(values)
        self._waiting_bytes += sum(value.nbytes for value in values.values())
        if self._waiting_bytes > _WAITING_BYTES:
            self._write()

    @property
    def due(self) -> bool:
        """Whether a flush stays below its fraction of the wall time."""
        return _FLUSH_FRACTION * (perf_counter() - self._flushed) >= self._cost

    def flush(self, checkpoint: dict) -> None:
        """Write all frames and the checkpoint of the present state to the file."""
        begin = perf_counter()
        self._write()
        self._finish(checkpoint)
        self._flushed = perf_counter()
        self._cost = self._flushed - begin

    def _write(self) -> None:
        """Write the waiting frames, which count from the next `flush` on."""
        if self._waiting:
            self._extend(stacked(self._waiting))
            self._waiting.clear()
            self._waiting_bytes = 0

    def _extend(self, block: dict[str, np.ndarray]) -> None:
        """Append a block of frames and its hash."""
        block = {name: np.ascontiguousarray(rows, dtype=self._series[name].dtype) for name, rows in block.items()}
        grown = sum(growth(self._series[name], len(rows)) for name, rows in block.items())
        reserve(self._file, grown + sum(growth(dataset, 1) for dataset in self._chain))
        for name, rows in block.items():
            dataset = self._series[name]
            extend(dataset, dataset[-1] + np.cumsum(rows) if is_count(name) else rows)
        frames = len(self._series["/time"])
        self._hash = block_hash(self._hash, block, frames)
        for dataset, value in zip(self._chain, (np.array([frames]), np.frombuffer(self._hash, np.uint8)[None])):
            extend(dataset, value)
        self._file.flush()

    def _finish(self, checkpoint: dict) -> None:
        """Count all written frames, with the checkpoint of the present state."""
        group, record = self._file["checkpoint"], to_bytes(checkpoint)
        reserve(self._file, slot_growth(group, record))
        write_slot(group, record)
        self._file.attrs.modify("frames", len(self._series["/time"]))
        self._file.attrs.modify("chain", np.bytes_(self._hash.hex().encode()))
        self._file.flush()

    def close(self) -> None:
        """Close the file; frames that were not flushed are dropped."""
        self._file.close()

    def __enter__(self) -> TrajectoryWriter:
        return self

    def __exit__(self, *_) -> None:
        self.close()
