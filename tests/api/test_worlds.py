"""Replicated scenes: each world equals a single run and is reset separately."""

from dataclasses import fields

import numpy as np
import pytest
from common_scenes import on_ground
from world_scenes import (
    BODIES,
    HINGES,
    add_feature,
    armed,
    assert_same_work,
    heap,
    pile,
    side_by_side,
    step_and_compare,
    swinging,
    tumbling,
    with_feature,
)

import abd
from abd.backends.warp import on_warp as small_scenes
from abd.errors import SceneError, StepFailure
from abd.step import verdict

DT = (0.01, 0.005, 0.0075)


@pytest.mark.parametrize(
    ("device", "dt", "worlds", "boxes", "steps"),
    [
        ("cpu", None, 6, 3, 25),
        ("cpu", None, 7, 3, 16),
        ("numpy", None, 2, 2, 7),
        ("cpu", DT, 3, 3, 24),
        ("numpy", DT, 2, 2, 10),
    ],
)
def test_world_equals_a_single_run_bitwise(monkeypatch, device, dt, worlds, boxes, steps):
    """Worlds with different impacts, sliding, substeps and time steps equal single runs, recorded (6 worlds) and launched one
    by one (7 worlds)."""
    if worlds > 6:
        monkeypatch.setattr(small_scenes, "SMALL", boxes + 1)
        monkeypatch.setattr(small_scenes, "MOST", boxes + 1)
    monkeypatch.setattr(verdict, "FAR", 0.05 if dt else 0.5)  # slower contacts shorten steps
    scenes = [tumbling(k + 2, boxes) for k in range(worlds)]
    many, alone = side_by_side(scenes, device, dt=dt and dt[:worlds])
    reports = step_and_compare(many, alone, steps)
    assert many.time == pytest.approx(0.01 * steps)
    assert sum(report.contacts > 0 for report in reports) >= 2
    assert device == "numpy" or any(report.substeps > 1 for report in reports)
    if not dt:  # contact stiffness changes at other times
        assert_same_work(many, alone, {"friction": 1e-12, "integration": 1e-3})


@pytest.mark.parametrize("seeds", [(18, 62), (45, 26)])
def test_substeps_of_a_world_do_not_affect_other_worlds(monkeypatch, seeds):
    monkeypatch.setattr(verdict, "FAR", 0.1)  # slower contacts shorten steps
    many, alone = side_by_side([heap(seed) for seed in seeds], "cpu")
    uneven = 0
    for _ in range(26):
        together, substeps = many.step().substeps, [one.step().substeps for one in alone]
        np.testing.assert_array_equal(many.stepper.q.reshape(2, -1, 12), [one.stepper.q for one in alone])
        assert together == max(substeps)
        uneven += max(substeps) > min(substeps)
    assert uneven


@pytest.mark.parametrize(("device", "mu"), [("cpu", 0.0), ("cpu", 0.4), ("numpy", 0.4)])
def test_distant_prescribed_body_changes_no_bit_of_any_world(device, mu):
    """A box tumbles in one world and in two, with and without a distant kinematic body at rest."""

    def scene(has_rest: bool) -> abd.Scene:
        out = on_ground(dt=0.01)
        out.add_material("default", mu=mu)
        box = {"position": (0, 0, 0.15), "velocity": (1, 0.2, -1), "angular_velocity": (1, 2, 3)}
        out.add_body("box", box=(0.2, 0.2, 0.1), **box)
        if has_rest:
            rest = {"kind": "kinematic", "motion": {"velocity": (0, 0, 0)}}
            out.add_body("rest", box=(1, 1, 0.1), position=(-30, 0, 5), **rest)
        return out

    plain, one, two = (abd.Simulation(each, device=device) for each in (scene(False), scene(True), scene(True).replicate(2)))
    for _ in range(12 if device == "cpu" else 6):
        reports = [each.step() for each in (plain, one, two)]
        q = plain.stepper.q
        np.testing.assert_array_equal(one.stepper.q[:2], q)
        np.testing.assert_array_equal(two.stepper.q.reshape(2, 3, 12)[:, :2], [q, q])
        assert len({report.newton_iterations for report in reports}) == 1


