"""Protocol of an observer of launches and transfers of a device (used by `tools/gpu_shape.py`)."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import warp as wp


class Observer(Protocol):
    """Contexts that enclose the work of a device."""

    def launch(self, kernel: wp.Kernel, count: int, inputs: tuple) -> AbstractContextManager:
        """Encloses the launch of a kernel on `count` items."""

    def replay(self) -> AbstractContextManager:
        """Encloses the replay of a graph."""

    def transfer(self, name: str, array: wp.array, count: int | None) -> AbstractContextManager:
        """Encloses a host transfer ("read", "write", "sort") of `count` entries, None for all."""
