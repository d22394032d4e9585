"""The benchmark tools: families of scenes, rows, comparison and figures; no times."""

import argparse
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from tool import TOOLS, load_tool

import abd
from abd.backends.device.cuda_support import cuda_problem

run = load_tool("bench/run")
one_case = load_tool("bench/one_case")
compare = load_tool("bench/compare")
plot = load_tool("bench/plot")
families = run.FAMILIES
families_package = sys.modules["families"]


def built(name: str, size: float) -> dict:
    """Scenes of a family, skipped where they need a fixtures folder that is not there."""
    try:
        return {variant: build() for variant, build in families[name].build(size).items()}
    except FileNotFoundError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", sorted(set(families) - {"wrecking_ball"}))
def test_every_family_makes_scenes_that_can_run(name):
    from abd.scene.overlaps.intersections import find_initial_intersections

    family = families[name]
    scenes = built(name, family.quick[0])
    for title, (above, below) in family.ratios.items():
        assert title and {above, *below} <= set(scenes)
    for scene in scenes.values():
        assert find_initial_intersections(scene.compile()) == []


@pytest.mark.parametrize(
    ("name", "size", "bodies", "joints"), [("chain", 5, 5, 5), ("ladder", 4, 12, 16), ("net", 3, 21, 30)]
)
def test_mechanisms_have_the_links_and_hinges_they_say(name, size, bodies, joints):
    """n bars and hinges of their own; all anchors on both of the bodies they join: a step leaves the joints closed."""
    rows = one_case.case(families[name], size, "cpu", 2)
    for row in rows:
        if "ratio" not in row:
            assert (row["bodies"], row["joints"], row["steps"]) == (bodies, joints, 2)
            assert row["joint_error"][0] < (1e-9 if row["variant"] != "penalty" else 1e-4)
            assert row["reached"] <= row["tolerance"] and row["failure"] == ""
            assert {"family", "unit", "size", "variant", "device", "built_seconds", "ms", "memory"} <= set(row)
    assert [row["of"] for row in rows if "ratio" in row] == list(families[name].ratios)


@pytest.mark.parametrize("side", [4, 8])
def test_nets_of_rings_follow_the_rule_of_the_files(side):
    others = load_tool("bench/families/others")
    made = built("chain_net", side)[""]
    file = others.fixture(f"rigid-ipc/scenes/chain/chain-net/chain-net-{side}x{side}.json")

    def rings(scene):
        model = scene.compile().bodies
        return sorted(map(tuple, np.column_stack([model.kind, model.q]).round(9).tolist()))

    assert rings(made) == rings(file)


def test_sixteen_rings_on_a_side_are_672_bodies():
    assert len(built("chain_net", 16)[""].spec.body) == 672


def row(time: float, size=10.0, **more) -> dict:
    """Of a case."""
    known = {"family": "chain", "unit": "links", "size": size, "variant": "exact", "device": "cpu", "bodies": size}
    times = {"ms_solving": time, "ms_solving_of_repeats": [0.9 * time, time, 1.1 * time], "ms_per_newton": time}
    about = {"joints": 1, "newton": 2.0, "linear": 4.0, "tolerance": 1e-3, "reached": 5e-4, "memory": 100.0}
    return {**known, **times, **about, "contacts": 0.0, "failure": "", **more}


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        (row(10.0), ""),
        (row(11.0), ""),
        (row(20.0), "slower"),
        (row(20.0, ms_solving_of_repeats=[10.5, 20.0, 30.0]), ""),
        (row(5.0), "faster"),
        (row(10.0, reached=2e-3), "looser: 0.002 m/s of 0.001"),
        (row(1.0, failure="not_converged"), "fails: not_converged"),
    ],
)
def test_a_regression_is_told_from_noise(after, verdict):
    (found,) = compare.compared([row(10.0)], [after], 1.15)
    assert found["verdict"] == verdict and found["name"] == "chain 10 exact cpu"
    if "ratio" in found:
        assert found["ratio"] == after["ms_solving"] / 10.0 and "geometric mean of 1" in compare.text([found])
    assert compare.compared([row(10.0)], [row(10.0, size=20.0)], 1.15) == []