@pytest.mark.parametrize(
    ("device", "dt", "steps", "wrist", "others"),
    [
        ("cpu", None, 24, {"range_deg": (-20, 20), "limit_restitution": 0.5}, {}),
        ("cpu", None, 12, {"friction": 0.3, "armature": 0.01}, {}),
        ("cpu", None, 12, {"stiffness": 3.0, "damping": 0.01}, {"enforcement": "penalty"}),
        ("numpy", None, 7, {"friction": 0.1}, {"integrator": "bdf1"}),
        ("cpu", DT, 17, {"range_deg": (-20, 20), "limit_restitution": 0.5}, {}),
        ("cpu", DT, 9, {"friction": 0.3, "armature": 0.01}, {}),
        ("numpy", DT, 5, {"stiffness": 3.0, "damping": 0.01}, {"enforcement": "penalty"}),
    ],
)
def test_worlds_with_joints_and_substeps_equal_single_runs(monkeypatch, device, dt, steps, wrist, others):
    """This holds with drives by their own times, limits, friction, rotors and springs."""
    if not dt:
        monkeypatch.setattr(verdict, "FAR", 0.05)  # slower contacts shorten steps
    worlds = range(3) if dt or device == "cpu" else (4, 5)
    scenes = [armed(k, wrist, **others) for k in worlds]
    many, alone = side_by_side(scenes, device, ("shoulder",), dt)
    reports = step_and_compare(many, alone, steps)
    if not dt:
        assert any(report.substeps > 1 for report in reports)
        assert_same_work(many, alone, dict.fromkeys(("drive", "friction", "integration"), 1e-7))


@pytest.mark.parametrize(
    ("device", "kind", "other", "dt", "steps"),
    [
        *(("cpu", "stack", other, (0.005, 0.005), 2) for other in (*HINGES, *BODIES)),
        *(("cpu", kind, other, (0.005, 0.005), 5) for kind in ("fall", "arm") for other in ("position drive", *BODIES)),
        *(("cpu", "arm", other, (0.004, 0.005), 5) for other in ("exact", "substeps")),
        ("cpu", "prescribed", "substeps", (0.005, 0.005), 5),
        ("numpy", "stack", "exact", (0.005, 0.005), 1),
    ],
)
def test_features_of_one_world_do_not_affect_another(device, kind, other, dt, steps):
    """Defaults, search distances and decisions of Newton's method are those of a world."""
    scene = with_feature(kind)
    add_feature(scene, other, world=1)
    both, alone = abd.Simulation(scene, device=device), abd.Simulation(with_feature(kind), device=device)
    both.worlds.dt, alone.worlds.dt, n = dt, dt[0], len(alone.model.bodies)
    for step in range(steps):
        both.step()
        alone.step()
        for found, there in ((both.stepper.q, alone.stepper.q), (both.stepper.qd, alone.stepper.qd)):
            np.testing.assert_array_equal(found[:n], there, err_msg=f"step {step}")


@pytest.mark.parametrize("dt", [0.01, (0.01, 0.01, 0.005, 0.0075)])
def test_failed_world_stops_and_others_continue(dt):
    failing, well = (abd.Simulation(scene, device="cpu") for scene in (swinging(4, 1), swinging(4)))
    failing.worlds.dt = well.worlds.dt = dt
    stays = [failing.stepper.q.reshape(4, -1, 12)[1].copy(), failing.stepper.qd.reshape(4, -1, 12)[1].copy()]
    report = failing.step()
    well.step()
    assert list(report.stopped) == [1] and "2 Newton iterations" in report.stopped[1] and failing.stopped_worlds == [1]
    saved = failing.checkpoint()
    for step in range(8):
        found, expected = (one.stepper.q.reshape(4, -1, 12) for one in (failing, well))
        np.testing.assert_array_equal([found[1], failing.stepper.qd.reshape(4, -1, 12)[1]], stays)
        for world in (0, 2, 3):
            np.testing.assert_array_equal(found[world], expected[world], err_msg=f"step {step}, world {world}")
        assert not failing.step().stopped
        well.step()
    assert failing.worlds.time[1] == 0.0 and (failing.worlds.time[[0, 2, 3]] == well.worlds.time[[0, 2, 3]]).all()
    failing.restore(saved)
    assert failing.stopped_worlds == [1]
    failing.reset(worlds=[1])
    assert failing.stopped_worlds == [] and list(failing.step().stopped) == [1]


def test_step_fails_if_all_worlds_fail():
    simulation = abd.Simulation(swinging(2, 0, 1), device="cpu")
    before = simulation.stepper.q.copy()
    with pytest.raises(StepFailure, match="2 Newton iterations"):
        simulation.step()
    np.testing.assert_array_equal(simulation.stepper.q, before)
    assert simulation.stopped_worlds == []


