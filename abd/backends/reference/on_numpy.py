"""The reference backend, which runs the definitions of `abd.potentials`, `abd.joints` and `abd.contact`.

It evaluates energies, gradients, paths, contacts and joints in NumPy, with one dense matrix, for scenes of a few dozen bodies.
The decisions are the kernels of all backends (`abd.backends.recorded`), which share arrays with NumPy.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.body_data import BodyData
from abd.backends.device.device import Device
from abd.backends.device.graphs import Graphs
from abd.backends.islands import Islands
from abd.backends.protocol import OfPotential
from abd.backends.recorded.arcs import Arcs
from abd.backends.recorded.iteration import Iteration
from abd.backends.recorded.start import Start
from abd.backends.reference.iterate import Iterate
from abd.backends.reference.numpy_bodies import Boxes
from abd.backends.reference.numpy_motion import HostScheme
from abd.backends.reference.parts.conditions import Inactive, Loads, TargetPoses
from abd.backends.reference.parts.dense_solver import DenseSolver
from abd.backends.reference.parts.paths import SweptPaths, TrialPath
from abd.backends.reference.parts.readings import Readings
from abd.backends.reference.parts.rows import Rows
from abd.backends.reference.parts.states import States
from abd.backends.reference.parts.steps import Steps
from abd.backends.reference.parts.touch import Touch
from abd.backends.reference.potential import Potential
from abd.backends.warp.iterate import Scratch
from abd.joints.rows.build import build_system
from abd.model import Model
from abd.potentials.sweeps import swept
from cuda_kernels.step import control


class NumpyBackend(OfPotential):
    """The definitions of one scene; `abd.backends.protocol` defines the methods of each part.

    Attributes:
        at: state of the terms; potential: the terms; linear: the solver of the Newton iterations; scheme: of the present step;
        boxes: of the bodies.
    """

    def __init__(self, model: Model):
        self.model, n = model, len(model.bodies)
        d = self.device = Device("cpu")
        d.name, self.n, self.graphs, self.scratch = "numpy", n, Graphs(d), Scratch(d, n)
        self.constants, self.islands, self.boxes = BodyData.of(model), Islands(d, n), Boxes(model)
        self.scheme, self.weight = HostScheme(d.zeros(n, wp.float64)), d.upload(self.constants.weight, wp.float64)
        q = model.bodies.q
        self.at = Iterate(q, q, q, ch2=np.ones(n), eps=np.zeros(n))
        self.potential = Potential(model, d, self.constants, self.islands, self.at, build_system(model))
        self.loads, self.inactive, self.trial_path = Loads(self), Inactive(self), TrialPath(self)
        self.touch, self.states, self.target_poses = Touch(self), States(self), TargetPoses(self)
        self.rows, self.linear, self.steps = Rows(self), DenseSolver(self), Steps(self)
        self.swept_paths, self.readings = SweptPaths(self), Readings(self)
        self.iteration = Iteration(self)
        self.start, self.arcs, self.whole = Start(self), Arcs(self), None

    sweep = staticmethod(swept)

    def choose_solver(self, decisions: control.Control) -> tuple[DenseSolver]:
        """Return the solver, whose failures become those of the iteration (`decisions`)."""
        self.linear.control = decisions
        return (self.linear,)

    @property
    def failed_rows(self) -> tuple[int, wp.array, wp.array]:
        """Number of block rows, their bodies, and 1 for those in islands that could not be factorised."""
        return self.n, self.linear.bodies, self.linear.failed
