"""Every joint type under known loads: reaction and violation on all constrained axes at once, and free axes that are free.

A cube of 8 kg hangs on the world with its centre of mass at the origin of C, without gravity. A load made of the
gradients of the constraints, ``w = G^T lambda``, must be carried whole; a load ``M t`` along a free twist t must not be
felt by the joint.
"""

from dataclasses import replace

import numpy as np
import pytest
from on_device import NAME
from test_joint_types import CASES, admissible, joint_of

import abd
from abd.backends.reference.numpy_joints import NumpyJoints
from abd.joints.rows.table import linearize, tabulate, value_at
from abd.joints.types import TYPES
from abd.model import affine_state

pytestmark = pytest.mark.device

MASS, SIDE, H = 8.0, 0.2, 0.01
INERTIA = MASS * SIDE**2 / 6.0
COMPLIANCE = (1e-6, 3e-6, 2e-6, 4e-6, 2e-6, 5e-6)
FREE = ("free", "damper", "bushing", "bushing, six numbers", "spring", "rope", "unilateral plane", "spherical with limits")
HELD = [case for case in CASES if case not in FREE and "resists" not in case]  # springs carry no load without turning
"""Cases that have constraints."""


class Loaded:
    """A cube on one joint; loads (6,) are force and torque on it, world axes."""

    def __init__(self, case: str, enforcement: str, device: str = NAME):
        scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": H, "tolerance": 1e-9, "integrator": "bdf1"})
        scene.add_body("cube", box=(SIDE, SIDE, SIDE), mass=MASS, kappa=1e11)
        model, joint = scene.compile(), joint_of(case)
        self.T = admissible(case, np.random.default_rng(3))
        D = joint.parent_frame
        self.joint = replace(
            joint, child_frame=np.eye(4), enforcement=enforcement, stiffness_mass=MASS,
            compliance=COMPLIANCE if enforcement == "compliant" else (),
            damping=tuple(2.0 * np.sqrt(MASS / np.array(COMPLIANCE))) if enforcement == "compliant" else (),
        )  # fmt: skip
        q = affine_state(D @ self.T)[None]
        self.model = replace(model, bodies=replace(model.bodies, q=q, qd=np.zeros((1, 12))), joints=[self.joint])
        self.device = device

    def run(self, load: np.ndarray, steps: int) -> abd.Simulation:
        bodies = replace(self.model.bodies, force=load[None, :3], torque=load[None, 3:])
        simulation = abd.run(replace(self.model, bodies=bodies), steps=steps, device=self.device)
        return simulation

    @property
    def gradient(self) -> np.ndarray:
        """(k, 6) of the constraints by the motion of the cube (v; w) in world axes, combined rows last."""
        rows = [((one,), (1.0,)) for one in self.constraints()]
        rows += [(one.measures, one.weights) for one in TYPES[self.joint.type].combined(self.joint)]
        out = np.zeros((len(rows), 6))
        for k, (measures, weights) in enumerate(rows):
            table = tabulate([self.joint], [(0, one) for one in measures])
            _, child, _ = linearize(table, self.model.bodies.q)
            out[k] = np.array(weights) @ child @ self.twists
        return out

    def constraints(self) -> list:
        return TYPES[self.joint.type].constraints_at(self.joint, self.T)

    @property
    def twists(self) -> np.ndarray:
        """(12, 6) derivative of the state by a twist (v; w)."""
        out = np.zeros((12, 6))
        out[:3, :3] = np.eye(3)
        A = self.model.bodies.q[0, 3:].reshape(3, 3)
        for k in range(3):
            out[3:, 3 + k] = np.cross(np.eye(3)[k], A.T).T.ravel()
        return out


