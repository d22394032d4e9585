"""The path between two states is collision-free, or the step is repeated: arcs, proofs, kernels, fast bodies."""

from pathlib import Path

import numpy as np
import projectiles
import pytest
from common_scenes import on_ground
from on_device import NAME, random_states
from test_ccd import gaps, gaps_at, one_body_each, radii

import abd
from abd.contact.ccd import proven_fractions
from abd.contact.path import between
from abd.potentials.contact import Stencil
from abd.rotations import rotations
from abd.step.verdict import IteratePath
from cuda_kernels.shared.contact import FINAL_FRACTION

STENCILS = (Stencil.POINT_TRIANGLE, Stencil.EDGE_EDGE, Stencil.POINT_PLANE)


def turned_states(count: int, seed: int, most: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States, what they become by turning by up to `most` [rad], and the rotation vectors."""
    rng = np.random.default_rng(seed)
    q = random_states(count, seed, strain=0.02)
    w = rng.normal(size=(count, 3))
    w *= (rng.uniform(0.0, most, size=count) / np.linalg.norm(w, axis=1))[:, None]
    end = q.copy()
    end[:, :3] += rng.normal(size=(count, 3))
    strain = np.eye(3) + 0.01 * rng.normal(size=(count, 3, 3))
    end[:, 3:] = (rotations(w) @ q[:, 3:].reshape(-1, 3, 3) @ strain).reshape(-1, 9)
    return q, end, w


@pytest.mark.parametrize("most", [1.0, 3.0, 9.0])
def test_swept_path_has_its_end_and_the_rotation_of_the_velocity(most):
    q, end, w = turned_states(50, 3, most)
    near = w + 0.3 * np.random.default_rng(1).normal(size=w.shape)
    path = between(q, end, near, np.ones(len(q)))
    np.testing.assert_allclose(path.samples(np.array([1.0]))[0], end, atol=1e-12)
    np.testing.assert_allclose(path.samples(np.array([0.0]))[0], q, atol=1e-14)
    assert np.linalg.norm(path.w - w, axis=1).max() < 0.35 * np.pi, ("the branch; strain shifts the axis near whole turns")
    assert path.strain.max() < 0.2


def swept_paths(stencil: Stencil, turn: float, count: int = 200):
    """Ways of two bodies each with one contact, apart at both ends; many lead through."""
    q, contacts = one_body_each(7, count, stencil, 0.01)
    rng = np.random.default_rng(8)
    direction = np.zeros((2 * count, 12))
    direction[::2, :3] = 1.5 * rng.normal(size=(count, 3))
    w = turn * rng.normal(size=(2 * count, 3))
    if stencil == Stencil.POINT_PLANE:
        w[1::2] = 0.0
        direction[::2, :3] -= 0.5 * contacts.plane[:, :3]
    end = q + direction
    end[:, 3:] = (rotations(w) @ q[:, 3:].reshape(-1, 3, 3)).reshape(-1, 9)
    path = between(q, end, w, radii(q, contacts))
    apart = (gaps(path, contacts, 0.0) > 0.0) & (gaps(path, contacts, 1.0) > 0.0)
    return path, contacts[apart]


@pytest.mark.parametrize("turn", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("stencil", STENCILS[:2])
def test_proven_fraction_of_a_swept_path_is_exact(stencil, turn):
    path, contacts = swept_paths(stencil, turn)
    fraction = proven_fractions(path, contacts)
    lowest = np.min([gaps_at(path, contacts, at * fraction) for at in np.linspace(0.0, 1.0, 300)], axis=0)
    assert np.all(lowest > 0.0)
    keeps = FINAL_FRACTION * np.minimum(gaps(path, contacts, 0.0), gaps(path, contacts, 1.0))
    nearest = np.min([gaps(path, contacts, at) for at in np.linspace(0.0, 1.0, 600)], axis=0)
    assert np.all(fraction[nearest > 1.5 * keeps] == 1.0)
    blocked = nearest < 0.9 * keeps
    assert np.all(fraction[blocked] < 1.0) and 3 < np.count_nonzero(blocked) < len(blocked)


def test_gaps_can_open_from_and_close_to_tiny_values():
    """A fifth of the smaller gap remains, so that separation is not limited."""
    q, contacts = one_body_each(9, 40, Stencil.POINT_PLANE)
    q[::2, 3:] = np.eye(3).ravel()
    x = contacts.positions(q)[:, 0]
    n = contacts.plane[:, :3]
    height = np.einsum("mi,mi->m", x, n) - contacts.plane[:, 3]
    q[::2, :3] -= (height - 1e-6)[:, None] * n
    end = q.copy()
    end[::2, :3] += 0.3 * n
    zero = np.zeros((len(q), 3))
    for one, other in ((q, end), (end, q)):
        assert np.all(proven_fractions(between(one, other, zero, radii(q, contacts)), contacts) == 1.0)


@pytest.mark.device
@pytest.mark.parametrize("name", ["ball at fixed plate", "box at free plate", "box at kinematic plate", "rod at rod"])
def test_bodies_do_not_pass_each_other(name):
    assert not any(projectiles.has_passed(projectiles.PAIRS[name], 20.0, 0.0, seed, NAME) for seed in (1, 1001, 2001))


def test_bodies_do_not_pass_on_the_reference_backend():
    end = projectiles.run(projectiles.FLAT, 5.0, 0.0, 1, "numpy")
    assert end.rejected_paths > 0 and end.distance > 0.05


@pytest.mark.parametrize("integrator", ["bdf1", "generalized_alpha"])
@pytest.mark.parametrize("device", ["numpy", NAME])
def test_late_collision_is_resolved_in_a_short_substep(device, integrator):
    """Two boxes approach each other flat by 1.2 of their size per step."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01, "integrator": integrator})
    for side in (-1.0, 1.0):
        scene.add_body(f"box {side:g}", box=(0.2,) * 3, position=(0.3 * side, 0, 0), velocity=(-12.0 * side, 0, 0))
    sim = abd.Simulation(scene, device=device)
    reports = [sim.step() for _ in range(4)]
    assert sum(report.rejected_paths for report in reports) > 0
    assert max(report.substeps for report in reports) <= 6
    # restitution 0: nothing is left of the closing motion
    np.testing.assert_allclose(sim.stepper.qd[:, 0], 0.0, atol=0.02)
    np.testing.assert_allclose(reports[-1].momentum["linear"], 0.0, atol=1e-6)


@pytest.mark.device
def test_slow_impacts_of_fast_bodies_have_no_rejected_paths():
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01})
    for x, speed in ((0.0, 20.0), (0.202, 19.5)):
        scene.add_body(f"box {speed:g}", box=(0.2,) * 3, position=(x, 0, 0), velocity=(speed, 0, 0))
    scene.add_body("ground", half_space={"offset": -5.0})
    scene.add_body("slider", box=(0.2,) * 3, position=(0, 3, -4.9), velocity=(0, 40, 0))
    sim = abd.Simulation(scene, device=NAME)
    reports = [sim.step() for _ in range(3)]
    assert sum(report.rejected_paths for report in reports) == 0
    np.testing.assert_allclose(sim.stepper.qd[:2, 0], 19.75, atol=0.02)


