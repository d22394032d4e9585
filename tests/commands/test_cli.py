"""The command line: output, exit status, files, interruption, resumption, no traceback."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from abd.certificate.certificate import certify
from abd.cli import main
from abd.io.trajectory import Trajectory

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
FALL = """
[output]
frames = 8

[[body]]
name = "ground"
half_space = {}

[[body]]
name = "box"
box = [1, 1, 1]
position = [0, 0, 0.505]

[[body]]
name = "lid"
box = [1, 1, 1]
position = [0.2, 0.1, 1.511]
"""


@pytest.fixture
def scene(tmp_path, monkeypatch):
    """A folder with a scene, as working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fall.toml").write_text(FALL)
    return "fall.toml"


def command(*arguments):
    line = [sys.executable, "-m", "abd.cli", *arguments]
    return subprocess.run(line, capture_output=True, text=True, env=ENVIRONMENT, check=False)


def run(*arguments) -> int:
    return main(["run", *arguments, "--device", "cpu"])


def test_help_lists_commands_and_imports_no_large_library():
    result = command("--help")
    assert result.returncode == 0
    assert all(name in result.stdout for name in ("run", "check", "plot", "bench", "doctor", "schema"))
    listing = "import sys, abd.cli; abd.cli._parser(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, env=ENVIRONMENT, check=True)
    heavy = {"numpy", "scipy", "warp", "h5py", "trimesh", "matplotlib", "rich", "pydantic", "cupy"}
    assert not heavy & set(loaded.stdout.split())


def test_run_writes_a_certified_directory(scene, capsys):
    assert run(scene) == 0
    output = capsys.readouterr()
    assert "8 steps (8 converged)" in output.out and "written to runs/fall-1" in output.out
    assert {path.name for path in Path("runs/fall-1").iterdir()} == {"trajectory.h5", "report.json", "scene.toml"}
    assert certify("runs/fall-1").ok
    assert run(scene, "--quiet") == 0
    assert capsys.readouterr() == ("", "") and Path("runs/fall-2").is_dir()
    # The resolved scene is a scene, and the same one.
    assert run("runs/fall-1/scene.toml", "--out", "again", "--quiet") == 0
    with Trajectory("runs/fall-1") as first, Trajectory("again") as second:
        assert first.series("/bodies/transform").tobytes() == second.series("/bodies/transform").tobytes()


def test_standard_output_is_only_json(scene):
    result = command("run", scene, "--json", "--device", "cpu")
    assert result.returncode == 0
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["step"] for line in lines[:-1]] == list(range(1, 9))
    assert lines[-1]["status"] == "done" and lines[-1]["report"]["steps"] == 8 and lines[-1]["out"] == "runs/fall-1"
    assert lines[0]["energy"]["gravity"] > 0.0 and len(lines[0]["momentum"]["linear"]) == 3


def test_a_run_is_resumed_on_request_only_and_by_its_scene_only(scene, capsys):
    """That it continues bit for bit is tested in `io/test_run.py`."""
    options = [scene, "--out", "parts", "--quiet", "-o", "solver.integrator=bdf1"]
    assert run(*options, "--steps", "5") == 0
    assert run(*options) == 2
    assert "--resume" in capsys.readouterr().err
    assert run(*options[:3], "--resume") == 2
    assert "another scene" in capsys.readouterr().err
    assert run(*options, "--resume") == 0
    with Trajectory("parts") as parts:
        assert len(parts) == 9


def test_interrupt_keeps_the_computed_steps(scene):
    line = [sys.executable, "-m", "abd.cli", "run", scene, "--json", "--device", "cpu", "--steps", "100000"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(line, text=True, env=ENVIRONMENT, **pipes) as process:
        for _ in range(3):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == 130
    last = json.loads(out.splitlines()[-1])
    assert last["status"] == "interrupted"
    assert "abd run fall.toml --json --device cpu --steps 100000 --out runs/fall-1 --resume" in err
    with Trajectory("runs/fall-1") as trajectory:
        assert len(trajectory) == last["report"]["steps"] + 1 > 3


def test_options(scene):
    assert run(scene, "--quiet", "--duration", "0.03", "-o", "solver.dt=0.005", "-o", "output.every=2") == 0
    with Trajectory("runs/fall-1") as trajectory:
        assert trajectory.series("/step").tolist() == [0, 2, 4, 6]
        assert trajectory.time[-1] == pytest.approx(0.03)


def test_failure_is_status_1(scene, capsys):
    """With one Newton iteration and an unattainable tolerance the run stops at its first step and prints the reason."""
    assert run(scene, "-o", "solver.max_newton=1", "-o", "solver.tolerance=1e-14", "-o", "solver.retries=0") == 1
    assert "step 1 failed" in capsys.readouterr().err
    report = json.loads(Path("runs/fall-1/report.json").read_text())
    assert report["failed_step"] == 1 and report["steps"] == 0
    with Trajectory("runs/fall-1") as trajectory:
        assert len(trajectory) == 1


def test_check(scene, capsys):
    assert main(["check", scene]) == 0
    output = capsys.readouterr().out
    assert "3 bodies (2 dynamic, 1 static), 1 of them a half-space" in output and "no problems" in output
    assert "2000 kg" in output and "24 triangles" in output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        *((f"{verb} misspelt.toml", "gravity") for verb in ("run", "check")),
        *((f"{verb} short.toml", "box") for verb in ("run", "check")),
        *((f"{verb} broken.toml", "broken.toml") for verb in ("run", "check")),
        ("run fal.toml", "fal.toml"),
        ("plot nowhere", "nowhere"),
        ("bench no_such_scene", "no_such_scene"),
        ("run fall.toml --device abacus", "abacus"),
        ("run fall.toml -o solver.tim=1", "solver.tim"),
        ("run fall.toml --out occupied", "occupied"),
        ("run fall.toml --steps 0", "--steps"),
        ("run fall.toml --duration -1", "--duration"),
        ("run fall.toml --steps 2 --duration 1", "--duration"),
        ("view nowhere --html page.html --fps nan", "--fps"),
        ("sweep fall.toml --grid material.default.mu=0.1:0.9 --sample 2 --seed -1", "--seed"),
    ],
)
def test_wrong_commands_end_with_status_2_and_no_traceback(scene, capsys, arguments, words):
    texts = {"misspelt": "grvity = [0, 0, -9.81]", "short": '[[body]]\nname = "a"\nbox = [1, 1]', "broken": "gravity = ["}
    for name, text in texts.items():
        Path(f"{name}.toml").write_text(text)
    Path("occupied").write_text("")
    try:
        status = main(arguments.split())
    except SystemExit as stop:
        status = stop.code
    error = capsys.readouterr().err
    assert status == 2 and words in error and "Traceback" not in error
    assert not list(Path().glob("runs/*"))


