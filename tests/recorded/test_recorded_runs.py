"""The recorded Newton iteration beyond single steps: failures and retries, room that runs out, renewed lists, records,
checkpoints, and joints that change; all as without records."""

from unittest.mock import patch

import numpy as np
import pytest
from executors import COUNTS, assert_same_state, assert_same_steps, counted, pair, simulation, step_both
from test_recorded import PD, ROUNDING, apart, links, pile, pinched

import abd
from abd import backends
from abd.backends.device.device import Device
from abd.backends.device.pool import Pool
from abd.backends.device.watching.launches import Launches
from abd.backends.linear import solver_choice
from abd.backends.linear.elimination import Elimination
from abd.backends.linear.factor_schedules import RangesOfPanels
from abd.backends.progress import Progress
from abd.backends.recorded import direction, search
from abd.backends.reference import line_search
from abd.backends.warp.parts import arcs
from abd.backends.warp.terms import reduction
from abd.errors import StepFailure
from cuda_kernels.step import control

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


def test_the_line_search_gives_up():
    with patch.object(line_search, "HALVINGS", 1), patch.object(search, "HALVINGS", 1):
        assert failures(*pair(pile({"retries": 1, **DIRECT}))) == "line_search"


def test_no_step_keeps_the_limits():
    scene = links(1, "exact", {"retries": 0}, coordinate={"theta": {"range": (-0.05, 0.02)}})
    with patch.object(arcs, "LIMIT_CUTS", 1), patch.object(search, "LIMIT_CUTS", 1):
        assert failures(*pair(scene)) == "limits"


def test_a_list_that_does_not_fit_is_refused():
    both = pair(pile(DIRECT))
    for each in both:
        each.backend.contacts.candidates.most_bytes = 6000
    assert failures(*both) == "candidates"


@pytest.mark.parametrize(
    ("solver", "name", "value", "reason"),
    [
        ("direct", "diagonal", -1.0, "not_positive_definite"),
        ("direct", "diagonal", np.nan, "not_positive_definite"),
        ("direct", "gradient", np.nan, "not_finite"),
        ("direct", "gradient", np.inf, "not_finite"),
        ("pcg", "diagonal", -1.0, "not_finite"),
        ("pcg", "gradient", np.nan, "not_finite"),
    ],
)
def test_numbers_that_are_not_fit_for_a_solve(solver, name, value, reason):
    """After two good steps, so that it happens in a record; and the step goes on when the numbers are good again."""
    direct, recorded = pair(links(2, "penalty", {"linear_solver": solver, "retries": 0}))
    for _ in range(2):
        step_both(direct, recorded)
    for each in (direct, recorded):
        spoil(each, name, value)
    assert failures(direct, recorded, 1) == reason
    for each in (direct, recorded):
        del each.backend.potential.linearize
        each.backend.device.generation += 1
    for _ in range(3):
        step_both(direct, recorded)


def test_a_model_that_is_not_convex_leaves_the_multipliers_of_exact_rows_alone():
    """Its direction is none, however short it is: nothing closes the rows by it before the model is formed again."""
    direct, recorded = pair(links(2, "exact", {"linear_solver": "direct", "retries": 0}))
    for _ in range(2):
        step_both(direct, recorded)
    seen = []
    for each in (direct, recorded):
        spoil(each, "diagonal", -1e2, (1, 11, 11))
        shift, check = each.backend.joints.linear.shift, each.backend.linear.check
        # asked after the last factorisation, before the step is taken back
        each.backend.linear.check = lambda shift=shift, check=check: (seen.append(shift.numpy().copy()), check())
    assert failures(direct, recorded, 1) == "not_positive_definite"
    assert len(seen) >= 2 and len(seen[0])
    for shift in seen:
        np.testing.assert_allclose(shift, seen[0], rtol=1e-12)


def spoil(each, name: str, value: float, entry: tuple[int, int, int] | None = None) -> None:
    """Let the linear systems of a simulation hold a value everywhere, or in one entry of a block."""
    backend, potential = each.backend, each.backend.potential
    good = potential.linearize

    def linearize() -> None:
        good()
        values = getattr(potential, name)
        if entry is not None:
            values = values[entry[0]][entry[1]][entry[2] : entry[2] + 1]
        backend.device.fill(values, value)

    potential.linearize = linearize
    backend.device.generation += 1


def test_conjugate_gradients_that_take_too_long():
    direct, recorded = pair(pile({"retries": 0, **PCG}))
    for _ in range(6):
        step_both(direct, recorded)
    for each in (direct, recorded):
        each.backend.iteration.linear.solver.max_iterations = 2
    recorded.backend.device.generation += 1
    assert failures(direct, recorded, 3) == "linear_solver"


