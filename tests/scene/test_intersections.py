"""Initial intersections: exact predicates, filters, containment, thickness, depths, and ipctk."""

import re

import numpy as np
import pytest
from common_scenes import overlaps

from abd.scene.compile.compile import compile_scene
from abd.scene.geometry import shapes
from abd.scene.overlaps.intersections import Surveyor
from abd.scene.overlaps.overlap import overlap
from abd.scene.schema.schema import SceneSpec

BOX = (1.0, 1.0, 1.0)
SQUARE = {"vertices": [[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], "triangles": [[0, 1, 2], [0, 2, 3]]}


def found(*bodies, **rest):
    problems = overlaps(compile_scene(SceneSpec(body=list(bodies), **rest)))
    return [(problem.message.split(" at t")[0].replace("'", ""), problem.value) for problem in problems]


def box(name, *position, **rest):
    return {"name": name, "box": BOX, "position": position, **rest}


def bar(name, size, height):
    return {"name": name, "box": size, "position": (0, 0, height)}


SMALL = {"name": "small", "sphere": {"radius": 0.1}}
CARD = {"surface": SQUARE, "thickness": 0.02}
SHEET = {"surface": SQUARE, "thickness": 0.0, "mass": 1}
UPRIGHT = {**SHEET, "name": "b", "axis_angle": {"axis": (1, 0, 0), "degrees": 90}}
FLOOR = {"name": "floor", "half_space": {"normal": (0, 0, 1), "offset": 1}}
CLOUD = {"name": "p", "surface": {"vertices": [[0, 0, 0], [9, 0, 0], [0, 9, 0]], "points": [0, 1, 2]}, "radius": 0.1}
ROD = {"name": "r", "surface": {"vertices": [[0, 0, 1], [0, 0, 2]], "edges": [[0, 1]]}, "radius": 0.1}


def two_components():
    inner, triangles = shapes.box((0.1, 0.1, 0.1))
    vertices = np.concatenate([inner, inner + np.array([9.0, 0, 0])])
    surface = {"vertices": vertices.tolist(), "triangles": np.concatenate([triangles, triangles + 8]).tolist()}
    return {"name": "two", "surface": surface}


CASES = {
    # name: bodies, message or None, depth [m], relative tolerance
    "boxes apart": ([box("a", 0, 0, 0), box("b", 1.001, 0, 0), box("c", 0, 0, 1.5)], None, 0, 0),
    "boxes": ([box("a", 0, 0, 0), box("b", 0.9, 0.2, 0.1), box("c", 0, 0, 5)], "a intersects b", 0.1, 1e-9),
    "coincident boxes": ([box("a", 0, 0, 0), box("b", 0, 0, 0)], "a intersects b", 1.0, 1e-6),
    "crossed bars": ([bar("a", (2, 0.2, 0.2), 0), bar("b", (0.2, 2, 0.2), 0.15)], "a intersects b", 0.05, 1e-6),
    "contained": ([SMALL, box("big", 0, 0, 0)], "small lies inside big", 0.6, 1e-3),
    "containing": ([box("big", 0, 0, 0), SMALL], "big contains small", 0.6, 1e-3),
    "one component inside": ([box("big", 9, 0, 0), two_components()], "big contains two", None, 0),
    "sheets apart": ([{**SHEET, "name": "a"}, {**UPRIGHT, "position": (0, 0, 1.01)}], None, 0, 0),
    "sheets": ([{**SHEET, "name": "a"}, {**UPRIGHT, "position": (0, 0, 0.9)}], "a intersects b", 0.1, 1e-9),
    "cards apart": ([{**CARD, "name": "a"}, {**CARD, "name": "b", "position": (0, 0, 0.0201)}], None, 0, 0),
    "cards that touch": ([{**CARD, "name": "a"}, {**CARD, "name": "b", "position": (0, 0, 0.02)}], None, 0, 0),
    "cards": ([{**CARD, "name": "a"}, {**CARD, "name": "b", "position": (0, 0, 0.015)}], "a is too close to b", 0.005, 1e-6),
    "point inside": ([CLOUD, box("a", 9.4, 0, 0)], "p lies inside a", None, 0),
    "point near": ([CLOUD, box("a", 9.55, 0, 0)], "p is too close to a", None, 0),
    "point apart": ([CLOUD, box("a", 9.7, 0, 0)], None, 0, 0),
    "rod near a point": ([CLOUD, {**ROD, "position": (9, 0, -0.85)}], "p is too close to r", 0.05, 1e-6),
    "rod and point apart": ([CLOUD, {**ROD, "position": (9, 0, -0.75)}], None, 0, 0),
    "half-space": (
        [FLOOR, box("a", 0, 0, 1.2), box("b", 3, 0, 1.6), box("wall", 0, 5, 0, kind="static")],
        *("a is partly below floor", 0.3, 1e-6),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_overlapping_pair_is_reported_with_its_depth(name):
    bodies, message, depth, tolerance = CASES[name]
    problems = found(*bodies)
    if message is None:
        assert problems == []
    else:
        ((words, value),) = problems
        assert words == message and (depth is None or value == pytest.approx(depth, rel=tolerance))


@pytest.mark.parametrize("x, count", [(1.4, 1), (1.6, 0)])
def test_minimum_separation_counts(x, count):
    assert len(found(box("a", 0, 0, 0), box("b", x, 0, 0), solver={"minimum_separation": 0.5})) == count


def test_hollow_body_can_contain_another():
    outer, triangles = shapes.box((2, 2, 2))
    both = np.concatenate([triangles, triangles[:, ::-1] + 8])
    shell = {"vertices": np.concatenate([outer, 0.75 * outer]).tolist(), "triangles": both.tolist()}
    assert found({"name": "shell", "surface": shell}, box("a", 0, 0, 0)) == []


def test_linked_rings_are_free():
    angle = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    edges = np.stack([np.arange(48), (np.arange(48) + 1) % 48], axis=1)
    surface = {"vertices": ring.tolist(), "edges": edges.tolist()}
    first = {"name": "a", "surface": surface, "radius": 0.1}
    second = {**first, "name": "b", "position": (1, 0, 0), "axis_angle": {"axis": (1, 0, 0), "degrees": 90}}
    assert found(first, second) == []
    second["position"] = (0.15, 0, 0)
    ((message, depth),) = found(first, second)
    assert message == "a is too close to b" and depth == pytest.approx(0.05, abs=0.01)


PIN = {"name": "j", "type": "spherical", "parent": "a", "child": "b", "anchor": (0, 0, 0)}
MOVING = {"kind": "kinematic", "motion": {"velocity": (1, 0, 0)}}
PAIRS = {
    # name: keys of both bodies, the rest of the scene, whether the pair counts
    "plain": ({}, {}, {}, True),
    "one group": ({"group": 3}, {"group": 3}, {}, False),
    "two groups": ({"group": 3}, {"group": 2}, {}, True),
    "two worlds": ({"world": 1}, {}, {}, False),
    "static and kinematic": ({"kind": "static"}, MOVING, {}, False),
    "static": ({"kind": "static"}, {}, {}, True),
    "kinematic": (MOVING, {}, {}, True),
    "joint": ({}, {}, {"joint": [PIN]}, False),
    "joint that collides": ({}, {}, {"joint": [{**PIN, "collide": True}]}, True),
    "material pair": ({}, {}, {"material_pair": [{"between": ("default", "default"), "enabled": False}]}, False),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_that_never_collide(name):
    first, second, rest, counts = PAIRS[name]
    assert len(found(box("a", 0, 0, 0, **first), box("b", 0.5, 0, 0, **second), **rest)) == counts


RANDOM = ({"box": (1, 0.5, 0.8)}, {"sphere": {"radius": 0.4, "subdivisions": 1}}, {"surface": SQUARE, "mass": 1})


@pytest.mark.parametrize("seed", range(3))
def test_random_scenes_agree_with_ipctk(seed):
    ipctk = pytest.importorskip("ipctk")
    rng = np.random.default_rng(seed)
    bodies = []
    for k in range(14):
        euler = {"order": "xyz", "degrees": tuple(rng.uniform(0, 360, 3))}
        place = {"position": tuple(rng.uniform(-1.3, 1.3, 3)), "euler": euler}
        bodies.append({"name": f"b{k}", **RANDOM[k % 3], **place})
    model = compile_scene(SceneSpec(body=bodies))
    surveyor = Surveyor(model)
    named = set()
    for i, j, _ in surveyor.survey(model.bodies.q).deep:
        what, _ = overlap(surveyor.placed(model.bodies.q, i), surveyor.placed(model.bodies.q, j), 0.0)
        if what == "intersects":
            named.add((f"b{i}", f"b{j}"))
    assert named

    world = []
    for q, mesh in zip(model.bodies.q, model.bodies.mesh):
        world.append(model.meshes[mesh].vertices @ q[3:].reshape(3, 3).T + q[:3])
    for i in range(len(bodies)):
        for j in range(i):
            first, second = model.meshes[model.bodies.mesh[j]], model.meshes[model.bodies.mesh[i]]
            shift = len(first.vertices)
            mesh = ipctk.CollisionMesh(
                np.concatenate([first.vertices, second.vertices]), np.concatenate([first.edges, second.edges + shift]),
                np.concatenate([first.triangles, second.triangles + shift]),
            )
            expected = ipctk.has_intersections(mesh, np.concatenate([world[j], world[i]]))
            assert expected == ((f"b{j}", f"b{i}") in named)


def test_worlds_are_checked_separately():
    random, single = np.random.default_rng(3), []
    for world in range(5):
        bodies = [box(f"b{k}", *random.uniform(0, 3, 3), world=world) for k in range(6)]
        single.append([*bodies, {"name": "ground", "half_space": {"offset": 0.2 * world}, "world": world}])
    every = compile_scene(SceneSpec(body=[{**one, "name": f"{k} {one['name']}"} for k, of in enumerate(single) for one in of]))
    survey = Surveyor(every).survey(every.bodies.q, 0.01)
    assert len(survey.deep) > 5
    for k, of in enumerate(single):
        alone = compile_scene(SceneSpec(body=[{**one, "world": 0} for one in of]))
        mine = [(i - 7 * k, j - 7 * k, depth) for i, j, depth in survey.deep if i // 7 == k]
        assert sorted(mine) == sorted(Surveyor(alone).survey(alone.bodies.q, 0.01).deep)
    assert all(i // 7 == j // 7 for i, j, _ in survey.deep)


STATIC = {"kind": "static"}
GROUND = {"name": "ground", "half_space": {}}


@pytest.mark.parametrize(
    "bodies",
    [
        [box("wall", 0, 0, 0, **STATIC), box("b", 0.9, 0, 0)],
        [box("wall", 0, 0, 0, **STATIC), box("b", 0.9, 0, 0), box("c", 1.95, 0, 0)],
        [box("a", 0, 0, 0), box("b", 0.9, 0, 0), box("c", 1.8, 0, 0)],
        [GROUND, box("wall", 0, 0, 0.5, **STATIC), box("b", 0.9, 0, 0.4)],
        [GROUND, *(box(f"b{k}", 0, 0, 0.45 + 0.9 * k) for k in range(4))],
    ],
    ids=["wall", "neighbour behind", "between two", "corner", "stack"],
)
def test_the_remedies_of_overlaps_separate_all_bodies(bodies):
    problems = overlaps(compile_scene(SceneSpec(body=bodies)))
    remedies = " ".join(problem.remedy for problem in problems)
    moves = {name: np.array(by.split(", "), float) for name, by in re.findall(r"'(\w+)' by \((.*?)\)", remedies)}
    moved = [{**one, "position": one["position"] + moves[one["name"]]} if one["name"] in moves else one for one in bodies]
    assert problems and overlaps(compile_scene(SceneSpec(body=moved))) == []


def test_remedies_without_room_do_not_claim_to_free_the_body():
    walls = [box("left", 0, 0, 0, **STATIC), box("right", 1.8, 0, 0, **STATIC)]
    problems = overlaps(compile_scene(SceneSpec(body=[*walls, box("b", 0.9, 0, 0)])))
    assert len(problems) == 2 and all("may not free it from others" in problem.remedy for problem in problems)
