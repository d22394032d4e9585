"""`abd bench`: what its tables and JSON hold, and that watching a device changes nothing."""

import json

import pytest
from on_device import NAME
from test_cli import FALL

import abd
from abd.backends.device.watching.launches import Launches
from abd.cli import main
from abd.commands import profile


@pytest.fixture
def fall(tmp_path, monkeypatch):
    """A folder with a scene of two boxes and the ground, as working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fall.toml").write_text(FALL)
    return "fall.toml"


def test_json_has_facts_and_a_row_per_scene(fall, capsys):
    assert main(["bench", fall, "pendulum", "--device", "cpu", "--steps", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"date", "device", "processor", "cores", "load_average", "versions", "steps", "warm_up"} <= set(
        found["facts"]
    )
    box, pendulum = found["rows"]
    assert (box["scene"], box["bodies"], box["joints"], box["steps"]) == ("fall", 3, 0, 3)
    assert (pendulum["scene"], pendulum["bodies"], pendulum["joints"]) == ("pendulum", 1, 1)
    assert box["contacts"] > 0 and 0.0 < box["min_gap"] < 0.01 and pendulum["min_gap"] is None
    for row in found["rows"]:
        assert 0.0 < row["ms_solving"] <= row["ms"] <= row["ms_p95"]
        assert row["reached"] <= row["tolerance"] == 1e-3
        assert row["newton"] >= 1.0 and row["solver"] == row["solver_facts"]["name"] and row["failure"] == ""


def test_the_table_says_what_was_reached(fall, capsys):
    assert main(["bench", fall, "--device", "cpu", "--steps", "2", "-o", "solver.tolerance=1e-4"]) == 0
    heading, titles, row = capsys.readouterr().out.splitlines()
    assert "2 steps after 3" in heading and "cpu" in heading
    assert titles.split()[:8] == ["scene", "bodies", "joints", "contacts", "Newton", "linear", "ms/step", "P95"]
    assert row.split()[:3] == ["fall", "3", "0"] and "1e-04" in row.split()


def test_a_failed_scene_is_told_beside_its_row(fall, capsys):
    failing = ["-o", "solver.max_newton=1", "-o", "solver.tolerance=1e-14", "-o", "solver.retries=0"]
    assert main(["bench", fall, "--device", "cpu", "--steps", "2", *failing]) == 1
    assert "stopped after 0 steps: not_converged" in capsys.readouterr().out
    assert main(["bench", "no_such_scene"]) == 2


@pytest.mark.parametrize("device", [NAME, "numpy"])
def test_profile_lists_stages_and_kernels(fall, capsys, device):
    assert main(["bench", fall, "--device", device, "--steps", "2", "--profile", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    found = row["profile"]
    recorded = device != "numpy"
    stages = {"start", "iterations"} if recorded else {"start", "assembly", "linear solve", "collision", "line search"}
    assert stages <= set(found["stages"])
    assert sum(found["stages"].values()) <= found["ms"]
    text = profile.text(found, shown=5)
    assert all(stage in text for stage in stages) and "rest" in text
    if device == "numpy":
        assert found["kernels"] == [] and found["ceilings"] is None
        return
    kernels = {kernel["name"]: kernel for kernel in found["kernels"]}
    assert kernels["contact.contact_energies"]["bytes"] > 0
    assert kernels["host: read"]["calls"] >= 1
    assert sum(kernel["ms"] for kernel in found["kernels"]) <= found["ms"]
    assert found["ceilings"]["copy_bytes_per_second"] > 1e8 and found["ceilings"]["flops_per_second"] > 1e8
    assert "GB/s" in text and f"{len(kernels) - 5} more" in text


def test_watching_changes_no_bit(fall, device):
    watched, alone = (abd.Simulation(fall, device=device) for _ in range(2))
    launches = Launches(watched.backend.device)
    with launches:
        watched.step()
    assert watched.backend.device.observer is None
    alone.step()
    assert watched.stepper.q.tobytes() == alone.stepper.q.tobytes()
    count = sum(work.calls for work in launches.works())
    watched.step()
    assert sum(work.calls for work in launches.works()) == count
