"""The certificate holds for a valid run and reports every inserted violation with frame and bodies."""

import json
from dataclasses import replace
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import abd
from abd.api.simulation import Simulation
from abd.certificate.certificate import Certificate, Violation, certify
from abd.certificate.scene import Scene
from abd.certificate.world import Alike, parts_of
from abd.cli import main
from abd.io.run import run
from abd.io.trajectory import Trajectory
from abd.rotations import pose
from abd.scene.geometry import shapes
from abd.step.frame_path import FramePath

BOX = {"box": (1, 1, 1)}
FLOOR = {"half_space": {}}
TURN = Rotation.from_rotvec((0.3, 1.0, -0.5)).as_matrix()


def write_run(folder, bodies, places, *, steps=1, solver=None, change=lambda scene: None):
    """A run of bodies that stand far apart; their poses in the file are changed to `places`.

    Its frames are two steps apart, so that paths between them are not known.
    """
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01, **(solver or {})})
    for k, body in enumerate(bodies):
        scene.add_body(f"body{k}", **body, **({} if "half_space" in body else {"position": (20.0 * k, 0, 20.0)}))
    change(scene)
    run(scene, scene.compile(), folder, device="numpy", steps=steps, simulate=Simulation)
    with h5py.File(folder / "trajectory.h5", "r+") as file:
        for k, place in enumerate(places):
            T = place if np.shape(place) == (4, 4) else pose(np.eye(3), np.array(place, dtype=float))
            file["bodies/transform"][:, k] = np.broadcast_to(T, (steps + 1, 4, 4))
        file["step"][...] = 2 * np.arange(steps + 1)
    return folder / "trajectory.h5"


def boxes(folder, *places, **options):
    return write_run(folder, [BOX] * len(places), places, **options)


def two_boxes(folder, **options):
    """Two boxes over a half-space."""
    return write_run(folder, [BOX, BOX, FLOOR], [(0, 0, 2), (1.5, 0, 2)], steps=2, **options)


def kinds(certificate):
    """Kind, frame and bodies of all violations."""
    return [(violation.kind, violation.frame, violation.bodies) for violation in certificate.violations]


def in_both(kind, *bodies):
    return [(kind, frame, bodies) for frame in range(2)]


def test_a_good_run_is_certified(tmp_path):
    two_boxes(tmp_path)
    found = certify(tmp_path)
    assert found.ok and found.frames == found.frames_checked == 3 and found.bodies == 3
    assert str(found).startswith("certified")


def shell():
    """A closed surface with a cavity."""
    vertices, triangles = shapes.box((1.0, 1.0, 1.0))
    both = np.concatenate([triangles, triangles[:, ::-1] + 8])
    return {"mesh": (np.concatenate([3.0 * vertices, 2.0 * vertices]), both)}


VERTICES, TRIANGLES = shapes.box((1.0, 1.0, 1.0))
ELSEWHERE = {"mesh": (VERTICES @ TURN.T + (0.25, -0.5, 0.125), TRIANGLES)}
"""A unit box whose mesh is given in another frame."""
BACK = np.linalg.inv(pose(TURN, np.array([0.25, -0.5, 0.125])))
SMALL = {"box": (0.5, 0.5, 0.5)}
STATES = {
    # name: bodies, places, violations in both frames
    "touching faces": ([BOX] * 2, [(0, 0, 0), (1, 0, 0)], in_both("intersection", "body0", "body1")),
    "a corner pierces a face": ([BOX] * 2, [(0, 0, 0), (1 - 1e-9, 0.3, 0.2)], in_both("intersection", "body0", "body1")),
    "a mesh in another frame": ([ELSEWHERE, BOX], [BACK, (1 - 1e-9, 0.3, 0.2)], in_both("intersection", "body0", "body1")),
    "inside": ([BOX, SMALL], [(0, 0, 0), (0.1, 0.05, 0)], in_both("containment", "body1", "body0")),
    "in a cavity and in its wall": (
        [shell(), {"box": (0.2,) * 3}, {"box": (0.2,) * 3}],
        *([(0, 0, 0), (0.1, 0, 0), (1.25, 0, 0)], in_both("containment", "body2", "body0")),
    ),
}


@pytest.mark.parametrize("name", STATES)
def test_intersections_are_violations(tmp_path, name):
    bodies, places, expected = STATES[name]
    write_run(tmp_path, bodies, places)
    assert kinds(certify(tmp_path)) == expected


