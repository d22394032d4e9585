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
        at: state of the terms; potential: the terms; linear: the solver of the Newton iterations; scheme: of the present step.
    """

    def __init__(self, model: Model):
        self.model, n = model, len(model.bodies)
        d = self.device = Device("cpu")
        d.name, self.n, self.graphs, scratch = "numpy", n, Graphs(d), Scratch(d, n)
        self.constants, self.islands, self.scratch = BodyData.of(model), Islands(d, n), scratch
        scheme = self.scheme = HostScheme(d.zeros(n, wp.float64))
        constants, boxes, q = self.constants, Boxes(model), model.bodies.q
        self.weight = d.upload(constants.weight, wp.float64)
        self.at = Iterate(q, q, q, ch2=np.ones(n), eps=np.zeros(n))
        potential = self.potential = Potential(model, d, constants, self.islands, self.at, build_system(model))
        self.loads = Loads(potential)
        inactive = self.inactive = Inactive(model, constants, potential)
        trial_path = self.trial_path = TrialPath(constants, potential, scheme, boxes)
        self.touch = touch = Touch(model, potential, inactive, trial_path)
        states = self.states = States(model.bodies, self.at)
        self.target_poses = TargetPoses(model, potential)
        rows = self.rows = Rows(model, constants, potential, states, scheme, inactive, scratch)
        self.linear = DenseSolver(inactive)
        self.steps = Steps(model, constants, potential, states, scheme, self.target_poses, inactive, rows)
        self.swept_paths = SweptPaths(states, potential, inactive, boxes)
        self.readings = Readings(model, potential, states, touch, rows, self.steps, boxes)
        self.fixed_stiffness = model.settings.contact_stiffness is not None
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