def test_energies_that_are_no_numbers_are_rises():
    direct, recorded = pair(pile({"retries": 0, **DIRECT}))
    for each in (direct, recorded):
        each.backend.contacts.law.stiffness.fill_(np.nan)
    assert failures(direct, recorded, 12) == "line_search"


def test_exact_joints_stay_open():
    """Without solves that close them, and with a tolerance of the velocities that every step is within."""
    scene = links(2, "exact", {"max_newton": 1, "retries": 0, "tolerance": 1e3})
    with patch.object(direction, "CLOSINGS", 0):
        assert failures(*pair(scene)) == "joints"


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


def test_room_runs_out_where_slopes_are_compared():
    """Which repeats the search alone: the direction and the multipliers are those that were there."""
    direct, recorded = pair(apart(tolerance=1e-8, friction_iterations=0))
    iteration, device = recorded.backend.iteration, recorded.backend.device
    search, missing, inside = iteration.search, device.zeros(2, control.wp.int32), []
    compare, check, again = search._compare_slopes, search.check_room, counted(iteration, "_search_again")

    def compare_slopes() -> None:
        inside.append(True)
        compare()
        inside.pop()

    def check_room() -> None:
        check()
        if inside:
            device.launch(control.check_room, 1, iteration.control, missing, 0, 0)

    search._compare_slopes, search.check_room = compare_slopes, check_room
    iteration._make_room = missing.zero_
    for _ in range(20):
        device.write(missing, np.ones(2, dtype=np.int32))
        step_both(direct, recorded, ROUNDING)
    assert again


