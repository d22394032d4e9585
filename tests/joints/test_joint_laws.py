"""Laws of coordinates: limits, locks, drives, springs, friction, armature and couplings, each by a known load.

An arm of 1 kg on a hinge about z without gravity, loaded by a constant torque; its inertia about the axis is known.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from on_device import NAME
from scipy.interpolate import CubicSpline

import abd
from abd import backends
from abd.model import CoordinateSettings, Coupling, CouplingTerm, Drive, Model
from abd.state import State
from abd.step.step import Stepper

pytestmark = pytest.mark.device

MASS, LENGTH = 1.0, 0.4
INERTIA = MASS * (LENGTH**2 / 3.0 + 0.1**2 / 12.0)
"""About the hinge at the arm's end [kg m^2]."""


class Arms:
    """Arms on hinges about z, one coordinate each, under a torque [N m]; `settings` of the first arm's coordinate."""

    def __init__(
        self, device: str, torque=0.0, spin=0.0, count=1, dt=0.01, enforcement="exact", couplings=(), integrator="bdf1",
        **settings,
    ):  # fmt: skip
        scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt, "tolerance": 1e-7, "integrator": integrator})
        for k in range(count):
            scene.add_body(
                f"arm {k}", box=(LENGTH, 0.1, 0.1), mass=MASS, position=(LENGTH / 2, 0, k), kappa=1e10,
                torque=(0, 0, torque if k == 0 else 0.0), angular_velocity=(0, 0, spin if k == 0 else 0.0),
                velocity=(0, (spin if k == 0 else 0.0) * LENGTH / 2, 0),
            )  # fmt: skip
            scene.add_hinge(f"hinge {k}", abd.WORLD, f"arm {k}", anchor=(0, 0, k), axis=(0, 0, 1), length=0.5)
        model = scene.compile()
        own = [CoordinateSettings("theta", **(settings if k == 0 else {})) for k in range(count)]
        joints = [replace(j, enforcement=enforcement, coordinates=(own[k],)) for k, j in enumerate(model.joints)]
        self.model: Model = replace(model, joints=joints, couplings=list(couplings))
        self.backend = backends.create(self.model, device)
        bodies = self.model.bodies
        self.stepper = Stepper(self.model, self.backend, State(q=bodies.q.copy(), qd=bodies.qd.copy()))

    def run(self, steps: int) -> np.ndarray:
        """(steps + 1, count) angles."""
        angles = [self.angles()]
        for _ in range(steps):
            self.stepper.advance()
            angles.append(self.angles())
        return np.array(angles)

    def angles(self) -> np.ndarray:
        """(count,) angles of the arms, from the directions of their x axes."""
        A = self.stepper.q[:, 3:].reshape(-1, 3, 3)
        user = A @ self.model.bodies.body_frame[:, :3, :3]
        return np.arctan2(user[:, 1, 0], user[:, 0, 0])

    def forces(self) -> np.ndarray:
        """(R,) multipliers [N m]."""
        return self.stepper.memory.multiplier


devices = pytest.mark.parametrize("device", ["numpy", NAME])


def test_a_barrier_limit_is_never_violated_and_carries_the_torque(device):
    arms = Arms(device, torque=0.5, upper=0.3, limit_damping=2.0)
    angles = arms.run(150)
    assert angles.max() < 0.3
    assert angles[-1, 0] > 0.29
    assert abs(angles[-1, 0] - angles[-2, 0]) < 3e-5, "it leaves the barrier at less than eps_v"


@devices
def test_limits_hold_at_high_speed_without_damping(device):
    """At 30 rad/s, a third of a radian per step, both limits hold."""
    angles = Arms(device, spin=30.0, lower=-0.2, upper=0.25).run(60)
    assert angles.max() < 0.25
    assert angles.min() > -0.2
    assert angles.max() > 0.2


@devices
def test_a_damped_limit_stops_inelastically(device):
    """The rebound is the energy of the barrier, a few per cent of the speed."""
    angles = Arms(device, spin=3.0, upper=0.3, limit_damping=50.0).run(30)
    assert angles.max() < 0.3
    assert 0.0 <= angles[-2, 0] - angles[-1, 0] < 0.05 * 0.03


