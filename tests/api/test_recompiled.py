"""Bodies added to and removed from a running scene; the other bodies do not change."""

import copy

import numpy as np
import pytest
from common_scenes import on_ground
from on_device import NAME

import abd
from abd.errors import SceneError

pytestmark = pytest.mark.device


def pile() -> abd.Scene:
    """Blocks that slide, rest and turn at joints."""
    scene = on_ground(0.3, "pile")
    scene.add_body("low", box=(0.3, 0.3, 0.1), position=(0, 0, 0.0502), velocity=(0.5, 0, 0))
    scene.add_body("high", box=(0.2, 0.2, 0.1), position=(0, 0, 0.1505), velocity=(0.5, 0, 0))
    scene.add_body("arm", box=(0.4, 0.05, 0.05), position=(2.2, 0, 1))
    scene.add_body("hand", box=(0.3, 0.05, 0.05), position=(2.6, 0, 1))
    scene.add_hinge("shoulder", abd.WORLD, "arm", anchor=(2, 0, 1), axis=(0, 1, 0), enforcement="exact")
    swing = {"mode": "pd", "target": "sin(3*t)", "stiffness": 20, "damping": 1}
    scene.add_hinge("elbow", "arm", "hand", anchor=(2.4, 0, 1), axis=(0, 1, 0), drive=swing, range=(-2, 2))
    return scene


def begun(device: str = NAME) -> abd.Simulation:
    sim = abd.Simulation(pile(), device=device)
    sim.bodies["hand"].apply_force((0, 0, 2.0))
    sim.run(steps=12)
    return sim


def same(one: abd.Simulation, other: abd.Simulation, names, tolerance: float) -> None:
    for name in names:
        np.testing.assert_allclose(one.bodies[name].transform, other.bodies[name].transform, atol=tolerance)
        np.testing.assert_allclose(one.bodies[name].velocity, other.bodies[name].velocity, atol=100 * tolerance)


@pytest.mark.parametrize(
    ("device", "steps", "before"), [(NAME, None, 1), (NAME, None, 0), (NAME, 6, 1)],
    ids=["steady", "jump", "of some steps"],
)  # fmt: skip
def test_recompiling_the_same_scene_continues_the_run(device, steps, before):
    """The effort has acted `before` the change, or jumps in the first step after it."""
    sim = begun(device)
    sim.joints["shoulder"].coordinate().apply_force(-2.0, steps)
    sim.run(steps=3 * before)
    other = sim.recompiled()
    assert (other.time, other.frame) == (sim.time, sim.frame)
    for _ in range(8):
        one, two = sim.step(), other.step()
        same(sim, other, sim.bodies, 1e-9)
        for name, value in one.energy.items():
            # what penalties hold is measured anew
            assert value == pytest.approx(two.energy[name], abs=1e-6 if name == "integration" else 1e-7), name
    for one, two in zip(sim.joints["elbow"].wrench(), other.joints["elbow"].wrench(), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5)


def test_adding_a_distant_body_does_not_change_the_run():
    """The run is the same although the new body changes the median size and precedes the others in the list."""
    sim = begun()
    scene = abd.Scene("more")
    scene.add_body("first", box=(8, 8, 8), position=(90, 0, 30))
    for spec in pile().spec.body:
        scene.spec.body.append(spec)
    scene.spec.joint[:], scene.spec.material[:] = pile().spec.joint, pile().spec.material
    scene.add_body("last", sphere={"radius": 0.01}, position=(0, 90, 30))
    other = sim.recompiled(scene)
    for _ in range(8):
        sim.step(), other.step()
        same(sim, other, sim.bodies, 1e-9)
    assert other.bodies["last"].position[2] == pytest.approx(30 - 0.5 * 9.81 * 0.08**2, abs=3e-3)
    assert other.time == sim.time


def test_removing_a_support_lets_its_load_fall():
    sim = begun()
    scene = pile()
    scene.spec.body[:] = [one for one in scene.spec.body if one.name not in ("low", "hand")]
    scene.spec.joint[:] = [one for one in scene.spec.joint if one.name != "elbow"]
    other = sim.recompiled(scene)
    assert list(other.bodies) == ["ground", "high", "arm"] and list(other.joints) == ["shoulder"]
    height = other.bodies["high"].position[2]
    np.testing.assert_array_equal(other.bodies["arm"].transform, sim.bodies["arm"].transform)
    other.run(steps=5)
    assert other.bodies["high"].position[2] == pytest.approx(height - 0.5 * 9.81 * 0.05**2, abs=3e-3)
    assert max(other.joints["shoulder"].residual) < 1e-7


def test_added_body_on_others_starts_in_equilibrium():
    sim = begun()
    sim.run(steps=60)
    top = sim.bodies["high"].position + np.array([0, 0, 0.1001])
    sim.scene.add_body("new", box=(0.1, 0.1, 0.1), position=top)
    other = sim.recompiled()
    assert sim.scene.body("new").name not in sim.bodies
    for _ in range(5):
        other.step()
        assert np.linalg.norm(other.bodies["new"].linear_velocity) < 2e-3
    with pytest.raises(SceneError, match="inside"):
        sim.scene.add_body("inside", box=(0.1, 0.1, 0.1), position=sim.bodies["low"].position)
        sim.recompiled()


