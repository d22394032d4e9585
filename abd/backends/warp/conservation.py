"""Energy and momenta of conservative mechanisms over smooth steps, on a device (`abd.potentials.conservation`)."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.warp.terms.joints import Joints
from abd.backends.warp.terms.row_memory import RowMemory
from abd.joints.closure.symmetries import symmetries
from abd.model import Model
from abd.potentials.conservation import ALL, apart
from cuda_kernels.bodies.affine import Pose
from cuda_kernels.step import conservation

LEAST_CHUNK = 64
"""Bodies that a thread adds up at least, where a mechanism has as many."""


class Conservation:
    """Mechanisms of one scene with a joint system."""

    def __init__(self, model: Model, joints: Joints, memory: RowMemory, device: Device):
        self.model, self.system, self.device = model, joints.system, device
        found = symmetries(model, joints.system)
        self.count, self.body_count = len(found), len(found.bodies)
        sizes = np.diff(found.starts)
        chunk = max(LEAST_CHUNK, int(np.ceil(np.sqrt(sizes.max(initial=0)))))
        of_chunks = -(-sizes // chunk)
        self.chunk_count = int(of_chunks.sum())
        whole = np.repeat(np.arange(len(found)), of_chunks)
        chunks = np.concatenate([[0], np.cumsum(of_chunks)])
        begins = found.starts[whole] + chunk * (np.arange(self.chunk_count) - chunks[whole])
        m = self.mechanisms = conservation.Mechanisms()
        for name, values in (
            ("bodies", found.bodies),
            ("of", np.repeat(np.arange(len(found)), sizes)),
            ("chunk", np.append(begins, self.body_count)),
            ("whole", whole),
            ("chunks", chunks),
            ("root", found.bodies[found.starts[:-1]]),
            ("free", found.free),
            ("count", found.count),
            ("own", found.own),
            ("flat", _flat(found)),
        ):
            setattr(m, name, device.upload(np.asarray(values, dtype=np.int32), wp.int32))
        m.moment = device.upload(apart(model.bodies.moment[found.bodies], found.own), wp.vec3d)
        m.twists = device.upload(found.twists, wp.spatial_matrixd)
        gains = self.gains = conservation.Gains()
        gains.linear, gains.linear_starts, gains.linear_entries = joints.linear, joints.linear_starts, joints.linear_entries
        gains.owned_starts, gains.owned_rows, gains.gain = joints.owned_starts, joints.owned_rows, memory.gain
        self.correction = conservation.Correction()
        self.correction.factor = device.zeros(self.count, wp.float64)
        for name in ("v", "w", "place"):
            setattr(self.correction, name, device.zeros(self.count, wp.vec3d))
        self.partial = device.zeros((conservation.SUMS, self.chunk_count), wp.float64)

    def turn_gravity(self) -> None:
        """The model's gravity is another one, which changes the motions as a whole, and with them whose spins are their own."""
        found = symmetries(self.model, self.system)
        self.device.write(self.mechanisms.count, found.count.astype(np.int32))
        self.device.write(self.mechanisms.twists, found.twists)
        self.device.write(self.mechanisms.own, found.own.astype(np.int32))
        self.device.write(self.mechanisms.flat, _flat(found))
        self.device.write(self.mechanisms.moment, apart(self.model.bodies.moment[found.bodies], found.own))

    def launch(
        self, body, step, mode: wp.array, lengths: tuple[wp.array, wp.array], before: Pose, now: Pose, earlier: wp.array,
        velocity: wp.array, owed: wp.array,
    ) -> None:  # fmt: skip
        """Correct the velocities (n, 12) at the end of a step between two poses, whose rows have said what they gained, and
        what is owed (n,), by launches only; `lengths`: `DeviceScheme.of` and `motion`; `earlier` (n, 12): velocities before
        it."""
        launch, some = self.device.launch, self.mechanisms
        ends = before, now, earlier, velocity
        launch(conservation.add_up, self.chunk_count, some, body, mode, self.gains, step, *ends, self.partial, grain=16)
        launch(conservation.balance, self.count, some, self.partial, *lengths, step, before, owed, self.correction, grain=64)
        launch(conservation.correct, self.body_count, some, self.correction, now, velocity)


def _flat(found) -> np.ndarray:
    """(m,) 1 for mechanisms with bodies all of whose spins are their own."""
    if not len(found):
        return np.zeros(0, dtype=np.int32)
    return np.logical_or.reduceat(found.own == ALL, found.starts[:-1]).astype(np.int32)
