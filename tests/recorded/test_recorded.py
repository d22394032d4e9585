"""Recorded steps have the states and counts of steps that are launched kernel by kernel."""

import threading
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from common_scenes import hinged_bars, on_ground, pinched, sleepers

import abd
from abd import backends
from abd.backends.device import graphs
from abd.backends.warp import on_warp as small
from abd.backends.warp.on_warp import WarpBackend
from abd.errors import StepFailure

COUNTS = ("newton_iterations", "line_search_trials", "linear_iterations", "substeps", "contacts")


def simulation(scene, records: bool) -> abd.Simulation:
    """Create a simulation on the processor with direct launches or records."""
    create = patch.object(backends, "create", lambda model, device: WarpBackend(model, "cpu", records))
    # record at the second execution, for any size
    with create, patch.object(graphs, "PATIENCE", 1), patch.object(small, "SMALL", small.SMALL if records else 0):
        return abd.Simulation(scene, device="cpu")


def pair(scene) -> tuple[abd.Simulation, abd.Simulation]:
    """Create simulations with direct launches and with records."""
    return simulation(scene, False), simulation(scene, True)


def assert_same_step(direct: abd.Simulation, recorded: abd.Simulation, within: float = 0.0, counts=COUNTS):
    """Advance both by a step; assert equal counts and states, or the same failure; return the reports or the failures.

    States are equal to `within` of their largest entry, velocities also to that of the change by gravity in a step.
    """
    outcome = [_step(each) for each in (direct, recorded)]
    if isinstance(outcome[0], StepFailure):
        assert isinstance(outcome[1], StepFailure), f"only the direct step failed: {outcome[0]}"
        assert outcome[1].reason == outcome[0].reason
        assert outcome[1].bodies == outcome[0].bodies
    else:
        if isinstance(outcome[1], StepFailure):
            raise outcome[1]
        for name in counts:
            assert getattr(outcome[1], name) == getattr(outcome[0], name), (name, direct.frame)
    change = np.linalg.norm(direct.model.settings.gravity) * direct.model.settings.dt
    for name, least in (("q", 1e-300), ("qd", max(change, 1e-300))):
        expected, found = getattr(direct.stepper, name), getattr(recorded.stepper, name)
        difference = np.abs(found - expected).max(initial=0.0)
        assert difference <= within * np.abs(expected).max(initial=least), (name, direct.frame, difference)
    return outcome


def _step(simulation: abd.Simulation):
    try:
        return simulation.step()
    except StepFailure as failure:
        return failure


DIRECT, PCG = {"linear_solver": "direct"}, {"linear_solver": "pcg"}
SCENES = Path(__file__).parents[2] / "scenes"
DECISIONS = tuple(name for name in COUNTS if name != "linear_iterations")
"""Counts that do not depend on which linear solver was chosen."""
ROUNDING = 1e-9
"""Where a factor takes in pairs that are near but do not touch, its sums run in another order."""


def links(count: int = 4, enforcement: str = "penalty", solver=None, floor: float | None = None, **keys) -> abd.Scene:
    """Hinged bars with the keys of all hinges, above a floor at a height [m]."""
    scene = hinged_bars(count, enforcement, solver, **keys)
    if floor is not None:
        scene.add_body("floor", half_space={"offset": floor})
    return scene


PD = {"mode": "pd", "target": 0.5, "stiffness": 200.0, "damping": 5.0, "effort": 3.0}


