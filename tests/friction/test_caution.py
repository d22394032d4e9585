"""Caution: the bound of friction's curvature, how its share is learnt, and what that saves in an impact."""

from __future__ import annotations

import numpy as np
import pytest
from on_device import NAME
from test_friction import EPS, displacements, lagged_scene

import abd
from abd.backends.answers import NOBODY
from abd.backends.recorded.iteration import Iteration
from abd.backends.reference.caution import Caution
from abd.potentials import friction
from abd.step import newton, ways

pytestmark = pytest.mark.device


@pytest.mark.parametrize("size", [0.3, 3.0])
def test_with_the_whole_bound_the_model_is_nowhere_below_the_energy_of_friction(size):
    scene, _, lagged, index = lagged_scene("boxes shifted both ways")
    before = displacements(scene, size * EPS)[index]
    f, K = friction._force_and_stiffness(lagged, before, EPS, 1.0)
    slip = np.einsum("mk,mki->mi", lagged.w, before)
    rng = np.random.default_rng(5)
    for reach in (0.1, 1.0, 10.0):
        after = before + reach * size * EPS * rng.normal(size=before.shape)
        du = np.einsum("mk,mki->mi", lagged.w, after) - slip
        model = np.einsum("mi,mi->m", f, du) + 0.5 * np.einsum("mi,mij,mj->m", du, K, du)
        change = friction.energy(lagged, after, EPS) - friction.energy(lagged, before, EPS)
        assert (change <= model + 1e-9 * lagged.load * EPS).all()
        # the curvature itself is overtaken by slips that turn round
        if reach == 10.0 and size == 3.0:
            _, exact = friction._force_and_stiffness(lagged, before, EPS)
            assert (change > np.einsum("mi,mi->m", f, du) + 0.5 * np.einsum("mi,mij,mj->m", du, exact, du)).any()


