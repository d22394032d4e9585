"""An iteration whose model is not convex is begun anew by the device, once, with all caution where it has to be."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from on_device import DEVICE

from abd.backends.device.graphs import Graphs
from abd.backends.recorded.numbers import flags_of, new_control
from cuda_kernels.step import control


class Anew:
    """Five bodies in three islands, of which three have rows; every model of theirs fails."""

    def __init__(self, failure: int):
        counts = DEVICE.upload(np.array([3, 3]), wp.int32)
        self.c, self.failure = new_control(DEVICE, 5, counts), failure
        self.rounds = DEVICE.zeros(1, wp.int32)
        self.body, self.island = DEVICE.upload([4, 1, 2], wp.int32), DEVICE.upload([0, 0, 1, 1, 2], wp.int32)
        self.failed = DEVICE.upload([0, 1, 1], wp.int32)
        self.flag = flags_of(self.c, "ANEW", "STALE", "SOUND")

    def launch(self) -> None:
        """As `Iteration.iterate` does, with a failure in place of a direction."""
        DEVICE.launch(control.begin_iteration, 1, self.c)
        DEVICE.repeat(self.flag["ANEW"], self.turn)

    def turn(self) -> None:
        DEVICE.launch(control.set_flag, 1, self.c, control.FAILURE, self.failure)
        DEVICE.launch(control.judge_model, 1, self.c)
        DEVICE.when(self.flag["ANEW"], self.take_care)

    def take_care(self) -> None:
        DEVICE.launch(control.take_care, 5, self.c, 3, self.body, self.island, self.failed)
        DEVICE.launch(control.begin_anew, 1, self.c)

    def read(self, name: str) -> int:
        return int(DEVICE.read(self.c.flags)[getattr(control, name)])


@pytest.mark.device
@pytest.mark.parametrize(
    ("failure", "share"), [(control.NOT_POSITIVE, [1, 1, 0]), (control.NO_CURVATURE, [1, 1, 1]), (control.NOT_FINITE, [0, 0, 0])]
)
def test_who_becomes_cautious(failure, share):
    anew = Anew(failure)
    Graphs(DEVICE).run("anew", anew.launch)
    assert DEVICE.read(anew.c.share, 3).tolist() == share
    again = failure != control.NOT_FINITE
    assert (anew.read("CAREFUL"), anew.read("STALE"), anew.read("ANEW")) == (again, again, 0)
    assert anew.read("FAILURE") == failure, "it fails twice, and the host is told"
    assert DEVICE.read(anew.failed).tolist() == ([0, 0, 0] if failure == control.NOT_POSITIVE else [0, 1, 1])
