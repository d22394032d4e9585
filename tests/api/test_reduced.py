"""The mechanism of a simulation for control, compared with closed forms and with the simulation."""

import numpy as np
import pytest
from on_device import NAME
from scipy.linalg import expm

import abd

pytestmark = pytest.mark.device

G, L, H = 9.81, 0.5, 1e-3


def double_pendulum(h: float = H, base: dict | None = None) -> abd.Scene:
    """Two bars that hang on the world, or on a prescribed body with the motion `base`."""
    scene = abd.Scene(solver={"dt": h, "tolerance": 1e-9})
    if base is not None:
        scene.add_body("base", box=(0.05, 0.05, 0.05), position=(0, 0, 0.03), kind="kinematic", motion=base)
    for k in range(2):
        scene.add_body(f"bar {k}", box=(0.05, 0.05, L), mass=1.0, position=(0, 0, -(k + 0.5) * L))
        parent = f"bar {k - 1}" if k else "world" if base is None else "base"
        scene.add_hinge(f"pin {k}", parent, f"bar {k}", anchor=(0, 0, -k * L), axis=(0, 1, 0), enforcement="exact")
    return scene


def test_matrices_equal_textbook_formulas():
    sim = abd.Simulation(double_pendulum(), device=NAME)
    arm = sim.reduced()
    assert arm.names == ("pin 0.theta", "pin 1.theta") and arm.loops == ()
    I = (0.05**2 + L**2) / 12.0
    second = I + L**2 / 4
    expected = [[second + I + (1.5 * L) ** 2, I + 0.75 * L**2], [I + 0.75 * L**2, second]]
    assert arm.mass_matrix() == pytest.approx(np.array(expected), rel=1e-9)
    assert arm.bias() == pytest.approx([0, 0], abs=1e-9) == arm.gravity_forces()
    tip = arm.jacobian("bar 1", point=(0, 0, -L / 2))
    assert np.abs(tip[0]) == pytest.approx([2 * L, L]) and np.abs(tip[4]) == pytest.approx([1, 1])
    tau = arm.inverse_dynamics([1.0, -2.0])
    assert arm.forward_dynamics(tau) == pytest.approx([1.0, -2.0])


STATES = {
    # name: motion of the base, term of a coupling of the second hinge with the first, call before the steps
    "world": (None, None, lambda sim: None),
    "turned": (
        {"velocity": (0, 0, 0)}, None, lambda sim: sim.bodies["base"].move_to(quaternion=(0.995, 0, 0.1, 0), duration=0.04),
    ),
    "moving": ({"velocity": (1, 2, 0)}, None, lambda sim: None),
    "turning": ({"angular_velocity": (2, 0, 6)}, None, lambda sim: None),
    "spring": (None, None, lambda sim: sim.bodies["bar 1"].spring_to((0, 0, 0), stiffness=1e-9)),
    "lock": (None, None, lambda sim: sim.joints["pin 1"].theta.lock()),
    "turning lock": ({"angular_velocity": (2, 0, 6)}, None, lambda sim: sim.joints["pin 1"].theta.lock()),
    "gear": (None, {"factor": -2}, lambda sim: None), "curved": (None, {"polynomial": [0, 1, 2]}, lambda sim: None),
    "free gear": (None, {"factor": -2}, lambda sim: setattr(sim.couplings["gear"], "active", False)),
    "disabled": (None, {"factor": -2}, lambda sim: setattr(sim.bodies["bar 1"], "enabled", False)),
}  # fmt: skip


@pytest.mark.parametrize(("base", "term", "change"), STATES.values(), ids=STATES)
def test_dynamics_follow_the_state_locks_couplings_and_disabled_bodies(base, term, change):
    """The acceleration of the next step of a swinging pendulum is that of forward dynamics and of the linearised step."""
    scene = double_pendulum(base=base)
    if term:
        scene.add_coupling("gear", "pin 1.theta", [{"coordinate": "pin 0.theta", **term}], enforcement="exact")
    sim = abd.Simulation(scene, device=NAME)
    sim.joints["pin 0"].set_coordinate("theta", 0.7)
    change(sim)
    sim.run(steps=50)
    arm = sim.reduced()
    predicted = arm.forward_dynamics()
    assert len(arm.v) == 1 + sim.bodies["bar 1"].enabled and np.abs(predicted).max() > 1.0
    is_free = not term and not sim.joints["pin 1"].theta.locked
    if is_free:
        _, B = arm.linearize()
        assert B[2:] == pytest.approx(H * np.linalg.inv(arm.mass_matrix()), rel=2e-2)
    sim.step()
    assert (sim.reduced().v - arm.v) / H == pytest.approx(predicted, rel=2e-2, abs=0.0 if is_free else 1e-2)


ENDS = {"parent_anchor": (0, 0, 0), "child_anchor": (0, 0, 0)}
SIX_FREEDOMS = [("bushing", {"stiffness": 1.0, **ENDS}), ("spring", {"stiffness": 1.0, **ENDS}), ("free", ENDS)]


@pytest.mark.parametrize("parent", ["world", "bar 0"])
@pytest.mark.parametrize(("kind", "keys"), SIX_FREEDOMS)
def test_joints_of_six_freedoms_are_neither_branches_nor_loops(kind, keys, parent):
    scene = double_pendulum()
    scene.add_joint(kind, "before", parent, "bar 1", **keys)
    scene.spec.joint.reverse()
    arm = abd.Simulation(scene, device="numpy").reduced()
    assert arm.names == ("pin 0.theta", "pin 1.theta") and arm.loops == () and len(arm.forward_dynamics()) == 2


def test_a_linearised_step_is_the_matrix_exponential():
    """About hanging rest this holds to second order in h; efforts change velocities by h M^-1, and queries change no state."""
    sim = abd.Simulation(double_pendulum(), device=NAME)
    q = sim.stepper.q.copy()
    arm = sim.reduced()
    A, B = arm.linearize()
    M = arm.mass_matrix()
    K = np.zeros((2, 2))
    for k, unit in enumerate(np.eye(2)):
        ends = [arm.mechanism.gravity_term(arm.q + sign * 1e-6 * unit) for sign in (1, -1)]
        K[:, k] = (ends[0] - ends[1]) / 2e-6
    rate = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(M, K), np.zeros((2, 2))]])
    exact = expm(rate * H)
    assert pytest.approx(exact, abs=3e-4 * np.abs(exact - np.eye(4)).max() + 2e-5) == A
    assert B[2:] == pytest.approx(H * np.linalg.inv(M), rel=2e-3)
    np.testing.assert_array_equal(sim.stepper.q, q)
    _, one = arm.linearize(inputs=["pin 1.theta"])
    assert one == pytest.approx(B[:, 1:], abs=1e-9)
