"""Starts: touching bodies are separated, deeper overlaps are rejected, for any source of the state."""

from itertools import product

import numpy as np
import pytest

from abd.api.simulation import Simulation
from abd.cli import main
from abd.contact.pair_law import D_HAT_SHARE
from abd.errors import SceneError
from abd.model import Kind
from abd.scene.compile.compile import compile_scene
from abd.scene.overlaps.intersections import Surveyor
from abd.scene.overlaps.overlap import overlap
from abd.scene.overlaps.separation import FINAL_GAP
from abd.scene.overlaps.starts import free_start
from abd.scene.schema.schema import SceneSpec

FLOOR = {"name": "floor", "half_space": {"normal": (0, 0, 1), "offset": 0}}
GAP = FINAL_GAP * D_HAT_SHARE
"""Gap of boxes of a metre that touched [m]."""


def box(name, *position, **rest):
    return {"name": name, "box": (1, 1, 1), "position": position, **rest}


def compiled(*bodies, **rest):
    return compile_scene(SceneSpec(body=list(bodies), **rest))


LETTERS = {"L": ("X..", "X..", "XXX"), "T": ("XXX", ".X.", ".X."), "U": ("X.X", "X.X", "XXX"), "H": ("X.X", "XXX", "X.X")}
"""Cells of a letter, its top row first."""


def letter_surface(name):
    """Closed surface of a letter of cubes, 1 m wide and tall along x and z, a third of that deep."""
    cells = {(x, 0, 2 - z) for z, row in enumerate(LETTERS[name]) for x, cell in enumerate(row) if cell == "X"}
    corners, triangles = {}, []
    for cell, axis, out in product(sorted(cells), range(3), (0, 1)):
        normal = np.eye(3, dtype=int)[axis]
        if tuple(np.add(cell, normal if out else -normal).tolist()) in cells:
            continue
        u, v = np.roll(np.eye(3, dtype=int), -axis, axis=0)[1:]
        ring = [cell + out * normal + a * u + b * v for a, b in ((0, 0), (1, 0), (1, 1), (0, 1))]
        a, b, c, d = (corners.setdefault(tuple(corner.tolist()), len(corners)) for corner in (ring if out else ring[::-1]))
        triangles += [[a, b, c], [a, c, d]]
    vertices = (np.array(list(corners), dtype=float) - (1.5, 0.5, 1.5)) / 3.0
    return {"vertices": vertices.tolist(), "triangles": triangles}


def letter(name, *position, **rest):
    return {"name": name, "surface": letter_surface(name), "position": position, **rest}


def moved(model):
    """The model set free, and how far (n,) its bodies were moved."""
    free = free_start(model)
    surveyor = Surveyor(free)
    found = surveyor.survey(free.bodies.q)
    assert not found.touching and not found.deep
    assert np.array_equal(free.bodies.q[:, 3:], model.bodies.q[:, 3:])
    return free, np.linalg.norm(free.bodies.q[:, :3] - model.bodies.q[:, :3], axis=1)


def gaps(free, reach=1e-3):
    """Gaps between the hulls of pairs that are near one another."""
    return [way.gap for way in Surveyor(free).survey(free.bodies.q, reach).near]


def test_a_box_on_the_ground_is_lifted():
    free, far = moved(compiled(FLOOR, box("a", 0, 0, 0.5), box("b", 3, 0, 0.7)))
    assert far[0] == far[2] == 0.0 and far[1] == pytest.approx(GAP, rel=1e-6)
    (note,) = [note for note in free.notes if "separated" in note]
    assert note == "bodies that touch at t = 0 were separated: 'a' by 0.0002 m"
    assert free_start(free) is free


def test_a_stack_opens_by_one_gap_each():
    free, far = moved(compiled(FLOOR, *[box(f"b{k}", 0, 0, k + 0.5) for k in range(20)]))
    assert far[1:] == pytest.approx(GAP * np.arange(1, 21), rel=1e-5)
    assert min(gaps(free)) == pytest.approx(GAP, rel=1e-5)
    (note,) = [note for note in free.notes if "separated" in note]
    assert "'b19' by 0.004 m" in note and note.endswith("and 17 more by at most as much") and len(note) < 140


