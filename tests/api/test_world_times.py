"""Worlds with different time steps and times equal single runs bit for bit."""

import copy

import numpy as np
import pytest
from on_device import NAME
from world_scenes import assert_same_work, pile, step_and_compare, tumbling

import abd
from abd.errors import SceneError
from abd.io.trajectory import Trajectory

DT = (0.01, 0.005, 0.0075)


def push(time: float, body) -> tuple[float, float, float]:
    return 0.0, 3.0 * np.sin(20.0 * time), 0.0


def driven(world: int, **solver) -> abd.Scene:
    """The pile with a drive and a piston that goes its way into it, at tolerances that do not follow dt."""
    scene = pile(0.2 * world)
    scene.solver.tolerance, scene.solver.friction_tolerance = 1e-3, 5e-5
    for key, value in solver.items():
        setattr(scene.solver, key, value)
    scene.add_material("default", mu=0.4, restitution=0.2)
    place = {"position": (-1, 0, 0.06), "kind": "kinematic", "motion": {"velocity": (0.5, 0, 0)}}
    scene.add_body("piston", box=(0.1, 0.1, 0.1), **place)
    return scene


def many_driven(**solver) -> abd.Scene:
    out = driven(0, **solver).replicate(len(DT), dt=DT)
    for world in range(len(DT)):
        for k in range(3):
            out.body(f"w{world}_box{k}").velocity = (0.2 * world, 0, 0)
    return out


def alone_driven(**solver) -> list[abd.Simulation]:
    return [abd.Simulation(driven(world, **solver, dt=dt), device="cpu") for world, dt in enumerate(DT)]


@pytest.mark.parametrize(
    ("solver", "steps"),
    [
        ({}, 15),
        ({"friction_iterations": -1}, 8),
        ({"linear_solver": "pcg"}, 8),
        ({"sleep_speed": 1e-2, "sleep_time": 0.02}, 30),
    ],
)
def test_joints_drives_motions_and_loads_use_the_time_of_their_world(solver, steps):
    many, alone = abd.Simulation(many_driven(**solver), device="cpu"), alone_driven(**solver)
    for world, one in enumerate(alone):
        one.bodies["box2"].apply_force(push)
        many.bodies[f"w{world}_box2"].apply_force(push)
    step_and_compare(many, alone, steps)
    for world, one in enumerate(alone):
        (theta,) = many.joints[f"w{world}_pivot"].coordinates
        assert theta == pytest.approx(one.joints["pivot"].coordinates[0], abs=1e-12)
    assert_same_work(many, alone, dict.fromkeys(("drive", "friction", "integration"), 1e-4))


def test_mechanism_in_a_world_starts_as_in_a_single_run():
    """Undamped joint forces at the start are those of a single run, in all groups of worlds and after a reset."""
    scene = abd.Scene(solver={"tolerance": 1e-4})
    scene.add_body("rod", box=(0.5, 0.05, 0.05), position=(0.25, 0, 0))
    scene.add_hinge("pivot", abd.WORLD, "rod", anchor=(0, 0, 0), axis=(0, 1, 0))
    many = abd.Simulation(scene.replicate(3, dt=DT), device="cpu")
    alone = [abd.Simulation(scene.override([f"solver.dt={dt}"]), device="cpu") for dt in DT]
    step_and_compare(many, alone, 5)
    many.reset(worlds=[2])
    alone[2].reset()
    assert many.worlds.time[2] == 0.0 and many.time == pytest.approx(0.05)
    step_and_compare(many, alone, 5)


