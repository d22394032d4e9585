"""Slips along arcs: rolling bodies have none, carried ones that of their end velocity, for any rotation per step."""

from dataclasses import replace

import numpy as np
import pytest
import warp as wp
from contact_models import ARRANGEMENTS, as_model
from contact_on_device import Kernels, law
from on_device import DEVICE, NAME, assert_close, pose_of

import abd
from abd.backends.reference.numpy_contacts import NumpyContacts
from abd.backends.warp.iterate import Iterate
from abd.contact.path import standing
from abd.model import Model
from abd.potentials import friction
from abd.potentials.arc_slip import Course, along_arcs
from abd.potentials.contact import Contacts
from abd.potentials.rolling import Resistances
from abd.rotations import rotations
from cuda_kernels.shared.contact import SLIDE

EPS, G = 1e-5, 9.81
CAPSULE = {"capsule": {"radius": 0.1, "length": 0.3}, "axis_angle": {"axis": (1.0, 0.0, 0.0), "degrees": 90.0}}


def turned(q: np.ndarray, w: np.ndarray) -> np.ndarray:
    """(n, 12) the bodies of q, turned by w (n, 3) [rad] about their centers."""
    A = rotations(w) @ q[:, 3:].reshape(-1, 3, 3)
    return np.concatenate([q[:, :3], A.reshape(-1, 9)], axis=1)


def frozen_on(model: Model, course: Course) -> tuple[friction.Lagged, Contacts]:
    """What friction freezes at the start, before it follows arcs."""
    contacts, q = NumpyContacts(model), course.begin
    contacts.search(standing(q))
    heading = course.end[:, 3:].reshape(-1, 3, 3)
    taken = contacts.parts, contacts.part_parameters, model.bodies.radius, heading, Resistances.of(model)
    return friction.freeze(q, *taken, contacts.weights(q))


@pytest.mark.parametrize("shape", [{"sphere": {"radius": 0.1}}, CAPSULE])
@pytest.mark.parametrize("w", [0.01, 0.3, 1.0, 2.5, np.pi, 5.0])
def test_rolling_body_has_no_slip(shape, w):
    """A displacement r w has no slip (along chords r (w - sin w)); rolling resistance follows the rotation w."""
    scene = abd.Scene()
    scene.add_material("default", mu=0.5, rolling=0.001)
    scene.add_body("plane", half_space={})
    scene.add_body("body", **shape, position=(0.0, 0.0, 0.1 + 2e-5))
    model = scene.compile()
    q, turn = model.bodies.q, np.array([[0.0, 0.0, 0.0], [0.0, w, 0.0]])
    course = Course(q, turned(q, turn), turn)
    course.end[1, 0] += 0.1 * w
    lagged, frozen = frozen_on(model, course)
    moved = along_arcs(lagged, frozen, q, course, model.bodies.radius)
    chords, arcs = (friction.stretch(one, at.positions(course.end - q), EPS) for one, at in ((lagged, frozen), moved))
    slides = lagged.kind == SLIDE
    assert slides.any() and not slides.all()
    np.testing.assert_allclose(arcs[slides], 0.0, atol=2e-15)
    assert np.linalg.norm(chords[slides], axis=1) == pytest.approx(0.1 * (w - np.sin(w)), abs=1e-15)
    arm = Resistances.of(model).arms(frozen.first[~slides], frozen.second[~slides])
    assert np.linalg.norm(arcs[~slides], axis=1) == pytest.approx(arm * w)


def flat_box(parted: np.ndarray, turn: float, below: float) -> tuple[Model, np.ndarray, Course]:
    """A box on a box that both turn about their normal [rad] and part by a displacement of the upper one [m]."""
    scene = abd.Scene(solver={"dt": 0.01})
    scene.add_material("default", mu=0.5)
    scene.add_body("below", box=(0.4, 0.4, 0.1), position=(0.03, -0.02, -0.05 - 2e-5))
    scene.add_body("body", box=(0.1, 0.06, 0.02), position=(0.0, 0.0, 0.01))
    model = scene.compile()
    turns = np.array([[0.0, 0.0, below], [0.0, 0.0, turn]])
    end = turned(model.bodies.q, turns)
    end[1, :3] += parted
    return model, model.bodies.q, Course(model.bodies.q, end, turns)


@pytest.mark.parametrize(
    ("turn", "below", "parted"),
    [(-0.4, 0.2, (0.05, 0.02)), (0.3, 0.2, (0.05, 0.02)), (2.5, 0, (0, 0)), (0, 5, (0, 0)), (0, 0, (0.05, 0.02))],
)
def test_carried_body_slips_with_the_end_velocities(turn, below, parted):
    """The slip is ``dp_i + w_i x a_i - dp_j - w_j x a_j`` at the final position of the vertex, also on faces."""
    model, q, course = flat_box(np.array([*parted, 0.0]), turn, below)
    lagged, frozen = along_arcs(*frozen_on(model, course), q, course, model.bodies.radius)
    slips = friction.stretch(lagged, frozen.positions(course.end - q), EPS)
    assert len(lagged) == 4
    maps = course.end[:, 3:].reshape(-1, 3, 3)
    for row, (i, j) in enumerate(zip(frozen.first, frozen.second, strict=True)):
        arm_i, arm_j = maps[i] @ lagged.Y_first[row, 1:], maps[j] @ lagged.Y_second[row, 1:]
        # turns alone carry the vertex there: what parts bodies leaves arms on faces what they are
        assert (q[j, :3] + arm_j)[:2] == pytest.approx((q[i, :3] + arm_i)[:2], abs=1e-12)
        of_i, of_j = (course.end[b, :3] - q[b, :3] + np.cross(course.turn[b], a) for b, a in ((i, arm_i), (j, arm_j)))
        assert slips[row][:2] == pytest.approx((of_i - of_j)[:2], abs=1e-12)


