"""Values, intervals and texts of sensors."""

import csv

import numpy as np
import pytest
from common_scenes import hinged_bars

import abd
from abd.api.simulation import Simulation
from abd.cli import main
from abd.io.trajectory import Trajectory


@pytest.fixture
def scene() -> abd.Scene:
    """A bar that swings on a hinge, off its mesh frame's origin."""
    return hinged_bars(1)


@pytest.fixture
def sim(scene) -> Simulation:
    return Simulation(scene, "numpy")


def test_records_equal_the_views(sim):
    hinge, bar = sim.joints["hinge0"], sim.bodies["bar0"]
    of_joint = ("coordinate", "rate", "wrench", "residual", "multipliers", "displacement", "relative_velocity")
    sensors = {what: sim.add_sensor(what, what, "hinge0") for what in (*of_joint, "position", "velocity")}
    force = sim.add_sensor("force", "force", "hinge0")
    tip = sim.add_sensor("tip", "position", ("bar0", (0.5, 0, 0)))
    speed = sim.add_sensor("speed", "velocity", ("bar0", (0.5, 0, 0)))
    turning, frame = sim.add_sensor("w", "angular_velocity", "bar0"), sim.add_sensor("R", "rotation", "bar0")
    push = sim.add_sensor("push", "coordinate_force", ("hinge0", "theta"))
    height = sim.add_sensor("height", lambda running: running.bodies["bar0"].transform[2, 3])
    sim.run(steps=5)
    assert sensors["coordinate"].time.tolist() == pytest.approx([0.01 * k for k in range(6)])
    for what, sensor in sensors.items():
        names = {"coordinate": "coordinates", "rate": "rates"}
        now = getattr(hinge, names.get(what, what))
        now = np.concatenate(now()) if callable(now) else np.array(now)
        assert (sensor.values[-1] == now).all() and sensor.values.shape == (6, len(sensor.columns))
    assert force.values.shape == (6, 6) and (force.values[-1, :3] == -hinge.wrench()[0]).all()
    assert tip.columns == ("x", "y", "z") and np.allclose(np.linalg.norm(tip.values, axis=1), 1.0, atol=1e-5)
    mean = 0.5 * (speed.values[1:] + speed.values[:-1])
    assert np.allclose(np.diff(tip.values, axis=0) / 0.01, mean, atol=3e-4)
    assert turning.values[-1][1] == pytest.approx(hinge.rates[0], rel=1e-6)
    assert np.allclose(frame.values[-1].reshape(3, 3), bar.transform[:3, :3], atol=1e-5)
    assert (push.values == 0.0).all() and height.columns == ("v0",)
    assert height.values[-1, 0] == bar.transform[2, 3]


def test_interval_of_records_and_csv(sim, tmp_path):
    sensor = sim.add_sensor("theta", "coordinate", ("hinge0", 0), every=3)
    sim.run(steps=7)
    assert sensor.time == pytest.approx([0.0, 0.03, 0.06])
    sensor.write_csv(tmp_path / "theta.csv")
    with (tmp_path / "theta.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["time", "theta"]
    assert np.array(rows, dtype=float).tolist() == np.column_stack([sensor.time, sensor.values]).tolist()


def test_sensors_of_a_scene_file_are_recorded_by_the_command(scene, tmp_path):
    scene.add_sensor("angle", "coordinate", joint="hinge0")
    scene.add_sensor("tip/bar", "position", body="bar0", every=2)
    scene.save(tmp_path / "scene.toml")
    command = ["run", str(tmp_path / "scene.toml"), "--device", "numpy", "--out", str(tmp_path / "run"), "--quiet"]
    assert main([*command, "--steps", "3"]) == 0
    assert main([*command, "--steps", "5", "--resume"]) == 0
    with Trajectory(tmp_path / "run") as trajectory:
        angle = trajectory.series("/sensors/angle")
        assert (angle[:, 0] == trajectory.series("/joints/hinge0/coordinates")[:, 0]).all() and angle[-1, 0] > 0.01
        assert trajectory.series("/sensors/tip|bar").shape == (6, 3)
