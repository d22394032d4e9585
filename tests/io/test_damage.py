"""Full disks leave readable, resumable files; modified files are rejected in one line."""

import resource
import shutil
import subprocess
import sys
from functools import partial

import h5py
import numpy as np
import pytest

import abd
from abd.cli import main
from abd.commands.certify import certify_run
from abd.io.checkpoint import CheckpointError
from abd.io.trajectory import Trajectory

STEPS = 12


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """Four boxes on a floor, a joint and a sensor; contacts are written."""
    scene = abd.Scene(output={"contacts": True})
    scene.add_body("floor", half_space={})
    for k in range(4):
        scene.add_body(f"box{k}", box=(0.1, 0.1, 0.1), position=(0.2 * k, 0, 0.051))
    scene.add_hinge("hinge", "box0", "box1", anchor=(0.1, 0, 0.1), axis=(0, 1, 0))
    path = tmp_path_factory.mktemp("scene") / "scene.toml"
    scene.save(path)
    return path


@pytest.fixture(scope="module")
def whole(scene, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "run"
    assert main(["run", str(scene), "--device", "cpu", "--steps", str(STEPS), "--out", str(run), "--quiet"]) == 0
    return run


@pytest.fixture
def run(whole, tmp_path):
    """A copy of the run, which a test changes."""
    return shutil.copytree(whole, tmp_path / "run")


def change_file(run, change) -> None:
    with h5py.File(run / "trajectory.h5", "r+") as file:
        change(file)


def resume(scene, run) -> list[str]:
    return ["run", str(scene), "--device", "cpu", "--steps", "20", "--out", str(run), "--resume", "--quiet"]


def assert_damaged(command: list[str], capsys) -> None:
    """Assert that a command ends with one line that names the file."""
    capsys.readouterr()
    assert main(command) == 2, command
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1 and "trajectory.h5" in said and "damaged" in said


def limited(command: list[str], most: int) -> subprocess.CompletedProcess:
    """The command where no file may have more than so many bytes; it writes no bytecode, which would be cut off as well."""
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (most, most))
    return subprocess.run([sys.executable, "-B", "-m", "abd.cli", *command], preexec_fn=limit, capture_output=True, text=True)


