"""The certificate holds for a good run and catches every planted violation, naming frame and bodies."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from fake_simulation import BOX, BOX_TRIANGLES, FakeSimulation, body_frame, mesh_of, model_of, pose
from fake_simulation import two_boxes_over_a_plane as two_boxes
from scipy.spatial.transform import Rotation

import abd
from abd.api.simulation import Simulation
from abd.certificate.certificate import Certificate, Violation, certify
from abd.cli import main
from abd.io.frame import FrameReader, SolverRow
from abd.io.initial import initial_report
from abd.io.run import run
from abd.io.trajectory_writer import TrajectoryWriter
from abd.model import Joint, Kind, Mesh


def write_run(folder, model, steps: int = 2):
    """A run in which nothing moves; returns the path of its trajectory."""
    sim = FakeSimulation(model)
    sim.model.settings.gravity[:] = 0.0
    path = folder / "trajectory.h5"
    report, row = initial_report(model, sim.host_state()), SolverRow()
    row.add(report)
    block = {name: np.asarray(value)[None] for name, value in FrameReader(sim).read(report, row).values().items()}
    with TrajectoryWriter(path, model, [block], sim.checkpoint()) as writer:
        for step in range(1, steps + 1):
            values = {name: value[0] for name, value in block.items()}
            values["/time"], values["/step"] = np.float64(0.01 * step), np.int64(step)
            values["/solver/min_gap"], values["/solver/tolerance_achieved"] = np.float64(0.1), np.float64(1e-4)
            writer.append(values)
        writer.flush(sim.checkpoint())
    return path


def kinds(certificate):
    """Kind, frame and bodies of all violations."""
    return [(violation.kind, violation.frame, violation.bodies) for violation in certificate.violations]


def boxes(*places, scale=None, **options):
    """Boxes at positions (x, y, z), each with a scale of its own: one mesh per box."""
    scale = scale or [1.0] * len(places)
    meshes = [mesh_of(factor * BOX, BOX_TRIANGLES) for factor in scale]
    return model_of([pose(*place) for place in places], meshes, list(range(len(places))), **options)


def test_a_good_run_is_certified(tmp_path):
    write_run(tmp_path, two_boxes())
    found = certify(tmp_path)
    assert found.ok and found.frames == found.frames_checked == 3 and found.bodies == 3
    assert str(found).startswith("certified")


@pytest.mark.parametrize("turned", [False, True])
def test_intersection(tmp_path, turned):
    """Also of meshes that are stored in another frame, and of a corner that only just pierces a face."""
    frames = np.array([body_frame(), np.eye(4), np.eye(4)]) if turned else None
    inner = BOX @ body_frame()[:3, :3].T + body_frame()[:3, 3] if turned else BOX
    meshes = [mesh_of(inner, BOX_TRIANGLES), mesh_of(BOX, BOX_TRIANGLES)]
    model = model_of([pose(), pose(1.0 - 1e-9, 0.3, 0.2), pose(9.0)], meshes, [0, 1, 1], body_frames=frames)
    write_run(tmp_path, model, steps=1)
    assert kinds(certify(tmp_path)) == [("intersection", frame, ("body0", "body1")) for frame in (0, 1)]


def test_only_the_frame_with_the_intersection_is_named(tmp_path):
    path = write_run(tmp_path, boxes((0, 0, 0), (1.2, 0, 0), (5, 0, 0)), steps=4)
    with h5py.File(path, "r+") as file:
        file["bodies/transform"][2, 1, 0, 3] = 0.7
    found = certify(tmp_path)
    assert kinds(found) == [("intersection", 2, ("body0", "body1"))]
    assert "frame 2 (t = 0.02 s): intersection: body0 and body1" in str(found)
    assert certify(tmp_path, every=3).ok


def test_containment(tmp_path):
    write_run(tmp_path, boxes((0, 0, 0), (0.1, 0.05, 0), scale=[1.0, 0.5]), steps=1)
    assert kinds(certify(tmp_path)) == [("containment", frame, ("body1", "body0")) for frame in (0, 1)]


def test_a_hollow_body_may_hold_another(tmp_path):
    """Winding numbers: a box inside the cavity of a closed surface is outside of it, one inside its wall is not."""
    shell = np.concatenate([3.0 * BOX, 2.0 * BOX])
    triangles = np.concatenate([BOX_TRIANGLES, BOX_TRIANGLES[:, ::-1] + 8])
    meshes = [mesh_of(shell, triangles), mesh_of(0.2 * BOX, BOX_TRIANGLES)]
    model = model_of([pose(), pose(0.1), pose(1.25)], meshes, [0, 1, 1])
    write_run(tmp_path, model, steps=1)
    assert kinds(certify(tmp_path)) == [("containment", frame, ("body2", "body0")) for frame in (0, 1)]


def test_half_space(tmp_path):
    path = write_run(tmp_path, two_boxes())
    with h5py.File(path, "r+") as file:
        file["bodies/transform"][1, 0, 2, 3] = 0.5 - 1e-12
        # The internal frame is one thing, the height of the lowest vertex another: this one is just clear.
        file["bodies/transform"][1, 1, 2, 3] = 0.5 + 1e-9
    found = certify(tmp_path)
    assert kinds(found) == [("half-space", 1, ("body0", "body2"))]
    assert found.smallest_gap == pytest.approx(-1e-12, abs=1e-15)


@pytest.mark.parametrize("name", ["transform", "velocity"])
def test_not_finite(tmp_path, name):
    path = write_run(tmp_path, two_boxes())
    with h5py.File(path, "r+") as file:
        file[f"bodies/{name}"][2, 1, 0, 0] = np.nan
    assert kinds(certify(tmp_path)) == [("not finite", 2, ("body1",))]


def test_inside_out(tmp_path):
    path = write_run(tmp_path, two_boxes())
    with h5py.File(path, "r+") as file:
        file["bodies/transform"][2, 1, 0, 0] *= -1.0
    assert kinds(certify(tmp_path)) == [("inside out", 2, ("body1",))]


@pytest.mark.parametrize(
    ("dataset", "value", "kind"),
    [
        ("converged", False, "not converged"),
        ("tolerance_achieved", 2e-3, "tolerance"),
        ("tolerance_achieved", np.nan, "tolerance"),
        ("min_gap", 0.0, "reported gap"),
        ("min_gap", np.nan, "reported gap"),
    ],
)
def test_what_the_solver_says(tmp_path, dataset, value, kind):
    path = write_run(tmp_path, two_boxes())
    with h5py.File(path, "r+") as file:
        file[f"solver/{dataset}"][1] = value
    assert kinds(certify(tmp_path)) == [(kind, 1, ())]


def test_time_must_grow(tmp_path):
    path = write_run(tmp_path, two_boxes())
    with h5py.File(path, "r+") as file:
        file["time"][2] = file["time"][1]
    assert kinds(certify(tmp_path)) == [("time", 2, ())]


def test_touching_faces_are_a_gap_of_zero(tmp_path):
    write_run(tmp_path, boxes((0, 0, 0), (1, 0, 0)), steps=1)
    assert not certify(tmp_path).ok


def cord(*ends):
    """A mesh of one codimensional edge."""
    empty = np.empty((0, 3), np.int32)
    edge = np.array([[0, 1]], np.int32)
    return Mesh("cord", np.array(ends, dtype=float), empty, edge, edge, np.empty(0, np.int32), closed=False)


def test_thick_rods_and_minimum_separation(tmp_path):
    """Rods have no triangle to pierce: what counts is their distance less both radii."""
    rods = [cord((-1, 0, 0), (1, 0, 0)), cord((0, -1, 0.1), (0, 1, 0.1))]
    for radius, separation, gap in ((0.04, 0.0, 0.02), (0.04, 0.03, -0.01), (0.06, 0.0, -0.02)):
        folder = tmp_path / f"{radius}-{separation}"
        folder.mkdir()
        settings = {"minimum_separation": separation, "d_hat": 0.05}
        write_run(folder, model_of([pose(), pose()], rods, [0, 1], radius=[radius] * 2, **settings), steps=1)
        found = certify(folder)
        assert found.smallest_gap == pytest.approx(gap, abs=1e-15)
        assert kinds(found) == [("gap", frame, ("body0", "body1")) for frame in (0, 1) if gap < 0.0]


OVERLAPPING = ((0, 0, 0), (0.7, 0.1, 0.2))


@pytest.mark.parametrize(
    "options",
    [
        {"group": [4, 4]},
        {"world": [0, 1]},
        {"kind": [Kind.STATIC, Kind.KINEMATIC]},
        {"joints": [Joint("pin", "spherical", 26, 0, 1, pose(), pose())]},
    ],
    ids=["group", "world", "kind", "joint"],
)
def test_pairs_that_may_overlap_are_left_out(tmp_path, options):
    """A third and fourth body that do intersect are still found beside them."""
    write_run(tmp_path, boxes(*OVERLAPPING, **options), steps=1)
    assert certify(tmp_path).ok

    more = {"group": [-1, -1], "world": [0, 0], "kind": [Kind.DYNAMIC] * 2}
    options = {name: value + more.get(name, []) for name, value in options.items()}
    far = [tuple(np.add(place, (5, 0, 0))) for place in OVERLAPPING]
    (tmp_path / "both").mkdir()
    write_run(tmp_path / "both", boxes(*OVERLAPPING, *far, **options), steps=1)
    found = kinds(certify(tmp_path / "both"))
    assert [bodies for kind, _, bodies in found if kind == "intersection"] == [("body2", "body3")] * 2


def test_joined_bodies_that_collide_are_looked_at(tmp_path):
    joint = Joint("pin", "spherical", 26, 0, 1, pose(), pose(), collide=True)
    write_run(tmp_path, boxes(*OVERLAPPING, joints=[joint]), steps=1)
    assert not certify(tmp_path).ok


def test_materials_that_do_not_meet(tmp_path):
    model = boxes(*OVERLAPPING)
    model.materials.enabled[:] = False
    write_run(tmp_path, model, steps=1)
    assert certify(tmp_path).ok


def moving(folder, model, moves, substeps: int = 1, spin=None) -> Path:
    """A run of one step in which bodies are moved [m] and turned (rotation vectors [rad], which their velocities say)."""
    path = write_run(folder, model, steps=1)
    spin = np.zeros_like(moves) if spin is None else np.asarray(spin)
    with h5py.File(path, "r+") as file:
        center, T = file["bodies/center"][...], file["bodies/transform"][0]
        turned = Rotation.from_rotvec(spin).as_matrix() @ T[:, :3, :3]
        place = np.einsum("nij,nj->ni", T[:, :3, :3], center) + T[:, :3, 3] + moves
        file["bodies/transform"][1, :, :3, :3] = turned
        file["bodies/transform"][1, :, :3, 3] = place - np.einsum("nij,nj->ni", turned, center)
        for body, (x, y, z) in enumerate(np.asarray(spin) / 0.01):
            rate = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) @ T[body, :3, :3]
            file["bodies/velocity"][0, body, :3, :3] = rate
        file["solver/substeps"][1] = substeps
    return path


def test_a_way_through_another_body(tmp_path):
    """Every state is free, but the first body ends behind the second one."""
    model = boxes((0, 0, 0), (3, 0, 0), (9, 0, 0))
    moving(tmp_path, model, [(6, 0, 0), (0, 0, 0), (0, 0, 0)])
    found = certify(tmp_path)
    assert kinds(found) == [("path", 1, ("body0", "body1"))] and found.paths_checked == 1
    assert "1 paths" in str(found)


def test_ways_and_gaps_of_rods_of_many_radii(tmp_path):
    """Rods of no, small and large radius side by side, far closer than the largest radius: one of them, whose turn it is each
    time, goes through its neighbour. Only that pair is named, whatever else is near."""
    radius = [0.0, 0.004, 0.01, 0.05, 0.2]
    rods = [cord((-1, 0, 0), (1, 0, 0))]
    heights = np.concatenate([[0.0], np.cumsum(np.array(radius[:-1]) + radius[1:] + 1e-3)])
    model = model_of([pose(0, 0, z) for z in heights], rods, [0] * 5, radius=radius, d_hat=0.01)
    for moved in range(4):
        (tmp_path / str(moved)).mkdir()
        up = 2.1 * (radius[moved] + radius[moved + 1] + 1e-3)
        aside = [(0.0, 0.0, 0.0)] * 5
        aside[moved + 1] = (0.0, 0.0, -up)
        aside[moved + 2 :] = [(0.0, 3.0 * (k + 1), 0.0) for k in range(3 - moved)]
        aside[:moved] = [(0.0, -3.0 * (k + 1), 0.0) for k in range(moved)]
        found = certify(moving(tmp_path / str(moved), model, aside))
        assert kinds(found) == [("path", 1, (f"body{moved}", f"body{moved + 1}"))]
        assert found.smallest_gap == pytest.approx(1e-3, rel=1e-9)


def test_a_way_through_a_half_space(tmp_path):
    """A whole turn of a box whose corner reaches deeper than its faces; the velocity says that it is one."""
    path = moving(tmp_path, two_boxes(), [(0, 0, 0)] * 3, spin=[(2 * np.pi, 0, 0), (0, 0, 0), (0, 0, 0)])
    assert certify(tmp_path).ok
    with h5py.File(path, "r+") as file:
        file["bodies/transform"][:, 0, 2, 3] = 0.6
    assert kinds(certify(tmp_path)) == [("path", 1, ("body0", "body2"))]


def test_a_body_that_turns_on_the_way(tmp_path):
    """A box of edge 1 with 1.1 m of capacity turns by a quarter: its corners meet the neighbour; by nothing, they do not."""
    for angle, free in ((np.pi / 2, False), (0.0, True)):
        folder = tmp_path / f"{angle:.1f}"
        folder.mkdir()
        moving(folder, boxes((0, 0, 0), (1.1, 0, 0)), [(0, 0, 0)] * 2, spin=[(0, 0, angle), (0, 0, 0)])
        assert kinds(certify(folder)) == ([] if free else [("path", 1, ("body0", "body1"))])


def test_a_turn_of_more_than_half(tmp_path):
    """The velocity says which way round: a bar that is turned by 0.2 the long way sweeps its neighbour away."""
    bars = [mesh_of(BOX * (2.0, 0.2, 0.2), BOX_TRIANGLES)] * 2
    model = model_of([pose(), pose(0, 0.7, 0)], bars, [0, 1])
    for turn, free in ((0.2, True), (0.2 - 2 * np.pi, False)):
        folder = tmp_path / f"{free}"
        folder.mkdir()
        moving(folder, model, [(0, 0, 0)] * 2, spin=[(0, 0, turn), (0, 0, 0)])
        assert kinds(certify(folder)) == ([] if free else [("path", 1, ("body0", "body1"))])


def test_tight_gaps_and_turning_bodies_are_free(tmp_path):
    """A box that slides and turns 1e-5 m above another: the chords of its corners are no closer than the arcs."""
    model = boxes((0, 0, 0), (0.1, 0, 1 + 1e-5))
    moving(tmp_path, model, [(0, 0, 0), (0.05, 0, 0)], spin=[(0, 0, 0), (0, 0, 0.3)])
    assert certify(tmp_path).ok


def test_ways_of_substeps_are_not_known(tmp_path):
    model = boxes((0, 0, 0), (3, 0, 0), (9, 0, 0))
    moving(tmp_path, model, [(6, 0, 0), (0, 0, 0), (0, 0, 0)], substeps=2)
    found = certify(tmp_path)
    assert found.ok and found.paths_checked == 0 and found.paths_unknown == 1
    assert "1 of substeps unknown" in str(found)


def test_a_run_of_the_solver_has_free_ways(tmp_path):
    scene = abd.Scene(solver={"dt": 0.02})
    scene.add_body("ground", half_space={})
    scene.add_body("low", box=(0.2,) * 3, position=(0, 0, 0.11))
    scene.add_body("top", box=(0.2,) * 3, position=(0.05, 0.03, 0.4), velocity=(0, 0, -2), angular_velocity=(1, 5, 2))
    run(scene, scene.compile(), tmp_path / "run", device="cpu", steps=25, simulate=Simulation)
    found = certify(tmp_path / "run")
    assert found.ok, str(found)
    assert found.paths_checked >= 24


def test_command_line(tmp_path):
    path = write_run(tmp_path, boxes((0, 0, 0), (1.2, 0, 0)), steps=2)

    def command(*arguments):
        return subprocess.run([sys.executable, "-m", "abd.cli", "certify", *arguments], capture_output=True, text=True)

    good = command(str(tmp_path))
    assert good.returncode == 0 and "certified" in good.stdout
    with h5py.File(path, "r+") as file:
        file["bodies/transform"][2, 1, 0, 3] = 0.7
        del file["chain"], file.attrs["chain"]  # as files of version 0.1.0, which have no hashes
    bad = command(str(path), "--json")
    values = json.loads(bad.stdout)
    assert bad.returncode == 1 and not values["ok"]
    assert values["violations"][0]["bodies"] == ["body0", "body1"] and values["violations"][0]["frame"] == 2
    missing = command(str(tmp_path / "nowhere"))
    assert missing.returncode == 2 and "nowhere" in missing.stderr and "Traceback" not in missing.stderr


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


def test_a_certificate_that_cannot_be_made_is_said_before_the_run(tmp_path, capsys, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("abd.certificate.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ipctk", None)
    assert main(["run", "falling_box", "--out", str(tmp_path / "run"), "--certify"]) == 2
    assert "pip install 'abd-solver[certify]'" in capsys.readouterr().err and not (tmp_path / "run").exists()