@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1"])
def test_reset_worlds_equal_a_fresh_simulation(integrator):
    """Contact parameters and prescribed motions at the start are the same, and there is no history."""
    scene = on_ground(0.5, dt=0.01, integrator=integrator)
    scene.add_body("box", box=(1, 1, 1), position=(0, 0, 0.50001))
    scene.add_body("ball", sphere={"radius": 0.1}, position=(2, 0, 3), velocity=(1, 0, 0))
    scene.add_body("piston", box=(0.1,) * 3, position=(0, -2, 1), kind="kinematic", motion={"velocity": (0, 0.5, 0)})
    reset, fresh = (abd.Simulation(scene.replicate(2), device="cpu") for _ in range(2))
    reset.run(steps=5)
    reset.bodies["w1_piston"].move_to(position=(0, -1, 2), duration=1.0)
    reset.reset(worlds=np.array([False, True]))
    for _ in range(4):
        for one in (reset, fresh):
            one.step()
        np.testing.assert_array_equal(reset.stepper.q[4:], fresh.stepper.q[4:])
        assert reset.stepper.q[1, 0] == pytest.approx(0.0, abs=1e-6) and reset.stepper.q[2, 0] > 2.05
    assert reset.bodies["w0_piston"].position[1] == pytest.approx(-2 + 0.5 * 0.09)


def test_copies_keep_couplings_filters_and_materials():
    scene = pile()
    scene.add_body("second", box=(0.5, 0.05, 0.05), position=(2.25, 1, 1))
    scene.add_hinge("other", "rod", "second", anchor=(2, 0.5, 1), axis=(0, 1, 0))
    scene.add_contact_filter("box0", "box1")
    scene.add_coupling("gear", "other.theta", terms=[{"coordinate": "pivot.theta", "factor": 2.0}])
    twice = scene.replicate(2)
    assert [twice.joint(f"w{world}_pivot").parent for world in range(2)] == ["world", "world"]
    assert twice.joint("w1_other").parent == "w1_rod" and twice.joint("w1_other").child == "w1_second"
    assert twice.coupling("w1_gear").coordinate == "w1_other.theta"
    assert twice.coupling("w1_gear").terms[0].coordinate == "w1_pivot.theta"
    assert twice.spec.contact_filter[1].bodies == ["w1_box0", "w1_box1"]
    assert twice.body("w1_box2").world == 1 and not twice.check()
    assert twice.replicate(2).body("w1_w1_box2").world == 3


def kinds() -> abd.Scene:
    """Bodies of every kind, and joints with settings."""
    scene = on_ground(name="kinds", dt=0.01)
    scene.add_body("ball", sphere={"radius": 0.1}, position=(0, 0, 2), velocity=(1, 0, 0), fix=["x"])
    scene.add_body("twin", sphere={"radius": 0.1}, position=(1, 0, 2), velocity=(1, 0, 0), fix=["x"])
    scene.add_body("row", box=(0.1,) * 3, position=(5, 0, 1), repeat={"count": (2, 1, 2), "step": (0.3, 0, 0.4)})
    scene.add_body("wall", box=(0.1, 3, 0.1), kind="static", position=(-3, 0, 3))
    scene.add_body("piston", box=(0.1,) * 3, kind="kinematic", position=(3, 3, 3), motion={"velocity": (1, 0, 0)})
    scene.add_body("bar", box=(1, 0.1, 0.1), position=(9, 9, 9), linear_damping=2.0, inertial_damping=0.1)
    scene.add_hinge("pivot", abd.WORLD, "bar", anchor=(8.5, 9, 9), axis=(0, 1, 0), range=(-1, 1), friction=0.1)
    scene.add_hinge("link", "row_0_0_0", "row_0_0_1", anchor=(5, 0, 1.2), axis=(0, 1, 0))
    return scene