def test_motions_and_loads_by_functions_go_on_at_the_time_of_the_run():
    sim = begun()
    sim.bodies["high"].apply_force(lambda t, body: (t, 0, 0))
    sim.scene.add_body("far", box=(1, 1, 1), position=(50, 0, 50), kind="kinematic", motion={"velocity": (10, 0, 0)})
    other = sim.recompiled()
    assert other.bodies["far"].position[0] == pytest.approx(50 + 10 * sim.time)
    for _ in range(3):
        sim.step(), other.step()
        same(sim, other, ["high"], 1e-9)


def test_copies_and_resets_of_a_recompiled_simulation():
    sim = begun()
    sim.scene.add_body("far", box=(1, 1, 1), position=(0.2, 0, 50))
    other = sim.recompiled()
    again = copy.deepcopy(other)
    other.step(), again.step()
    np.testing.assert_array_equal(other.stepper.q, again.stepper.q)
    first = other.stepper.q.copy()
    other.step()
    for one in (other, again):
        one.reset()
        assert one.time == sim.time
        one.step()
        np.testing.assert_array_equal(one.stepper.q, first)


def tugs(holder: str, kind: str = "hinge") -> abd.Scene:
    """Two tugs side by side, and a load between them that one of them holds by a joint of a kind."""
    scene = abd.Scene("tugs", gravity=(0, 0, 0), solver={"dt": 0.01})
    for k, name in enumerate(("left", "load", "right")):
        scene.add_body(name, box=(0.2, 0.2, 0.2), mass=1.0, position=(0.3 * k - 0.3, 0, 0), velocity=(0, 1, 0))
    place = {"parent_anchor": (0.15 if holder == "left" else -0.15, 0, 0)}
    place["child_anchor"] = (-place["parent_anchor"][0], 0, 0)
    turn = {"range": (-2, 2), "friction": 0.01, "enforcement": "exact"}
    scene.add_joint(kind, "hook", holder, "load", parent_axis=(0, 0, 1), child_axis=(0, 0, 1), **place, **turn)
    return scene


def test_joint_can_be_attached_to_another_body():
    sim = abd.run(tugs("left"), steps=5, device=NAME)
    other = sim.recompiled(tugs("right"))
    np.testing.assert_allclose(other.bodies["load"].transform, sim.bodies["load"].transform, atol=1e-12)
    assert other.joints["hook"].parent == "right"
    other.bodies["right"].apply_force((0, 0, 2.0))
    for _ in range(20):
        report = other.step()
        assert report.max_joint_residual[0] < 1e-7
    assert abs(other.bodies["left"].linear_velocity[2]) < 1e-9
    assert abs(other.bodies["left"].linear_velocity[1] - 1.0) < 1e-9
    shared = [other.bodies[name].linear_velocity[2] for name in ("load", "right")]
    assert sum(shared) == pytest.approx(2.0 * 0.2, rel=1e-6)
    force = np.array(other.joints["hook"].wrench()[0])
    assert np.linalg.norm(force) > 0.1


