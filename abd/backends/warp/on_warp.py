"""Warp backend for the CPU and CUDA: the stages of Newton's method (`abd.backends.recorded`) as kernels on device arrays."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.answers import NO_PAIRS
from abd.backends.body_data import BodyData
from abd.backends.device.device import Device
from abd.backends.device.graphs import Graphs
from abd.backends.device.totals import Totals
from abd.backends.device.upload import allocate_struct, upload_struct
from abd.backends.islands import Islands
from abd.backends.linear.linear import LinearSolver
from abd.backends.linear.solver import SOLVERS, Solver
from abd.backends.protocol import OfPotential
from abd.backends.recorded.arcs import Arcs
from abd.backends.recorded.iteration import Iteration
from abd.backends.recorded.start import Start
from abd.backends.recorded.whole_step import WholeStep
from abd.backends.warp.impact_sweeps import swept
from abd.backends.warp.iterate import Iterate, Scratch
from abd.backends.warp.parts.conditions import Inactive, Loads, TargetPoses
from abd.backends.warp.parts.paths import SweptPaths, TrialPath
from abd.backends.warp.parts.readings import SECTIONS, Readings
from abd.backends.warp.parts.rows import Rows
from abd.backends.warp.parts.states import States
from abd.backends.warp.parts.steps import Steps
from abd.backends.warp.parts.touch import Touch
from abd.backends.warp.potential import Potential
from abd.backends.warp.scheme import DeviceScheme
from abd.contact.pairs import some_may_collide
from abd.joints.closure.link_graph import joined_components
from abd.joints.rows.build import build_system
from abd.model import Model
from cuda_kernels.bodies import bodies
from cuda_kernels.bodies.affine import Pose
from cuda_kernels.step import control
from cuda_kernels.step.whole_step import RESULT_SIZE

SMALL = 400
"""Maximum number of bodies for which the CPU records and replays launches, as CUDA does. In larger scenes several threads, which
records do not support, save more wall time than the host work between the launches takes."""
LINKS = 8
"""Bodies of a mechanism that are counted fully; of the others, each group of so many counts as one: they have few contacts."""
MOST = 1024
"""Maximum total number of bodies of small worlds: beyond it, two threads are faster."""
MOST_APART = 4096
"""The same if no two bodies may collide: kernels are short then."""


class WarpBackend(OfPotential):
    """Backend of one scene on one device. `abd.backends.protocol` documents the parts.

    Attributes:
        at: iterate and trial poses with the step data; potential: incremental potential; linear: linear solver.
        trial_path: trial path of the bodies; scheme: integration scheme of the current step; totals: sums over a step.
        scratch: arrays for intermediate values; graphs: recorded launches.
    """

    def __init__(self, model: Model, device: str = "cpu", records: bool = False):
        self.model, self.device = model, Device(device, records)
        d, n, settings = self.device, len(model.bodies), model.settings
        self.n, self.constants, self.islands = n, BodyData.of(model), Islands(d, n)
        body, step, done = upload_struct(bodies.BodyData, self.constants, d), bodies.StepData(), self.islands.done
        self.at = Iterate(allocate_struct(Pose, n, d), allocate_struct(Pose, n, d), allocate_struct(Pose, n, d), body, step, done)
        potential = self.potential = Potential(model, d, self.islands, self.at, build_system(model))
        self.weight, self.loads, self.scratch = body.weight, Loads(self), Scratch(d, n)
        self.graphs, self.scheme, self.totals = Graphs(d), DeviceScheme(model, d), Totals(d, SECTIONS, n, RESULT_SIZE)
        self.trial_path = TrialPath(model, d, self.islands, self.at)
        self.inactive, self.touch, self.states = Inactive(self), Touch(self), States(self)
        self.target_poses, self.steps, self.rows = TargetPoses(self), Steps(self), Rows(self)
        self.linear = LinearSolver(
            d, settings.linear_solver, self.inactive.mobile, model.bodies.names, self.islands, len(potential.couplings),
            model.bodies.world,
        )  # fmt: skip
        self.swept_paths, self.readings = SweptPaths(self), Readings(self)
        self._solvers: dict[str, Solver] = {}
        self.iteration = Iteration(self)
        self.start, self.arcs, self.whole = Start(self), Arcs(self), WholeStep(self)

    sweep = staticmethod(swept)

    def choose_solver(self, decisions: control.Control) -> tuple[Solver, str, bool]:
        """Update the pattern of the linear system, and return its solver, the name, and whether it has changing pairs.

        The changing pairs have candidates or lagged friction. Bodies with permanently overlapping boxes, such as linked rings,
        would fill a factor of all listed pairs."""
        candidates, friction, near, linear = self.contacts.candidates, self.friction, [NO_PAIRS], self.linear
        self.contacts.follow_list()
        has_own_list = friction.pair_count > 0 and not friction.follows_list
        has_loose_pairs = candidates.pair_count > 0 or has_own_list
        linear.follow_joints(self.joints.coupling, self.joints.pairs)
        if has_loose_pairs:
            if candidates.pair_count and not linear.is_refused:
                near.append(candidates.coupled_pairs())
            if has_own_list and not linear.is_refused:
                near.append(friction.coupled_pairs())
            linear.follow_near(np.concatenate(near).astype(int))
            candidates.reads_pairs = not linear.is_refused
        # its arrays must exist before launches are recorded
        name = linear.choice.solver
        if name not in self._solvers:
            self._solvers[name] = SOLVERS[name](linear, decisions)
        return self._solvers[name], name, has_loose_pairs

    @property
    def failed_rows(self) -> tuple[int, wp.array, wp.array]:
        """Number of block rows of the factor, 0 if those that failed are not known; their bodies; 1 for those that failed."""
        linear = self.linear
        known, factor = (len(linear.bodies), linear.factor) if linear.choice.direct else (0, linear.static)
        return known, factor.pattern.body, factor.factor.failed


def is_small(model: Model) -> bool:
    """Return whether a scene is small enough for recording on the CPU: the scene, or each of not too many worlds."""
    mechanism, world = joined_components(model), model.bodies.world
    articulations = np.bincount(mechanism)
    further = np.maximum(articulations - LINKS, 0)
    worlds = np.zeros(len(articulations), dtype=int)
    worlds[mechanism] = world
    counts = np.bincount(worlds, weights=articulations - further + further / LINKS)
    if len(counts) == 1:
        return bool(counts[0] <= SMALL)
    return bool(counts.max(initial=0.0) <= SMALL and counts.sum() <= (MOST if some_may_collide(model) else MOST_APART))
