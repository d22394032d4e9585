"""The recorded Newton iteration beyond single steps: failures and retries, room that runs out, renewed lists, records,
checkpoints, and joints that change; all as without records."""


import numpy as np
import pytest
from executors import assert_same_state, assert_same_steps, counted, pair, simulation, step_both
from test_recorded import PD, ROUNDING, apart, links, pile, pinched

from abd.backends.device.pool import Pool
from abd.backends.warp.terms import reduction
from abd.errors import StepFailure

DIRECT, PCG = {"linear_solver": "direct"}, {"linear_solver": "pcg"}


# failures -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scene", "steps", "reason"),
    [
        (lambda: links(3, "exact", {"max_newton": 1, "retries": 2}), 3, "not_converged"),
        (lambda: links(3, "penalty", {"max_newton": 2, "retries": 4, "integrator": "bdf1"}), 10, None),
        (lambda: links(3, "exact", {"max_newton": 2, "retries": 3, "integrator": "bdf1"}), 6, None),
        (lambda: pile({"max_newton": 3, "retries": 3, **PCG}), 12, "not_converged"),
        (lambda: pinched("fail"), 40, "blocked"),
        (lambda: pile({"friction_iterations": -1, "tolerance": 1e-7, "retries": 1, **PCG}, mu=3.0), 8, None),
    ],
)
def test_failures_and_retries(scene, steps, reason):
    """The same substeps; and the state after a failure is the one before."""
    direct, recorded = pair(scene())
    substeps = []
    for _ in range(steps):
        before = recorded.checkpoint()
        report, _ = step_both(direct, recorded, ROUNDING)
        if isinstance(report, StepFailure):
            assert report.reason == reason
            for key, value in recorded.checkpoint().items():
                np.testing.assert_equal(value, before[key])
            return
        substeps.append(report.substeps)
    assert reason is None
    assert max(substeps) > 1 or direct.backend.friction.enabled


def failures(direct, recorded, steps: int = 12) -> str:
    """Reason of the first failure of both."""
    for _ in range(steps):
        outcome, _ = step_both(direct, recorded, ROUNDING)
        if isinstance(outcome, StepFailure):
            return outcome.reason
    return ""


# room and renewals ----------------------------------------------------------------------------------------------------


class TightPool(Pool):
    """No more room than what is asked for."""

    def get(self, name, count, dtype, tail=()):
        array = self._arrays.get(name)
        if array is None or array.shape[0] < count:
            array = self.device.empty((max(count, 1), *tail), dtype)
            self._arrays[name] = array
        return array


@pytest.mark.parametrize("solver", [DIRECT, PCG])
def test_room_runs_out_within_a_step(solver, monkeypatch):
    monkeypatch.setattr(reduction, "RESERVED", 1)
    monkeypatch.setattr(reduction, "Pool", TightPool)
    direct, recorded = pair(pile(solver))
    grown = counted(recorded.backend.iteration, "_make_room")
    for _ in range(14):
        step_both(direct, recorded, ROUNDING)
    assert grown


# runs -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scene",
    [lambda: pile(PCG), lambda: pile(DIRECT), lambda: links(3, "exact", coordinate={"theta": {"drive": PD}}), apart],
)
def test_a_checkpoint_continues_bit_for_bit(scene):
    first = simulation(scene(), True)
    for _ in range(9):
        first.step()
    second = simulation(scene(), True)
    second.restore(first.checkpoint())
    for _ in range(5):
        first.step()
        second.step()
        assert_same_state(first, second)


def test_joints_change_while_running():
    def changed(each) -> None:
        theta = [joint.coordinate() for joint in each.joints.values()]
        theta[1].lock()
        theta[2].set_target(0.3)
        theta[0].apply_force(0.5)

    direct, recorded = pair(links(3, "exact"))
    for _ in range(4):
        step_both(direct, recorded)
    for each in (direct, recorded):
        changed(each)
    for _ in range(4):
        step_both(direct, recorded)
    for each in (direct, recorded):
        each.joints["hinge1"].coordinate().unlock()
        each.joints["hinge2"].active = False
        each.joints["hinge0"].coordinate().set_range(-1.0, 1.0)
    for _ in range(4):
        step_both(direct, recorded)
    q = direct.stepper.q.copy()
    q[:, 2] += 0.5
    for each in (direct, recorded):
        each.joints["hinge0"].active = False
        each.move_to(q)
    for _ in range(4):
        step_both(direct, recorded)
    np.testing.assert_array_equal([joint.active for joint in recorded.joints.values()], [False, True, False])


def test_a_joint_that_breaks():
    direct, _ = assert_same_steps(links(2, "exact", break_force=5.0), 20)
    assert not all(joint.active for joint in direct.joints.values())
