"""The contact stiffness that the program chooses: where it follows the gaps, and where it balances the forces."""

from __future__ import annotations

import numpy as np
import pytest

import abd
from abd.solver.stiffness import NARROW, ROOMY, ContactStiffness


def box_on_ground(d_hat: float, height: float) -> abd.Scene:
    scene = abd.Scene()
    scene.add_body("ground", half_space={})
    scene.add_body("box", box=(1.0, 1.0, 1.0), density=1000.0, position=(0.0, 0.0, 0.5 + height))
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
    assert force == pytest.approx(1000.0 * 100.0 * d_hat / 0.01**2, rel=1e-9)


@pytest.mark.parametrize("share, factor", [(0.9, 0.5), (0.5, 1.0), (0.1, 4.0), (1.5, 1.0), (np.inf, 1.0)])
def test_it_follows_the_smallest_gap_of_a_step(share, factor):
    stiffness = stiffness_of(1e-5)
    stiffness.begin(None, 3.0 * stiffness.softest, 1.0)
    assert stiffness.after_step(share * 1e-5) == pytest.approx(3.0 * factor * stiffness.softest, rel=1e-12)


def test_it_stays_within_its_bounds():
    stiffness = stiffness_of(1e-5)
    assert stiffness.begin(None, 0.0, 1.0) == stiffness.lowest
    for _ in range(60):
        value = stiffness.after_step(0.9e-5)
    assert value == stiffness.softest
    for _ in range(60):
        value = stiffness.after_step(1e-8)
    assert value == 100.0 * stiffness.lowest


def test_where_it_balances_forces_gaps_do_not_count():
    stiffness = stiffness_of(1e-2)
    value = stiffness.begin(None, 0.0, 1.0)
    assert stiffness.after_step(0.9e-2) == stiffness.after_step(1e-5) == value


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