@devices
@pytest.mark.parametrize("enforcement", ["penalty", "exact"])
def test_a_lock_holds_against_a_torque(device, enforcement):
    arms = Arms(device, torque=0.5, locked=True, enforcement=enforcement)
    angle = arms.run(20)[-1, 0]
    if enforcement == "exact":
        assert abs(angle) < 1e-8
        lock = arms.backend.system.row_laws.role == 4
        assert arms.forces()[lock] == pytest.approx(0.5, rel=1e-6)
    else:
        joint = arms.model.joints[0]
        K = joint.strength_ratio * joint.stiffness_mass * joint.length**2
        assert angle == pytest.approx(1e-4 * 0.5 / K, rel=1e-3)


@devices
@pytest.mark.parametrize("keys", [{}, {"damping": 1e4}], ids=["stiff", "gain"])
def test_a_velocity_drive_turns_at_its_speed(device, keys):
    drive = Drive("velocity", target=lambda t: 2.0, **keys)
    angles = Arms(device, torque=0.5, drive=drive).run(30)[:, 0]
    assert np.diff(angles)[5:] == pytest.approx(0.02, rel=1e-3)


SLIPS = 1e-4 * 210 / INERTIA
"""Angle per torque after 20 steps of implicit Euler from rest [rad/(N m)]."""
CUBIC = {"limit": "cubic", "limit_strength": 0.02, "damping": 0.5}
ENDS = {
    # name: keys of `Arms`, steps, angle at the end [rad], tolerance [rad]
    "compliant limit": (
        {"torque": 0.5, "upper": 0.1, "limit": "compliant", "limit_compliance": 0.02, "limit_damping": 3.0},
        *(300, 0.1 + 0.5 * 0.02, 1e-5),
    ),
    # 3 s v^2 / w^3 = h^2 torque, with v = x - upper, w = upper - lower
    "cubic limit": ({"torque": 0.5, "lower": -0.1, "upper": 0.1, **CUBIC}, 800, 0.1 + math.sqrt(4e-7 / 0.06), 2.5e-6),
    "pd drive": ({"torque": 0.5, "drive": Drive("pd", lambda t: 0.4, stiffness=20.0, damping=1.0)}, 150, 0.425, 4e-5),
    "pd drive at its effort": (
        {"torque": 0.5, "drive": Drive("pd", lambda t: -1.0, stiffness=1e3, damping=0.0, effort=0.3)},
        *(20, 0.2 * SLIPS, 2e-4 * SLIPS),
    ),
    "position drive at its effort": (
        {"drive": Drive("position", lambda t: 1.0, effort=0.4)}, 10, 0.4 / INERTIA * 1e-4 * 55, 4e-4 / INERTIA * 1e-4 * 55
    ),
    "force drive": ({"drive": Drive("force", lambda t: 0.2)}, 20, 0.2 * SLIPS, 2e-4 * SLIPS),
    "friction that slips": ({"torque": 0.5, "friction": 0.2}, 20, 0.3 * SLIPS, 6e-3 * SLIPS),
    "armature": ({"torque": 0.2, "armature": 0.1}, 20, 0.2 * SLIPS * INERTIA / (INERTIA + 0.1), 7e-5 * SLIPS),
    "damping": (
        {"spin": 1.0, "damping": 0.4, "dt": 1e-3},
        *(200, INERTIA / 0.4 * (1.0 - math.exp(-0.08 / INERTIA)), 5e-4),
    ),
}
AT_REST = {
    "friction": {"torque": 0.19, "friction": 0.2},
    "brake": {"torque": 0.5, "drive": Drive("brake", lambda t: 0.0, effort=0.6)},
    "brake without limit": {"torque": 0.5, "drive": Drive("brake", lambda t: 0.0, effort=np.inf)},
}


@pytest.mark.parametrize("name, device", [(n, d) for n, case in ENDS.items() for d in ("numpy", NAME)[case[1] > 50 :]])
def test_equilibrium_of_arms_with_laws(name, device):
    keys, steps, angle, tolerance = ENDS[name]
    assert Arms(device, **keys).run(steps)[-1, 0] == pytest.approx(angle, abs=tolerance)


