"""Sweeps: points, table, skipped and repeated runs, command."""

import json
import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import abd
from abd.cli import main
from abd.sweeps.parameters import Range, SweepError, points, read_parameters

distributed = pytest.importorskip("distributed", reason="needs Dask: pip install 'dask[distributed]'")
pandas = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")
trimesh = pytest.importorskip("trimesh")
MU = "material.default.mu"


def test_points_are_all_combinations_and_samples():
    read = read_parameters([f"{MU}=0.1:0.5:3", "solver.dt=0.01,0.005", "body.box.kind=dynamic"])
    assert read[MU] == pytest.approx([0.1, 0.3, 0.5]) and read["body.box.kind"] == ("dynamic",)
    assert read_parameters(["n=10:30:3"])["n"] == (10, 20, 30) and read_parameters(["n=1:2:3"])["n"] == (1.0, 1.5, 2.0)
    assert read_parameters(["g=[0,0,-9.81],[0,0,-1.6]"])["g"] == ([0, 0, -9.81], [0, 0, -1.6])
    grid = points(read)
    assert len(grid) == 6 and list(grid[0]) == [MU, "solver.dt", "body.box.kind"] and grid[1]["solver.dt"] == 0.005
    repeated = points({"a": [1, 2]}, repeat=2)
    assert repeated == [{"a": a, "repeat": k} for a in (1, 2) for k in (0, 1)]
    for values in (np.arange(2), np.eye(2), [np.bool_(True), {"x": np.zeros(3)}]):
        assert json.loads(json.dumps(points({"a": values}))) == points({"a": values})
    for method in ("lhs", "sobol"):
        sampled = points({"a": Range(2.0, 4.0), "b": Range(0.0, 1.0)}, sample=8, method=method, seed=3)
        assert sampled == points({"a": Range(2.0, 4.0), "b": Range(0.0, 1.0)}, sample=8, method=method, seed=3)
        for key, low, width in (("a", 2.0, 0.25), ("b", 0.0, 0.125)):
            # one number in each eighth of the range: Latin hypercubes and scrambled Sobol sequences have that in common
            assert sorted(int((point[key] - low) / width) for point in sampled) == list(range(8))


@pytest.mark.parametrize(
    "texts, sample, words",
    [
        (["mu"], None, "is invalid"),
        (["a=1:2:x"], None, "a number of values"),
        (["a=1", "a=2"], None, "given twice"),
        (["a=1:2"], None, "give the number of samples"),
        (["a=1,2"], 4, "a sample needs a range"),
        (["a=1:2"], 0, "at least 1"),
        (["a=1,2"], 0, "at least 1"),
    ],
)
def test_wrong_parameters_are_refused(texts, sample, words):
    with pytest.raises(SweepError, match=words):
        points(read_parameters(texts), sample=sample)


def test_a_misspelt_key_is_refused_before_the_first_run(tmp_path, capsys):
    out = tmp_path / "sweep"
    assert main(["sweep", "falling_box", "--grid", "solver.dtt=0.01,0.005", "--steps", "1", "--out", str(out)]) == 2
    assert "dtt" in capsys.readouterr().err and not out.exists()


@pytest.fixture(scope="module")
def threads():
    """Return the address of a scheduler whose worker is a thread of this process: processes take seconds to start."""
    keys = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**keys) as cluster:
        yield cluster.scheduler_address


def sliding(mu: float) -> abd.Scene:
    """A block on a plane that is tilted by 20 degrees."""
    slope = math.radians(20.0)
    scene = abd.Scene(gravity=(9.81 * math.sin(slope), 0, -9.81 * math.cos(slope)))
    scene.add_material("default", mu=mu)
    scene.add_body("slope", half_space={})
    scene.add_body("block", box=(0.2, 0.2, 0.1), position=(0, 0, 0.0501))
    return scene


def final_speed(folder) -> dict[str, float]:
    from abd.io.trajectory import Trajectory

    with Trajectory(folder) as run:
        return {"speed": float(run.row("bodies/velocity", -1)[1, 0, 3])}


