"""Recorded steps have the bits and counts of steps that are launched kernel by kernel."""

from pathlib import Path

import numpy as np
import pytest
from executors import COUNTS, assert_same_state, assert_same_step, assert_same_steps, pair, simulation

import abd
from abd.errors import StepFailure

DIRECT, PCG = {"linear_solver": "direct"}, {"linear_solver": "pcg"}
SCENES = Path(__file__).parents[2] / "scenes"
DECISIONS = tuple(name for name in COUNTS if name != "linear_iterations")
"""Counts that do not depend on which linear solver was chosen."""
ROUNDING = 1e-9
"""Where a factor takes in pairs that are near but do not touch, its sums run in another order."""


@pytest.mark.parametrize(
    ("name", "steps"),
    [("box_stack", 4), ("chain_net", 2), ("falling_box", 30), ("gear_train", 6), ("incline", 6), ("ragdoll", 6)],
)
def test_shipped_scenes(name, steps):
    direct, recorded = pair(abd.load(SCENES / f"{name}.toml"))
    for _ in range(steps):
        assert_same_step(direct, recorded, ROUNDING)


def links(count: int = 4, enforcement: str = "penalty", solver=None, **keys) -> abd.Scene:
    """Bars of 1 m on hinges about y, hanging from the world, horizontal at the start; keys of all hinges."""
    scene = abd.Scene(solver={"dt": 0.01, **(solver or {})})
    compliance = {"linear_compliance": 1e-6, "rotary_compliance": 1e-6} if enforcement == "compliant" else {}
    for k in range(count):
        scene.add_body(f"bar{k}", box=(1, 0.1, 0.1), mass=1.0, position=(k + 0.5, 0, 0))
        scene.add_hinge(
            f"hinge{k}", f"bar{k - 1}" if k else "world", f"bar{k}", anchor=(k, 0, 0), axis=(0, 1, 0),
            enforcement=enforcement, **compliance, **keys,
        )  # fmt: skip
    return scene


PD = {"mode": "pd", "target": 0.5, "stiffness": 200.0, "damping": 5.0, "effort": 3.0}


@pytest.mark.parametrize("enforcement", ["penalty", "exact", "compliant"])
@pytest.mark.parametrize("integrator", ["bdf1", "bdf2"])
def test_chains(enforcement, integrator):
    assert_same_steps(links(4, enforcement, {"integrator": integrator}), 12)


@pytest.mark.parametrize(
    "keys",
    [
        {"range": (-0.2, 0.1)},
        {"friction": 2.0},
        {"drive": PD},
        {"drive": {"mode": "velocity", "target": 1.0, "effort": 4.0}, "friction": 0.5},
        {"drive": PD, "friction": 0.5, "range": (-0.2, 0.1), "armature": 0.1, "damping": 0.2, "stiffness": 1.0},
    ],
)
@pytest.mark.parametrize("enforcement", ["penalty", "exact"])
def test_laws_of_coordinates(keys, enforcement):
    assert_same_steps(links(3, enforcement, coordinate={"theta": keys}), 20)


