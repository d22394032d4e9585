"""An observer of what a device runs (`tools/gpu_shape.py` counts with one)."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import warp as wp


class Observer(Protocol):
    """Contexts that enclose the work of a device."""

    def launch(self, kernel: wp.Kernel, count: int, inputs: tuple) -> AbstractContextManager:
        """A kernel on `count` items."""

    def replay(self) -> AbstractContextManager:
        """A graph."""

    def transfer(self, name: str, array: wp.array, count: int | None) -> AbstractContextManager:
        """A transfer in which the host takes part ("read", "write", "sort"), of `count` entries, None for all."""
