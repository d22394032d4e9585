"""Steps whose length belongs to the world: every world goes through its own as it does alone."""

from __future__ import annotations

import numpy as np
import pytest
from on_device import NAME

import abd
from abd.backends.answers import NotProven
from abd.backends.progress import Progress

pytestmark = pytest.mark.device

LENGTHS = (0.01, 0.0041, 0.0073)


def sliding(world: int, **solver) -> abd.Scene:
    """Two rough boxes, one on the other, that slide and turn a little."""
    scene = abd.Scene(solver={"dt": 0.01, "tolerance": 1e-3, **solver})
    scene.add_material("default", mu=0.4)
    scene.add_body("ground", half_space={})
    for k in range(2):
        moves = {"velocity": (0.2 + 0.1 * world, 0.05 * k, 0), "angular_velocity": (0, 0, 0.5 * k)}
        scene.add_body(f"box{k}", box=(0.1,) * 3, density=1000, position=(0.01 * k, 0, 0.0504 + 0.1006 * k), **moves)
    return scene


def side_by_side(scenes: list[abd.Scene]) -> abd.Scene:
    out = scenes[0].replicate(len(scenes))
    for world, scene in enumerate(scenes):
        for body in scene.spec.body:
            one = out.body(f"w{world}_{body.name}")
            one.velocity, one.position, one.axis_angle = body.velocity, body.position, body.axis_angle
    return out


@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1", "bdf2"])
@pytest.mark.parametrize("device", [NAME, "numpy"])
def test_a_step_of_several_lengths_is_in_every_world_one_of_its_own(device, integrator):
    """They change from step to step, too, which generalized alpha and bdf2 remember."""
    scenes = [sliding(world, integrator=integrator) for world in range(3)]
    many = abd.Simulation(side_by_side(scenes), device=device)
    alone = [abd.Simulation(scene, device=device) for scene in scenes]
    worlds, rubbed = many.model.bodies.world, False
    for step in range(5):
        lengths = np.roll(LENGTHS, step)
        many.stepper.substeps.take(lengths[worlds], Progress())
        for world, one in enumerate(alone):
            one.stepper.substeps.take(float(lengths[world]), Progress())
            mine = worlds == world
            for name in ("q", "qd"):
                found, expected = getattr(many.stepper, name)[mine], getattr(one.stepper, name)
                np.testing.assert_array_equal(found, expected, err_msg=f"{name} of world {world} in step {step}")
        rubbed |= all(one.stepper.figures.friction_work < 0.0 for one in alone)
        figures = [one.stepper.figures for one in alone]
        for name in ("contact", "friction_work", "kinetic"):
            total = sum(getattr(one, name) for one in figures)
            assert getattr(many.stepper.figures, name) == pytest.approx(total, rel=1e-9, abs=1e-15), name
    assert rubbed


def thrown(world: int) -> abd.Scene:
    """Two boxes of which one hits the ground fast, and the other flies."""
    scene = abd.Scene(solver={"dt": 0.01, "tolerance": 1e-3})
    scene.add_material("default", mu=0.4, restitution=0.2)
    scene.add_body("ground", half_space={})
    turn = {"axis": (1, 0.3, 0), "degrees": 30 + 5 * world}
    moves = {"velocity": (1, 0.2 * world, -6 - world), "angular_velocity": (2, 1, 0)}
    scene.add_body("falls", box=(0.1,) * 3, density=1000, position=(0, 0, 0.18 + 0.01 * world), axis_angle=turn, **moves)
    scene.add_body("flies", box=(0.1,) * 3, density=1000, position=(2, 0, 3), velocity=(0, 1, 0))
    return scene