def test_a_function_of_parameters_gives_a_table(tmp_path, threads):
    coefficients = [0.0, 0.2, 0.6]
    keys = {"out": tmp_path, "duration": 0.2, "device": "numpy", "scheduler": threads, "measure": final_speed}
    table = abd.sweep(sliding, {"mu": coefficients}, **keys)
    assert list(table["mu"]) == coefficients and set(table["status"]) == {"done"}
    slope = math.radians(20.0)
    expected = [max(0.0, 9.81 * (math.sin(slope) - mu * math.cos(slope))) * 0.2 for mu in coefficients]
    assert table["speed"].to_numpy() == pytest.approx(expected, abs=0.02)
    assert (table["steps"] == table["converged_steps"]).all() and (table["wall_seconds"] > 0.0).all()
    first = (tmp_path / "run-0001" / "row.json").stat().st_mtime_ns
    (tmp_path / "run-0002" / "row.json").unlink()
    again = abd.sweep(sliding, {"mu": coefficients}, **keys)
    assert (tmp_path / "run-0001" / "row.json").stat().st_mtime_ns == first, "finished runs are skipped"
    assert again["speed"].equals(table["speed"])
    keys["measure"] = lambda folder: {"double": 2 * final_speed(folder)["speed"]}
    doubled = abd.sweep(sliding, {"mu": coefficients}, **keys)
    assert doubled["double"].equals(2 * table["speed"]) and "speed" not in doubled, "other columns need no other run"
    for changes in ({"duration": 0.1}, {"device": "cpu"}):
        with pytest.raises(SweepError, match="contains another sweep"):
            abd.sweep(sliding, {"mu": coefficients}, **(keys | changes))


def ends(mu: float) -> abd.Scene:
    return sliding(mu) if mu < 0.5 else os._exit(9)


def missing(folder) -> dict[str, float]:
    return {"column": float((folder / "missing").read_text())}


@pytest.mark.parametrize(
    ("scene", "measure", "status", "words"),
    [(ends, None, ["done", "failed"], "process of the run ended"), (sliding, missing, ["failed", "failed"], "FileNotFoundError")],
)
def test_failures_of_single_runs_are_rows(tmp_path, threads, monkeypatch, scene, measure, status, words):
    keys = {"workers": 1} if scene is ends else {"scheduler": threads}
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "1")
    table = abd.sweep(scene, {"mu": [0.2, 0.6]}, out=tmp_path, steps=2, device="numpy", measure=measure, **keys)
    assert list(table["status"]) == status and words in table["failure"][1]


def test_repeated_runs_of_functions_with_and_without_a_number(tmp_path, threads):
    def tilted(mu: float, repeat: int) -> abd.Scene:
        return sliding(mu + 0.1 * repeat)

    for scene in (sliding, tilted):
        keys = {"out": tmp_path / scene.__name__, "steps": 2, "device": "numpy", "scheduler": threads}
        table = abd.sweep(scene, {"mu": [0.2]}, repeat=2, **keys)
        assert list(table["repeat"]) == [0, 1] and set(table["status"]) == {"done"}
        assert (table["energy_final"][0] == table["energy_final"][1]) == (scene is sliding)


@pytest.mark.parametrize("what", ["constant", "mesh", "sensor", "frames"])
def test_runs_of_a_changed_scene_are_not_reused(what, tmp_path, threads):
    path, mesh, scene, offset = tmp_path / "rest.toml", tmp_path / "cube.obj", abd.Scene(), 0.1
    trimesh.creation.box((0.1, 0.1, 0.1)).export(mesh)
    scene.add_body("floor", half_space={})
    scene.add_body("cube", mesh=mesh, position=(0, 0, 0.05))
    scene.output.frames = 2
    scene.save(path)

    def shifted(mu: float) -> abd.Scene:
        return sliding(mu + offset)

    source, parameters = (shifted, {"mu": [0.2]}) if what == "constant" else (path, {MU: [0.1]})
    keys = {"out": tmp_path / "s", "steps": 2, "device": "numpy", "scheduler": threads}
    for _ in range(2):
        table = abd.sweep(source, parameters, **keys)
        assert table["status"][0] == "done"
    if what == "constant":
        offset = 0.2
    elif what == "mesh":
        trimesh.creation.box((0.09, 0.1, 0.1)).export(mesh)
    elif what == "sensor":
        scene.add_sensor("height", what="position", body="cube")
    else:
        scene.output.frames = 3
    scene.save(path)
    with pytest.raises(SweepError, match="a run of another scene"):
        abd.sweep(source, parameters, **keys)