@pytest.mark.parametrize("percent", [2, 40, 120])
def test_a_full_disk_ends_a_run_in_one_line(percent, scene, whole, tmp_path):
    run = tmp_path / "run"
    command = ["run", str(scene), "--device", "cpu", "--out", str(run), "--quiet", "--steps", str(12 * STEPS)]
    size = (whole / "trajectory.h5").stat().st_size
    done = limited(command, percent * size // 100)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "do not fit" in done.stderr, done.stderr
    if not (run / "trajectory.h5").exists():
        assert not list(run.glob("*"))  # not even the first frame had space
        return
    with Trajectory(run) as trajectory:
        trajectory.verify()
        kept = len(trajectory)
        before = trajectory.series("/bodies/transform")
    assert main([*command, "--resume"]) == 0
    with Trajectory(run) as trajectory, Trajectory(whole) as other:
        found = trajectory.series("/bodies/transform")
        assert len(trajectory) == 12 * STEPS + 1
        np.testing.assert_array_equal(found[:kept], before)
        np.testing.assert_array_equal(found[: STEPS + 1], other.series("/bodies/transform"))


@pytest.mark.parametrize(
    "to, suffix, most",
    [("glb", ".glb", 100), ("obj", "", 2000), ("usd", ".usda", 100), ("usd", ".usdz", 2000), ("vtk", ".vtkhdf", 2000)],
)
def test_a_full_disk_ends_an_export_in_one_line(to, suffix, most, whole, tmp_path):
    if to == "usd":
        pytest.importorskip("pxr")
    done = limited(["export", "--to", to, "--out", str(tmp_path / f"out{suffix}"), str(whole)], most)
    assert done.returncode in (1, 2) and len(done.stderr.splitlines()) == 1, done.stderr
    assert not list(tmp_path.iterdir())


def put(path, index, change):
    """Replace values of a dataset by a function of them."""
    return lambda file: file[path].__setitem__(index, change(file[path][index]))


CHANGES = {
    "swapped frames": put("bodies/transform", [3, 5], lambda x: x[::-1]),
    "moved": put("bodies/transform", (4, 1, 0, 3), lambda x: x + 0.01),
    "no velocities": put("bodies/velocity", ..., lambda x: 0.0 * x),
    "later": put("time", -1, lambda x: x + 1e-9),
    "heavier": put("bodies/mass", 1, lambda x: 2.0 * x),
    "mesh": put("meshes/0/vertices", (0, 0), lambda x: x + 1e-3),
    "contact": put("contacts/force", 0, lambda x: 2.0 * x),
    "not finite": put("bodies/transform", ..., lambda x: np.nan * x),
    "no text": put("bodies/name", 0, lambda x: b"\xff\xfe"),
    "fewer frames": lambda file: file.attrs.modify("frames", 9),
    "more frames": lambda file: file.attrs.modify("frames", 10**6),
    "joint that collides": lambda file: file["joints/hinge"].attrs.modify("collide", True),
    "short": lambda file: file["bodies/transform"].resize(5, axis=0),
    "removed": lambda file: file.__delitem__("bodies/velocity"),
    "no kinds": lambda file: file.__delitem__("bodies/kind"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changed_trajectories_are_refused(change, scene, run, tmp_path, capsys):
    change_file(run, change)
    for command in (["certify", str(run)], ["plot", str(run), "--out", str(tmp_path)], resume(scene, run)):
        assert_damaged(command, capsys)


REPORTS = {
    "no JSON": "{",
    "no text": b"\xff\xfe",
    "list": "[1]",
    "stages without names": '{"steps": 1, "stages": [1]}',
    "times without numbers": '{"steps": 1, "stages": {"newton": "long"}}',
    "no steps": '{"stages": {"newton": 1.0}}',
}


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_damaged_reports_are_refused(report, run, tmp_path, capsys):
    (run / "report.json").write_bytes(report if isinstance(report, bytes) else report.encode())
    assert main(["plot", str(run), "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1 and "report.json" in said


def replace_by_group(path):
    return lambda file: (file.__delitem__(path), file.create_group(path))


@pytest.mark.parametrize("path", ["checkpoint", "checkpoint/slot0", "checkpoint/slot1"])
@pytest.mark.parametrize("change", [lambda path: lambda file: file.__delitem__(path), replace_by_group])
def test_runs_with_damaged_checkpoints_are_not_resumed(change, path, scene, run, capsys):
    change_file(run, change(path))
    assert_damaged(resume(scene, run), capsys)


def test_certificates_do_not_count_as_changes(run):
    for _ in range(2):
        assert certify_run(run, machine=False, quiet=True) == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda file: file.__setitem__("joints/broken", h5py.SoftLink("/nowhere")), "damaged"),
        (CHANGES["not finite"], "a vertex is not finite"),
    ],
)
def test_exports_of_damaged_runs_are_refused(change, words, run, tmp_path, capsys):
    change_file(run, change)
    assert main(["export", str(run), "--to", "obj", "--out", str(tmp_path / "out")]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("seed", [0, 2, 5])
def test_random_damage_causes_no_traceback(seed, run, tmp_path):
    """The test runs in a separate process, since HDF5 may crash."""
    data = bytearray((run / "trajectory.h5").read_bytes())
    rng = np.random.default_rng(seed)
    for _ in range(1 + 20 * seed):
        data[rng.integers(100, len(data))] ^= 1 << int(rng.integers(8))
    (run / "trajectory.h5").write_bytes(data)
    commands = [["certify", str(run)], ["export", str(run), "--to", "obj", "--out", str(tmp_path / "out")]]
    script = f"from abd.cli import main\nfor command in {commands}: main(command)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "Traceback" not in done.stderr, done.stderr


CHECKPOINTS = {
    "a body short": lambda saved: saved.update({name: saved[name][:-1] for name in ("q", "qd", "previous_q", "previous_qd")}),
    "not finite": lambda saved: saved["previous_qd"].__setitem__((0, 0), np.nan),
    "beyond all bounds": lambda saved: saved["qd"].__setitem__((0, 0), 1e300),
    "of an energy in words": lambda saved: saved.update(energy="much"),
    "infinite": lambda saved: saved["q"].__setitem__((0, 0), np.inf),
    "in single precision of two rows": lambda saved: saved.update(qd=saved["qd"].reshape(-1, 6)),
    "without velocities": lambda saved: saved.pop("qd"),
    "before the start": lambda saved: saved.update(time=-1.0),
    "at no time": lambda saved: saved.update(time=float("nan")),
    "of text": lambda saved: saved.update(q="q"),
    "coordinates that are not finite": lambda saved: saved["coordinates"].fill(np.nan),
    "memory of a body short": lambda saved: saved["tables"]["bodies"].update(forces=saved["tables"]["bodies"]["forces"][:-1]),
    "memory beyond all bounds": lambda saved: saved["tables"]["bodies"]["forces"].fill(1e300),
    "infinite memory": lambda saved: saved["tables"]["bodies"]["forces"].fill(np.inf),
    "steps without length": lambda saved: saved["worlds"]["dt"].fill(0.0),
    "memory that is not finite": lambda saved: saved["tables"]["joints"]["history"].fill(np.nan),
    "loads of a body short": lambda saved: saved.update(force=saved["force"][:-3]),
}


MOVES = {"positions": np.zeros((1, 3)), "rotations": np.full((2, 3, 3), np.nan), "times": []}


@pytest.mark.parametrize(("key", "value"), MOVES.items())
def test_damaged_moves_of_a_checkpoint_are_refused(key, value):
    scene = abd.Scene()
    scene.add_body("plate", box=(1.0, 1.0, 0.1), kind="kinematic", motion={"velocity": (0.0, 0.0, 0.0)})
    simulation = abd.Simulation(scene, device="cpu")
    simulation.bodies["plate"].move_to(position=(0.0, 0.0, 1.0), duration=1.0)
    simulation.step()
    saved = simulation.checkpoint()
    assert saved["moves"]["plate"]["positions"] is not simulation.model.motions[0].positions
    simulation.restore(saved)
    saved["moves"]["plate"][key] = value
    with pytest.raises(CheckpointError, match=f"{key} of a move must be"):
        simulation.restore(saved)


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_checkpoints_that_no_run_wrote_are_refused(name, scene):
    simulation = abd.Simulation(abd.load(scene), device="cpu")
    simulation.joints["hinge"].coordinate().set_range(-1.0, 1.0)
    simulation.run(steps=2)
    saved = simulation.checkpoint()
    CHECKPOINTS[name](saved)
    with pytest.raises(CheckpointError, match="the checkpoint does not fit this scene"):
        simulation.restore(saved)
