"""Long runs with exact joints: reference motion over seconds, and rows held over 10,000 steps."""

from __future__ import annotations

import numpy as np
import pytest
from mechanisms_held import HELD, worst_residual
from tool import load_tool

cases = load_tool("peers/reference_cases")
references = load_tool("peers/references")
runs = load_tool("peers/reference_runs")

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("plan", references.PLANS, ids=lambda plan: f"{plan.case}, {plan.until:g} s")
def test_every_mechanism_of_the_table_is_within_its_bounds(plan):
    outcome = runs.run(cases.CASES[plan.case], plan.h, plan.until)
    assert runs.worst(outcome.errors, "position") <= plan.position
    assert runs.worst(outcome.errors, "force") <= plan.force
    if "compliant" not in plan.case:
        assert outcome.residual[0] < 1e-9 and outcome.residual[1] < 1e-8


@pytest.mark.parametrize("name", HELD)
def test_exact_rows_hold_for_ten_thousand_steps(name):
    worst, tolerance = worst_residual(name, 10_000), np.array(HELD[name].tolerance)
    assert np.all(worst < tolerance)
