"""User-defined joint types: the slotted hinge in three forms against the built-in one, derivatives, gaps, errors."""

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
import warp as wp
from custom_types import (
    ANGLE,
    LENGTH,
    OWN,
    ROWS,
    THREE,
    align_z,
    by_hand,
    cubes,
    define_slotted,
    joint_of,
    slotted_residual,
    slotted_transform,
)
from on_device import DEVICE, NAME, random_states

import abd
from abd import RowFlags
from abd.errors import DeviceError, SceneError
from abd.joints.coordinates.configurations import configuration_space
from abd.joints.custom.numpy_rows import sample_poses
from abd.joints.measures.axes import turn
from abd.joints.measures.motions import turned
from abd.joints.rows.table import linearize, tabulate, values
from abd.joints.types import TYPES
from abd.rotations import pose

pytestmark = pytest.mark.device

devices = pytest.mark.parametrize("device", ["numpy", NAME])


def cart(kind, device, enforcement):
    """A bar that slides along x between two stops, swings about y and is pushed across; its simulation at the end."""
    scene = abd.Scene(solver={"dt": 0.02, "tolerance": 1e-8, "joint_tolerance": 1e-11, "integrator": "generalized_alpha"})
    scene.add_body(
        "bar", box=(0.4, 0.1, 0.1), mass=1.0, position=(0.15, 0, 0), kappa=1e11, velocity=(0.8, 0, 0), force=(0, 3, 0),
        torque=(0.5, 0, 0.3),
    )  # fmt: skip
    scene.add_joint(
        kind, "slot", abd.WORLD, "bar", anchor=(0, 0, 0), axis=(0, 1, 0), x_axis=(1, 0, 0), enforcement=enforcement,
        coordinate={"x": {"range": (-0.12, 0.12), "stiffness": 5.0}, "theta": {"range": (-2.0, 2.0), "damping": 0.02}},
        **({"compliance": 1e-5} if enforcement == "compliant" else {}),
    )  # fmt: skip
    return abd.run(scene.compile(), steps=10 if device == "numpy" else 20, device=device)


built_in_cart = functools.cache(functools.partial(cart, "slotted_hinge"))
CASES = [
    *((form, NAME, "exact") for form in ("numpy", "warp", "wrenches")),
    *(("numpy", "numpy", "exact"), ("warp", NAME, "penalty"), ("wrenches", NAME, "compliant")),
]


@pytest.mark.parametrize(("form", "device", "enforcement"), CASES)
def test_user_defined_slotted_hinge_equals_the_built_in_one(define, form, device, enforcement):
    define_slotted(define, form)
    if DEVICE.wide and device == NAME and form != "warp":
        with pytest.raises(DeviceError, match="NumPy functions do not run on"):
            cart(f"slotted_{form}", device, enforcement)
        return
    own, built_in = cart(f"slotted_{form}", device, enforcement), built_in_cart(device, enforcement)
    mine, theirs = own.joint_readings(), built_in.joint_readings()
    # impacts and fits of velocities act along rows of the joint, which differ by how far penalties and compliances leave it open
    within = 1e-7 if enforcement == "penalty" else 1e-9
    assert np.abs(own.stepper.q - built_in.stepper.q).max() < within
    assert mine.coordinates == pytest.approx(theirs.coordinates, abs=within)
    assert mine.wrench == pytest.approx(theirs.wrench, abs={"exact": 1e-7, "penalty": 6e-4, "compliant": 1e-5}[enforcement])
    assert abs(mine.wrench[0, 1] + 3.0) < 1e-3  # the push across, which the slot takes
    assert np.abs(mine.residual - theirs.residual).max() < (1e-9 if enforcement == "exact" else 3e-5)
    assert list(own.joints["slot"].engagement) == ["x", "theta"]


@pytest.mark.parametrize("jacobian", [None, by_hand])
def test_derivatives_of_analytic_functions_are_exact(define, jacobian):
    M, r = sample_poses()
    p = np.full((len(M), 1), 2.0)
    function = define("cubes", cubes, rows=THREE, parameters={"size": 2.0}, jacobian=jacobian).function
    assert function.slopes(M, r, p, np.ones(len(M)))[1] == pytest.approx(by_hand(M, r, p), abs=1e-15)