def test_repeats_become_one_row():
    """Medians of times, the worst of what was reached."""
    repeats = [[row(time, reached=reached, ms=time)] for time, reached in ((3.0, 1e-5), (1.0, 1e-4), (2.0, 1e-6))]
    (found,) = run.merged(repeats)
    assert found["ms"] == 2.0 and found["ms_of_repeats"] == [3.0, 1.0, 2.0] and found["reached"] == 1e-4
    assert "2" in run.text([found]) and run.told_of(found) == "exact 2 ms/step"


def test_a_repeat_that_failed_stands_beside_the_others():
    failed = {"family": "chain", "unit": "links", "size": 10.0, "device": "cpu", "variant": "", "failure": "no memory"}
    rows = run.merged([[row(1.0)], [failed]])
    assert [(one["variant"], one["failure"]) for one in rows] == [("exact", ""), ("", "no memory")]


def test_sizes_are_asked_for_by_family():
    assert families_package.requested("chain") == ("chain", ())
    assert families_package.requested("net:2,4") == ("net", (2.0, 4.0))
    with pytest.raises(argparse.ArgumentTypeError, match="no family 'nets'"):
        families_package.requested("nets:2")


def test_scenes_that_libuipc_cannot_run_are_refused():
    libuipc = load_tool("bench/libuipc_scene")
    libuipc.refuse(built("pile", 10)[""].compile(), None)
    with pytest.raises(ValueError, match="joints that are no hinges"):
        libuipc.refuse(built("four_bar", 2)[""].compile(), None)
    ladder = load_tool("bench/families/loops").ladder(3)
    libuipc.refuse(ladder.scene("penalty").compile(), ladder)
    with pytest.raises(ValueError, match="kinematic bodies"):
        libuipc.refuse(abd.load("gears").compile(), None)


def test_bodies_alike_are_instances_of_one_geometry():
    libuipc = load_tool("bench/libuipc_scene")
    model = built("pile", 10)[""].compile()
    (group,) = libuipc.alike(model)
    assert sorted(group.tolist()) == list(range(1, 11))
    assert libuipc.density_of(model, 1) == pytest.approx(1000.0)


def test_what_a_gpu_check_did_not_measure_is_named(tmp_path):
    merge = load_tool("bench/merge")
    facts = {"date": "today", "device": "cuda", "asked": ["chain 10", "chain 1e+06", "net 4"]}
    failed = {"family": "net", "unit": "windows", "size": 4.0, "device": "cuda", "variant": "", "failure": "no memory"}
    (tmp_path / "chains.json").write_text(json.dumps({"facts": facts, "rows": [row(1.0, ms=1.0), failed]}))
    (tmp_path / "peer.json").write_text("")
    for part, status, said in (
        ("tests", 1, ""),
        ("peer", 1, "first\nno libuipc"),
        ("contact", 124, ""),
        ("memcheck", 0, ""),
    ):
        (tmp_path / f"{part}.part").write_text(json.dumps({"status": status, "seconds": 7}))
        (tmp_path / f"{part}.log").write_text(said)
    result = merge.merged(tmp_path)
    assert result["missing"] == [
        "what has to work at all (left out)",
        "compute-sanitizer initcheck (left out)",
        "scenes with contact (not done after 7 s)",
        "scenes with contact without hand-written kernels (left out)",
        "chain 1e+06 in chains (no time was left)",
        "net 4 in chains (no memory)",
        "libuipc beside (no libuipc)",
        "profiles (left out)",
        "hand-written kernels (left out)",
    ]
    assert result["checks"] == {"tests": "FAILED", "memcheck": "passed"}
    said = merge.markdown(result)
    assert "| tests on the device | | FAILED |" in said and "chain 10" in said and "not measured" in said