MISSING = {
    # package: command, and the extra that installs it
    "viser": ("view RUN", "view"),
    "imageio_ffmpeg": ("render RUN --out film.mp4 --quiet --size 64x36", "film"),
    "ipctk": ("run fall.toml --out other --certify", "certify"),
    "mujoco": ("check robot.urdf", "robots"),
    "xacrodoc": ("check robot.xacro", "robots"),
}


@pytest.mark.parametrize("package", MISSING)
def test_missing_packages_are_reported_with_the_command_that_installs_them(package, scene, folder, monkeypatch, capsys):
    arguments, extra = MISSING[package]
    for suffix in ("urdf", "xacro"):
        Path(f"robot.{suffix}").write_text('<robot name="r"><link name="a"/></robot>')
    for name in [name for name in sys.modules if name.startswith(("abd.certificate.", "abd.scene.importers.robots."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    assert main([str(folder) if word == "RUN" else word for word in arguments.split()]) == 2
    assert f"pip install 'abd-solver[{extra}]'" in capsys.readouterr().err
    assert not Path("other").exists() and not Path("film.mp4").exists()


def test_doctor_and_schema(capsys):
    assert main(["doctor"]) == 0
    output = capsys.readouterr().out
    assert all(topic in output for topic in ("warp-lang", "kernel cache", "--device auto", "CUDA driver", "for a GPU"))
    assert main(["schema", "--json"]) == 0
    assert "body" in json.loads(capsys.readouterr().out)["properties"]
    assert main(["schema", "drive"]) == 0 and capsys.readouterr().out.startswith("## `joint.drive`")
    for name, has, lacks in (("revolute", "theta", "skew"), ("screw", "lead", "radii"), ("skewed_universal", "skew_deg", "lead")):
        assert main(["schema", name]) == 0
        output = capsys.readouterr().out
        assert all(f"`{key}` |" in output for key in ("anchor", "range", "effort")) and has in output, name
        assert f"| `{lacks}` |" not in output, name
    assert main(["schema", "quaternoin"]) == 1
    assert main(["schema"]) == 0
    assert "half_space" in capsys.readouterr().out


def test_json_of_a_benchmark_has_facts_and_a_row_per_scene(scene, capsys):
    assert main(["bench", scene, "pendulum", "--device", "cpu", "--steps", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"date", "device", "processor", "cores", "load_average", "versions", "steps", "warm_up"} <= set(found["facts"])
    box, pendulum = found["rows"]
    assert (box["scene"], box["bodies"], box["joints"], box["steps"]) == ("fall", 3, 0, 3)
    assert (pendulum["scene"], pendulum["bodies"], pendulum["joints"]) == ("pendulum", 1, 1)
    assert box["contacts"] > 0 and 0.0 < box["min_gap"] < 0.01 and pendulum["min_gap"] is None
    for row in found["rows"]:
        assert 0.0 < row["ms_solving"] <= row["ms"] <= row["ms_p95"]
        assert row["reached"] <= row["tolerance"] == 1e-3
        assert row["newton"] >= 1.0 and row["solver"] == row["solver_facts"]["name"] and row["failure"] == ""


def test_a_failed_scene_is_reported_next_to_its_row(scene, capsys):
    failing = ["-o", "solver.max_newton=1", "-o", "solver.tolerance=1e-14", "-o", "solver.retries=0"]
    assert main(["bench", scene, "--device", "cpu", "--steps", "2", *failing]) == 1
    assert "stopped after 0 steps: not_converged" in capsys.readouterr().out