@devices
@pytest.mark.parametrize("name", AT_REST)
def test_friction_and_brakes_hold_below_their_torque(device, name):
    angles = Arms(device, **AT_REST[name]).run(50)
    assert abs(angles[-1, 0] - angles[-2, 0]) <= 1e-3 * 0.01


@devices
@pytest.mark.parametrize("enforcement", ["penalty", "exact"])
def test_a_gear_turns_the_other_arm(device, enforcement):
    """With theta_0 = 3 theta_1 the torque acts on I + I/9."""
    coupling = Coupling("gear", 0, "theta", (CouplingTerm(1, "theta"),), scale=3.0, enforcement=enforcement)
    angles = Arms(device, torque=0.2, count=2, couplings=[coupling]).run(20)
    assert angles[-1, 0] == pytest.approx(3.0 * angles[-1, 1], abs=1e-8 if enforcement == "exact" else 1e-4)
    assert angles[-1, 0] == pytest.approx(0.2 / (INERTIA * (1 + 1 / 9)) * 1e-4 * 210, rel=2e-3)


def test_a_table_couples_along_its_spline():
    table = np.array([[-1.0, -1.0], [0.0, 0.0], [0.5, 0.8], [1.0, 0.9]])
    coupling = Coupling("cam", 0, "theta", (CouplingTerm(1, "theta", table=table),), enforcement="exact")
    drive = Drive("position", target=lambda t: 2.0 * t)
    arms = Arms(NAME, count=2, couplings=[coupling], drive=drive)
    angles = arms.run(30)
    spline = CubicSpline(*table.T, bc_type="natural")
    assert angles[-1, 0] == pytest.approx(0.6, abs=1e-7)
    assert float(spline(angles[-1, 1])) == pytest.approx(0.6, abs=1e-7)


@devices
def test_friction_grows_with_the_load_of_its_joint(device):
    """A block of 2 kg on a slider has the friction mu m g: 5 N does not move it, 12 N does."""
    moved = []
    for push in (5.0, 12.0):
        scene = abd.Scene(solver={"dt": 0.01, "integrator": "bdf1"})
        scene.add_body("block", box=(0.2, 0.2, 0.2), mass=2.0, force=(push, 0, 0))
        friction = {"z": {"friction_load": 0.4}}
        scene.add_slider("j", abd.WORLD, "block", anchor=(0, 0, 0), axis=(1, 0, 0), enforcement="exact", coordinate=friction)
        simulation = abd.run(scene, steps=12, device=device)
        first = simulation.joints["j"].rates[0]
        simulation.run(steps=10)
        moved.append((simulation.joints["j"].rates[0] - first) / 0.1)
    assert abs(moved[0]) < 1e-2
    assert moved[1] == pytest.approx((12.0 - 0.4 * 2.0 * 9.81) / 2.0, rel=1e-3)


def test_bearing_friction_uses_its_radius_and_resumes_from_checkpoints():
    """The torque is mu r m g under gravity; a checkpoint continues bit for bit."""
    scene = abd.Scene(solver={"dt": 0.01})
    scene.add_body("wheel", box=(0.2, 0.2, 0.2), mass=3.0, angular_velocity=(0, 10.0, 0))
    scene.add_hinge("j", abd.WORLD, "wheel", anchor=(0, 0, 0), axis=(0, 1, 0), coordinate={"theta": {"friction_load": 2e-3}})
    simulation = abd.Simulation(scene, device=NAME)
    rates = []
    for k in range(30):
        simulation.step()
        rates.append(simulation.joints["j"].rates[0])
        if k == 19:
            saved = simulation.checkpoint()
    slowing = (rates[9] - rates[29]) / 0.2
    assert slowing == pytest.approx(2e-3 * 3.0 * 9.81 / (3.0 * 0.04 / 6.0), rel=2e-2)
    simulation.restore(saved)
    simulation.run(steps=10)
    assert simulation.joints["j"].rates[0] == rates[29]