def test_overlap_by_rounding_is_removed_and_a_gap_is_kept():
    model = compiled(box("a", 0, 0, 0, kind="static"), box("b", 1 - 1e-6, 0, 0), box("c", 2, 0, 0))
    free, far = moved(model)
    assert far[0] == 0.0 and far[1] == pytest.approx(1e-6 + GAP, rel=1e-4)
    # c stood 1e-6 from b, nearer than a gap: it is not approached
    assert far[2] == pytest.approx(far[1], rel=1e-6) and min(gaps(free)) >= 1e-6 - 1e-12
    apart = compiled(box("a", 0, 0, 0), box("b", 1 + 1e-9, 0, 0))
    assert free_start(apart).bodies.q is apart.bodies.q


THIRD = 1.0 / 3.0
CRUMB = {"name": "c", "box": (THIRD,) * 3, "position": (0, 0, 0)}
BALLS = [{"name": f"o{k}", "sphere": {"radius": 0.05}, "position": (0.2 + 0.1 * k, 0, 0.5)} for k in range(8)]
"""Their distance is 0 up to rounding of either sign."""
TOUCHING = {
    # name: bodies, the most that one of them is moved [gaps of boxes of a metre], the smallest gap
    "lattice": ([box(f"b{k}", *cell) for k, cell in enumerate(np.ndindex(4, 4, 4))], 6.0, 0.99),
    "wall": ([FLOOR, *(box(f"b{k}", k % 6 + 0.5 * (k // 6 % 2), 0, k // 6 + 0.5) for k in range(36))], 12.0, 0.99),
    "faces inside a hull": ([letter("L", 0, 0, 0), CRUMB], 10.0, 0.0),
    "letters": ([letter("L", 0, 0, 0), letter("T", 1, 0, 0), letter("H", 0, THIRD, 0)], 10.0, 0.0),
    "balls": (BALLS, 2.5, 0.0),
}


@pytest.mark.parametrize("name", TOUCHING)
def test_touching_bodies_are_separated_by_a_few_gaps(name):
    bodies, most, least = TOUCHING[name]
    free, far = moved(compiled(*bodies))
    assert 0.0 < far.max() < most * GAP and min(gaps(free), default=np.inf) > least * GAP
    assert np.array_equal(free_start(compiled(*bodies)).bodies.q, free.bodies.q)


def test_connected_bodies_move_together():
    hinge = {"name": "j", "type": "hinge", "parent": "a", "child": "b", "anchor": (0, 0, 1.5), "axis": (1, 0, 0)}
    model = compiled(FLOOR, box("a", 0, 0, 0.5), box("b", 0, 0, 2.5), joint=[{**hinge, "enforcement": "exact"}])
    _, far = moved(model)
    assert far[1] == pytest.approx(far[2], rel=1e-6) and far[1] > 0.0
    post = {"name": "p", "type": "fixed", "child": "a", "anchor": (0, 0, 0.5)}
    with pytest.raises(SceneError, match="'a' touches 'floor' at t = 0 and cannot be separated"):
        free_start(compiled(FLOOR, box("a", 0, 0, 0.5), joint=[post]))


def test_only_mobile_bodies_move_and_clearance_is_shared():
    for slot in (1e-7, 1e-6):
        walls = [box("w", 0, 0, 0, kind="static"), box("v", 2 + slot, 0, 0, kind="static")]
        free, far = moved(compiled(*walls, box("a", 1, 0, 0)))
        assert far[:2].max() == 0.0 and min(gaps(free)) > 1e-9 and far[2] == pytest.approx(0.5 * slot, rel=0.02)
    with pytest.raises(SceneError, match="cannot be separated"):
        free_start(compiled(walls[0], {**walls[1], "position": (2, 0, 0)}, box("a", 1, 0, 0)))


def freed(model, problem):
    """Whether the displacement that a problem tells frees the pair it names."""
    names = list(model.bodies.names)
    first, second = problem.message.split("'")[1], problem.message.split("'")[3]
    mover = problem.remedy.split("'")[1]
    step = np.array([float(x) for x in problem.remedy.split("(")[1].split(")")[0].split(",")])
    assert problem.value <= np.linalg.norm(step) <= 1.005 * problem.value
    q = model.bodies.q.copy()
    q[names.index(mover), :3] += step
    surveyor = Surveyor(model)
    a, b = (surveyor.placed(q, names.index(name)) for name in (first, second))
    return overlap(a, b, 0.0) is None


@pytest.mark.parametrize("seed", range(4))
def test_proposed_displacement_separates_the_pair(seed):
    rng = np.random.default_rng(seed)
    kinds = [{"box": (1, 0.5, 0.8)}, {"sphere": {"radius": 0.4, "subdivisions": 1}}, {"surface": letter_surface("U")}]
    bodies = []
    for k in range(6):
        place, turn = rng.uniform(-0.5, 0.5, 3).tolist(), {"order": "xyz", "degrees": rng.uniform(0, 360, 3).tolist()}
        bodies.append({"name": f"b{k}", **kinds[k % 3], "position": place, "euler": turn})
    model = compiled(*bodies)
    with pytest.raises(SceneError) as caught:
        free_start(model)
    problems = [problem for problem in caught.value.problems if "more pair" not in problem.message]
    assert 2 < len(problems) <= 10 and all(freed(model, problem) for problem in problems)
    assert sorted((p.value for p in problems), reverse=True) == [p.value for p in problems]


def test_depth_in_a_slot_is_the_separating_distance():
    crumb = {"name": "c", "box": (0.2, 0.2, 0.2), "position": (-1 / 6 + 0.1 - 0.01, 0, 0.1)}
    model = compiled(letter("U", 0, 0, 0, kind="static"), crumb)
    with pytest.raises(SceneError) as caught:
        free_start(model)
    (problem,) = caught.value.problems
    assert problem.value == pytest.approx(0.01, rel=1e-6) and freed(model, problem)
    assert "moving 'c' by (0.01" in problem.remedy


def test_many_overlaps_are_counted():
    with pytest.raises(SceneError) as caught:
        free_start(compiled(*[box(f"b{k}", 0.9 * k, 0, 0) for k in range(30)]))
    *told, more = caught.value.problems
    assert len(told) == 10 and more.value == 19 and "19 more pairs intersect" in more.message


def test_states_set_at_run_time_are_checked():
    model = compiled(FLOOR, box("a", 0, 0, 0.7), box("b", 0, 0, 2))
    simulation = Simulation(model, "numpy")
    saved, q = simulation.checkpoint(), model.bodies.q.copy()
    q[2, 2] = 1.5
    for put in (simulation.move_to, lambda q: simulation.restore({**saved, "q": q})):
        with pytest.raises(SceneError, match=r"'a' intersects 'b' in the given state, depth 0.2 m"):
            put(q)
        assert np.array_equal(simulation.stepper.q, model.bodies.q)
    q[2, 2] = 1.7
    simulation.move_to(q)
    assert 0.0 < simulation.stepper.q[2, 2] - simulation.stepper.q[1, 2] - 1.0 < 10.0 * GAP
    assert (model.bodies.kind[1:] == Kind.DYNAMIC).all() and simulation.step().converged


SCENE = """
[[body]]
name = "floor"
half_space = { normal = [0, 0, 1], offset = 0 }

[[body]]
name = "a"
box = [1, 1, 1]
position = [0, 0, HEIGHT]

[[body]]
name = "row"
box = [1, 1, 1]
position = [3, 0, 0.6]
repeat = { count = [2, 1, 1], step = [SPACING, 0, 0] }
"""


def test_command_line_reports_file_and_line(tmp_path, capsys):
    path = tmp_path / "scene.toml"
    path.write_text(SCENE.replace("HEIGHT", "0.4").replace("SPACING", "0.5"))
    for command in (["check", str(path)], ["run", str(path), "--device", "numpy", "--out", str(tmp_path / "run")]):
        assert main(command) == 2
        told = capsys.readouterr().err
        assert f"{path}:6: body.a: 'a' is partly below 'floor' at t = 0, depth 0.1 m" in told
        assert f"{path}:11: body.row_0_0_0: 'row_0_0_0' intersects 'row_1_0_0' at t = 0, depth 0.5 m" in told
        assert "moving 'a' by (0, 0, 0.1" in told and "2 problems" in told
    assert not (tmp_path / "run").exists()
    with pytest.raises(SceneError, match=f"{path}:6"):
        Simulation(path, "numpy")


def test_a_touching_scene_runs_and_resumes(tmp_path, capsys):
    path = tmp_path / "scene.toml"
    path.write_text(SCENE.replace("HEIGHT", "0.5").replace("SPACING", "1"))
    assert main(["check", str(path)]) == 0
    assert "note: bodies that touch at t = 0 were separated: '" in capsys.readouterr().out
    run = ["run", str(path), "--device", "numpy", "--out", str(tmp_path / "run")]
    assert main([*run, "--steps", "1"]) == 0
    assert "separated" in capsys.readouterr().err
    assert main([*run, "--steps", "2", "--resume"]) == 0
