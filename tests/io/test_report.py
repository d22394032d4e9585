"""report.json: sums, extremes, and valid JSON in all cases."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from two_bodies import scene

import abd
from abd.io.frame import SolverRow, initial_report
from abd.io.report import Tally, run_report, total_energy

FIELDS = """scene device precision versions steps converged_steps failed_step wall_seconds steps_per_second stages
    min_gap max_joint_residual max_orthogonality_error energy_drift newton_iterations linear_iterations tolerance
    linear_solver"""


def tallied(steps: int):
    simulation, tally = abd.Simulation(scene(), device="numpy"), Tally()
    tally.begin(start := initial_report(simulation.model, simulation.host_state(), simulation.initial_contacts))
    reports = [replace(simulation.step(), min_gap=0.01 / (k + 1)) for k in range(steps)]
    for report in reports:
        tally.add(report, 0.25)
    return simulation, tally, [start, *reports]


def test_fields_and_sums():
    simulation, tally, (start, *reports) = tallied(7)
    report = json.loads(json.dumps(run_report(tally, simulation.model, "numpy"), allow_nan=False))
    assert set(FIELDS.split()) <= set(report)
    for name in ("newton_iterations", "linear_iterations"):
        values = [getattr(step, name) for step in reports]
        assert report[name] == {"mean": np.mean(values), "max": max(values)}
    assert report["steps"] == report["converged_steps"] == 7 and report["failed_step"] is None
    assert report["wall_seconds"] == 1.75 and report["steps_per_second"] == 4.0
    for name, seconds in report["stages"].items():
        assert seconds == pytest.approx(sum(step.stages[name] for step in reports))
    assert report["min_gap"] == 0.01 / 7
    residuals = np.array([step.max_joint_residual for step in (start, *reports)])
    assert report["max_joint_residual"] == residuals.max(axis=0).tolist()
    worst = max(step.tolerance_achieved for step in reports)
    assert report["tolerance"] == {"requested": simulation.model.settings.tolerance, "worst": worst}
    assert report["versions"]["numpy"] == np.__version__ and report["versions"]["abd"] == abd.__version__


def test_energy_drift():
    """The drift is the integration error over the exchanged energy."""
    _, _, (_, report) = tallied(1)

    def step(kinetic, gravity, gave):
        given = {"kinetic": kinetic, "gravity": gravity, "integration": gave}
        return replace(report, energy=dict.fromkeys(report.energy, 0.0) | given)

    tally = Tally()
    tally.begin(step(1.0, 10.0, 0.0))
    assert total_energy(step(1.0, 10.0, 5.0).energy) == 11.0
    tally.add(step(8.0, 4.0, 0.5), 0.1)
    tally.add(step(4.0, 6.0, -3.0), 0.1)
    assert tally.energy_drift == -3.0 / 8.0
    tally.add(step(1.0, -5.0, -3.5), 0.1)
    assert tally.energy_drift == -3.5 / 15.0, "the height that was lost is what moved"


def test_a_scene_at_rest_has_no_drift_and_no_gap():
    made = scene()
    for k in range(2):
        made.body(f"body{k}").velocity = made.body(f"body{k}").angular_velocity = (0, 0, 0)
    model, tally = made.compile(), Tally()
    simulation = abd.Simulation(model, device="numpy")
    tally.begin(initial_report(model, simulation.host_state(), simulation.initial_contacts))
    report = run_report(tally, model, "numpy")
    assert report["energy_drift"] is None and report["min_gap"] is None and report["steps_per_second"] is None
    assert report["newton_iterations"] == {"mean": 0.0, "max": 0}


def test_nan_is_not_hidden_by_an_extreme():
    _, _, (_, report) = tallied(1)
    tally, row = Tally(), SolverRow()
    for one in (replace(report, tolerance_achieved=math.nan, min_gap=math.nan), report):
        tally.add(one, 0.1)
        row.add(one)
    assert all(math.isnan(value) for value in (tally.min_gap, row.min_gap, tally.tolerance_achieved, row.tolerance_achieved))


def test_a_row_sums_up_the_steps_since_the_frame_before():
    _, _, (_, *reports) = tallied(4)
    changes = {"min_gap": 0.04, "contacts": 3, "max_joint_residual": (1e-3, 2e-4), "wall_seconds": 0.01}
    reports = [replace(report, **changes) for report in reports]
    reports[1] = replace(reports[1], converged=False, min_gap=0.01, contacts=7, max_joint_residual=(2e-3, 1e-4))
    row = SolverRow()
    for report in reports:
        row.add(report)
    assert row.newton_iterations == sum(report.newton_iterations for report in reports)
    assert row.min_gap == 0.01 and row.contacts == 3 and not row.converged
    assert row.max_joint_residual.tolist() == [2e-3, 2e-4]
    assert row.wall_seconds == pytest.approx(0.04)