def pile(solver=None, boxes: int = 8, mu: float = 0.4) -> abd.Scene:
    """Turned boxes that fall onto one another and onto the ground."""
    random = np.random.default_rng(4)
    scene = on_ground(mu, dt=0.01, d_hat=1e-3, **(solver or {}))
    for k in range(boxes):
        place = [0.3 * (k % 2), 0.3 * (k // 2 % 2), 0.2 + 0.3 * (k // 4)]
        turn = {"axis": random.normal(size=3).tolist(), "degrees": float(random.uniform(0, 60))}
        scene.add_body(f"box {k}", box=[0.2, 0.2, 0.2], position=place, axis_angle=turn, velocity=(0, 0, -1))
    return scene


ALL_LAWS = {"drive": PD, "friction": 0.5, "range": (-0.2, 0.1), "armature": 0.1, "damping": 0.2, "stiffness": 1.0}
SPEED = {"drive": {"mode": "velocity", "target": 1.0, "effort": 4.0}, "friction": 0.5}
SHIPPED = {"box_stack": 4, "chain_net": 2, "falling_box": 30, "gear_train": 6, "incline": 6, "ragdoll": 6}
CASES = {
    # name: scene, steps, largest relative difference
    **{name: (partial(abd.load, SCENES / f"{name}.toml"), steps, ROUNDING) for name, steps in SHIPPED.items()},
    **{
        f"chain, {mode}, {rule}": (partial(links, 4, mode, {"integrator": rule}), 12, 0.0)
        for mode in ("penalty", "exact", "compliant") for rule in ("bdf1", "generalized_alpha")
    },
    **{
        f"{name}, {mode}": (partial(links, 3, mode, coordinate={"theta": keys}), 20, 0.0)
        for mode in ("penalty", "exact") for name, keys in (("all laws", ALL_LAWS), ("velocity drive", SPEED))
    },
    "pile": (partial(pile, DIRECT), 12, ROUNDING),
    "pile, friction iterations": (partial(pile, {**DIRECT, "friction_iterations": 3}), 12, ROUNDING),
    "pile, friction in balance": (partial(pile, {**DIRECT, "friction_iterations": -1, "tolerance": 1e-2}), 12, ROUNDING),
    "chain on the floor, penalty": (partial(links, 4, "penalty", PCG, floor=-0.3), 40, 0.0),
    "chain on the floor, exact": (partial(links, 4, "exact", PCG, floor=-0.3), 40, 0.0),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_states_and_counts_are_the_same(name):
    make, steps, within = CASES[name]
    both = pair(make())
    for _ in range(steps):
        assert_same_step(*both, within)


@pytest.mark.parametrize("friction_iterations", [1, 2])
def test_sleeping_islands_wake_up(friction_iterations):
    """A moving body hits a sleeping island, which takes part within the iteration."""
    scene = sleepers(-1.3, friction_iterations=friction_iterations)
    direct, recorded = pair(scene)
    slept = []
    for _ in range(28):
        assert_same_step(direct, recorded, ROUNDING, DECISIONS)
        np.testing.assert_array_equal(recorded.backend.inactive.sleeping, direct.backend.inactive.sleeping)
        slept.append(int(direct.backend.inactive.sleeping.sum()))
    assert max(slept) == 2 and slept[-1] == 1


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
    """Substeps are the same, and the state after a failure is the one before."""
    direct, recorded = pair(scene())
    substeps = []
    for _ in range(steps):
        before = recorded.checkpoint()
        report, _ = assert_same_step(direct, recorded, ROUNDING)
        if isinstance(report, StepFailure):
            assert report.reason == reason
            for key, value in recorded.checkpoint().items():
                np.testing.assert_equal(value, before[key])
            return
        substeps.append(report.substeps)
    assert reason is None
    assert max(substeps) > 1 or direct.backend.friction.enabled


def lock_and_drive(sim: abd.Simulation) -> None:
    sim.joints["hinge1"].coordinate().lock()
    sim.joints["hinge2"].coordinate().set_target(0.3)
    sim.joints["hinge0"].coordinate().apply_force(0.5)


def release(sim: abd.Simulation) -> None:
    sim.joints["hinge1"].coordinate().unlock()
    sim.joints["hinge2"].active = False
    sim.joints["hinge0"].coordinate().set_range(-1.0, 1.0)


def lift(sim: abd.Simulation) -> None:
    q = sim.stepper.q.copy()
    q[:, 2] += 0.5
    sim.joints["hinge0"].active = False
    sim.move_to(q)


def test_a_solve_that_fails_from_the_first_iteration_on_is_reported():
    """No iteration corrects the joints, so that the recorded one contains launches that have not run yet."""
    simulation = abd.Simulation(links(1, "exact", coordinate={"theta": {"stiffness": 1e30}}), device="cpu")
    with pytest.raises(StepFailure, match="pivot"):
        simulation.run(steps=5)


def test_joints_change_while_running():
    both = pair(links(3, "exact"))
    for change in (lambda sim: None, lock_and_drive, release, lift):
        for each in both:
            change(each)
        for _ in range(4):
            assert_same_step(*both)
    assert [joint.active for joint in both[1].joints.values()] == [False, True, False]


AT_ONCE = (lambda: pile({"linear_solver": "direct"}), lambda: links(6, "exact"), lambda: pile(PCG, boxes=7))


def end_of(number: int, ends: list, device: str, steps: int) -> None:
    """Where a scene is after so many steps that it is recorded."""
    sim = abd.run(AT_ONCE[number](), steps=steps, device=device)
    ends[number] = sim.stepper.q.copy(), sim.backend.graphs.recorded + sim.backend.whole.taken


@pytest.mark.parametrize(("device", "steps"), [("cpu", 30), ("emulated", 12)])
def test_threads_can_record_concurrently(device, steps):
    """On CUDA threads share a stream, in which only one may record at a time."""
    alone, together = [None] * len(AT_ONCE), [None] * len(AT_ONCE)
    for number in range(len(AT_ONCE)):
        end_of(number, alone, device, steps)
    threads = [threading.Thread(target=end_of, args=(number, together, device, steps)) for number in range(len(AT_ONCE))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for (q, recorded), (other, also) in zip(alone, together, strict=True):
        assert recorded > 0 and also == recorded
        np.testing.assert_array_equal(q, other)