@pytest.mark.parametrize("case", HELD)
@pytest.mark.parametrize("enforcement", ["penalty", "exact", "compliant"])
def test_constraint_wrenches_equal_loads(case, enforcement):
    loaded = Loaded(case, enforcement)
    G = loaded.gradient
    multipliers = np.random.default_rng(5).uniform(1.0, 3.0, len(G)) * np.where(np.arange(len(G)) % 2, 1.0, -1.0)
    load = G.T @ multipliers
    simulation = loaded.run(load, 20 if enforcement == "compliant" else 8)
    view = simulation.joints["j"]
    force, torque = view.wrench()
    assert np.concatenate([force, torque]) == pytest.approx(-load, rel=1e-4, abs=1e-4)
    residuals = value_at(loaded.constraints(), view.T_CD)
    combined = len(G) - len(residuals)
    if enforcement == "exact":
        assert np.abs(residuals).max() < 2e-8
    elif enforcement == "compliant" and not combined:
        assert residuals == pytest.approx(np.array(COMPLIANCE[: len(G)]) * multipliers, rel=2e-3, abs=1e-9)
    elif enforcement == "penalty":
        blocks = NumpyJoints(simulation.backend.system, 1)
        applied = simulation.stepper.applied
        blocks.begin(applied.law, applied.p, simulation.stepper.memory.reference, applied.shift)
        _, H12 = blocks.linearize(loaded.model.bodies.q)
        stiffness = loaded.twists.T @ H12[0, 0] @ loaded.twists
        motion = H**2 * np.linalg.pinv(stiffness, rcond=1e-9, hermitian=True) @ load
        expected = (G @ motion)[: len(residuals)]
        assert residuals == pytest.approx(expected, rel=2e-2, abs=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("case", HELD)
@pytest.mark.parametrize("enforcement", ["penalty", "exact"])
def test_free_axes_are_free(case, enforcement):
    """One step from rest along all free twists has an error of rounding, K eps / h^2."""
    loaded = Loaded(case, enforcement)
    _, size, Vt = np.linalg.svd(loaded.gradient)
    free = Vt[np.count_nonzero(size > 1e-9) :]
    assert len(free) == 6 - np.linalg.matrix_rank(loaded.gradient, tol=1e-9)
    M = np.diag([MASS] * 3 + [INERTIA] * 3)
    simulation = abd.Simulation(loaded.model, device=loaded.device)
    for twist in free:
        simulation.reset()
        load = 1e-3 * M @ twist
        simulation.bodies["cube"].apply_force(load[:3])
        simulation.bodies["cube"].apply_torque(load[3:])
        simulation.step()
        force, torque = simulation.joints["j"].wrench()
        assert np.abs(np.concatenate([force, torque])).max() < 2e-8
        moved = (simulation.stepper.q[0] - loaded.model.bodies.q[0]) / (1e-3 * H**2)
        assert moved == pytest.approx(loaded.twists @ twist, abs=1e-4)


@pytest.mark.parametrize("ends", ["world", "two free bodies"])
@pytest.mark.parametrize("kind", ["linear", "rotary"])
@pytest.mark.parametrize("zeta", [True, 0.3])
def test_critical_damping_is_critical(ends, kind, zeta):
    """An opening x0 follows ``x'' + 2 zeta w x' + w^2 x = 0``, hence ``zeta = w x0^2 / (4 int x'^2 dt)``."""
    dt, compliance, opening = 2e-3, 1e-3 if kind == "linear" else 0.15, 0.01
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt, "tolerance": 1e-8, "integrator": "generalized_alpha"})
    scene.add_body("a", box=(SIDE, SIDE, SIDE), mass=2.0, kappa=1e11)
    free = ends != "world"
    if free:
        scene.add_body("b", box=(SIDE, SIDE, SIDE), mass=3.0, kappa=1e11)
    turned = {"axis_angle": {"axis": (0, 0, 1), "degrees": np.degrees(opening)}}
    frame = {"position": (opening, 0, 0)} if kind == "linear" else turned
    scene.add_fixed(
        "j", "b" if free else abd.WORLD, "a", parent_frame=frame, child_frame={"position": (0, 0, 0)},
        enforcement="compliant", compliance=compliance, critical_damping=zeta,
    )  # fmt: skip
    simulation = abd.Simulation(scene, device=NAME)
    reduced = (1.2 if free else 2.0) * (1.0 if kind == "linear" else SIDE**2 / 6.0)
    w, open_by = np.sqrt(1.0 / (compliance * reduced)), []
    for _ in range(int((9.0 if zeta is True else 20.0) / (w * dt))):
        T = simulation.joints["j"].T_CD
        open_by.append(T[0, 3] if kind == "linear" else T[1, 0])
        simulation.step()
    measured = w * opening**2 / (4.0 * np.sum(np.diff(open_by) ** 2) / dt)
    assert measured == pytest.approx(float(zeta), rel=0.01)


@pytest.mark.parametrize("kind", ["linear", "rotary", "inertial"])
def test_dampings_of_bodies_slow_them_exponentially(kind):
    """The reaction on the world is the loss of the body under frame damping ``-d v``, ``-d w`` and inertial damping ``-d M
    v``."""
    dt, box = 2e-3, (0.3, 0.2, 0.1)
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt})
    motion = {"velocity": (1, 2, 0), "angular_velocity": (0, 0, 0.5)}
    damping = {"linear": 3.0, "rotary": 0.05, "inertial": 1.5}[kind]
    scene.add_body("a", box=box, mass=2.0, kappa=1e11, **{f"{kind}_damping": damping}, **motion)
    simulation = abd.run(scene, steps=100, device=NAME)
    body, inertia = simulation.bodies["a"], 2.0 * (0.3**2 + 0.2**2) / 12.0
    linear = {"linear": damping / 2.0, "rotary": 0.0, "inertial": damping}[kind]
    rotary = {"linear": 0.0, "rotary": damping / inertia, "inertial": damping}[kind]
    assert body.linear_velocity == pytest.approx(np.exp(-linear * 0.2) * np.array([1, 2, 0]), rel=2e-3, abs=1e-6)
    assert body.angular_velocity[2] == pytest.approx(0.5 * np.exp(-rotary * 0.2), rel=3e-3)
    if kind != "rotary":
        force, _ = simulation.joints["damping of a"].wrench()
        assert force == pytest.approx(-2.0 * linear * body.linear_velocity, rel=1e-2, abs=1e-6)


