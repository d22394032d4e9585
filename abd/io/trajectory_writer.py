"""Writer of trajectory.h5, and the queue of frames before it; `abd.io.layout` and `abd.io.frame` define the layout.

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
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

import h5py
import numpy as np

from abd.io.chain import block_hash, seed
from abd.io.checkpoint import create_slots, slot_growth, to_bytes, write_slot
from abd.io.datasets import DiskFull, create, extend, growth, is_count, reserve, series, stacked, write_whole
from abd.io.frame import Frame
from abd.io.layout import write_constants
from abd.model import Model

_WAITING_BYTES = 1 << 28
"""Largest size of the frames in memory [bytes]."""
_FLUSH_FRACTION = 0.05
"""Largest fraction of the wall time for flushing; a small scene is flushed at every frame."""
DEPTH = 4
"""Largest number of pending writes; beyond it, the simulation waits for the disk."""


class TrajectoryWriter:
    """Writes a new trajectory file of a model.

    Args:
        path: the file; an existing one is replaced when the new one contains its first frames.
        blocks: first frames, path -> values (k, ...); at least one block. checkpoint: of the last of these frames.
        frames: expected number of frames, for the chunk size; attributes: of the file: scene, device, digest.
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


class FrameQueue:
    """Passes frames from a simulation to a writer, in order; errors of its thread are raised by the next call.

    in_thread: write in a thread, and take a frame's positions from the device only when the next frame comes, so that neither
        the copy nor the disk stalls a step; without, every frame is handed over at once.
    """

    def __init__(self, writer: TrajectoryWriter, in_thread: bool):
        self.writer = writer
        self.count = len(writer)
        """Number of frames, including pending ones."""
        self._last: Frame | None = None
        self._work: deque[Future] = deque()
        self._flush: Future | None = None
        self._thread = ThreadPoolExecutor(1, "abd-writer") if in_thread else None

    def add(self, frame: Frame) -> None:
        """Add a frame, and pass the previous frame, which is copied by now, to the writer."""
        self._hand_over()
        self._last = frame
        self.count += 1
        if self._thread is None:
            self._hand_over()

    @property
    def due(self) -> bool:
        """Return whether a flush stays below its fraction of the wall time, and no flush is pending."""
        self._raise_failures()
        return (self._flush is None or self._flush.done()) and self.writer.due

    def flush(self, checkpoint: dict) -> None:
        """Write all frames and the checkpoint of the current state to the file."""
        self._hand_over()
        self._flush = self._do(self.writer.flush, checkpoint)

    def _hand_over(self) -> None:
        if self._last is not None:
            frame, self._last = self._last, None
            # the copy is awaited here, not in the thread, because the device may record a graph meanwhile
            frame.motion.wait()
            self._do(lambda: self.writer.append(frame.values()))

    def _do(self, work, *arguments) -> Future | None:
        """Run `work` now, or in the thread after all pending work."""
        if self._thread is None:
            work(*arguments)
            return None
        self._raise_failures()
        while len(self._work) >= DEPTH:
            self._work.popleft().result()
        self._work.append(self._thread.submit(work, *arguments))
        return self._work[-1]

    def _raise_failures(self) -> None:
        while self._work and self._work[0].done():
            self._work.popleft().result()

    def __enter__(self) -> FrameQueue:
        return self

    def __exit__(self, error, *_) -> None:
        """Wait for all pending writes; after an error, drop them."""
        try:
            while self._work and error is None:
                self._work.popleft().result()
        finally:
            if self._thread is not None:
                self._thread.shutdown(wait=True, cancel_futures=True)
