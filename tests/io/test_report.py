"""report.json: sums, extremes, and that it is JSON whatever happened."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from fake_simulation import FakeSimulation
from fake_simulation import two_boxes_over_a_plane as two_boxes

import abd
from abd.errors import StepFailure
from abd.io.frame import SolverRow
from abd.io.initial import initial_report
from abd.io.report import Tally, run_report, total_energy, write_report

FIELDS = """scene device precision versions steps converged_steps failed_step wall_seconds steps_per_second stages
    min_gap max_joint_residual max_orthogonality_error energy_drift newton_iterations linear_iterations tolerance
    linear_solver"""


def tallied(steps: int):
    sim = FakeSimulation(two_boxes())
    tally, reports = Tally(), []
    tally.begin(initial_report(sim.model, sim.host_state()))
    for _ in range(steps):
        reports.append(sim.step())
        tally.add(reports[-1], 0.25)
    return sim, tally, reports


def test_fields_and_sums(tmp_path):
    sim, tally, reports = tallied(7)
    write_report(tmp_path / "report.json", run_report(tally, sim.model, "fake"))
    report = json.loads((tmp_path / "report.json").read_text())
    assert set(FIELDS.split()) <= set(report)
    newton = [step.newton_iterations for step in reports]
    assert report["newton_iterations"] == {"mean": np.mean(newton), "max": max(newton)}
    assert report["linear_iterations"] == {"mean": 10 * np.mean(newton), "max": 10 * max(newton)}
    assert report["steps"] == report["converged_steps"] == 7 and report["failed_step"] is None
    assert report["wall_seconds"] == 1.75 and report["steps_per_second"] == 4.0
    assert report["stages"] == {"solve": 1.75, "contact": 3.5}
    start = initial_report(sim.model, FakeSimulation(two_boxes()).host_state()).max_joint_residual[0]
    assert report["min_gap"] == 0.01 / 7 and report["max_joint_residual"] == [max(start, 7e-4), 2e-4]
    assert report["tolerance"] == {"requested": sim.model.settings.tolerance, "worst": 0.4e-3}
    assert report["versions"]["numpy"] == np.__version__ and report["versions"]["abd"] == abd.__version__


def test_energy_drift():
    """What the integration gave over the energy that moved."""

    def step(kinetic, gravity, gave):
        names = ("elastic", "contact", "joint", "external_work", "friction_work")
        energy = {"kinetic": kinetic, "gravity": gravity, "integration": gave, **dict.fromkeys(names, 0.0)}
        values = FakeSimulation(two_boxes()).step().__dict__
        return SimpleNamespace(**{**values, "energy": energy})

    tally = Tally()
    tally.begin(step(1.0, 10.0, 0.0))
    assert total_energy(step(1.0, 10.0, 5.0).energy) == 11.0
    tally.add(step(8.0, 4.0, 0.5), 0.1)
    tally.add(step(4.0, 6.0, -3.0), 0.1)
    assert tally.energy_drift == -3.0 / 8.0
    tally.add(step(1.0, -5.0, -3.5), 0.1)
    assert tally.energy_drift == -3.5 / 15.0, "the height that was lost is what moved"


def test_a_scene_at_rest_has_no_drift_and_no_gap():
    tally = Tally()
    tally.begin(initial_report(two_boxes(), FakeSimulation(two_boxes()).host_state()))
    report = run_report(tally, two_boxes(), "fake")
    assert report["energy_drift"] is None and report["min_gap"] is None and report["steps_per_second"] is None
    assert report["newton_iterations"] == {"mean": 0.0, "max": 0}


def test_failure_is_told():
    sim, tally, _ = tallied(3)
    failure = StepFailure("blocked", "the target is blocked", 4, 0.03, ("body0", "body1"))
    report = run_report(tally, sim.model, "fake", failure)
    assert report["steps"] == 3 and report["failed_step"] == 4
    assert report["failure"]["reason"] == "blocked" and report["failure"]["bodies"] == ["body0", "body1"]


def test_nan_is_not_hidden_by_an_extreme():
    sim = FakeSimulation(two_boxes())
    report = sim.step()
    report.tolerance_achieved = report.min_gap = math.nan
    tally, row = Tally(), SolverRow()
    for _ in range(2):
        tally.add(report, 0.1)
        row.add(report)
    tally.add(sim.step(), 0.1)
    row.add(sim.step())
    assert all(math.isnan(value) for value in (tally.min_gap, row.min_gap, tally.worst_tolerance))
    assert math.isnan(row.tolerance_achieved)


def test_a_row_sums_up_the_steps_since_the_frame_before():
    sim = FakeSimulation(two_boxes())
    row, reports = SolverRow(), [sim.step() for _ in range(4)]
    reports[1].converged = False
    for report in reports:
        row.add(report)
    assert row.newton_iterations == sum(report.newton_iterations for report in reports)
    assert row.min_gap == 0.01 / 4 and row.contacts == 4 and not row.converged
    assert row.max_joint_residual.tolist() == [4e-4, 2e-4]
    assert row.wall_seconds == pytest.approx(0.04)
