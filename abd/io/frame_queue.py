"""Frames on their way from a simulation to its file, in order, while the next step runs."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

from abd.io.frame import Frame
from abd.io.trajectory_writer import TrajectoryWriter

DEPTH = 4
"""Things to write that may wait; beyond, the simulation waits for the disk."""


class FrameQueue:
    """Hands frames to a writer.

    Args:
        writer: of the trajectory; only the queue uses it while it is open.
        in_thread: write in a thread, and take a frame's positions from the device only when the next frame comes, so that
            neither the copy nor the disk stalls a step; without, every frame is handed over at once.

    What fails in the thread is raised by the next call.
    """

    def __init__(self, writer: TrajectoryWriter, in_thread: bool):
        self.writer = writer
        self.count = len(writer)
        """Frames so far, those on their way included."""
        self._last: Frame | None = None
        self._work: deque[Future] = deque()
        self._flush: Future | None = None
        self._thread = ThreadPoolExecutor(1, "abd-writer") if in_thread else None

    def add(self, frame: Frame) -> None:
        """Take a frame; the one before, whose copy was made during the step, goes to the writer."""
        self._hand_over()
        self._last = frame
        self.count += 1
        if self._thread is None:
            self._hand_over()

    @property
    def due(self) -> bool:
        """Whether a flush would stay below its share of the wall time, and none is under way."""
        self._raise_failures()
        return (self._flush is None or self._flush.done()) and self.writer.due

    def flush(self, checkpoint: dict) -> None:
        """Bring all frames, and the checkpoint of the present state, to the file."""
        self._hand_over()
        self._flush = self._do(self.writer.flush, checkpoint)

    def close(self) -> None:
        """Return when everything is on the disk."""
        self._hand_over()
        while self._work:
            self._work.popleft().result()
        self._stop()

    def _hand_over(self) -> None:
        if self._last is not None:
            frame, self._last = self._last, None
            # the device is asked here, not in the thread: it may be recording a graph meanwhile
            frame.arrive()
            self._do(lambda: self.writer.append(frame.values()))

    def _do(self, work, *arguments) -> Future | None:
        """Do it now, or in the thread after all that waits there."""
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
        """Whatever was not flushed by now is dropped."""
        self._last = None
        self._stop()