def test_parts_that_meet_in_one_world_go_together_and_count_once(monkeypatch):
    """World 1 has to go by itself then, after rounds that it has gone through beside the others: bits and works are those of
    all worlds alone."""
    scenes = [thrown(world) for world in range(3)]
    many = abd.Simulation(side_by_side(scenes), device=NAME)
    alone = [abd.Simulation(scene, device=NAME) for scene in scenes]
    worlds, meetings = many.model.bodies.world, []
    falls, flies = 1, 2

    def meeting(sim: abd.Simulation, first: int, world: int):
        meet = sim.backend.ways.meetings

        def met(begin, turn, end, party):
            found = meet(begin, turn, end, party)
            pair = np.array([[first + falls, first + flies]])
            if 0 < party[first + falls] != party[first + flies] > 0:
                meetings.append(world)
                return NotProven(np.ones(1), pair)
            return found

        monkeypatch.setattr(sim.backend.ways, "meetings", met)

    meeting(many, int(np.flatnonzero(worlds == 1)[0]), -1)
    meeting(alone[1], 0, 1)
    for step in range(6):
        many.step()
        for world, one in enumerate(alone):
            one.step()
            for name in ("q", "qd"):
                found, expected = getattr(many.stepper, name)[worlds == world], getattr(one.stepper, name)
                np.testing.assert_array_equal(found, expected, err_msg=f"{name} of world {world} in step {step}")
    assert {-1, 1} <= set(meetings)
    for name in ("friction", "integration"):
        total = sum(getattr(one.stepper.work, name) for one in alone)
        assert total < 0.0 and getattr(many.stepper.work, name) == pytest.approx(total, rel=1e-8), name


def heaped(world: int) -> abd.Scene:
    """Two boxes, one on the other, and one that flies; in the third world nobody remembers anything."""
    scene = thrown(world)
    scene.spec.body[1].velocity = (0.5, 0.1 * world, -0.2)
    scene.add_body("sits", box=(0.1,) * 3, density=1000, position=(3 + 0.01 * world, 0, 0.0504), velocity=(0.3, 0, 0))
    scene.add_body("rides", box=(0.1,) * 3, density=1000, position=(3.01, 0, 0.151), angular_velocity=(0, 0, 1))
    return scene


@pytest.mark.parametrize("device, hits, steps", [(NAME, False, 4), (NAME, True, 4), ("numpy", False, 2)])
def test_worlds_begin_with_pieces_of_their_own(device, hits, steps):
    """Frames that begin with remembered pieces, in some worlds, and fail on the way, in others, are in every world those that it
    would take alone."""
    scenes = [heaped(world) for world in range(4)]
    if hits:
        for world in (2, 3):
            scenes[world].spec.body[1].velocity = (1, 0.2 * world, -9)
    many = abd.Simulation(side_by_side(scenes), device=device)
    alone = [abd.Simulation(scene, device=device) for scene in scenes]
    worlds = many.model.bodies.world
    # world 0: what rides, and what it sits on with it; world 1: two parts, of different lengths; world 3: what flies
    lengths = {(0, 4): 0.0023, (1, 1): 0.0049, (1, 3): 0.0012, (3, 2): 0.0031}

    def remember(sim: abd.Simulation, pieces: dict[int, float]) -> None:
        sim.stepper.pieces = np.zeros(len(sim.model.bodies))
        for body, length in pieces.items():
            sim.stepper.pieces[body] = length

    first = [int(np.flatnonzero(worlds == world)[0]) for world in range(4)]
    remember(many, {first[world] + body: length for (world, body), length in lengths.items()})
    for world, one in enumerate(alone):
        remember(one, {body: length for (of, body), length in lengths.items() if of == world})
    substeps = []
    for step in range(steps):
        found = many.step().substeps
        reports = [one.step() for one in alone]
        substeps.append([report.substeps for report in reports])
        assert found == max(substeps[-1])
        for world, one in enumerate(alone):
            for name in ("q", "qd", "pieces"):
                found, expected = getattr(many.stepper, name)[worlds == world], getattr(one.stepper, name)
                np.testing.assert_array_equal(found, expected, err_msg=f"{name} of world {world} in step {step}")
    begun = substeps[0]
    assert min(begun[0], begun[1], begun[3]) > 1 and (hits or begun[2] == 1)
    assert not hits or max(max(one[2:]) for one in substeps[1:]) > 1
