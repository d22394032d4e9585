"""README and documentation: snippets run, commands and links are valid, Sphinx builds without warnings, and names in the code
are those of the glossary."""

import importlib.util
import io
import json
import re
import shlex
import subprocess
import sys
import tokenize
from types import ModuleType

import numpy as np
import pytest
from tool import TOOLS

from abd.cli import _parser, main
from abd.io.trajectory import Trajectory

ROOT = TOOLS.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = sorted(path for path in DOCS.rglob("*.md") if not path.relative_to(DOCS).parts[0].startswith("_"))


def blocks(path, language: str) -> list[str]:
    """Code blocks of a language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def name(path) -> str:
    return str(path.relative_to(DOCS))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_snippets_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "snippets"}
    for k, text in enumerate(blocks(page, "python")):
        exec(compile(text, f"{name(page)}, block {k}", "exec"), names)
    assert len(names) > 2, "they made something"


@pytest.mark.parametrize("notebook", sorted(DOCS.glob("*.ipynb")), ids=name)
def test_cells_of_a_notebook_run_in_order(notebook, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names = {"__name__": "notebook"}
    for k, cell in enumerate(json.loads(notebook.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            assert not cell["outputs"], "outputs are not stored"
            exec(compile("".join(cell["source"]), f"{notebook.name}, cell {k}", "exec"), names)
    assert names["force"].max() > 1.0, "the arm pushes the box"


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.stem)
def test_command_lines_are_valid(page):
    for text in blocks(page, "sh"):
        for line in re.findall(r"(?:^|&& )(?:\.venv/bin/)?abd ([^&\n]+)", text, re.MULTILINE):
            assert callable(_parser().parse_args(shlex.split(line, comments=True)).command)


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.stem)
def test_links_and_pictures_have_targets(page):
    text = page.read_text(encoding="utf-8")
    assert all((ROOT / scene).is_file() for scene in re.findall(r"abd run (scenes/\S+)", text))
    found = re.findall(r"\]\(([^)#\s]+)", text)
    found += re.findall(r"^```\{(?:image|literalinclude|include)\} (\S+)", text, re.MULTILINE)
    for target in found:
        # pages that follow from the code are written when the documentation is built, which tells of links that lead nowhere
        made = target.startswith("http") or "_generated/" in target
        assert made or (page.parent / target).is_file(), target


def test_sphinx_builds_without_warnings(tmp_path):
    for module in ("sphinx", "pydata_sphinx_theme", "myst_parser"):
        pytest.importorskip(module, reason="needs Sphinx: pip install -e '.[docs]'")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "reference" / "api.html").read_text(encoding="utf-8")
    assert "abd.Simulation" in text and "apply_force" in text
    assert "rounding" in (tmp_path / "_generated" / "scene_keys.html").read_text(encoding="utf-8")


def test_the_scene_of_the_readme_runs(tmp_path):
    (text,) = blocks(README, "toml")
    assert len([line for line in text.splitlines() if line]) <= 15
    scene, out = tmp_path / "wall.toml", tmp_path / "run"
    scene.write_text(text)
    assert main(["run", str(scene), "--device", "cpu", "--steps", "18", "--quiet", "--out", str(out)]) == 0
    with Trajectory(out / "trajectory.h5") as trajectory:
        assert len(trajectory.names) == 14
        speed = trajectory.series("/bodies/velocity")[-1, trajectory.names.index("ball"), 0, 3]
    assert speed < 5.0, "the ball has hit the wall"


def test_the_python_lines_of_the_readme_run(capsys):
    text, acting, joints = blocks(README, "python")
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


REPLACED = {
    "account", "calm", "caution", "drawn_along", "foretold", "idle", "journey", "lasting", "leap", "mend", "nobody", "owed",
    "ripe", "rouse", "rubs", "rubbing", "somebody", "steady", "strikes", "struck", "tightness", "track", "traveller", "twin",
    "whoever",
}  # fmt: skip
"""Words that `docs/glossary.md` has replaced."""


@pytest.mark.parametrize("package", ["abd/step", "abd/backends", "abd/contact", "abd/potentials", "abd/api", "cuda_kernels"])
def test_names_use_the_vocabulary(package):
    found = set()
    for file in (ROOT / package).rglob("*.py"):
        for token in tokenize.generate_tokens(io.StringIO(file.read_text()).readline):
            if token.type == tokenize.NAME:
                parts = {token.string, *re.split(r"_|(?<=[a-z])(?=[A-Z])", token.string)}
                found |= {(file.name, word) for word in parts if word.lower() in REPLACED}
    assert not found


EXAMPLES = sorted((TOOLS.parent / "docs" / "examples").glob("*.py"))


def example(name: str) -> ModuleType:
    path = next(path for path in EXAMPLES if path.stem == name)
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_dominoes_fall(capsys):
    fallen = example("dominoes").main(count=2, duration=0.4)
    assert len(fallen) == 2
    assert "2 of 2 dominoes" in capsys.readouterr().out


def test_the_arm_pushes(capsys):
    sim = example("robot_arm").main(rows=2, duration=0.8)
    force = sim.bodies["gripper"].contact_force
    assert force[0] < -1.0, "the boxes push back"
    assert "gripper" in capsys.readouterr().out
    assert sim.bodies["box_0_0_0"].position[0] > 0.61


def test_friction_follows_coulomb(tmp_path):
    pytest.importorskip("distributed", reason="needs Dask: pip install 'dask[distributed]'")
    table = example("friction_sweep").main(coefficients=(0.1, 0.3), duration=0.3, out=str(tmp_path))
    assert list(table.index) == [0.1, 0.3]
    np.testing.assert_allclose(table["measured"], table["coulomb"], rtol=0.02)


def test_meshes_in_memory(capsys):
    pytest.importorskip("pandas", reason="needs pandas: pip install pandas")
    sim = example("mesh_in_memory").main(count=2, duration=0.3)
    assert sim.bodies["stone_0"].position[2] > 0.03, "in the bowl, not through it"
    assert "point.x" in capsys.readouterr().out


def test_a_nut_runs_down_a_bolt():
    """It follows the thread: its velocity is that of its rotation, within what the clearance allows."""
    module = example("bolt_and_nut")
    sim = module.main(duration=0.1)
    nut, height = sim.bodies["nut"], 3 * module.PITCH
    assert nut.angular_velocity[2] < -11.0 and height - nut.position[2] > 0.0014
    turn = -np.arctan2(*nut.rotation[[1, 0], 0])
    assert abs(height - nut.position[2] - module.PITCH * turn / (2 * np.pi)) < 3e-4


def test_picture_from_a_trajectory(tmp_path):
    picture = example("plot_from_trajectory").main(folder=str(tmp_path / "run"), duration=0.4)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_user_defined_joint():
    sim = example("own_joint").main(steps=30)
    x, y, z = sim.bodies["bead"].position
    assert z >= (x**2 + y**2) / (2 * 0.5) - 1e-5, "a penalty gives way by micrometres"
    assert sim.joints["bowl"].engagement == {"height": 1}


def test_cart_poles_fall_under_random_pushes():
    pytest.importorskip("gymnasium", reason="needs Gymnasium: pip install gymnasium")
    assert 15.0 < example("cart_pole").main(count=8, steps=60) < 60.0


@pytest.mark.slow
def test_a_policy_learns_to_balance_cart_poles(monkeypatch):
    pytest.importorskip("gymnasium", reason="needs Gymnasium: pip install gymnasium")
    pytest.importorskip("torch", reason="needs PyTorch: the extra torch")
    monkeypatch.syspath_prepend(EXAMPLES[0].parent)
    assert example("train_cart_pole").main() > 400.0


def test_arms_reach_their_targets():
    pytest.importorskip("gymnasium", reason="needs Gymnasium: pip install gymnasium")
    assert example("reaching_arm").main(count=8) < 0.01


def test_friction_is_identified():
    np.testing.assert_allclose(example("identify").main(), (0.35, 0.28), rtol=0.01)
