"""`abd bench`: contents of its table and JSON."""

import json

import pytest
from test_cli import FALL

from abd.cli import main


@pytest.fixture
def fall(tmp_path, monkeypatch):
    """A folder with a scene of two boxes and the ground, as working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fall.toml").write_text(FALL)
    return "fall.toml"


def test_json_has_facts_and_a_row_per_scene(fall, capsys):
    assert main(["bench", fall, "pendulum", "--device", "cpu", "--steps", "3", "--json"]) == 0
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


def test_a_failed_scene_is_told_beside_its_row(fall, capsys):
    failing = ["-o", "solver.max_newton=1", "-o", "solver.tolerance=1e-14", "-o", "solver.retries=0"]
    assert main(["bench", fall, "--device", "cpu", "--steps", "2", *failing]) == 1
    assert "stopped after 0 steps: not_converged" in capsys.readouterr().out
    assert main(["bench", "no_such_scene"]) == 2
