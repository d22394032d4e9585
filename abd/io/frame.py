"""The values of one frame of a trajectory, and the report of frame 0, before the first step."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from abd.energies import InitialContacts, kinetic_energy, momenta, orthogonality_error, potential_energies
from abd.io.datasets import CONTACTS, COUNTS, PATHS
from abd.io.layout import part_path, sensor_path
from abd.joint_list import JointList
from abd.joint_model import Joint
from abd.joints.coordinates.readings import initial_readings
from abd.model import Model
from abd.potentials.integrators import longest
from abd.state import State
from abd.step.frame_path import FramePath

STORED = ("kinetic", "gravity", "elastic", "contact", "joint")
"""Terms of the total energy."""
ENERGIES = (*STORED, "external_work", "friction_work", "integration")
"""Energy balance: the change of the total since the start is the sum of the last three."""


@dataclass
class SolverRow:
    """Solver statistics of the steps since the previous frame: one row of `/solver`.

    Counts and times are sums, errors the largest, `min_gap` [m] the smallest, and `contacts` that of the last step.
    """

    newton_iterations: int = 0
    linear_iterations: int = 0
    line_search_trials: int = 0
    substeps: int = 0
    rejected_paths: int = 0
    indirect_paths: int = 0
    contacts: int = 0
    min_gap: float = np.inf
    max_joint_residual: np.ndarray = field(default_factory=lambda: np.zeros(2))
    max_orthogonality_error: float = 0.0
    tolerance_achieved: float = 0.0
    residual_force: float = 0.0
    wall_seconds: float = 0.0
    converged: bool = True

    def add(self, report) -> None:
        """Add the `StepReport` of a step."""
        counts = "newton_iterations", "linear_iterations", "line_search_trials", "substeps", "rejected_paths", "indirect_paths"
        for name in (*counts, "wall_seconds"):
            setattr(self, name, getattr(self, name) + getattr(report, name))
        for name in ("max_orthogonality_error", "tolerance_achieved", "residual_force"):
            # NumPy's extremes propagate NaN; Python's may hide it.
            setattr(self, name, float(np.maximum(getattr(self, name), getattr(report, name))))
        self.contacts = int(report.contacts)
        self.min_gap = float(np.minimum(self.min_gap, report.min_gap))
        self.max_joint_residual = np.maximum(self.max_joint_residual, report.max_joint_residual)
        self.converged = bool(self.converged and report.converged)


@dataclass(kw_only=True)
class InitialReport(SolverRow):
    """Fields of a `StepReport` that exist without a step. Counts are 0; gaps are those of nearby bodies."""

    step: int
    time: float
    energy: dict[str, float]
    momentum: dict[str, np.ndarray]


def initial_report(model: Model, state: State, initial_contacts: InitialContacts) -> InitialReport:
    """Return energies, momenta and errors of a state by the definitions; joint energy is what the first step counts."""
    time = longest(state.time)
    read = initial_readings(model, state.q, state.qd, time)
    linear, angular = momenta(model, state.q, state.qd)
    energy = {"kinetic": kinetic_energy(model, state.qd), **potential_energies(model, state.q)}
    energy |= {"contact": initial_contacts.energy, "joint": float(read.energy.sum())}
    return InitialReport(
        step=state.step,
        time=time,
        energy=dict.fromkeys(ENERGIES, 0.0) | energy,
        momentum={"linear": linear, "angular": angular},
        max_joint_residual=tuple(read.worst_residual.tolist()),
        max_orthogonality_error=orthogonality_error(state.q),
        contacts=initial_contacts.contacts,
        min_gap=initial_contacts.smallest_gap,
    )


@dataclass(frozen=True)
class Frame:
    """The values of one frame; the copy of positions and velocities from the device may be pending.

    Attributes:
        model: the scene; motion: positions and velocities (n, 12), after `wait()`; others: all other values.
        path: states on the path to this frame.
    """

    model: Model
    motion: Any
    others: dict[str, np.ndarray]
    path: FramePath

    def values(self) -> dict[str, np.ndarray]:
        """Path in the file -> value."""
        q, qd = self.motion.wait()
        model, path, n = self.model, self.path, len(self.model.bodies)
        return self.others | {
            "/bodies/transform": model.user_transform(q),
            "/bodies/velocity": model.user_velocity(qd),
            f"{PATHS}transform": np.array([model.user_transform(one) for one in path.q]).reshape(-1, n, 4, 4),
            f"{PATHS}spin": np.array(path.spin).reshape(-1, n, 3),
            f"{PATHS}length": np.array(path.length).reshape(-1, n),
            PATHS + COUNTS: np.array([len(path.q)], dtype=np.int64),
        }


class FrameReader:
    """Reads frames from a `Simulation`: all present sensors, whatever their own interval, and contact points if requested."""

    def __init__(self, sim, contacts: bool = False):
        self.sim, self.contacts = sim, contacts
        self.sensors = dict(sim.sensors)
        self.joints = JointList.of(sim.model.joints)
        self.several = len(np.unique(sim.model.bodies.world)) > 1

    def read(self, report, row: SolverRow, path: FramePath) -> Frame:
        """Return the frame of the present state; the next step may start before the frame is complete.

        Args:
            report: of the last step; row: statistics of the steps since the previous frame.
            path: states on the path from the previous frame, if that is a step before.
        """
        read = self.sim.state.to_host()
        values = {"/time": np.float64(report.time), "/step": np.int64(report.step)}
        for name in ENERGIES:
            values[f"/energy/{name}"] = np.float64(report.energy[name])
        for name in ("linear", "angular"):
            values[f"/momentum/{name}"] = np.asarray(report.momentum[name], dtype=float)
        for entry in fields(row):
            values[f"/solver/{entry.name}"] = np.asarray(getattr(row, entry.name))
        if len(self.joints):
            values |= self._joint_values()
        for name, sensor in self.sensors.items():
            values[sensor_path(name)] = sensor.present()
        if self.several:
            values["/worlds/time"] = self.sim.worlds.time
        if self.contacts:
            found = self.sim.contacts()
            values |= {f"{CONTACTS}{name}": getattr(found, name) for name in ("point", "normal", "gap", "force")}
            values |= {f"{CONTACTS}pair": found.pair.astype(np.int32), CONTACTS + COUNTS: np.array([len(found)], dtype=np.int64)}
        return Frame(self.sim.model, read, values, path)

    def _joint_values(self) -> dict[str, np.ndarray]:
        """Return the values of all joints by path in the file."""
        read, values = self.sim.joint_readings(), {}
        active = self.joints.column("active").astype(bool)
        for first, part in zip(self.joints.starts, self.joints.permanent, strict=False):
            path, single = part_path(part), isinstance(part, Joint)
            last = first + (1 if single else len(part))
            own = slice(read.reader.starts[first], read.reader.starts[last])
            all_of = {"coordinates": read.coordinates[own], "rates": read.rates[own]}
            each = {"residual": read.residual, "wrench": read.wrench, "active": active}
            all_of |= {name: value[first] if single else value[first:last] for name, value in each.items()}
            if not single:
                all_of |= {name: all_of[name].reshape(len(part), -1) for name in ("coordinates", "rates")}
            values |= {f"{path}/{name}": value for name, value in all_of.items()}
        return values
