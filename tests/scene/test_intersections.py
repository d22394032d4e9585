"""Initial intersections: exact predicates, filters, containment, thickness, depths, and ipctk as referee."""


import numpy as np
import pytest

from abd.scene.compile.compile import compile_scene
from abd.scene.geometry import shapes
from abd.scene.overlaps.intersections import Surveyor, find_initial_intersections
from abd.scene.overlaps.overlap import overlap
from abd.scene.schema.schema import SceneSpec

BOX = (1.0, 1.0, 1.0)
SQUARE = {"vertices": [[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], "triangles": [[0, 1, 2], [0, 2, 3]]}


def found(*bodies, **rest):
    problems = find_initial_intersections(compile_scene(SceneSpec(body=list(bodies), **rest)))
    return [(problem.message.split(" at t")[0].replace("'", ""), problem.value) for problem in problems]


def box(name, *position, **rest):
    return {"name": name, "box": BOX, "position": position, **rest}


def test_boxes_that_are_apart():
    assert found(box("a", 0, 0, 0), box("b", 1.001, 0, 0), box("c", 0, 0, 1.5)) == []


def test_boxes_that_overlap_are_named_with_the_depth():
    ((message, depth),) = found(box("a", 0, 0, 0), box("b", 0.9, 0.2, 0.1), box("c", 0, 0, 5))
    assert message == "a intersects b"
    assert depth == pytest.approx(0.1, rel=1e-9)


def test_coincident_boxes_are_as_deep_as_they_are_wide():
    ((message, depth),) = found(box("a", 0, 0, 0), box("b", 0, 0, 0))
    assert message == "a intersects b" and depth == pytest.approx(1.0, rel=1e-6)


def test_crossed_bars_without_a_vertex_inside():
    bars = [
        {"name": n, "box": size, "position": (0, 0, z)}
        for n, size, z in (("a", (2, 0.2, 0.2), 0), ("b", (0.2, 2, 0.2), 0.15))
    ]
    ((message, depth),) = found(*bars)
    assert message == "a intersects b" and depth == pytest.approx(0.05, rel=1e-6)


def test_containment_both_ways_and_depth():
    small = {"name": "small", "sphere": {"radius": 0.1}}
    assert found(box("big", 0, 0, 0), small)[0][0] == "big contains small"
    ((message, depth),) = found(small, box("big", 0, 0, 0))
    assert message == "small lies inside big" and depth == pytest.approx(0.6, rel=1e-3)


def test_one_component_inside_is_enough():
    inner, triangles = shapes.box((0.1, 0.1, 0.1))
    two = {
        "vertices": np.concatenate([inner, inner + np.array([9.0, 0, 0])]).tolist(),
        "triangles": np.concatenate([triangles, triangles + 8]).tolist(),
    }
    assert found(box("big", 9, 0, 0), {"name": "two", "surface": two})[0][0] == "big contains two"


def test_a_hollow_body_may_hold_another():
    outer, triangles = shapes.box((2, 2, 2))
    inner = outer / 2 * 1.5
    shell = {
        "vertices": np.concatenate([outer, inner]).tolist(),
        "triangles": np.concatenate([triangles, triangles[:, ::-1] + 8]).tolist(),
    }
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


def test_open_surfaces():
    card = {"surface": SQUARE, "thickness": 0.0, "mass": 1}
    upright = {**card, "name": "b", "axis_angle": {"axis": (1, 0, 0), "degrees": 90}}
    assert found({**card, "name": "a"}, {**upright, "position": (0, 0, 1.01)}) == []
    ((message, depth),) = found({**card, "name": "a"}, {**upright, "position": (0, 0, 0.9)})
    assert message == "a intersects b" and depth == pytest.approx(0.1, rel=1e-9)


def test_thickness_counts():
    card = {"surface": SQUARE, "thickness": 0.02}
    assert found({**card, "name": "a"}, {**card, "name": "b", "position": (0, 0, 0.0201)}) == []
    assert found({**card, "name": "a"}, {**card, "name": "b", "position": (0, 0, 0.02)}) == []
    ((message, depth),) = found({**card, "name": "a"}, {**card, "name": "b", "position": (0, 0, 0.015)})
    assert message == "a is too close to b" and depth == pytest.approx(0.005)
    solver = {"minimum_separation": 0.5}
    assert len(found(box("a", 0, 0, 0), box("b", 1.4, 0, 0), solver=solver)) == 1
    assert len(found(box("a", 0, 0, 0), box("b", 1.6, 0, 0), solver=solver)) == 0


def test_points_and_rods():
    cloud = {
        "name": "p",
        "surface": {"vertices": [[0, 0, 0], [9, 0, 0], [0, 9, 0]], "points": [0, 1, 2]},
        "radius": 0.1,
    }
    assert found(cloud, box("a", 9.4, 0, 0))[0][0] == "p lies inside a"
    assert found(cloud, box("a", 9.55, 0, 0))[0][0] == "p is too close to a"
    assert found(cloud, box("a", 9.7, 0, 0)) == []
    rod = {"name": "r", "surface": {"vertices": [[0, 0, 1], [0, 0, 2]], "edges": [[0, 1]]}, "radius": 0.1}
    assert found(cloud, {**rod, "position": (9, 0, -0.85)}) == [("p is too close to r", pytest.approx(0.05))]
    assert found(cloud, {**rod, "position": (9, 0, -0.75)}) == []


def test_half_space():
    floor = {"name": "floor", "half_space": {"normal": (0, 0, 1), "offset": 1}}
    ((message, depth),) = found(floor, box("a", 0, 0, 1.2), box("b", 3, 0, 1.6), box("wall", 0, 5, 0, kind="static"))
    assert message == "a lies partly below floor" and depth == pytest.approx(0.3)


def test_pairs_that_never_collide():
    def pair(first=None, second=None, **rest):
        return found(box("a", 0, 0, 0, **(first or {})), box("b", 0.5, 0, 0, **(second or {})), **rest)

    joint = {"name": "j", "type": "spherical", "parent": "a", "child": "b", "anchor": (0, 0, 0)}
    moving = {"kind": "kinematic", "motion": {"velocity": (1, 0, 0)}}
    assert len(pair()) == 1
    assert pair({"group": 3}, {"group": 3}) == []
    assert len(pair({"group": 3}, {"group": 2})) == 1
    assert pair({"world": 1}) == []
    assert pair({"kind": "static"}, moving) == []
    assert len(pair({"kind": "static"})) == 1 and len(pair(moving)) == 1
    assert pair(joint=[joint]) == []
    assert len(pair(joint=[{**joint, "collide": True}])) == 1
    off = [{"between": ("default", "default"), "enabled": False}]
    assert pair(material_pair=off) == []


@pytest.mark.parametrize("seed", range(3))
def test_random_scenes_agree_with_ipctk(seed):
    ipctk = pytest.importorskip("ipctk")
    rng = np.random.default_rng(seed)
    bodies = []
    for k in range(14):
        euler = {"order": "xyz", "degrees": tuple(rng.uniform(0, 360, 3))}
        kind = [{"box": (1, 0.5, 0.8)}, {"sphere": {"radius": 0.4, "subdivisions": 1}}, {"surface": SQUARE, "mass": 1}][
            k % 3
        ]
        bodies.append({"name": f"b{k}", **kind, "position": tuple(rng.uniform(-1.3, 1.3, 3)), "euler": euler})
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
                np.concatenate([first.vertices, second.vertices]),
                np.concatenate([first.edges, second.edges + shift]),
                np.concatenate([first.triangles, second.triangles + shift]),
            )
            expected = ipctk.has_intersections(mesh, np.concatenate([world[j], world[i]]))
            assert expected == ((f"b{j}", f"b{i}") in named)


def test_worlds_in_one_place_are_surveyed_one_by_one():
    """Every world is told what it would be told alone, half-spaces included; no pair is of two worlds."""
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