def test_checkpoints_and_copies_continue_bitwise():
    sim = abd.Simulation(many_driven(), device="cpu")
    sim.run(steps=6)
    sim.worlds.dt = (0.004, 0.005, 0.005)
    sim.step()
    sim.reset(worlds=[1])
    saved, copied = sim.checkpoint(), copy.deepcopy(sim)
    ends = []
    for one in (sim, copied, sim):
        if ends:
            one.restore(saved)
        one.run(steps=4)
        ends.append((one.stepper.q.copy(), one.worlds.time, one.worlds.dt, one.time))
    for end in ends[1:]:
        for found, there in zip(end, ends[0], strict=True):
            np.testing.assert_array_equal(found, there)
    assert ends[0][1] == pytest.approx([0.06 + 5 * 0.004, 4 * 0.005, 0.045 + 5 * 0.005])
    sim.reset()
    np.testing.assert_array_equal(sim.worlds.dt, DT)
    np.testing.assert_array_equal(sim.worlds.time, np.zeros(3))
    assert sim.time == 0.0


def test_recompiled_scene_keeps_its_worlds():
    sim = abd.Simulation(many_driven(), device="cpu")
    sim.step()
    sim.worlds.dt = (0.01, 0.002, 0.0075)
    sim.step()
    scene = copy.deepcopy(sim.scene)
    scene.add_body("new", box=(0.1,) * 3, position=(5, 0, 5), world=3)
    scene.solver.world_dt = (*DT, 0.02)
    more = sim.recompiled(scene)
    np.testing.assert_array_equal(more.worlds.dt, (0.01, 0.002, 0.0075, 0.02))
    np.testing.assert_allclose(more.worlds.time, (0.02, 0.007, 0.015, 0.02))
    more.step()
    np.testing.assert_allclose(more.worlds.time, (0.03, 0.009, 0.0225, 0.04))


def test_runs_store_the_times_of_worlds(tmp_path):
    abd.run(tumbling().replicate(3, dt=DT), duration=0.05, record=tmp_path / "run", device="cpu")
    with Trajectory(tmp_path / "run") as run:
        assert len(run) == 6
        np.testing.assert_allclose(run.time, 0.01 * np.arange(6))
        np.testing.assert_allclose(run.world_time, np.outer(np.arange(6), DT))


def test_a_scene_has_one_time_step_for_each_world():
    scene = tumbling().replicate(2)
    scene.solver.world_dt = DT
    with pytest.raises(SceneError, match="one time step for each of the 2 worlds, not 3"):
        scene.compile()
    assert tumbling().replicate(2, dt=(0.01, 0.02)).replicate(2).spec.solver.world_dt == (0.01, 0.02, 0.01, 0.02)


@pytest.mark.parametrize(("device", "short"), [(NAME, 0), (NAME, 1), ("numpy", 1)])
def test_targets_of_excluded_worlds_do_not_count(device, short):
    """Driven joints of a world that waits for the substeps of another one may be far from their targets."""

    def chain(rate: float) -> abd.Scene:
        """Return a chain, and a wheel that needs substeps if it turns by more than the largest angle of a step."""
        scene, parent = abd.Scene(), abd.WORLD
        for k in range(2):
            body = scene.add_body(f"b{k}", box=(0.2, 0.05, 0.05), position=(0.1 + 0.2 * k, 0.0, 0.0))
            drive = {"mode": "position", "target": "sin(6*t)"}
            scene.add_hinge(f"j{k}", parent, body, anchor=(0.2 * k, 0.0, 0.0), axis=(0, 1, 0), enforcement="exact", drive=drive)
            parent = body
        scene.add_body("wheel", box=(0.1, 0.1, 0.1), position=(0, 5, 0), angular_velocity=(0, rate, 0))
        scene.add_hinge("axle", abd.WORLD, "wheel", anchor=(0, 5, 0), axis=(0, 1, 0), range=(-50, 50))
        return scene

    scene = chain(300.0).replicate(2)
    scene.body(f"w{1 - short}_wheel").angular_velocity = (0, 0, 0)
    both, alone = abd.Simulation(scene, device=device), abd.Simulation(chain(300.0), device=device)
    for _ in range(3):
        report, own = both.step(), alone.step()
        assert report.substeps == own.substeps > 1
        assert report.newton_iterations >= own.newton_iterations and not len(both.stopped_worlds)
        np.testing.assert_allclose(both.worlds.coordinates[short], alone.coordinates, atol=1e-12)
