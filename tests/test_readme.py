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
    (text,) = blocks("python")
    assert len([line for line in text.splitlines() if line]) <= 10
    names = {}
    exec(text, names)
    assert names["sim"].frame == 20
    assert capsys.readouterr().out.startswith("0.20 s, ")


def test_the_files_of_a_run_are_those_of_the_table(tmp_path):
    out = tmp_path / "run"
    assert main(["run", "falling_box", "--device", "cpu", "--steps", "1", "--quiet", "--out", str(out)]) == 0
    table = README[README.index("## What a run leaves") : README.index("The exit status")]
    assert sorted(path.name for path in out.iterdir()) == sorted(re.findall(r"^\| `(\S+)` \|", table, re.MULTILINE))


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)]+)\)|abd run (scenes/\S+)", README))
def test_what_the_text_points_to_is_there(target):
    assert (ROOT / "".join(target)).is_file()


def test_ci_runs_the_command_of_the_readme():
    (command,) = (block.strip() for block in blocks("sh") if "pytest" in block)
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-1] == command
