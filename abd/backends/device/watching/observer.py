"""Who watches what a device does."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import warp as wp


class Observer(Protocol):
    """Who watches what a device does (`abd.backends.device.watching.launches`, `.timeline`); the contexts enclose the work.

    Attributes:
        inside_graphs: whether to run what graphs hold launch by launch, so that every launch is seen.
    """

    inside_graphs: bool

    def launch(self, kernel: wp.Kernel, count: int, inputs: tuple) -> AbstractContextManager:
        """A kernel on `count` items."""

    def replay(self) -> AbstractContextManager:
        """A graph; only asked for without `inside_graphs`."""

    def transfer(self, name: str, array: wp.array, count: int | None) -> AbstractContextManager:
        """Something that the host takes part in ("read", "write", "sort") on `count` entries, None for all."""