CHANGES = {
    "inactive": lambda hook: setattr(hook, "active", False),
    "locked": lambda hook: hook.theta.lock(),
    "effort": lambda hook: hook.theta.apply_force(3.0),
    "effort of some steps": lambda hook: hook.theta.apply_force(3.0, steps=9),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize(("holder", "kind"), [("right", "hinge"), ("left", "slider")])
def test_another_joint_of_the_same_name_is_as_in_its_scene(change, holder, kind):
    sim = abd.run(tugs("left"), steps=2, device="numpy")
    change(sim.joints["hook"])
    other, fresh = sim.recompiled(tugs(holder, kind)), abd.Simulation(tugs(holder, kind), device="numpy")
    other.step()
    found, expected = (one.joints["hook"].joint for one in (other, fresh))
    assert (found.active, found.coordinates) == (expected.active, expected.coordinates)


def test_another_coupling_of_the_same_name_is_active():
    one, other = pile(), pile()
    one.add_gear("gear", "shoulder", "elbow", 1.0), other.add_gear("gear", "elbow", "shoulder", 1.0)
    sim = abd.Simulation(one, device="numpy")
    sim.couplings["gear"].active = False
    assert [sim.recompiled(scene).couplings["gear"].active for scene in (one, other)] == [False, True]


def test_joints_and_springs_of_a_disabled_body_are_resumed_after_a_change():
    """The joint is a new one, and the first of three springs disappears with its body."""
    sim = abd.Simulation(tugs("left"), device="numpy")
    _, removed, _ = (sim.bodies[name].spring_to((0, 0, 1), 5.0) for name in ("left", "load", "load"))
    removed.remove()
    sim.bodies["load"].enabled = False
    scene = tugs("right")
    scene.spec.body[:] = scene.spec.body[1:]
    other = sim.recompiled(scene)
    assert not any(joint.active for joint in other.model.joints)
    other.bodies["load"].enabled = True
    assert [joint.active for joint in other.model.joints] == [True, False, True]


def slope(*order: str) -> abd.Scene:
    """Two blocks, one on the other, that stick on a slope, listed in an order."""
    scene = abd.Scene("slope", gravity=(2.0, 0.5, -9.0), solver={"dt": 0.01})
    scene.add_material("default", mu=0.5)
    bodies = {
        "ground": {"box": (2, 2, 0.1), "kind": "static", "position": (0, 0, -0.1)},
        "low": {"box": (0.3, 0.3, 0.1), "mass": 2.0, "position": (0, 0, 0.0002)},
        "high": {"box": (0.2, 0.2, 0.1), "mass": 1.0, "position": (0.02, 0, 0.1004)},
    }
    for name in order:
        scene.add_body(name, **bodies[name])
    return scene


def told_by_names(sim: abd.Simulation, table: str) -> list[tuple[str, str]]:
    names = sim.model.bodies.names
    return [(names[k // len(names)], names[k % len(names)]) for k in sim.checkpoint()["tables"][table]["key"].tolist()]


def test_reordered_bodies_keep_history_and_switches_of_their_pairs():
    """Contact stiffness and friction springs stay with their pairs."""
    sim = abd.run(slope("ground", "low", "high"), steps=40, device=NAME)
    other = sim.recompiled(slope("high", "low", "ground"))
    before, after = ({frozenset(pair) for pair in told_by_names(one, "pairs")} for one in (sim, other))
    assert before == after and len(before) == 2
    assert set(told_by_names(sim, "anchors")) == {("low", "ground"), ("low", "high")}
    assert set(told_by_names(other, "anchors")) == {("low", "ground"), ("high", "low")}
    for _ in range(5):
        sim.step(), other.step()
        same(sim, other, sim.bodies, 1e-9)
    other.pair("low", "high").enabled = False
    back = other.recompiled(slope("ground", "low", "high"))
    assert not back.pair("low", "high").enabled and back.pair("low", "ground").enabled
    other.step(), back.step()
    same(other, back, sim.bodies, 1e-9)


def cart(dt: float = 0.01, gravity: float = -9.81, ratio: float = 0.0, cart=None, hand=None, elbow=None) -> abd.Scene:
    """Two bars that swing on a cart, which moves freely unless `cart` gives other keys; a gear of a `ratio` may couple them."""
    scene = abd.Scene("cart", gravity=(0, 0, gravity), solver={"dt": dt})
    scene.add_body("cart", box=(0.1, 0.1, 0.1), **(cart or {}))
    scene.add_body("arm", box=(0.4, 0.05, 0.05), position=(0.2, 0, 0))
    turning = {"velocity": (0, 0, -1), "angular_velocity": (0, 5, 0)}
    scene.add_body("hand", box=(0.4, 0.05, 0.05), position=(0.6, 0, 0), **turning, **(hand or {}))
    scene.add_hinge("shoulder", "cart", "arm", anchor=(0, 0, 0), axis=(0, 1, 0), enforcement="exact")
    settings = {"axis": (0, 1, 0), **(elbow or {})}
    scene.add_hinge("elbow", "arm", "hand", anchor=(0.4, 0, 0), enforcement="exact", **settings)
    if ratio:
        scene.add_gear("gear", "shoulder", "elbow", ratio)
    return scene


KINEMATIC = {"kind": "kinematic", "motion": {"formulas": {"x": "0.2*sin(10*t)"}}}
SCENES = {
    # name: keys of the scene before and after the change
    "release": ({"cart": KINEMATIC}, {}), "stop": ({"cart": {"velocity": (1, 0, 0)}}, {"cart": {"kind": "static"}}),
    "mass": ({}, {"hand": {"density": 5000}}), "fixed": ({}, {"cart": {"fix": ["z"]}}), "free": ({"cart": {"fix": ["z"]}}, {}),
    "gravity": ({"cart": KINEMATIC}, {"cart": KINEMATIC, "gravity": 5.0}),
    "drive": ({}, {"elbow": {"drive": {"mode": "force", "target": 3}}}), "axis": ({}, {"elbow": {"axis": (0, 1, 0.2)}}),
    "gear": ({}, {"ratio": 1}), "ratio": ({"ratio": 1}, {"ratio": 2}), "no gear": ({"ratio": 1}, {}),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after"), SCENES.values(), ids=SCENES)
def test_changed_scenes_restart_the_integrator(before, after):
    """The step after a change is that of a simulation whose integrator is restarted, as by an assignment of gravity."""
    sim = abd.run(cart(**before), steps=11, device=NAME).recompiled(cart(**after))
    other = copy.deepcopy(sim)
    other.gravity = other.gravity
    sim.step(), other.step()
    np.testing.assert_allclose(sim.stepper.qd, other.stepper.qd, atol=1e-9)


def test_released_bodies_keep_their_momentum():
    sim = abd.run(cart(gravity=0.0, cart=KINEMATIC), steps=11, device=NAME).recompiled(cart(gravity=0.0))
    before = sum(one.mass * one.center_velocity for one in sim.bodies.values())
    assert sim.step().momentum["linear"] == pytest.approx(before, abs=1e-6)