def pile(solver=None, boxes: int = 8, mu: float = 0.4) -> abd.Scene:
    """Turned boxes that fall onto one another and onto the ground."""
    random = np.random.default_rng(4)
    scene = abd.Scene(solver={"dt": 0.01, "d_hat": 1e-3, **(solver or {})})
    scene.add_material("stone", mu=mu)
    scene.add_body("floor", half_space={}, material="stone")
    for k in range(boxes):
        place = [0.3 * (k % 2), 0.3 * (k // 2 % 2), 0.2 + 0.3 * (k // 4)]
        turn = {"axis": random.normal(size=3).tolist(), "degrees": float(random.uniform(0, 60))}
        scene.add_body(
            f"box {k}", box=[0.2, 0.2, 0.2], position=place, axis_angle=turn, material="stone", velocity=(0, 0, -1)
        )
    return scene


@pytest.mark.parametrize(
    "solver",
    [
        {"linear_solver": "direct"},
        {"linear_solver": "direct", "friction_iterations": 3},
        {"linear_solver": "direct", "friction_iterations": -1, "tolerance": 1e-2},
        {"linear_solver": "direct", "integrator": "bdf2"},
    ],
)
def test_piles(solver):
    direct, recorded = pair(pile(solver))
    for _ in range(12):
        assert_same_step(direct, recorded, ROUNDING)
    assert recorded.backend.contacts.candidates.builds > 12


@pytest.mark.parametrize("enforcement", ["penalty", "exact"])
def test_conjugate_gradients_behind_a_factor_of_the_joints(enforcement):
    """Bars that fall onto the floor: contacts come, which the factor does not hold."""
    scene = links(4, enforcement, PCG)
    scene.add_body("floor", half_space={"offset": -0.3})
    direct, _ = assert_same_steps(scene, 40)
    assert direct.linear_solver["name"] == "pcg, block Cholesky of bodies and joints"


def pinched(mode: str, **solver) -> abd.Scene:
    """A kinematic ram drives a loose box against a wall."""
    scene = abd.Scene(gravity=(0.0, 0.0, 0.0), solver={"kinematic_block": mode, **solver})
    scene.add_body("wall", kind="static", box=(0.1, 1.0, 1.0), position=(0.5, 0.0, 0.0))
    scene.add_body("box", box=(0.1, 0.1, 0.1), position=(0.3, 0.0, 0.0))
    scene.add_body("ram", kind="kinematic", box=(0.2, 0.2, 0.2), motion={"velocity": (1.0, 0.0, 0.0)})
    return scene


def apart(**solver) -> abd.Scene:
    """Islands that converge at different iterations: falling, hitting, sliding, hanging, and one that stands still."""
    scene = abd.Scene(solver={"dt": 0.01, "d_hat": 1e-3, **solver})
    scene.add_material("stone", mu=0.5)
    scene.add_body("floor", half_space={}, material="stone")
    turn = {"axis": [1, 0.3, 0], "degrees": 20}
    scene.add_body("hitting", box=[0.4, 0.4, 0.4], position=[0, 0, 0.35], axis_angle=turn, velocity=[0, 0, -8])
    scene.add_body("falling", box=[0.4, 0.4, 0.4], position=[50, 0, 5], angular_velocity=[0, 0, 1])
    scene.add_body("still", box=[0.4, 0.4, 0.4], position=[20, 0, 0.2006], material="stone")
    scene.add_body("sliding", box=[0.4, 0.4, 0.4], position=[30, 0, 0.2006], velocity=[2, 0, 0], material="stone")
    scene.add_body("hanging", box=[0.4, 0.1, 0.1], position=[40.2, 0, 3])
    scene.add_hinge("pivot", "world", "hanging", anchor=(40, 0, 3), axis=(0, 1, 0), enforcement="exact")
    return scene


@pytest.mark.parametrize("friction_iterations", [1, 2])
def test_islands_that_sleep_are_woken(friction_iterations):
    """A runner hits a sleeper: its island is renumbered within an iteration, and takes part again."""
    solver = {"sleep_speed": 2e-3, "sleep_time": 0.1, "friction_iterations": friction_iterations}
    scene = abd.Scene(solver={"dt": 0.01, "d_hat": 1e-3, **solver})
    scene.add_material("stone", mu=0.5)
    scene.add_body("floor", half_space={}, material="stone")
    for name, x in (("near", 0.0), ("far", 40.0)):
        scene.add_body(name, box=[0.5, 0.5, 0.5], position=[x, 0, 0.2505], material="stone")
    rail = ["y", "z", "rx", "ry", "rz"]
    scene.add_body("runner", box=[0.5, 0.5, 0.5], position=[-1.3, 0, 0.5], velocity=[4, 0, 0], fix=rail)
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
    """The same substeps; and the state after a failure is the one before."""
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


@pytest.mark.parametrize(
    "scene",
    [lambda: pile(PCG), lambda: pile(DIRECT), lambda: links(3, "exact", coordinate={"theta": {"drive": PD}}), apart],
)
def test_a_checkpoint_continues_bit_for_bit(scene):
    first = simulation(scene(), True)
    first.run(steps=9)
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
        assert_same_step(direct, recorded)
    for each in (direct, recorded):
        changed(each)
    for _ in range(4):
        assert_same_step(direct, recorded)
    for each in (direct, recorded):
        each.joints["hinge1"].coordinate().unlock()
        each.joints["hinge2"].active = False
        each.joints["hinge0"].coordinate().set_range(-1.0, 1.0)
    for _ in range(4):
        assert_same_step(direct, recorded)
    q = direct.stepper.q.copy()
    q[:, 2] += 0.5
    for each in (direct, recorded):
        each.joints["hinge0"].active = False
        each.move_to(q)
    for _ in range(4):
        assert_same_step(direct, recorded)
    np.testing.assert_array_equal([joint.active for joint in recorded.joints.values()], [False, True, False])