def test_vectors_are_values(tmp_path, threads, monkeypatch):
    """Boxes fall with the gravity of their run, and the figure has a line for each."""
    monkeypatch.chdir(tmp_path)
    grid = ["gravity=[0,0,-9.81],[0,0,-1.6]", "solver.dt=0.01,0.02"]
    scene = abd.Scene()
    scene.add_body("box", box=(0.1, 0.1, 0.1))
    scene.add_sensor("speed", what="velocity", body="box")
    scene.save("fall.toml")
    words = ["--grid", *grid, "--duration", "0.2", "--device", "numpy", "--scheduler", threads, "--out", "s"]
    assert main(["sweep", "fall.toml", *words]) == 0
    speed = pandas.read_parquet("s/table.parquet")["speed.2.last"]
    assert speed.to_numpy() == pytest.approx([-1.962, -1.962, -0.32, -0.32], rel=1e-6)
    assert main(["plot", "s", "--column", "speed.2.last"]) == 0


def test_the_command_lists_failures_and_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["sweep", "falling_box", "--grid", "solver.max_newton=1,50", "--steps", "60", "--device", "numpy", "--out", "s"]
    assert main([*command, "--workers", "1", "-o", "solver.retries=0"]) == 1
    shown = capsys.readouterr()
    assert "1 of 2 runs done" in shown.out
    assert "abd run falling_box -o solver.retries=0 -o solver.max_newton=1 --steps 60 --device numpy" in shown.err
    assert main(["plot", "s", "--column", "newton_mean", "--format", "png"]) == 0
    assert (tmp_path / "s" / "newton_mean.png").read_bytes().startswith(b"\x89PNG")
    assert main(["plot", "s", "--column", "nothing"]) == 2
    assert main([*command[:2], "--grid", "solver.dt=0.01", "--resume", "--out", "t"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_interrupted_sweep_continues(tmp_path, how):
    words = ["sweep", "falling_box", "--grid", f"{MU}=0.1:0.8:8", "--duration", "1.5", "--workers", "2", "--out", str(tmp_path)]
    first = subprocess.Popen([sys.executable, "-m", "abd.cli", *words], start_new_session=True, stderr=subprocess.PIPE)
    while not list(tmp_path.glob("run-*/row.json")):
        time.sleep(0.05)
        assert first.poll() is None
    os.killpg(first.pid, how)
    told = first.communicate()[1].decode()
    assert "INFO" not in told
    assert how == signal.SIGKILL or (first.returncode == 130 and "repeat the command to run the missing points" in told)
    done = {path: path.stat().st_mtime_ns for path in tmp_path.glob("run-*/row.json")}
    assert 0 < len(done) < 8
    assert main(words) == 0
    assert len(list(tmp_path.glob("run-*/row.json"))) == 8
    assert all(path.stat().st_mtime_ns == written for path, written in done.items())


@pytest.mark.slow
def test_existing_scheduler_is_used(tmp_path):
    dask = [sys.executable, "-m", "dask"]
    scheduler = subprocess.Popen([*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
                                  "--scheduler-file", str(tmp_path / "scheduler.json")])  # fmt: skip
    while not (tmp_path / "scheduler.json").exists():
        time.sleep(0.1)
    worker = [*dask, "worker", "--scheduler-file", str(tmp_path / "scheduler.json"), "--nthreads", "1", "--no-dashboard"]
    workers = [subprocess.Popen(worker) for _ in range(2)]
    try:
        address = json.loads((tmp_path / "scheduler.json").read_text())["address"]
        words = ["sweep", "falling_box", "--grid", f"{MU}=0.1,0.2,0.3", "--steps", "20", "--out", str(tmp_path / "s")]
        assert main([*words, "--scheduler", address]) == 0
        assert len(pandas.read_parquet(tmp_path / "s" / "table.parquet")) == 3
    finally:
        for process in (*workers, scheduler):
            process.terminate()
            process.wait()


def test_no_scheduler_is_an_error_with_a_remedy(tmp_path):
    with pytest.raises(SweepError, match="start `dask scheduler`"):
        abd.sweep("falling_box", {MU: [0.1]}, out=tmp_path, scheduler="tcp://127.0.0.1:1")