def test_violation_names_the_frame_of_the_intersection(tmp_path):
    path = boxes(tmp_path, (0, 0, 0), (1.2, 0, 0), (5, 0, 0), steps=4)
    with h5py.File(path, "r+") as file:
        file["bodies/transform"][2, 1, 0, 3] = 0.7
    found = certify(tmp_path)
    assert kinds(found) == [("intersection", 2, ("body0", "body1"))]
    assert "frame 2 (t = 0.02 s): intersection: body0 and body1" in str(found)
    assert certify(tmp_path, every=3).ok


def test_half_space(tmp_path):
    path = two_boxes(tmp_path)
    with h5py.File(path, "r+") as file:
        file["bodies/transform"][1, :2, 2, 3] = 0.5 - 1e-12, 0.5 + 1e-9  # the second one is just clear
    found = certify(tmp_path)
    assert kinds(found) == [("half-space", 1, ("body0", "body2"))]
    assert found.smallest_gap == pytest.approx(-1e-12, abs=1e-15)


PLANTED = {
    # name: path in the file, index, new value, violation
    "no number in a pose": ("bodies/transform", (2, 1, 0, 0), np.nan, ("not finite", 2, ("body1",))),
    "no number in a velocity": ("bodies/velocity", (2, 1, 0, 0), np.nan, ("not finite", 2, ("body1",))),
    "mirrored": ("bodies/transform", (2, 1, 0, 0), -1.0, ("inside out", 2, ("body1",))),
    "time": ("time", 2, 0.01, ("time", 2, ())),
    "converged": ("solver/converged", 1, False, ("not converged", 1, ())),
    "tolerance": ("solver/tolerance_achieved", 1, 2e-3, ("tolerance", 1, ())),
    "tolerance nan": ("solver/tolerance_achieved", 1, np.nan, ("tolerance", 1, ())),
    "gap": ("solver/min_gap", 1, 0.0, ("reported gap", 1, ())),
    "gap nan": ("solver/min_gap", 1, np.nan, ("reported gap", 1, ())),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_values(tmp_path, name):
    path, index, value, violation = PLANTED[name]
    with h5py.File(two_boxes(tmp_path), "r+") as file:
        file[path][index] = value
    assert kinds(certify(tmp_path)) == [violation]


def cord(*ends, radius):
    """A body of one codimensional edge."""
    return {"surface": {"vertices": ends, "edges": [(0, 1)]}, "radius": radius, "mass": 1.0, "inertia": (1, 1, 1)}


@pytest.mark.parametrize("radius, separation, gap", [(0.04, 0.0, 0.02), (0.04, 0.03, -0.01), (0.06, 0.0, -0.02)])
def test_thick_rods_and_minimum_separation(tmp_path, radius, separation, gap):
    rods = [cord((-1, 0, 0), (1, 0, 0), radius=radius), cord((0, -1, 0.1), (0, 1, 0.1), radius=radius)]
    write_run(tmp_path, rods, [(0, 0, 0)] * 2, solver={"minimum_separation": separation, "d_hat": 0.05})
    found = certify(tmp_path)
    assert found.smallest_gap == pytest.approx(gap, abs=1e-15)
    assert kinds(found) == (in_both("gap", "body0", "body1") if gap < 0.0 else [])


def test_a_ball_in_a_rod_among_rods_of_one_group(tmp_path):
    """Rods of one group may overlap each other, but no ball."""
    rods = [cord((-1, 0, 0), (1, 0, 0), radius=0.05) | {"group": 1} for _ in range(2)]
    write_run(tmp_path, [*rods, {"sphere": {"radius": 0.05}}], [(0, 0, 0), (0, 0, 9), (0.1, 0, 0.08)], solver={"d_hat": 0.05})
    assert kinds(certify(tmp_path)) == in_both("gap", "body0", "body2")


def pinned(scene, **keys):
    scene.add_spherical("pin", "body0", "body1", anchor=(10, 0, 20), **keys)


OVERLAPPING = ((0, 0, 0), (0.7, 0.1, 0.2))
def slick(scene):
    scene.add_material("slick")
    scene.add_material_pair("slick", "slick", enabled=False)


SLICK = {"material": "slick"}
OVERLAPS = {
    # name: keys of the first two bodies, change of the scene, whether they may overlap
    "group": ({"group": 4}, {"group": 4}, lambda scene: None, True),
    "world": ({"world": 0}, {"world": 1}, lambda scene: None, True),
    "kind": ({"kind": "static"}, {"kind": "kinematic", "motion": {"velocity": (0, 0, 0)}}, lambda scene: None, True),
    "material": (SLICK, SLICK, slick, True),
    "joint": ({}, {}, pinned, True),
    "joint of bodies that collide": ({}, {}, lambda scene: pinned(scene, collide=True), False),
}


@pytest.mark.parametrize("name", OVERLAPS)
def test_only_pairs_that_must_not_overlap_are_reported(tmp_path, name):
    first, second, change, may = OVERLAPS[name]
    far = [tuple(np.add(place, (5, 0, 0))) for place in OVERLAPPING]
    write_run(tmp_path, [BOX | first, BOX | second, BOX, BOX], [*OVERLAPPING, *far], change=change)
    pairs = [(2, 3)] if may else [(0, 1), (2, 3)]
    expected = [("intersection", frame, (f"body{i}", f"body{j}")) for frame in range(2) for i, j in pairs]
    assert sorted(kinds(certify(tmp_path))) == sorted(expected)


def move(path, moves, spin=None):
    """Move bodies [m] and turn them (rotation vectors [rad], which their velocities say) in the only step of a run."""
    spin = np.zeros_like(moves, dtype=float) if spin is None else np.asarray(spin, dtype=float)
    with h5py.File(path, "r+") as file:
        n = len(moves)
        center, T = file["bodies/center"][:n], file["bodies/transform"][0, :n]
        turned = Rotation.from_rotvec(spin).as_matrix() @ T[:, :3, :3]
        place = np.einsum("nij,nj->ni", T[:, :3, :3], center) + T[:, :3, 3] + moves
        file["bodies/transform"][1, :n, :3, :3] = turned
        file["bodies/transform"][1, :n, :3, 3] = place - np.einsum("nij,nj->ni", turned, center)
        for body, (x, y, z) in enumerate(spin / 0.01):
            rate = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) @ T[body, :3, :3]
            file["bodies/velocity"][0, body, :3, :3] = rate
        file["step"][1] = 1


