"""trajectory.h5 as it is written, frame by frame (`abd.io.trajectory` reads it). `abd.io.layout` and `abd.io.frame` say what
stands where.

A process may be killed, and a disk be full, at any moment. Four rules keep the file readable up to the frames that were
announced:

- it comes into being under another name, with its first frame, and is then renamed;
- space on the disk is reserved before anything is written (`abd.io.datasets`), so that a full disk stops a run between frames;
- frames wait in memory and are written in one go, flushed, and only then counted in the attribute `frames`, together
  with a checkpoint in the older of two slots (`abd.io.checkpoint`);
- a resumed run copies the frames that count into a new file; a file that was not closed is never written to again.

Nothing is compressed: the values are full-precision and hardly shrink.
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
from abd.io.datasets import COUNTS, DiskFull, create, extend, growth, reserve, series, stacked, write_whole
from abd.io.layout import write_constants
from abd.model import Model

_WAITING_BYTES = 1 << 28
"""Most that frames may take in memory before they are written."""
_FLUSH_SHARE = 0.05
"""Part of the wall time that flushing may take; a small scene is flushed at every frame."""


class TrajectoryWriter:
    """Writes a new trajectory file.

    Args:
        path: the file; one that exists is replaced as soon as the new one holds its first frames.
        model: the scene.
        blocks: the frames to begin with, path -> values (k, ...); at least one block.
        checkpoint: belongs to the last of them.
        frames: number of frames expected in the end; sizes the blocks on disk, limits nothing.
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
                # Both slots, so that none of them has to be laid out in the file while the run may be killed.
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
        # Without HDF5's lock a running simulation can be looked at; two writers are kept apart by the run's directory.
        self._file = h5py.File(path, "r+", locking=False)
        self._series = {name: series(self._file, name) for name in names}
        self._chain = [self._file[f"chain/{name}"] for name in ("frames", "hash")]

    def __len__(self) -> int:
        """Frames so far, those in memory included."""
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
        """Whether a flush would stay below its share of the wall time."""
        return _FLUSH_SHARE * (perf_counter() - self._flushed) >= self._cost

    def flush(self, checkpoint: dict) -> None:
        """Bring all frames and the checkpoint of the present state to the file."""
        begin = perf_counter()
        self._write()
        self._finish(checkpoint)
        self._flushed = perf_counter()
        self._cost = self._flushed - begin

    def _write(self) -> None:
        """Bring the waiting frames to the file, which do not count before the next `flush`."""
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
            extend(dataset, dataset[-1] + np.cumsum(rows) if name == COUNTS else rows)
        frames = len(self._series["/time"])
        self._hash = block_hash(self._hash, block, frames)
        for dataset, value in zip(self._chain, (np.array([frames]), np.frombuffer(self._hash, np.uint8)[None])):
            extend(dataset, value)
        self._file.flush()

    def _finish(self, checkpoint: dict) -> None:
        """Let all frames count that were written, with the checkpoint of the present state."""
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