def test_a_damper_between_bodies_acts_on_their_relative_motion():
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 2e-3})
    for k, speed in enumerate((1.0, -1.0)):
        scene.add_body(f"a{k}", box=(0.1, 0.1, 0.1), mass=1.0, velocity=(speed + 0.5, 0, 0))
    scene.add_joint("damper", "d", "a0", "a1", anchor=(0, 0, 0), rotary_damping=1.0)
    scene.add_joint("damper", "e", "a0", "a1", parent_anchor=(0, 0, 0), child_anchor=(0, 0, 0), linear_damping=2.0)
    simulation = abd.run(scene, steps=50, device=NAME)
    speeds = [simulation.bodies[f"a{k}"].linear_velocity[0] for k in range(2)]
    assert sum(speeds) == pytest.approx(1.0, abs=1e-9)
    assert speeds[0] - speeds[1] == pytest.approx(2.0 * np.exp(-0.1 * 4.0), rel=5e-3)


@pytest.mark.parametrize(
    "kind, coordinate, dt",
    [
        ("slider", "z", 0.01), ("slider", "z", 0.0005), ("cylindrical", "z", 0.002), ("planar", "x", 0.01),
        ("hinge", "theta", 0.01), ("hinge", "theta", 0.002), ("planar", "theta", 0.002),
    ],
)  # fmt: skip
def test_a_limit_between_bodies_that_are_pushed_carries_the_load(kind, coordinate, dt):
    """A child of 1 kg (or 1 kg m^2) pushes a parent of 3: the limit carries three quarters of the load."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt})
    for name, mass in (("parent", 3.0), ("child", 1.0)):
        scene.add_body(name, proxy=True, mass=mass, inertia=(mass,) * 3)
    limits = {coordinate: {"range": (-1.0, 0.1)}}
    scene.add_joint(kind, "j", "parent", "child", anchor=(0, 0, 0), axis=(0, 0, 1), enforcement="exact", coordinate=limits)
    simulation = abd.Simulation(scene, device=NAME)
    joint = simulation.joints["j"]
    axis = joint.T_DW[:3, 0 if coordinate == "x" else 2]
    child = simulation.bodies["child"]
    (child.apply_torque if coordinate == "theta" else child.apply_force)(4.0 * axis)
    simulation.run(duration=0.4)
    for _ in range(6):
        simulation.step()
        force, torque = joint.wrench(on="parent")
        assert -joint.coordinate(coordinate).limit_force == pytest.approx(3.0, rel=1e-3)
        assert axis @ (torque if coordinate == "theta" else force) == pytest.approx(3.0, rel=1e-3)


@pytest.mark.parametrize("kind", ["spherical", "fixed", "hinge"])
def test_hanging_weights_open_joints_by_the_formula(kind):
    """The upper joint carries both bodies; penalties open by ``h^2 F / (100 m)``, two points by half of that."""
    h, g = 0.01, 9.81
    scene = abd.Scene(gravity=(0, 0, -g), solver={"dt": h, "integrator": "bdf1"})
    axis = {"axis": (0, 1, 0)} if kind == "hinge" else {}
    scene.add_body("upper", box=(0.2, 0.3, 0.4), position=(0, 0, -0.3))
    scene.add_body("lower", box=(0.1, 0.1, 0.3), position=(0, 0, -0.8))
    scene.add_joint(kind, "roof", abd.WORLD, "upper", anchor=(0, 0, 0), **axis)
    scene.add_joint(kind, "link", "upper", "lower", anchor=(0, 0, -0.55), **axis)
    simulation = abd.run(scene, steps=60, device=NAME)
    upper, lower = simulation.model.bodies.mass
    for name, load, mass in (("roof", (upper + lower) * g, upper), ("link", lower * g, upper + lower)):
        joint = simulation.joints[name]
        points = 2.0 if kind == "hinge" else 1.0
        assert joint.residual[0] == pytest.approx(h**2 * load / (100.0 * mass * points), rel=1e-6)
        np.testing.assert_allclose(np.array(joint.wrench()), [[0, 0, load], [0, 0, 0]], rtol=1e-6, atol=1e-6 * load)


@pytest.mark.parametrize("collide", [False, True])
def test_connected_bodies_have_contact_only_with_collide(collide):
    """A flap that falls on the table of its hinge rests there with `collide`, and passes through it otherwise."""
    scene = abd.Scene(solver={"integrator": "bdf1"})
    scene.add_body("table", kind="static", box=(0.6, 0.4, 0.1), position=(0.3, 0.0, -0.05))
    scene.add_body("flap", box=(0.4, 0.2, 0.02), position=(0.25, 0.0, 0.2), euler={"order": "xyz", "degrees": (0, -30, 0)})
    scene.add_hinge("hinge", "table", "flap", anchor=(0.03, 0.0, 0.07), axis=(0.0, 1.0, 0.0), collide=collide, length=0.1)
    simulation = abd.Simulation(scene, device=NAME)
    contacts, heights = 0, []
    for _ in range(60):
        contacts += simulation.step().contacts
        heights.append((simulation.bodies["flap"].transform @ [0.2, 0.0, -0.01, 1.0])[2])
    if collide:
        assert contacts > 0 and min(heights) > 0.0
    else:
        assert contacts == 0 and min(heights) < -0.1
