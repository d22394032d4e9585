"""Table of the array addresses of the couplings of a linear system, for kernels."""

from __future__ import annotations

from collections.abc import Sequence

import warp as wp

from abd.backends.device.device import Device
from cuda_kernels.linear.couplings import COLUMNS, Coupling, write_addresses


class Addresses:
    """Addresses of the arrays of couplings.

    Attributes:
        number: number of couplings; table: (number, `COLUMNS`) on the device.
    """

    def __init__(self, device: Device, number: int):
        self.device, self.number = device, number
        self.table = device.zeros((number, COLUMNS), wp.uint64)

    def launch_write(
        self,
        couplings: Sequence[Coupling],
        blocks: Sequence[wp.array] | None = None,
        merged: Sequence[wp.array | None] | None = None,
    ) -> None:
        """Write the current addresses; launches only.

        Args:
            blocks: blocks of every coupling, by default its own; merged: flags (k,) of blocks that are in another coupling.
        """
        self.table.behind = []  # arrays behind the addresses, to count the memory traffic of launches
        for which, c in enumerate(couplings):
            own = c.blocks if blocks is None else blocks[which]
            flags = None if merged is None else merged[which]
            arrays = c.starts, c.entries, c.row, c.column, own, flags
            self.table.behind += [one for one in arrays if one is not None]
            self.device.launch(write_addresses, 1, which, *(_address(one) for one in arrays), self.table)


def _address(array: wp.array | None) -> int:
    return 0 if array is None or array.ptr is None else array.ptr