def test_rotation_about_a_sticking_corner_has_no_slip():
    """Of four corners the sticking one has no arc correction; the others have one."""
    model, q, course = flat_box(np.zeros(3), 0.3, 0.0)
    corner = np.array([0.05, 0.03, 0.0])
    course.end[1, :3] = q[1, :3] - corner + rotations(-course.turn[1:])[0] @ corner
    before, points = frozen_on(model, course)
    lagged, _ = along_arcs(before, points, q, course, model.bodies.radius)
    on_vertex = q[1, 3:].reshape(3, 3) @ lagged.Y_first[:, 1:, None]
    sticks = np.linalg.norm(on_vertex[:, :2, 0] - corner[:2], axis=1) < 1e-9
    assert sticks.sum() == 1
    assert lagged.arc[sticks] == pytest.approx(0.0, abs=1e-9)
    assert np.linalg.norm(lagged.arc[~sticks], axis=1).min() > 1e-3
    assert lagged.Y_second[sticks] == pytest.approx(before.Y_second[sticks], abs=1e-9)


@pytest.mark.device
@pytest.mark.parametrize("name", ["rods and points", "boxes shifted both ways"])
def test_kernels_equal_the_definition(name):
    model, rng = as_model(ARRANGEMENTS[name]), np.random.default_rng(5)
    tables = {name: np.full_like(model.materials.mu, 0.01) for name in ("rolling", "spinning")}
    model = replace(model, materials=replace(model.materials, **tables))
    q, (first, second) = model.bodies.q, 0.4 * rng.normal(size=(2, len(model.bodies), 3))
    begin, end = turned(q, first), turned(q, second)
    end[:, :3] += 0.1 * rng.normal(size=(len(q), 3))
    about = 2.0 * rng.normal(size=(len(model.bodies), 3))
    kernels = Kernels(model, standing(q))
    listed = kernels.listed()
    kernels.energies(q)
    kernels.friction.set_eps(EPS)
    kernels.friction.begin, kernels.friction.turn = pose_of(begin), DEVICE.upload(about, wp.vec3d)
    kernels.friction.lag(Iterate(pose_of(q), rest=pose_of(q)), pose_of(end))
    maps, radius = end[:, 3:].reshape(-1, 3, 3), model.bodies.radius
    before, points = friction.freeze(q, listed, law(model), radius, maps, Resistances.of(model))
    assert kernels.friction.count == len(before) > 0
    lagged, _ = along_arcs(before, points, q, Course(begin, end, about), radius)
    sign = np.where(lagged.flipped & (lagged.kind == SLIDE), -1.0, 1.0)[:, None]
    device = kernels.friction.lagged
    assert_close(DEVICE.read(device.arc, len(lagged)), sign * lagged.arc)
    sides = np.where(lagged.flipped[None, :, None], (lagged.Y_second, lagged.Y_first), (lagged.Y_first, lagged.Y_second))
    slides = lagged.kind == SLIDE
    for Y, expected in zip((device.Y_i, device.Y_j), sides, strict=True):
        assert_close(DEVICE.read(Y, len(lagged))[slides], expected[slides])
    assert np.abs(lagged.arc).max() > EPS
    if name == "boxes shifted both ways":
        assert np.abs(lagged.Y_second - before.Y_second).max() > 1e-3


@pytest.mark.device
@pytest.mark.parametrize("shape", ["ball", "capsule"])
@pytest.mark.parametrize("turn", [0.5, 1.7, 2.5, np.pi, 5.0])
@pytest.mark.parametrize("floor", ["plane", "mesh"])
def test_spinning_ball_slows_down_until_it_rolls(shape, turn, floor):
    """It slows by ``mu g r m / I`` within 2 % for any rotation per step; energy does not grow."""
    h, mu, r = 0.01, 0.5, 0.02
    scene = abd.Scene(solver={"dt": h})
    scene.add_material("default", mu=mu)
    plate = {"box": (2.0, 2.0, 0.1), "kind": "static", "position": (0.0, 0.0, -0.05)}
    scene.add_body("floor", **({"half_space": {}} if floor == "plane" else plate))
    round_one = {"sphere": {"radius": r}} if shape == "ball" else {**CAPSULE, "capsule": {"radius": r, "length": 0.06}}
    scene.add_body("body", **round_one, position=(0.0, 0.0, r + 1e-4), angular_velocity=(0.0, turn / h, 0.0))
    simulation = abd.Simulation(scene, device=NAME)
    bodies = simulation.model.bodies
    inertia = bodies.moment[1].sum() - bodies.moment[1].max()  # about its own axis
    fall = mu * G * h * r * bodies.mass[1] / inertia
    body, spins, energies = simulation.bodies["body"], [turn / h], []
    for _ in range(6):
        energy = simulation.step().energy
        energies.append(energy["kinetic"] + energy["gravity"])
        spins.append(body.angular_velocity[1])
    rolls = spins[-1] * r <= 1.01 * body.linear_velocity[0]
    slides = -np.diff(spins)[: 2 if rolls else None]
    assert slides == pytest.approx(fall, rel=0.02)
    assert (np.diff(energies) <= 1e-12 * energies[0]).all()
