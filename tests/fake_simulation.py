"""A stand-in for `abd.Simulation` in tests of the files and of the driver: same interface, cheap made-up physics."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np

from abd.api.device_state import OnHost
from abd.errors import StepFailure
from abd.joints.coordinates.readings import Readings, opening_readings
from abd.model import Bodies, Joint, Kind, Materials, Mesh, Model, Settings, affine_state
from abd.state import State
from abd.step.energy_balance import InitialContacts

BOX = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
BOX_TRIANGLES = np.array(
    [
        [0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
        [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3],
    ],
    dtype=np.int32,
)  # fmt: skip


def edges_of(triangles: np.ndarray) -> np.ndarray:
    """(e, 2) edges of triangles (f, 3), each once."""
    sides = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    return np.unique(np.sort(sides, axis=1), axis=0).astype(np.int32)


def mesh_of(vertices, triangles, name: str = "box") -> Mesh:
    """A mesh of triangles alone."""
    triangles = np.asarray(triangles, dtype=np.int32).reshape(-1, 3)
    return Mesh(
        name=name,
        vertices=np.asarray(vertices, dtype=float),
        triangles=triangles,
        edges=edges_of(triangles),
        codim_edges=np.empty((0, 2), np.int32),
        points=np.empty(0, np.int32),
    )


def body_frame() -> np.ndarray:
    """A rigid map that is far from the identity: a turn about (1, 1, 1) and a shift."""
    frame = np.eye(4)
    frame[:3, :3] = np.roll(np.eye(3), 1, axis=0)
    frame[:3, 3] = [0.25, -0.5, 0.125]
    return frame


def model_of(
    placements: list[np.ndarray],
    meshes: list[Mesh],
    mesh: list[int],
    *,
    body_frames: np.ndarray | None = None,
    kind: list[Kind] | None = None,
    plane: np.ndarray | None = None,
    joints: list[Joint] | None = None,
    group: list[int] | None = None,
    world: list[int] | None = None,
    radius: list[float] | None = None,
    name: str = "fake",
    **settings,
) -> Model:
    """A model with bodies at the given (4, 4) poses of their mesh frames."""
    n = len(placements)
    frames = np.tile(np.eye(4), (n, 1, 1)) if body_frames is None else body_frames
    bodies = Bodies(
        names=[f"body{k}" for k in range(n)],
        kind=np.array(kind or [Kind.DYNAMIC] * n, dtype=np.int32),
        mesh=np.array(mesh, dtype=np.int32),
        plane=np.full((n, 4), np.nan) if plane is None else plane,
        mass=np.ones(n),
        moment=np.full((n, 3), 0.1),
        volume=np.ones(n),
        kappa=np.full(n, 1e9),
        elasticity=np.zeros(n, np.int32),
        body_frame=frames,
        q=affine_state(np.array(placements) @ np.linalg.inv(frames)),
        qd=np.zeros((n, 12)),
        force=np.zeros((n, 3)),
        torque=np.zeros((n, 3)),
        free_translation=np.ones((n, 3), dtype=bool),
        rotation_axis=np.zeros((n, 3)),
        free_rotation=np.full(n, 3, np.int32),
        material=np.zeros(n, np.int32),
        group=np.array(group or [-1] * n, dtype=np.int32),
        world=np.array(world or [0] * n, dtype=np.int32),
        radius=np.array(radius or [0.0] * n),
        surface_velocity=np.zeros((n, 3)),
        color=np.full((n, 4), np.nan),
    )
    zero, one = np.zeros((1, 1)), np.ones((1, 1))
    materials = Materials(["default"], zero, one, one > 0.0, restitution=zero, rolling=zero, spinning=zero)
    return Model(name, bodies, meshes, joints or [], materials, Settings(**settings), {})


def pose(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    """(4, 4) translation."""
    matrix = np.eye(4)
    matrix[:3, 3] = x, y, z
    return matrix


def two_boxes_over_a_plane(**settings) -> Model:
    """Two boxes of one mesh, stored in an internal frame, a half-space below, and a joint between the boxes."""
    frame = body_frame()
    frames = np.array([frame, frame, np.eye(4)])
    internal = BOX @ frame[:3, :3].T + frame[:3, 3]
    plane = np.array([[np.nan] * 4, [np.nan] * 4, [0.0, 0.0, 1.0, 0.0]])
    joint = Joint("elbow/left", "spherical", 26, 0, 1, pose(0.75), pose(-0.75), stiffness_mass=2.0)
    return model_of(
        [pose(z=2.0), pose(x=1.5, z=2.0), pose()],
        [mesh_of(internal, BOX_TRIANGLES)],
        [0, 0, -1],
        body_frames=frames,
        kind=[Kind.DYNAMIC, Kind.DYNAMIC, Kind.STATIC],
        plane=plane,
        joints=[joint],
        **settings,
    )


class FakeState:
    """As `abd.api.device_state.DeviceState`, on the host."""

    def __init__(self, state: State):
        self.state = state

    def to_host(self) -> OnHost:
        return OnHost(self.state.q.copy(), self.state.qd.copy())


class FakeSimulation:
    """Falls and wobbles: the next state depends on every bit of the one before.

    Args:
        model: what to move.
        fail_at: the step that raises `StepFailure`.
    """

    device = "fake"
    initial_contacts = InitialContacts()

    def __init__(self, model: Model, device: str = "auto", fail_at: int | None = None):
        self.model, self.fail_at = model, fail_at
        self._state = State(q=model.bodies.q.copy(), qd=model.bodies.qd.copy())

    @property
    def linear_solver(self) -> dict:
        return {"name": "fake", "why": "there is no other"}

    @property
    def frame(self) -> int:
        return self._state.step

    @property
    def time(self) -> float:
        return self._state.time

    @property
    def worlds(self) -> SimpleNamespace:
        return SimpleNamespace(time=np.full(len(np.unique(self.model.bodies.world)), self.time))

    def initial_report(self) -> SimpleNamespace:
        return self._report(newton=0, min_gap=np.inf)

    def step(self) -> SimpleNamespace:
        state, h = self._state, self.model.settings.dt
        if self.fail_at == state.step + 1:
            raise StepFailure("not_converged", "no luck", state.step + 1, state.time, ("body0",))
        moves = self.model.bodies.kind == Kind.DYNAMIC
        state.qd[moves, :3] += h * self.model.settings.gravity
        state.qd[moves, 3:] = 0.01 * np.sin(7.0 * state.q[moves, 3:] + state.step)
        state.q[moves] += h * state.qd[moves]
        state.time += h
        state.step += 1
        return self._report(newton=2 + state.step % 3, min_gap=0.01 / state.step)

    def _report(self, newton: int, min_gap: float) -> SimpleNamespace:
        state = self._state
        kinetic = float(0.5 * (state.qd[:, :3] ** 2).sum())
        names = ("gravity", "elastic", "contact", "joint", "external_work", "friction_work", "integration")
        return SimpleNamespace(
            step=state.step,
            time=state.time,
            dt=self.model.settings.dt,
            converged=True,
            substeps=1,
            newton_iterations=newton,
            linear_iterations=10 * newton,
            line_search_trials=newton,
            rejected_paths=newton // 4,
            min_gap=min_gap,
            max_joint_residual=(1e-4 * state.step, 2e-4),
            max_orthogonality_error=1e-6,
            residual_force=0.5,
            tolerance_achieved=0.4e-3,
            contacts=state.step,
            energy={"kinetic": kinetic, **dict.fromkeys(names, 0.0), "gravity": -kinetic},
            momentum={"linear": state.qd[:, :3].sum(0), "angular": np.zeros(3)},
            broken=(),
            stages={"solve": 0.25, "contact": 0.5},
            wall_seconds=0.01,
        )

    def host_state(self) -> State:
        return copy.deepcopy(self._state)

    @property
    def state(self) -> FakeState:
        return FakeState(self._state)

    def joint_readings(self) -> Readings:
        return opening_readings(self.model, self._state.q, self._state.qd)

    def checkpoint(self) -> dict:
        state = self._state
        return {"q": state.q.copy(), "qd": state.qd.copy(), "time": state.time, "step": state.step}

    def restore(self, saved: dict) -> None:
        self._state = State(q=saved["q"], qd=saved["qd"], time=saved["time"], step=saved["step"])
