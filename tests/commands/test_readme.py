"""What the README shows works as it stands there."""

import re

import pytest
from tool import TOOLS

from abd.cli import main
from abd.io.trajectory import Trajectory

ROOT = TOOLS.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Code blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_scene_runs(tmp_path):
    (text,) = blocks("toml")
    assert len([line for line in text.splitlines() if line]) <= 15
    scene, out = tmp_path / "wall.toml", tmp_path / "run"
    scene.write_text(text)
    assert main(["run", str(scene), "--device", "cpu", "--steps", "18", "--quiet", "--out", str(out)]) == 0
    with Trajectory(out / "trajectory.h5") as trajectory:
        assert len(trajectory.names) == 14
        speed = trajectory.series("/bodies/velocity")[-1, trajectory.names.index("ball"), 0, 3]
    assert speed < 5.0, "the ball has hit the wall"


def test_the_python_lines_run(capsys):
    text, acting, joints = blocks("python")
    assert len([line for line in text.splitlines() if line]) <= 10
    names = {}
    exec(text, names)
    assert names["sim"].frame == 20
    assert capsys.readouterr().out.startswith("0.20 s, ")
    exec(acting, names)
    assert names["sim"].frame == 60
    exec(joints, names)
    sim = names["abd"].Simulation(names["scene"], device="cpu")
    sim.run(steps=5)
    shoulder, elbow = (sim.joints[name].coordinates[0] for name in ("shoulder", "elbow"))
    assert elbow == pytest.approx(-2.0 * shoulder, abs=1e-5) and shoulder > 0.01


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)]+)\)|abd run (scenes/\S+)", README))
def test_files_named_in_the_text_exist(target):
    assert (ROOT / "".join(target).partition("#")[0]).is_file()