def test_copies_are_compiled_as_the_original_scene():
    scene = kinds()
    single, many = scene.compile(), scene.replicate(3).compile()
    for column in fields(single.bodies):
        own, all_own = (getattr(model.bodies, column.name) for model in (single, many))
        for world in range(3 if column.name not in ("names", "world") else 0):
            np.testing.assert_array_equal(all_own[world * len(single.bodies) :][: len(single.bodies)], own, err_msg=column.name)
    assert sorted(many.motions) == [body + len(single.bodies) * world for world in range(3) for body in single.motions]
    joints = [[one for one in many.joints if one.name.removeprefix("damping of ").startswith(f"w{k}_")] for k in range(3)]
    for world, theirs in enumerate(joints):
        for one, own in zip(theirs, single.joints, strict=True):
            shift = len(single.bodies) * world
            assert (one.child, one.parent) == (own.child + shift, own.parent + shift if own.parent >= 0 else own.parent)
            assert one.coordinates == own.coordinates and one.parameters == own.parameters
            np.testing.assert_array_equal(one.child_frame, own.child_frame)
    assert any("body 'w0_ball' (and 5 more): the part of its velocity" in note for note in many.notes)


def test_a_copy_that_is_changed_differs_from_the_others():
    scene = kinds()
    scene.replicate(2).body("w1_ball").sphere.radius = 0.3
    many = scene.replicate(3)
    many.body("w1_ball").sphere.radius, many.body("w1_ball").position = 0.2, (0, 1, 2)
    many.body("w2_twin").fix.append("y")
    many.joint("w1_pivot").friction = 0.2
    model = many.compile()
    columns = model.bodies.radius, model.bodies.free_translation
    radius, free = (dict(zip(model.bodies.names, values, strict=True)) for values in columns)
    assert [radius[f"w{k}_ball"] for k in range(3)] == [0.1, 0.2, 0.1] and scene.body("ball").sphere.radius == 0.1
    assert [free[f"w{k}_twin"].tolist() for k in (1, 2)] == [[False, True, True], [False, False, True]]
    friction = {one.name: one.coordinates[0].friction for one in model.joints if one.name.endswith("pivot")}
    assert friction == {"w0_pivot": 0.1, "w1_pivot": 0.2, "w2_pivot": 0.1}


def test_equal_problems_of_copies_are_reported_once():
    scene = kinds()
    scene.add_body("thread", surface={"vertices": [(0, 0, 0), (1, 0, 0)], "edges": [(0, 1)]}, position=(0, 0, 20), mass=1.0)
    with pytest.raises(SceneError, match=r"body 'w0_thread' \(and 2 more\): it has no inertia about its line") as caught:
        scene.replicate(3).compile()
    assert len(caught.value.problems) == 1


def test_worlds_whose_velocities_violate_joints_start_as_single_runs():
    def links(speed: float) -> abd.Scene:
        scene = abd.Scene()
        for k in range(3):
            parent = f"link{k - 1}" if k else abd.WORLD
            scene.add_body(f"link{k}", box=(0.2, 0.05, 0.05), position=(0.1 + 0.2 * k, 0, 0), velocity=(speed, 0.2 * k, 0.1))
            scene.add_spherical(f"ball{k}", parent, f"link{k}", anchor=(0.2 * k, 0, 0))
        return scene

    many = links(0.0).replicate(2)
    for world, speed in enumerate((0.3, 0.6)):
        for k in range(3):
            many.body(f"w{world}_link{k}").velocity = (speed, 0.2 * k, 0.1)
    found = abd.Simulation(many, device="cpu").stepper.qd.reshape(2, 3, 12)
    for world, speed in enumerate((0.3, 0.6)):
        np.testing.assert_array_equal(found[world], abd.Simulation(links(speed), device="cpu").stepper.qd)


@pytest.mark.parametrize(("gap", "speed", "others"), [(1e-9, 0.0, (1e-2, 0.0)), (0.0, 1e-8, (0.0, 1.0))])
def test_corrections_of_one_world_do_not_change_another(gap, speed, others):
    """Residuals and rates within the tolerances of a start stay as they are."""

    def start(*worlds: tuple[float, float]) -> np.ndarray:
        scene, frame = abd.Scene(), {"child_anchor": (-0.25, 0, 0), "parent_axis": (0, 1, 0), "child_axis": (0, 1, 0)}
        for world, (gap, speed) in enumerate(worlds):
            motion = {"velocity": (speed, 0, -0.25), "angular_velocity": (0, 1, 0)}
            rod = scene.add_body(f"rod{world}", box=(0.5, 0.05, 0.05), position=(0.25, 0, 0), world=world, **motion)
            scene.add_hinge(f"hinge{world}", abd.WORLD, rod, parent_anchor=(gap, 0, 0), enforcement="exact", **frame)
        bodies = scene.compile().bodies
        return np.concatenate([bodies.q[0], bodies.qd[0]])

    np.testing.assert_array_equal(start((gap, speed), others), start((gap, speed)))