@pytest.mark.device
def test_resting_and_sliding_bodies_have_no_rejected_paths():
    scene = on_ground(0.3, dt=0.01)
    for k in range(3):
        scene.add_body(f"box {k}", box=(0.2,) * 3, position=(0, 0, 0.102 + 0.202 * k))
    scene.add_body("slider", box=(0.2,) * 3, position=(1, 0, 0.101), velocity=(2, 0, 0), angular_velocity=(0, 0, 5))
    sim = abd.Simulation(scene, device=NAME)
    reports = [sim.step() for _ in range(40)]
    assert sum(report.rejected_paths for report in reports) == 0
    assert all(report.substeps == 1 for report in reports)


def test_fast_impacts_equal_those_at_a_hundredth_of_the_step():
    """A spinning box that moves half its size per step hits the plate with the attitude at the impact.

    Which corner hits next depends on all digits, so that single impacts differ by a third at any two steps: the median counts."""
    pair_of, errors = projectiles.PAIRS["box at fixed plate"], []
    for seed in range(0, 9000, 1000):
        end, fine = (projectiles.run(pair_of, 0.5, 1.0, seed, NAME, finer) for finer in (1, 100))
        impulse = np.linalg.norm(end.impulse - fine.impulse) / np.linalg.norm(fine.impulse)
        errors.append((impulse, abs(end.energy - fine.energy) / fine.available_energy))
    assert (np.median(errors, axis=0) <= (0.1, 0.05)).all() and (np.max(errors, axis=0) <= (0.5, 0.2)).all()


class HostCopy:
    """A finished copy of positions."""

    def __init__(self, q: np.ndarray):
        self.q = q

    def wait(self) -> list[np.ndarray]:
        return [self.q]


@pytest.mark.parametrize(
    ("turn", "sideways", "follows"), [(0.15, 0.0, True), (0.3, 0.0, False), (0.0, 0.008, True), (0.0, 0.012, False)]
)
def test_iterates_follow_the_arc_where_the_bodies_meet(turn, sideways, follows):
    """The path of a ring within another one may lead through an iterate that is turned about the place where they meet.

    The far side is then displaced by more than its thickness of 0.0208 m, the place itself by less than half of it."""
    scene, keys = abd.Scene(), {"mesh": Path(__file__).parents[2] / "scenes/meshes/ring.obj", "density": 1.0}
    scene.add_body("held", **keys)
    scene.add_body("moved", **keys, position=(0.175, 0.0, 0.0), axis_angle={"axis": (1, 0, 0), "degrees": 90})
    model = scene.compile()
    path, begin = IteratePath(model), model.bodies.q
    iterate, end = begin.copy(), begin.copy()
    place, R = np.array([0.085, 0.0, 0.0]), rotations(np.array([[0.0, 0.0, turn]]))[0]
    iterate[1, :3] = place + R @ (begin[1, :3] - place) + [0.0, sideways, 0.0]
    iterate[1, 3:] = (R @ begin[1, 3:].reshape(3, 3)).ravel()
    end[1, 0] += 0.01
    for q in (begin, iterate, end):
        path.add(HostCopy(q))
    assert path.follows_arc(np.array([[0, 1]]), begin, np.zeros_like(begin), 0.01)[0] == follows
