"""The contact stiffness that the program chooses: where it follows the gaps, and where it balances the forces."""

from __future__ import annotations

import numpy as np
import pytest

import abd
from abd.solver.stiffness import NARROW, ROOMY, ContactStiffness


def box_on_ground(d_hat: float, height: float, mu: float = 0.0, speed: float = 0.0) -> abd.Scene:
    scene = abd.Scene()
    scene.add_material("rough", mu=mu)
    scene.add_body("ground", half_space={}, material="rough")
    size, place, velocity = (1.0, 1.0, 0.2), (0.0, 0.0, 0.1 + height), (speed, 0.0, 0.0)
    scene.add_body("box", box=size, density=1000.0, position=place, velocity=velocity, material="rough")
    scene.solver.dt, scene.solver.d_hat = 0.01, d_hat
    return scene


def stiffness_of(d_hat: float) -> ContactStiffness:
    return ContactStiffness(box_on_ground(d_hat, 0.1).compile())


def test_the_bounds_differ_where_d_hat_is_small():
    coarse, fine = stiffness_of(1e-2), stiffness_of(1e-5)
    assert coarse.softest == coarse.lowest
    assert 0.0 < fine.softest < 0.1 * fine.lowest


def test_the_softest_contact_stops_the_mean_mass_from_a_hundred_d_hat_per_step():
    """Force ``-kappa db/dD 2 d`` at half of d_hat against ``m 100 d_hat / h^2``."""
    stiffness = stiffness_of(1e-5)
    d_hat, d = 1e-5, 0.5e-5
    slope = -2.0 * (d**2 - d_hat**2) * np.log(d**2 / d_hat**2) - (d**2 - d_hat**2) ** 2 / d**2
    force = -stiffness.softest * slope * 2.0 * d
    assert force == pytest.approx(200.0 * 100.0 * d_hat / 0.01**2, rel=1e-9)


def begun(d_hat: float, value: float) -> ContactStiffness:
    stiffness = stiffness_of(d_hat)
    stiffness.begin(None, value, 1.0)
    return stiffness


@pytest.mark.parametrize("share, factor", [(0.9, 0.5), (0.5, 1.0), (0.1, 4.0), (1.5, 1.0), (np.inf, 1.0)])
def test_it_follows_the_smallest_gap_of_the_last_step(share, factor):
    value = 3.0 * stiffness_of(1e-5).softest
    assert begun(1e-5, value).following(share * 1e-5) == pytest.approx(factor * value, rel=1e-12)


def test_it_stays_within_its_bounds():
    bounds = stiffness_of(1e-5)
    assert begun(1e-5, 0.0).value == begun(1e-5, 1.5 * bounds.softest).following(0.9e-5) == bounds.softest
    stiffest = 100.0 * bounds.lowest
    assert begun(1e-5, 1e300).value == begun(1e-5, 0.5 * stiffest).following(1e-8) == stiffest


def test_where_bodies_may_sleep_it_does_not_follow_gaps():
    scene = box_on_ground(1e-5, 0.1)
    scene.solver.sleep_speed = 1e-3
    stiffness = ContactStiffness(scene.compile())
    assert stiffness.softest == stiffness.lowest


def test_sliding_friction_does_not_feel_that_the_stiffness_changes():
    """The load of friction is that of the last step, with its stiffness: a box slows down by mu g all the while."""
    mu, speed = 0.3, 5.0
    simulation = abd.Simulation(box_on_ground(1e-5, 1e-5, mu, speed), device="cpu")
    chosen = simulation.stepper.stiffness
    softest = chosen.softest
    chosen.softest = 64.0 * softest
    stiffness, velocity = [], []
    for step in range(25):
        if step == 12:
            chosen.softest = softest
        simulation.step()
        stiffness.append(simulation.host_state().contact_stiffness)
        velocity.append(simulation.host_state().qd[1, 0])
    assert len(set(stiffness[11:])) > 5
    lost = -np.diff(velocity)[8:] / (mu * 9.81 * 0.01)
    assert np.abs(lost - 1.0).max() < 0.01


def test_a_box_comes_to_rest_between_the_rims_and_a_resumed_run_repeats_it():
    d_hat = 1e-5
    simulation = abd.Simulation(box_on_ground(d_hat, 2.0 * d_hat), device="cpu")
    assert simulation.stepper.stiffness.softest < simulation.stepper.stiffness.lowest
    for _ in range(25):
        simulation.step()
    saved = simulation.checkpoint()
    gap = [simulation.step().min_gap for _ in range(25)][-1]
    assert NARROW * d_hat <= gap <= ROOMY * d_hat
    again = abd.Simulation(box_on_ground(d_hat, 2.0 * d_hat), device="cpu")
    again.restore(saved)
    for _ in range(25):
        again.step()
    np.testing.assert_array_equal(again.host_state().q, simulation.host_state().q)
    assert again.host_state().contact_stiffness == simulation.host_state().contact_stiffness
    # one that was written before the gap was kept
    del saved["smallest_gap"]
    again.restore(saved)
    stiffness = again.host_state().contact_stiffness
    again.step()
    assert again.host_state().contact_stiffness == stiffness
