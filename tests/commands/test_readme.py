"""What the README shows works as it stands there, and so do the pages of the documentation that list types and files."""

import re

import numpy as np
import pytest
from own_joint import EXAMPLE
from tool import TOOLS

from abd.cli import main
from abd.io.trajectory import Trajectory
from abd.joints.custom.custom import CustomType
from abd.joints.types import ALIASES, TYPES
from abd.model import WORLD, Joint
from abd.scene.schema.joint_types import EXAMPLES, traits

ROOT = TOOLS.parent
README, JOINTS, OWN_JOINTS, RUNS = (
    (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", "docs/reference/joints.md", "docs/reference/own_joints.md", "docs/reference/runs.md")
)


def blocks(language: str, text: str = README) -> list[str]:
    """Code blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_it_is_a_landing_page():
    assert len(README.splitlines()) <= 200


def example(name: str) -> Joint:
    """A joint of a type with the parameters that it needs."""
    parameters = {key: EXAMPLES[key] for key in traits(name).needs}
    return Joint(name, name, 0, WORLD, 0, np.eye(4), np.eye(4), parameters=parameters)


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


def test_the_python_lines_run(capsys, monkeypatch, tmp_path):
    text, pushing, contacts, joints = blocks("python")
    assert len([line for line in text.splitlines() if line]) <= 10
    names = {}
    exec(text, names)
    assert names["sim"].frame == 20
    assert capsys.readouterr().out.startswith("0.20 s, ")
    monkeypatch.chdir(tmp_path)
    exec(pushing, names)
    assert names["sim"].frame == 60
    with Trajectory(tmp_path / "runs" / "bar" / "trajectory.h5") as trajectory:
        assert len(trajectory) == 41
    exec(contacts, names)
    assert capsys.readouterr().out.endswith("()\n"), "the bar touches nothing"
    exec(joints, names)
    sim = names["abd"].Simulation(names["scene"], device="cpu")
    sim.run(steps=5)
    shoulder, elbow = (sim.joints[name].coordinates[0] for name in ("shoulder", "elbow"))
    assert elbow == pytest.approx(-2.0 * shoulder, abs=1e-5) and shoulder > 0.01


def test_the_joints_run(capsys):
    limits, drives, couplings, reading, *more = blocks("python", JOINTS)
    names = {}
    for text in (limits, drives, couplings):
        assert len([line for line in text.splitlines() if line]) <= 7
        exec(text, names)
    exec(reading, names)
    sim = names["sim"]
    shoulder, elbow = (sim.joints[name].coordinates[0] for name in ("shoulder", "elbow"))
    assert abs(shoulder) > np.radians(5.0), "the drive moves it"
    assert elbow == pytest.approx(-2.0 * shoulder, abs=1e-5)
    assert names["load"].values.shape == (41, 6)
    assert names["theta"].locked
    assert len(more) == 1
    exec(more[0], names)
    assert not names["theta"].locked and np.isfinite(names["force"]).all()
    assert len(capsys.readouterr().out.splitlines()) >= 3


def test_the_joint_of_ones_own_is_the_one_that_is_tested():
    assert blocks("python", OWN_JOINTS)[0].strip() == EXAMPLE.strip()


def test_the_table_of_joints_has_all_types_with_their_coordinates():
    table = JOINTS[JOINTS.index("| type | coordinates |") : JOINTS.index("`enforcement` says")]
    listed = {}
    for line in table.splitlines()[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3:
            names = [] if cells[1].startswith("none") else cells[1].split(", ")
            listed |= dict.fromkeys(re.findall(r"`(\w+)`", cells[0]), names)
    own = {name for name, module in TYPES.items() if isinstance(module, CustomType)}
    assert set(listed) >= set(TYPES) - own
    assert set(listed) <= set(TYPES) | set(ALIASES)
    for name in set(TYPES) - own:
        assert [one.name for one in TYPES[name].coordinates(example(name))] == listed[name], name
    for alias in set(listed) & set(ALIASES):
        assert listed[alias] == listed[ALIASES[alias]]


def test_the_files_of_a_run_are_those_of_the_table(tmp_path):
    out = tmp_path / "run"
    assert main(["run", "falling_box", "--device", "cpu", "--steps", "1", "--quiet", "--out", str(out)]) == 0
    table = RUNS[: RUNS.index("The exit status")]
    assert sorted(path.name for path in out.iterdir()) == sorted(re.findall(r"^\| `(\S+)` \|", table, re.MULTILINE))


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)]+)\)|abd run (scenes/\S+)", README))
def test_what_the_text_points_to_is_there(target):
    assert (ROOT / "".join(target).partition("#")[0]).is_file()


def test_ci_runs_the_command_of_the_readme():
    (command,) = (block.strip() for block in blocks("sh") if "pytest" in block)
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-1] == command
