"""The reference backend, which runs the definitions of `abd.potentials`, `abd.joints` and `abd.contact`.

It computes the same as the kernels in the same order, on arrays with one dense matrix, for scenes of a few dozen bodies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.backends.body_data import BodyData
from abd.backends.protocol import OfPotential
from abd.backends.reference.dense_solver import DenseSolver
from abd.backends.reference.iterate import Islands, Iterate
from abd.backends.reference.iteration import Iteration
from abd.backends.reference.numpy_bodies import Boxes
from abd.backends.reference.numpy_motion import HostScheme
from abd.backends.reference.parts.arcs import Arcs, SweptPaths
from abd.backends.reference.parts.conditions import Inactive, Loads, TargetPoses
from abd.backends.reference.parts.readings import Readings
from abd.backends.reference.parts.rows import Rows
from abd.backends.reference.parts.states import States
from abd.backends.reference.parts.steps import Steps
from abd.backends.reference.parts.touch import Touch
from abd.backends.reference.potential import Potential
from abd.backends.reference.start import Start
from abd.joints.rows.build import build_system
from abd.model import Model
from abd.potentials.sweeps import swept


@dataclass(frozen=True)
class Host:
    """Device of the arrays."""

    name: str = "numpy"


class NumpyBackend(OfPotential):
    """The definitions of one scene; `abd.backends.protocol` defines the methods of each part.

    Attributes:
        at: state of the terms; potential: the terms; linear: the solver of the Newton iterations; scheme: of the present step.
    """

    def __init__(self, model: Model):
        self.model, self.device, self.n = model, Host(), len(model.bodies)
        self.constants, self.islands, self.scheme = BodyData.of(model), Islands(self.n), HostScheme()
        constants, scheme, boxes, q = self.constants, self.scheme, Boxes(model), model.bodies.q
        self.at = Iterate(q, q, q, ch2=np.ones(self.n), eps=np.zeros(self.n))
        potential = self.potential = Potential(model, constants, self.islands, self.at, build_system(model))
        self.loads = Loads(potential)
        inactive = self.inactive = Inactive(model, constants, potential)
        touch = self.touch = Touch(model, potential)
        states = self.states = States(model.bodies, self.at)
        self.target_poses = TargetPoses(model, potential)
        rows = self.rows = Rows(model, constants, potential, states, scheme, inactive)
        self.linear = DenseSolver(potential, inactive, boxes)
        self.steps = Steps(model, constants, potential, states, scheme, self.target_poses, inactive, rows)
        self.arcs = Arcs(constants, potential, scheme, inactive, touch, boxes)
        self.swept_paths = SweptPaths(states, touch, inactive, boxes, self.islands)
        self.readings = Readings(model, potential, states, touch, rows, self.steps, boxes)
        self.iteration, self.start, self.whole = Iteration(self), Start(self), None

    sweep = staticmethod(swept)
