"""The law of contact by pairs of bodies: activation, force, and what a pair's own law does with time."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from on_device import NAME

import abd
from abd.contact.pair_law import D_HAT_SHARE, FORCE_SHARE, OwnLaws, PairLaw
from abd.potentials.barrier import barrier
from abd.step.own_laws.stiffness import FADING, TIGHT_GAP, ContactStiffness

G = 9.81


def boxes(solver: dict | None = None) -> abd.Scene:
    """A box of 0.1 x 0.2 x 0.3 m, a plate of 5 mm a hundred times as heavy, a huge wall far away, a half-space."""
    scene = abd.Scene(solver=solver or {})
    scene.add_body("ground", half_space={})
    scene.add_body("box", box=(0.1, 0.2, 0.3), density=1000.0, position=(0, 0, 1))
    scene.add_body("plate", box=(2.0, 1.2, 0.005), density=50000.0, position=(0, 0, 2))
    scene.add_body("wall", box=(1.0, 30.0, 30.0), kind="static", position=(50, 0, 0))
    return scene


def law_of(scene: abd.Scene) -> PairLaw:
    return PairLaw(scene.compile())


def pair(law: PairLaw, i: int, j: int) -> tuple[float, float]:
    """Activation [m] and force [N]."""
    bodies, xi = (np.array([i]), np.array([j])), np.zeros(1)
    return float(law.activation(*bodies)[0]), float(law.force(*bodies, xi)[0])


def test_the_thinner_of_two_bodies_sets_the_activation_and_the_lighter_one_the_force():
    law = law_of(boxes())
    assert pair(law, 1, 0) == pytest.approx((D_HAT_SHARE * 0.1, FORCE_SHARE * 6.0 * G))
    assert pair(law, 1, 2) == pytest.approx((D_HAT_SHARE * 0.005, FORCE_SHARE * G * 600.0 * 6.0 / 606.0))
    assert pair(law, 1, 3) == pair(law, 1, 0), "what stands still, and is large, does not count"


def test_neither_the_step_nor_the_rest_of_the_scene_matters():
    scene = boxes({"dt": 1e-4})
    scene.add_body("crumb", box=(1e-3,) * 3, position=(0, 0, 3))
    law = law_of(scene)
    assert pair(law, 1, 2) == pair(law_of(boxes()), 1, 2)
    assert pair(law, 1, 4)[0] == pytest.approx(D_HAT_SHARE * 1e-3)


def test_what_is_given_holds_for_all_pairs():
    law = law_of(boxes({"d_hat": 2e-3, "contact_stiffness": 1e7}))
    i, j, xi = np.array([1, 1, 2]), np.array([0, 2, 3]), np.array([0.0, 1e-3, 0.0])
    a = law.activation(i, j)
    assert (a == 2e-3).all() and law.reach(i, j).max() == 2e-3
    np.testing.assert_allclose(law.stiffness(i, j, a, xi), 1e7, rtol=1e-14)


@pytest.mark.parametrize("kind", ["log", "log_sq", "cubic"])
@pytest.mark.parametrize("xi", [0.0, 0.05])
def test_the_force_is_one_function_of_the_gap_in_activations(kind, xi):
    """Also for an activation of its own; within what the curvature of d^2 makes of it where radii are as small as gaps."""
    law = law_of(boxes({"barrier": kind}))
    forces = []
    for a in (1e-4, 1e-6):
        law.own = OwnLaws(law.keys(np.array([0]), np.array([1])), np.array([a]), np.array([3.0]))
        kappa = law.stiffness(np.array([1]), np.array([0]), np.array([a]), np.array([xi]))
        d = xi + a * np.array([0.1, 0.5, 0.9])
        forces.append(-kappa * 2.0 * d * barrier(kind, d**2, a, xi)[1])
    np.testing.assert_allclose(forces[0], forces[1], rtol=1e-2)
    assert (forces[0] > 0.0).all()


def backend_with(law: PairLaw, pairs: list[tuple[int, int]], gaps: list[float]) -> Mock:
    """A backend that lists these pairs with these gaps in activations."""
    backend = Mock(pair_law=law)
    backend.touch.set_own_laws = lambda own: setattr(law, "own", own)
    backend.touch.pair_gaps = lambda exact=False: (np.array(pairs), np.array(gaps))
    return backend


def test_only_tight_pairs_get_stiffer():
    model = boxes().compile()
    law, stiffness = PairLaw(model), ContactStiffness(model)
    backend = backend_with(law, [(1, 0), (1, 2)], [0.5 * TIGHT_GAP, 0.5])
    n = len(model.bodies)
    backend.islands.host, backend.idle.mobile = np.arange(n) // 3, np.ones(n, dtype=bool)

    def adapt(gap: float) -> np.ndarray | None:
        """With this gap in the island of bodies 0 to 2, and room in the others."""
        gaps = np.full(n // 3 + 1, 0.5)
        gaps[0] = gap
        backend.iteration.tightness = lambda: (gaps, np.ones(len(gaps)))
        return stiffness.adapt(backend, gap, 1.0)

    stiffness.begin()
    for gap in (0.5, 0.4):
        assert np.flatnonzero(adapt(gap * TIGHT_GAP)).tolist() == [0]
    assert adapt(0.6 * TIGHT_GAP) is None, "it opens"
    assert law.own.key.tolist() == law.keys(np.array([0]), np.array([1])).tolist()
    assert law.own.factor.tolist() == [2.0 * 4.0] and law.own.activation.tolist() == [D_HAT_SHARE * 0.1]
    given = ContactStiffness(replace(model, settings=replace(model.settings, contact_stiffness=1e6)))
    assert given.adapt(backend, 1e-6, 0.0) is None


def test_factors_fade_in_time_and_pairs_that_part_are_let_go():
    model = boxes().compile()
    law, stiffness = PairLaw(model), ContactStiffness(model)
    i, j = np.array([0, 1, 2]), np.array([1, 2, 3])
    a = law.regular(i, j)
    law.own = OwnLaws(law.keys(i, j), np.array([a[0], 0.1 * a[1], 0.1 * a[2]]), np.array([8.0, 1.0, 1.0]))
    backend = backend_with(law, [(1, 0), (1, 2), (2, 3)], [0.9, 9.0, 11.0])
    for _ in range(4):
        stiffness.end(backend, 0.25 * FADING)
    assert law.own.factor.tolist() == pytest.approx([4.0, 1.0]), "the last one is beyond its common activation"
    stiffness.end(backend, 3.0 * FADING)
    assert law.own.key.tolist() == law.keys(i[1:2], j[1:2]).tolist()


@pytest.mark.parametrize("ratio", [1e3, 1e6])
def test_heavy_bodies_rest_on_light_ones(ratio):
    scene = abd.Scene(solver={"dt": 0.01})
    scene.add_body("ground", half_space={})
    scene.add_body("light", box=(0.1,) * 3, density=100.0, position=(0, 0, 0.05 + 1e-4), kappa=1e12)
    scene.add_body("heavy", box=(0.1,) * 3, density=100.0 * ratio, position=(0, 0, 0.15 + 2e-4), kappa=1e12)
    simulation = abd.Simulation(scene, device=NAME)
    start = simulation.stepper.q[2, 2]
    for _ in range(20):
        report = simulation.step()
    assert report.min_gap > 1e-3 * D_HAT_SHARE * 0.1
    assert abs(simulation.stepper.q[2, 2] - start) < 2e-4


def test_a_step_that_a_search_shortened_blocks_nothing():
    """Contacts that are too stiff shorten steps, too: stiffened for it, they would be so for ever."""
    scene = abd.Scene(solver={"dt": 0.01})
    scene.add_body("ground", box=(2.0, 2.0, 0.2), kind="static", position=(0.0, 0.0, -0.1))
    scene.add_body("cube", box=(0.1, 0.1, 0.1), position=(0.0, 0.0, 0.051), velocity=(0.0, 0.0, -0.02))
    simulation = abd.Simulation(scene, device=NAME)
    iteration = simulation.stepper.backend.iteration
    run, shortened = iteration.run, []

    def watched(progress):
        status = run(progress)
        if status.trials > 1 and status.moving:
            shortened.append(status.least)
        return status

    iteration.run = watched
    for _ in range(10):
        simulation.step()
    assert shortened and max(shortened) == 1.0