def swung(solver=None, **coordinate) -> abd.Scene:
    """Two arms that stiff drives swing by half a radian in the first step, and loose boxes in and near their way."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.02, "d_hat": 1e-3, **(solver or {})})
    coordinate["drive"] = {"mode": "pd", "target": 0.5, "stiffness": 1e5, "damping": 10.0}
    for k in range(2):
        scene.add_body(f"arm{k}", box=(1, 0.1, 0.1), position=(k + 0.5, 0, 0))
        scene.add_hinge(
            f"pivot{k}", f"arm{k - 1}" if k else "world", f"arm{k}", anchor=(k, 0, 0), axis=(0, 0, 1),
            coordinate={"theta": coordinate},
        )  # fmt: skip
    for k in range(8):
        scene.add_body(f"loose{k}", box=(0.1, 0.1, 0.1), position=(0.3 * k + 0.2, 0.2 + 0.15 * k, 0))
    return scene


@pytest.mark.parametrize(
    ("solver", "coordinate"),
    [({}, {}), ({}, {"friction": 10.0}), ({"contact_stiffness": 1e9, **DIRECT}, {}), (PCG, {})],
)
def test_islands_that_merge_within_an_iteration(solver, coordinate):
    """Loose boxes have converged when the path of an arm comes to them: both go on as one island, and converge."""
    direct, recorded = pair(swung({"integrator": "bdf1", **solver}, **coordinate))
    iteration, merged = recorded.backend.iteration, []
    renew, islands = iteration._renew, recorded.backend.islands

    def renewing(reach: float) -> None:
        before = islands.count
        rest = recorded.backend.device.read(iteration.control.converged, before).sum()
        renew(reach)
        merged.append((before - islands.count, int(rest)))

    iteration._renew = renewing
    # an arm is stopped a thousandth of the activation from a box, which amplifies what rounding leaves in the linear solves;
    # both end within Newton's tolerance of 1e-3 m/s, and this is less than that
    step_both(direct, recorded, 1e4 * ROUNDING)
    assert any(fewer > 0 and converged > 0 for fewer, converged in merged)


# records --------------------------------------------------------------------------------------------------------------


def rest() -> abd.Scene:
    """Two boxes that rest on the ground, one on the other, and an arm that its drive holds."""
    scene = abd.Scene(solver={"dt": 0.01, "d_hat": 1e-3})
    scene.add_material("stone", mu=0.4)
    scene.add_body("floor", half_space={}, material="stone")
    for k in range(2):
        scene.add_body(f"box{k}", box=(0.2, 0.2, 0.2), position=(0, 0, 0.1007 + 0.2007 * k), material="stone")
    scene.add_body("arm", box=(1, 0.1, 0.1), position=(5, 0, 2))
    scene.add_hinge("pivot", "world", "arm", anchor=(4.5, 0, 2), axis=(0, 1, 0), enforcement="exact")
    return scene


def test_a_settled_scene_is_recorded_once():
    recorded = simulation(rest(), True)
    device, records = recorded.backend.device, recorded.backend.iteration.graphs
    for _ in range(25):
        recorded.step()
    generation, made, replayed = device.generation, records.recorded, records.replayed
    for _ in range(25):
        recorded.step()
    assert (device.generation, records.recorded) == (generation, made)
    assert records.replayed >= replayed + 25


def test_a_record_serves_steps_of_any_length():
    direct, recorded = pair(rest())
    for _ in range(20):
        step_both(direct, recorded)
    for h in (3e-3, 7e-3, 1e-4, 2e-2):
        for each in (direct, recorded):
            each.stepper.substeps.take(h, Progress())
        assert_same_state(direct, recorded)
    kept = [key[0] for key in recorded.backend.iteration.graphs._kept]
    assert kept.count("iteration") == kept.count("start") == 1


def test_records_outlive_patterns_that_one_range_serves():
    device = Device("cpu", records=True)
    schedule, generations = RangesOfPanels(device), []
    for pairs in ([(0, 1)], [(0, 1), (1, 2)], [(0, 2), (2, 3)]):
        elimination = Elimination(4, *np.array(pairs).T)
        schedule.follow(elimination, *elimination.fill())
        generations.append(device.generation)
    assert schedule.ranges == 1 and generations == [generations[0]] * 3


@pytest.mark.parametrize("scene", [rest, lambda: pile(DIRECT), lambda: pile(PCG), apart])
def test_the_host_looks_once_per_iteration(scene):
    recorded = simulation(scene(), True)
    iteration = recorded.backend.iteration
    recorded.step()  # the first one tries others
    reads = iteration.reads
    more = [counted(iteration, name) for name in ("_renew", "_make_room")]
    count = sum(recorded.step().newton_iterations for _ in range(12))
    assert iteration.reads - reads == count + sum(map(len, more))


def test_what_an_iteration_reads():
    """One array, once; and where the list is renewed that it fits, its pairs, and the array once more."""
    recorded = simulation(rest(), True)
    for _ in range(4):
        recorded.step()
    device, iteration = recorded.backend.device, recorded.backend.iteration
    run, read, inside, arrays = iteration.run, device.read, [], []

    def running(progress):
        inside.append(True)
        try:
            return run(progress)
        finally:
            inside.pop()

    def reading(array, count=None):
        if inside:
            arrays.append(array)
        return read(array, count)

    iteration.run, device.read = running, reading
    renewals = counted(iteration, "_renew")
    count = sum(recorded.step().newton_iterations for _ in range(5))
    assert len(renewals) <= 5 and len(arrays) == count + 4 * len(renewals)
    assert sum(array is iteration.status for array in arrays) == count + len(renewals)


@pytest.mark.parametrize("scene", [lambda: pile(DIRECT), lambda: pile(PCG), lambda: links(3, "exact")])
def test_who_watches_sees_the_same(scene):
    plain, watched = simulation(scene(), True), simulation(scene(), True)
    with Launches(watched.backend.device) as launches:
        for _ in range(9):
            reports = plain.step(), watched.step()
            assert_same_state(plain, watched)
            assert all(getattr(reports[0], name) == getattr(reports[1], name) for name in COUNTS)
    assert watched.backend.iteration.graphs.recorded == 0 < plain.backend.iteration.graphs.recorded
    assert any(work.name == "newton.end_iteration" for work in launches.works())


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


def test_an_interrupted_trial_leaves_nothing_behind(monkeypatch):
    """Contacts are not settled by the bounds of a path that was given up."""
    monkeypatch.setattr(backends, "SMALL", 0)
    sim, other = (abd.Simulation(stack_of_two(), device="cpu") for _ in range(2))
    for each in (sim, other):
        each.step()
    saved = sim.checkpoint()
    potential = sim.backend.potential
    evaluate = potential.bodies.evaluate

    def interrupted(at, slot):
        if slot == "trial":
            raise KeyboardInterrupt
        evaluate(at, slot)

    with patch.object(potential.bodies, "evaluate", interrupted), pytest.raises(KeyboardInterrupt):
        sim.step()
    assert potential.at.along is None
    for each in (sim, other):
        each.restore(saved)
        each.step()
    assert sim.stepper.q.tobytes() == other.stepper.q.tobytes()


def test_a_factor_that_was_too_large_is_not_missed_after_a_restore(monkeypatch):
    monkeypatch.setattr(solver_choice, "MOST_BYTES", 1)
    sim = abd.Simulation(stack_of_two({"linear_solver": "direct"}), device="cpu")
    for _ in range(3):
        sim.step()
    saved = sim.checkpoint()
    sim.step()
    again = abd.Simulation(stack_of_two({"linear_solver": "direct"}), device="cpu")
    again.restore(saved)
    again.step()
    assert again.stepper.q.tobytes() == sim.stepper.q.tobytes()


def stack_of_two(solver: dict | None = None) -> abd.Scene:
    """Two boxes that come down on a plate."""
    scene = abd.Scene(solver=solver or {})
    scene.add_body("plate", box=(1, 1, 0.1), kind="static", position=(0, 0, -0.05))
    for k in range(2):
        scene.add_body(f"box {k}", box=(0.1, 0.1, 0.1), density=1000, position=(0, 0, 0.052 + 0.102 * k))
    return scene
