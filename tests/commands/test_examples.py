"""The examples of the documentation run with small sizes and show their results."""

import importlib.util
from types import ModuleType

import numpy as np
import pytest
from tool import TOOLS

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