def test_a_wrong_jacobian_is_refused_with_row_and_size(define):
    def wrong(M, r, p):
        return by_hand(M, r, p) + 0.25 * (np.arange(36) == 21).reshape(3, 12)

    with pytest.raises(SceneError, match=r"row 'b': its derivative by r\[0\] is .* 0\.25 apart"):
        define("cubes", cubes, rows=THREE, parameters={"size": 2.0}, jacobian=wrong)
    assert "cubes" not in TYPES


@devices
def test_rows_between_two_bodies_have_the_gradients_of_their_values(define, device):
    kind = define_slotted(define, "numpy" if device == "numpy" else "warp")
    joint = replace(joint_of(kind.function.name, ends=(0, 1)), child_frame=pose(turned(np.ones(3)), np.ones(3)))
    table = tabulate([joint], [(0, one) for one in kind.measured(joint) + kind.coordinates(joint)])
    q, direction = random_states(2, 3), np.random.default_rng(4).normal(size=(2, 12))
    near, child, parent = linearize(table, q)
    slope = child @ direction[1] + parent @ direction[0]
    ends = [values(table, q + s * 1e-5 * direction, near) for s in (1.0, -1.0)]
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-8)


def by_math(values, p):
    """Takes no complex numbers."""
    c, s = math.cos(values[1]), math.sin(values[1])
    return np.array([[c, -s, 0, values[0]], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def not_analytic(values, p):
    """Takes complex numbers."""
    return slotted_transform(np.array([np.sign(values[0].real) * np.abs(values[0]), values[1]]), p)


@pytest.mark.parametrize("form", [by_math, not_analytic])
def test_transform_without_complex_numbers_is_allowed(define, form):
    analytic = configuration_space(joint_of(define_slotted(define, "numpy").function.name))
    keys = {"rows": ROWS, "function": slotted_residual, "coordinates": OWN}
    space = configuration_space(joint_of(define("slotted_by_hand", **keys, transform=form).function.name))
    for q, v in np.random.default_rng(2).uniform(0.2, 1.5, (8, 2, 2)):
        assert space.transform(q) == pytest.approx(analytic.transform(q), abs=1e-14)
        assert space.subspace(q) == pytest.approx(analytic.subspace(q), abs=1e-9)
        assert space.bias(q, v) == pytest.approx(analytic.bias(q, v), abs=1e-7)


@pytest.mark.parametrize("form", ["warp"] if DEVICE.wide else ["numpy", "warp", "wrenches"])
def test_coordinates_can_be_set_and_read_in_a_simulation(define, form):
    define_slotted(define, form)
    scene = abd.Scene(gravity=(0, 0, 0))
    scene.add_body("bar", box=(0.4, 0.1, 0.1), mass=1.0)
    start = {"x": {"initial": 0.1}, "theta": {"initial": 0.2}}
    scene.add_joint(f"slotted_{form}", "slot", abd.WORLD, "bar", anchor=(0, 0, 0), axis=(0, 0, 1), coordinate=start)
    simulation = abd.Simulation(scene, device=NAME)
    slot = simulation.joints["slot"]
    assert slot.coordinates == pytest.approx([0.1, 0.2], abs=1e-12)
    assert slot.set_coordinate("theta", 8.0).converged
    simulation.step()
    assert slot.coordinates == pytest.approx([0.1, 8.0], abs=1e-9), "turns are counted"
    assert slot.error_twist == pytest.approx(0.0, abs=1e-9)
    assert len(slot.multipliers) == slot.num_bilateral == 4


@wp.func
def bowl_row(row: int, M: wp.mat33d, r: wp.vec3d, p: wp.array(dtype=wp.float64)) -> wp.float64:
    if row == 0:
        return r[2] - (r[0] * r[0] + r[1] * r[1]) / (wp.float64(2.0) * p[0])
    return r[0]


def bowl_rows(M, r, p):
    return np.stack([r[:, 2] - (r[:, 0] ** 2 + r[:, 1] ** 2) / (2.0 * p[:, 0]), r[:, 0]], axis=1)


def bead(define, device, **keys):
    """A bead of 1 kg let go above a bowl of radius 0.5 m; its heights over the bowl and the simulation."""
    gap, own = {"height": RowFlags.LINEAR}, {"x": RowFlags.LINEAR}
    flags = {"rows": {}, "coordinates": gap | own} if "coordinate" in keys else {"rows": gap, "coordinates": own}
    define("bowl", bowl_rows if device == "numpy" else bowl_row, parameters={"radius": 9.0}, **flags)
    scene = abd.Scene(solver={"dt": 0.01})
    scene.add_body("bead", box=(0.05, 0.05, 0.05), mass=1.0, position=(0.05, 0, 0.02))
    frames = {"parent_anchor": (0, 0, 0), "child_anchor": (0, 0, 0)}
    scene.add_joint("bowl", "bowl", abd.WORLD, "bead", parameters={"radius": 0.5}, **frames, **keys)
    simulation, heights, engaged = abd.Simulation(scene.compile(), device=device), [], []
    for _ in range(25):
        simulation.step()
        x, y, z = simulation.stepper.q[0, :3]
        heights.append(z - x * x - y * y)
        engaged.append(simulation.joints["bowl"].engagement["height"])
    assert engaged[0] == 0
    assert engaged[-1] == 1
    return np.array(heights), simulation


@devices
@pytest.mark.parametrize(("enforcement", "deepest"), [("exact", 1e-8), ("penalty", 1e-4)])
def test_gap_is_unilateral_and_reports_its_activity(define, device, enforcement, deepest):
    heights, simulation = bead(define, device, enforcement=enforcement)
    assert heights[0] > 0.01
    assert heights.min() > -deepest
    wrench = simulation.joint_readings().constraint_wrench[0]
    slope = simulation.stepper.q[0, 0] / 0.5
    assert wrench[0] == pytest.approx(-slope * wrench[2], rel=1e-6)
    assert 5.0 < wrench[2] < 11.0
    assert simulation.joints["bowl"].num_unilateral == 1
    assert simulation.joints["bowl"].num_bilateral == 0


@devices
def test_range_of_a_user_defined_coordinate_is_never_exceeded(define, device):
    heights, _ = bead(define, device, coordinate={"height": {"range": (0.0, np.inf), "limit_distance": 2e-3}})
    assert heights[0] > 0.01
    assert 0.0 < heights.min() < 2e-3


SIX = {"x": LENGTH, "y": LENGTH, "z": LENGTH, "rx": ANGLE, "ry": ANGLE, "limit": RowFlags.ROTARY}


def onto_the_hinge(T, p):
    G = T.copy()
    G[:, :3, :3] = align_z(T[:, :3, :3])
    G[:, :3, 3] = 0.0
    return G


def define_hinge(define, **keys):
    """Five bilateral constraints, and a rotary unilateral one that keeps the range of theta."""
    limited = {"ranges": {"theta": (-0.5, 0.5)}, "limits": {"theta": "limit"}}
    keys = limited | {"wrenches": np.eye(6), "project": onto_the_hinge} | keys
    return define("guide", rows=SIX, coordinates={"theta": turn("theta")}, **keys)


def swung(kind, device, **keys):
    """A bar that a torque turns about z; the simulation after 0.6 s."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.02, "tolerance": 1e-8})
    scene.add_body("bar", box=(0.4, 0.1, 0.1), mass=1.0, position=(0.2, 0, 0), torque=(0, 0, 0.3), kappa=1e11)
    scene.add_joint(kind, "j", abd.WORLD, "bar", anchor=(0, 0, 0), axis=(0, 0, 1), length=0.5, enforcement="exact", **keys)
    return abd.run(scene, steps=30, device=device)


BY_NAME = dict(zip(SIX, np.eye(6), strict=True))
FORMS = {
    "array": {},
    "by name": {"wrenches": BY_NAME},
    "mixed": {"function": lambda M, r, p: r, "wrenches": {name: BY_NAME[name] for name in list(SIX)[3:]}},
}


@pytest.mark.skipif(DEVICE.wide, reason="NumPy functions run on the processor")
@pytest.mark.parametrize("form", FORMS)
def test_the_hinge_of_the_guide_with_its_unilateral_constraint_is_the_built_in_one(define, form):
    define_hinge(define, **FORMS[form])
    own, built_in = swung("guide", NAME), swung("hinge", NAME, range=(-0.5, 0.5))
    mine, theirs = own.joints["j"], built_in.joints["j"]
    assert theirs.coordinates[0] > 0.48
    assert mine.coordinates == pytest.approx(theirs.coordinates, abs=1e-7)
    assert mine.coordinate("theta").limit_force == pytest.approx(-0.3, abs=1e-3)
    assert mine.engagement == {"theta": -1}
    assert (mine.num_bilateral, mine.num_unilateral) == (5, theirs.num_unilateral)
    if form == "array":
        free = swung("guide", NAME, range=(-np.inf, np.inf))
        assert free.joints["j"].coordinates[0] > 0.7, "a joint's own range counts"


@pytest.mark.parametrize(("keys", "message"), [
    ({"wrenches": np.diag([1.0, 1, 1, 1, 1, 2])}, r"'limit' is \(0, 0, 0, 0, 0, 2\), but 'theta' changes with"),
    ({"limits": {"theta": "rx"}}, "row 'rx' keeps the range of 'theta', and is held both ways"),
    ({"ranges": {"phi": (0, 1)}}, r"there is no coordinate 'phi'.*its coordinates are theta"),
    ({"ranges": {"theta": (1, 0)}}, r"range of 'theta': should be \(lower, upper\)"),
    ({"wrenches": {name: BY_NAME[name] for name in list(SIX)[:5]}}, "needs a wrench or a function for row 'limit'"),
    ({"wrenches": {"w": np.eye(6)[0]}, "limits": {}}, "has no row 'w' for a wrench"),
])  # fmt: skip
def test_inconsistent_limits_are_refused(define, keys, message):
    with pytest.raises(SceneError, match=message):
        define_hinge(define, **keys)


def onto_the_upper_side(T, p):
    """The hinge's, with theta clipped to at least -0.2: a unilateral constraint that the projection takes care of."""
    G = onto_the_hinge(T, p)
    theta = np.arctan(G[:, 1, 0] / G[:, 0, 0])  # of complex numbers too
    back = np.where(theta.real < -0.2, theta + 0.2, 0.0)
    c, s = np.cos(back), np.sin(back)
    Z = np.zeros_like(G[:, :3, :3])
    Z[:, 0, 0], Z[:, 0, 1], Z[:, 1, 0], Z[:, 1, 1], Z[:, 2, 2] = c, s, -s, c, 1.0
    G[:, :3, :3] = G[:, :3, :3] @ Z
    return G


def real_upper_side(T, p):
    """The same by a function of real numbers, which is differentiated by differences."""
    return onto_the_upper_side(T.real, p).real


@pytest.mark.skipif(DEVICE.wide, reason="NumPy functions run on the processor")
@pytest.mark.parametrize(
    ("form", "spin", "enforcement"),
    [
        (onto_the_upper_side, 0.0, "exact"), (onto_the_upper_side, -1.0, "penalty"), (onto_the_upper_side, -1.0, "compliant"),
        (real_upper_side, -1.0, "exact"), (real_upper_side, 0.0, "penalty"), (real_upper_side, 0.0, "compliant"),
    ],
)  # fmt: skip
def test_unilateral_wrench_acts_only_when_violated(define, form, spin, enforcement):
    define_hinge(define, ranges={}, limits={}, project=form)
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01, "tolerance": 1e-7, "integrator": "bdf1"})
    scene.add_body("bar", box=(0.4, 0.1, 0.1), mass=1.0, position=(0.2, 0, 0), torque=(0, 0, -0.3), kappa=1e11,
                   velocity=(0, 0.2 * spin, 0), angular_velocity=(0, 0, spin))  # fmt: skip
    keys = {"anchor": (0, 0, 0), "axis": (0, 0, 1), "enforcement": enforcement}
    scene.add_joint("guide", "j", abd.WORLD, "bar", **keys, **({"compliance": 1e-6} if enforcement == "compliant" else {}))
    simulation = abd.Simulation(scene, device=NAME)
    joint = simulation.joints["j"]
    simulation.step()
    assert joint.gaps["limit"].engaged == 0 and joint.gaps["limit"].value == pytest.approx(0.0, abs=1e-12)
    simulation.run(steps=60)
    gap = joint.gaps["limit"]
    assert joint.coordinates[0] == pytest.approx(-0.2, abs=1e-4)
    assert gap.engaged == 1 and -1e-4 < gap.value < 0.0
    assert joint.wrench()[1][2] == pytest.approx(0.3, rel=1e-3)