def test_the_share_follows_each_island():
    caution = Caution(6)
    assert (caution.share == 0.0).all()
    slope, free = -np.ones(6), np.array([1.0, 1.0, 0.6, 1.0, 0.0, 0.05])
    # as foretold; a third of it; capped by a collision, as foretold; halved; standing still; capped at once
    alpha = np.array([1.0, 1.0, 0.6, 0.5, 0.0, 0.05])
    change = np.array([-0.5, -0.15, -0.42, -0.375, 0.0, -0.05])
    caution.advance(change, slope, alpha, free)
    np.testing.assert_array_equal(caution.share, [0.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    # fell by 1.7 times what was foretold, and then as foretold
    caution.advance(np.full(6, -0.85), slope, np.ones(6), np.ones(6))
    np.testing.assert_array_equal(caution.share, [0.0, 0.25, 0.0, 0.25, 0.0, 0.25])
    np.testing.assert_allclose(caution.farther, np.where([True, False] * 3, 1.0, 1.0 / 0.3))
    caution.stretch[:] = 1.0
    caution.advance(np.full(6, -0.5), slope, np.ones(6), np.ones(6))
    np.testing.assert_array_equal(caution.share, [0.0, 0.25, 0.0, 0.25, 0.0, 0.25])
    assert (caution.farther == 1.0).all()
    # no minimum in sight, and one that is farther than directions are stretched
    caution.share[:], caution.stretch[:] = 1.0, 1.0
    caution.advance(np.array([-1.0, -0.9, -0.8, -0.6, -0.5, -0.5]), slope, np.ones(6), np.ones(6))
    np.testing.assert_allclose(caution.farther, [np.inf, np.inf, 2.5, 1.0, 1.0, 1.0])


def test_a_direction_along_which_the_model_was_too_stiff_is_followed_by_a_longer_one():
    caution = Caution(5)
    # energies -a + c a^2 / 2 along a: of the model, of half and of an eighth of its bend, of half after a cut, and -1.5 a
    bend = np.array([1.0, 0.5, 0.125, 0.5, -1.0])
    alpha = np.array([1.0, 1.0, 1.0, 0.5, 1.0])
    caution.advance(-alpha + 0.5 * bend * alpha**2, -np.ones(5), alpha, alpha)
    np.testing.assert_allclose(caution.stretch, [1.0, 2.0, 4.0, 1.0, 4.0])
    # along a direction twice as long, which leads to the minimum; then one that was cut where the unstretched one ended
    caution.stretch = np.full(5, 2.0)
    caution.advance(np.array([-1.0, -1.0, -1.75, -0.5, -0.75]), np.full(5, -2.0), np.array([1, 1, 1, 0.5, 0.5]), np.ones(5))
    np.testing.assert_allclose(caution.stretch, [2.0, 2.0, 4.0, 1.0, 2.0])


def wall(**solver) -> abd.Scene:
    """Nine rough bricks in bond, and a heavy box that flies into them."""
    scene = abd.Scene(solver=solver)
    scene.add_material("rough", mu=0.5)
    scene.add_body("ground", half_space={}, material="rough")
    for row in range(3):
        for k in range(3):
            place = (0.0, (k + 0.5 * (row % 2)) * 0.201, 0.0505 + 0.101 * row)
            scene.add_body(f"brick{row}{k}", box=(0.2, 0.2, 0.1), position=place, material="rough")
    turn = {"axis": (1.0, 1.0, 0.0), "degrees": 40.0}
    flying = {"position": (-0.3, 0.2, 0.15), "velocity": (5.0, 0.0, 0.0), "density": 3000.0, "axis_angle": turn}
    scene.add_body("box", box=(0.15, 0.15, 0.15), material="rough", **flying)
    return scene


def hit(steps: int = 25) -> list:
    simulation = abd.Simulation(wall(), device=NAME)
    return [simulation.step() for _ in range(steps)]


def hold(patch: pytest.MonkeyPatch) -> None:
    """Iterations that never learn."""
    run = Iteration.run

    def forgetful(self, progress):
        c = self.control
        for values, at_first in ((c.share, 0.0), (c.stretch, 1.0), (c.farther, 1.0)):
            values.fill_(at_first)
        return run(self, progress)

    patch.setattr(Iteration, "run", forgetful)


def begin_with_all(patch: pytest.MonkeyPatch) -> None:
    """Minimisations that begin with the whole bound."""
    begin = Iteration.begin

    def cautious(self, *settings):
        awake = begin(self, *settings)
        self.control.share.fill_(1.0)
        return awake

    patch.setattr(Iteration, "begin", cautious)


def test_an_impact_with_friction_takes_fewer_iterations(monkeypatch, record_property):
    monkeypatch.setattr(ways, "FIRST_LOOK", 10**9)  # whole steps, however long they take
    learnt = hit()
    hold(monkeypatch)
    held = hit()
    # a step of the impact has up to four minimisations: smooth and dissipative, each with the loads of its beginning and
    # with those that the impact brings
    counts = [(sum(r.newton_iterations for r in run), sum(r.line_search_trials for r in run)) for run in (learnt, held)]
    record_property("Newton iterations and energies, learnt and without caution", counts)
    assert counts[0][0] <= 0.85 * counts[1][0] and counts[0][0] <= 760
    assert counts[0][1] <= 0.6 * counts[1][1]


@pytest.mark.parametrize("other", [hold, begin_with_all])
def test_the_minimum_is_the_same(other, monkeypatch):
    """Of one energy, with friction as it was lagged where the step begins. Lagged again, stiff contacts turn what the
    tolerance leaves open in their gaps into other loads, and so into another energy."""
    monkeypatch.setattr(newton, "changed", lambda *_: NOBODY)
    # at the usual tolerance a brick may stop half a millimetre a second short of it in a flat direction
    usual = abd.Simulation(wall(), device=NAME).model.settings
    simulation = abd.Simulation(wall(tolerance=1e-6, friction_tolerance=1e-6), device=NAME)
    for _ in range(8):
        simulation.step()
    saved = simulation.checkpoint()
    for _ in range(2):
        simulation.step()
        reached = simulation.state.q.numpy().copy()
        simulation.restore(saved)
        with monkeypatch.context() as patch:
            other(patch)
            simulation.step()
        tolerance = min(usual.tolerance, usual.friction_tolerance)
        difference = np.abs(simulation.state.q.numpy() - reached).max()
        assert difference <= 5.0 * tolerance * usual.dt
        saved = simulation.checkpoint()
