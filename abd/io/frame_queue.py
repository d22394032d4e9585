"""Queue of frames between a simulation and its file, which writes in order while the next step runs."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

from abd.io.frame import Frame
from abd.io.trajectory_writer import TrajectoryWriter

DEPTH = 4
"""Largest number of pending writes; beyond it, the simulation waits for the disk."""


class FrameQueue:
    """Pass frames to a writer.

    Args:
        writer: of the trajectory; only the queue uses it while it is open.
        in_thread: write in a thread, and take a frame's positions from the device only when the next frame comes, so that
            neither the copy nor the disk stalls a step; without, every frame is handed over at once.

    Errors of the thread are raised by the next call.
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

    def close(self) -> None:
        """Wait until all data is on the disk."""
        self._hand_over()
        while self._work:
            self._work.popleft().result()
        self._stop()

    def _hand_over(self) -> None:
        if self._last is not None:
            frame, self._last = self._last, None
            # the copy is awaited here, not in the thread, because the device may record a graph meanwhile
            frame.arrive()
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

    def _stop(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> FrameQueue:
        return self

    def __exit__(self, *_) -> None:
        """Discard data that has not been flushed."""
        self._last = None
        self._stop()