BAR = {"box": (2.0, 0.2, 0.2)}
QUARTER, STILL = [(0, 0, np.pi / 2), (0, 0, 0)], [(0, 0, 0)] * 2
PATHS = {
    # name: bodies, places, moves, spins, whether the path is free
    "through another body": ([BOX] * 3, [(0, 0, 0), (3, 0, 0), (9, 0, 0)], [(6, 0, 0), (0, 0, 0), (0, 0, 0)], None, False),
    "corners that turn": ([BOX] * 2, [(0, 0, 0), (1.1, 0, 0)], STILL, QUARTER, False),
    "corners that do not turn": ([BOX] * 2, [(0, 0, 0), (1.1, 0, 0)], STILL, None, True),
    "a short turn": ([BAR] * 2, [(0, 0, 0), (0, 0.7, 0)], STILL, [(0, 0, 0.2), (0, 0, 0)], True),
    "the same the long way": ([BAR] * 2, [(0, 0, 0), (0, 0.7, 0)], STILL, [(0, 0, 0.2 - 2 * np.pi), (0, 0, 0)], False),
    "a small gap that slides and turns": (
        [BOX] * 2, [(0, 0, 0), (0.1, 0, 1 + 1e-5)], [(0, 0, 0), (0.05, 0, 0)], [(0, 0, 0), (0, 0, 0.3)], True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PATHS)
def test_paths_between_frames(tmp_path, name):
    """All states are free; velocities determine the direction of rotation between them."""
    bodies, places, moves, spin, free = PATHS[name]
    move(write_run(tmp_path, bodies, places), moves, spin=spin)
    found = certify(tmp_path)
    assert found.paths_checked == 1 and "1 paths" in str(found)
    assert kinds(found) == ([] if free else [("path", 1, ("body0", "body1"))])


def test_a_path_through_a_half_space(tmp_path):
    """A full turn of a box whose corner reaches deeper than its faces is reported."""
    path = write_run(tmp_path, [BOX, FLOOR], [(0, 0, 2)])
    move(path, [(0, 0, 0)], spin=[(2 * np.pi, 0, 0)])
    assert certify(tmp_path).ok
    with h5py.File(path, "r+") as file:
        file["bodies/transform"][:, 0, 2, 3] = 0.6
    assert kinds(certify(tmp_path)) == [("path", 1, ("body0", "body1"))]


@pytest.mark.parametrize("moved", range(4))
def test_paths_and_gaps_of_rods_of_many_radii(tmp_path, moved):
    """Of rods with radii from 0 to 0.2 m, 1 mm apart, only the pair that intersects is reported."""
    radius = [0.0, 0.004, 0.01, 0.05, 0.2]
    rods = [cord((-1, 0, 0), (1, 0, 0), radius=r) for r in radius]
    heights = np.concatenate([[0.0], np.cumsum(np.array(radius[:-1]) + radius[1:] + 1e-3)])
    path = write_run(tmp_path, rods, [(0, 0, z) for z in heights], solver={"d_hat": 0.01})
    aside = [(0.0, 0.0, 0.0)] * 5
    aside[moved + 1] = (0.0, 0.0, -2.1 * (radius[moved] + radius[moved + 1] + 1e-3))
    aside[moved + 2 :] = [(0.0, 3.0 * (k + 1), 0.0) for k in range(3 - moved)]
    aside[:moved] = [(0.0, -3.0 * (k + 1), 0.0) for k in range(moved)]
    move(path, aside)
    found = certify(tmp_path)
    assert kinds(found) == [("path", 1, (f"body{moved}", f"body{moved + 1}"))]
    assert found.smallest_gap == pytest.approx(1e-3, rel=1e-9)


THIN = {"box": BOX, "wire": cord((-0.5, 0, 0), (0.5, 0.1, 0), radius=0.0)}
THICK = {
    "ball": {"sphere": {"radius": 0.3}},
    "rod": cord((-0.4, 0, 0), (0.4, 0, 0), radius=0.2),
    "round box": {"box": (0.6, 0.6, 0.6), "rounding": 0.1},
}


@pytest.mark.parametrize("thick", THICK)
@pytest.mark.parametrize("thin", THIN)
def test_gaps_of_thick_and_thin_bodies_are_those_of_all_primitives(tmp_path, thick, thin):
    """The pairs of bodies of different radii have the gaps that ipctk finds among all bodies."""
    rng = np.random.default_rng(3)
    bodies = [THIN[thin], THICK[thick], THIN[thin]]
    path = write_run(tmp_path, bodies, [(0, 0, 0)] * 3, solver={"d_hat": 0.5})
    with h5py.File(path) as file:
        scene = Scene(file)
    (_, parts), everything = parts_of(scene, 0), Alike(scene, np.ones(3, dtype=bool))
    found = []
    for _ in range(20):
        turned = Rotation.random(3, random_state=rng).as_matrix()
        T = np.stack([pose(R, place) for R, place in zip(turned, rng.uniform(-0.7, 0.7, (3, 3)), strict=True)])
        positions = scene.positions(T)
        gap = min(part.smallest_gap(part.place(positions))[0] for part in parts)
        assert gap == pytest.approx(super(Alike, everything).smallest_gap(everything.place(positions))[0], abs=1e-12)
        found.append(gap)
    assert len(parts) == 3 and np.isfinite(found).sum() > 4 and np.min(found) < 0.1


def test_paths_over_several_steps_are_unknown(tmp_path):
    scene = abd.Scene(gravity=(0, 0, 0), output={"every": 3})
    scene.add_body("box", box=(1, 1, 1), velocity=(1, 0, 0))
    abd.run(scene, steps=6, record=tmp_path / "run")
    found = certify(tmp_path / "run")
    assert found.ok and found.paths_checked == 0 and "(2 unknown)" in str(found)


def test_paths_along_the_iterates_are_certified(tmp_path):
    """Where a peg meets the edge of its socket, the direct arc intersects the edge and the iterates do not."""
    abd.run("peg", steps=138, record=tmp_path / "run")
    found = certify(tmp_path / "run")
    assert found.ok and found.paths_checked == 138 and found.paths_unknown == 0
    with h5py.File(tmp_path / "run" / "trajectory.h5", "r+") as file:
        assert file["solver/indirect_paths"][:].sum() == 1
        assert len(file["paths/transform"]) > 1
        file["paths/offset"][...] = 0  # the direct arcs
    assert kinds(certify(tmp_path / "run")) == [("path", 137, ("socket", "peg"))]


def test_paths_through_substeps_are_certified(tmp_path):
    """A box at 30 m/s bounces off a wall in the middle of a step; its speed of rotation differs between the substeps."""
    scene = abd.Scene(gravity=(0, 0, 0))
    scene.add_material("default", restitution=1.0, mu=0.5)
    scene.add_body("wall", kind="static", box=(1, 1, 1))
    scene.add_body("box", box=(0.1,) * 3, position=(0.7, 0.1, 0), velocity=(-30, 0, 0), angular_velocity=(0, 40, 0))
    abd.run(scene, steps=3, record=tmp_path / "run")
    path = tmp_path / "run" / "trajectory.h5"
    found = certify(path)
    assert found.ok and found.paths_checked == 3
    with h5py.File(path, "r+") as file:
        assert (np.diff(file["paths/offset"]) >= file["solver/substeps"][:] - 1)[1:].all()
        assert len(file["paths/length"]) > 0
        file["paths/transform"][:, 1, 0, 3] = -0.7
    assert {kind for kind, _, _ in kinds(certify(path))} == {"path"}


def test_worlds_pass_through_the_ends_of_their_own_substeps(tmp_path):
    """Boxes of two worlds hit a wall in one step, at different speeds; that of a third world stays away."""
    scene = abd.Scene(gravity=(0, 0, 0))
    scene.add_body("wall", kind="static", box=(1, 1, 1))
    scene.add_body("box", box=(0.1,) * 3, position=(0.75, 0, 0))
    sim = abd.Simulation(scene.replicate(3), device="cpu")
    for world, speed in enumerate((30.0, 45.0, 1.0)):
        sim.bodies[f"w{world}_box"].linear_velocity = (-speed, 0.0, 0.0)
    sim.run(steps=2, record=tmp_path / "run")
    found = certify(tmp_path / "run")
    assert found.ok and found.paths_checked == 2


def test_iterates_of_a_body_that_turns_fast_are_no_known_path():
    path, q, rates = FramePath(), np.tile([0.0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1], (2, 1)), np.zeros((2, 12))
    rates[:, [4, 6]] = [-600.0, 600.0]
    path.add_iterates([SimpleNamespace(wait=lambda: [q])] * 2, q, rates, np.array([0.01, 0.0]))
    assert len(path.q) == 1 and np.isnan(path.length[0]).all()


def test_a_path_is_not_accepted_along_missing_iterates(tmp_path):
    """A bar at 210 rad/s would pass through a post, at a pose between two iterates without contact candidates."""
    scene, angle = abd.Scene(), 1.3229978409229033
    scene.add_material("default", mu=0.3)
    velocity = (0.19837475, -1.88976355, 1.01405243)
    scene.add_body("bar", box=(1, 0.05, 0.05), angular_velocity=(0, 0, 210.3715965787016), velocity=velocity)
    post = 0.4 * np.cos(angle), 0.4 * np.sin(angle), 0
    scene.add_body("post", kind="static", box=(0.1, 0.1, 1), position=post)
    abd.run(scene, steps=2, record=tmp_path / "run", device="cpu")
    found = certify(tmp_path / "run")
    assert found.ok and found.paths_checked == 2


def test_command_line(tmp_path, capsys, monkeypatch):
    path = boxes(tmp_path, (0, 0, 0), (1.2, 0, 0), steps=2)
    monkeypatch.setattr(Trajectory, "verify", lambda self: None)  # these poses differ from their hashes
    assert main(["certify", str(tmp_path)]) == 0 and "certified" in capsys.readouterr().out
    with h5py.File(path, "r+") as file:
        file["bodies/transform"][2, 1, 0, 3] = 0.7
    assert main(["certify", str(path), "--json"]) == 1
    values = json.loads(capsys.readouterr().out)
    assert not values["ok"]
    assert values["violations"][0]["bodies"] == ["body0", "body1"] and values["violations"][0]["frame"] == 2
    assert main(["certify", str(tmp_path / "nowhere")]) == 2 and "nowhere" in capsys.readouterr().err


@pytest.mark.parametrize("asked", [["--certify"], ["-o", "output.certificate=true"]])
def test_a_run_certifies_itself(tmp_path, capsys, asked):
    out = tmp_path / "run"
    assert main(["run", "falling_box", "--device", "cpu", "--steps", "3", "--out", str(out), *asked]) == 0
    assert "certified: " in capsys.readouterr().out.splitlines()[-1]
    with h5py.File(out / "trajectory.h5") as file:
        stored = file["certificate"]
        assert stored.attrs["ok"] and stored.attrs["frames_checked"] == 4 and len(stored["violations"]) == 0
    # what was certified is not what a resumed run holds
    assert main(["run", "falling_box", "--device", "cpu", "--steps", "5", "--out", str(out), "--resume"]) == 0
    with h5py.File(out / "trajectory.h5") as file:
        assert "certificate" not in file


def test_violations_end_a_run_with_status_1(tmp_path, capsys, monkeypatch):
    found = Certificate("here", 1, violations=[Violation(0, 0.0, "intersection", ("a", "b"), "they meet")])
    monkeypatch.setattr("abd.certificate.certificate.certify", lambda run, every: replace(found, path=str(run)))
    out = tmp_path / "run"
    assert main(["run", "falling_box", "--device", "cpu", "--steps", "1", "--out", str(out), "--certify", "--json"]) == 1
    assert not json.loads(capsys.readouterr().out.splitlines()[-1])["certificate"]["ok"]
    with h5py.File(out / "trajectory.h5") as file:
        assert b"a and b" in file["certificate/violations"][0]