def test_goals_of_a_gpu_check_are_judged_by_what_was_measured():
    merge = load_tool("bench/merge")
    timeline = {"launches": 40.0, "waiting": 0.2, "reads": 6.0, "newton": 4.0}
    rows = {
        "contact": [
            {"family": "wrecking_ball", "size": 575.0, "ms": 7.0},
            {"family": "pile", "size": 1e5, "ms": 90.0, "failure": "not_converged"},
        ],
        "chains": [{"family": "chain", "size": 1e6, "ms_per_newton": 80.0}],
        "profile": [{"profile": {"timeline": timeline}}, {"profile": {"timeline": None}}, {"failure": "no"}],
        "peer": [
            {"scene": "wrecking_ball 575", "program": "libuipc shipped", "over_abd": 3.0},
            {"scene": "wrecking_ball 575", "program": "libuipc converged", "over_abd": 12.0},
        ],
    }
    found = [(one["value"], one["holds"]) for one in merge.goals(rows)]
    expected = [(12.0, True), (7.0, True), (None, None), (80.0, False), (40.0, True), (0.2, False), (1.25, False)]
    assert found == expected
    assert [one["holds"] for one in merge.goals({})] == [None] * 7


def test_a_case_that_cannot_run_says_why():
    (found,) = run.run_case(("chain", 2.0, "abacus"), 60.0, ["--steps", "1"])
    assert "abacus" in found["failure"] and found["family"] == "chain"
    assert "stopped after 0 steps" in run.text([found])


def test_figures_and_exponents(tmp_path, monkeypatch):
    sizes = np.array([10.0, 100.0, 1000.0, 10_000.0])
    assert plot.exponent(sizes, 1e-3 * sizes**1.1) == pytest.approx(1.1)
    assert plot.exponent(sizes[:2], sizes[:2]) is None
    rows = [row(0.01 * size, size=size) for size in sizes]
    rows += [row(1.0, size=kappa, family="top", unit=plot.KAPPA, joints=0) for kappa in (1e8, 1e11)]
    rows.append({**rows[0], "of": "exact over penalty", "ratio": 1.1, "ms_per_newton": None})
    facts = {"device": "cpu", "cores": 2, "processor": "one", "date": "today"}
    results = tmp_path / "results.json"
    results.write_text(json.dumps({"facts": facts, "rows": rows}))
    assert list(plot.lines_of(rows)) == ["chain exact", "top exact"]
    monkeypatch.setattr("sys.argv", ["plot.py", str(results)])
    assert plot.main() == 0
    for name in ("cost", "kappa"):
        assert (tmp_path / f"results-{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(cuda_problem() == "", reason="there is a GPU")
def test_the_gpu_check_says_why_it_cannot_run():
    script = TOOLS / "gpu_check.sh"
    done = subprocess.run(
        ["bash", str(script)], capture_output=True, text=True, env={**os.environ, "PYTHON": sys.executable}, check=False
    )
    assert done.returncode == 2
    assert "no GPU check: Warp finds no CUDA device" in done.stderr and "abd doctor" in done.stderr


@pytest.mark.slow
def test_the_gpu_check_runs_whole_on_the_processor(tmp_path):
    """In tiny sizes, so that no mistake of the script costs a run on a GPU."""
    environment = {
        **os.environ,
        "PYTHON": sys.executable,
        "ABD_GPU_CHECK_DEVICE": "cpu",
        "ABD_GPU_CHECK_OUT": str(tmp_path),
        "ABD_GPU_CHECK_PARTS": "tests chains profile raw",
    }
    script = ["bash", str(TOOLS / "gpu_check.sh")]
    done = subprocess.run(script, capture_output=True, text=True, env=environment, check=False)
    (found,) = tmp_path.glob("cpu-*.json")
    result = json.loads(found.read_text())
    assert done.returncode == 1, "some parts were left out"
    assert result["checks"] == {"tests": "passed"} and all("left out" in what for what in result["missing"])
    assert {row["scene"] for row in result["chains"]} == {"chain 10 exact", "chain 20 exact"}
    assert result["profile"][0]["profile"]["timeline"]["launches"] > 0 and len(result["raw"]) > 5
    assert found.with_suffix(".md").read_text().strip() == done.stdout.strip()
