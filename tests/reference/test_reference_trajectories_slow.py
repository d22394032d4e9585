"""Long runs with exact joints: reference motion over seconds, and rows held over 10,000 steps."""

import pytest
import reference_cases as cases
import reference_runs as runs
from mechanisms_held import HELD, worst_residual

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "h", "until", "position"),
    [
        ("spherical chain", 0.0025, 1.0, 1e-4),
        ("A01 pendulum", 0.0005, 10.0, 2e-4),
        ("A02, N = 2", 0.0005, 10.0, 1.5e-3),
        ("A02, N = 40", 0.0004, 10.0, 1e-3),
        ("four-bar", 0.001, 2.0, 1e-4),
        ("double pendulum (0.1, 0.2)", 0.001, 5.0, 1e-4),
        ("double pendulum (1.0, -0.5)", 0.001, 2.0, 1e-4),
        ("capsule on a hinge, damping 0", 0.0005, 2.0, 1e-4),
        ("capsule on a hinge, damping 29", 0.0005, 2.0, 1e-4),
    ],
)
def test_mechanisms_follow_their_reference_for_seconds(name, h, until, position):
    """Largest errors of positions [m, rad]; forces to 1e-3 of the largest."""
    outcome = runs.run(cases.CASES[name], h, until)
    assert runs.worst(outcome.errors, "position") <= position
    assert runs.worst(outcome.errors, "force") <= 1e-3
    assert outcome.residual[0] < 1e-9 and outcome.residual[1] < 1e-8


@pytest.mark.parametrize("name", HELD)
def test_exact_rows_hold_for_ten_thousand_steps(name):
    assert (worst_residual(name, 10_000) < HELD[name][1]).all()
