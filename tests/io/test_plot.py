"""`abd plot` draws a run, and two runs in one figure."""

from functools import partial

import exported_run
import numpy as np
import pytest

import abd
from abd.api.simulation import Simulation
from abd.cli import main
from abd.io.plots import FIGURES, draw, runs_of
from abd.io.run import run
from abd.io.trajectory import Trajectory


@pytest.fixture(scope="module")
def standing(tmp_path_factory):
    """A box on the ground, whose contacts and sensors are written."""
    scene = abd.Scene("standing", solver={"dt": 0.01}, output={"frames": 8, "contacts": True})
    scene.add_body("ground", half_space={})
    scene.add_body("box", box=(0.2, 0.2, 0.2), position=(0, 0, 0.1004))
    scene.add_sensor("place", "position", body="box")
    scene.add_sensor("touches", "touches", body="box")
    place = tmp_path_factory.mktemp("plot") / "standing"
    run(scene, scene.started(), place, device="cpu", simulate=partial(Simulation, source=scene))
    return place


def lines(figure) -> dict[str, np.ndarray]:
    """Label -> values of all lines of a figure."""
    return {line.get_label(): np.asarray(line.get_ydata(), dtype=float) for axes in figure.axes for line in axes.lines}


def test_lines_are_the_values_of_the_run(folder):
    with Trajectory(folder) as trajectory:
        one = runs_of([trajectory])
        energy = lines(FIGURES["energy"](one))
        np.testing.assert_array_equal(energy["kinetic"], trajectory.series("/energy/kinetic"))
        assert energy["gravity"][0] == 0.0 and "contact" not in energy, "what is zero throughout is left out"
        momentum = FIGURES["momentum"](one).axes
        np.testing.assert_array_equal(momentum[0].lines[2].get_ydata(), trajectory.series("/momentum/linear")[:, 2])
        np.testing.assert_array_equal(momentum[1].lines[0].get_ydata(), trajectory.series("/momentum/angular")[:, 0])
        angle = lines(FIGURES["coordinate"](one))["pivot.theta"]
        np.testing.assert_allclose(np.radians(angle), trajectory.series("/joints/pivot/coordinates")[:, 0], atol=1e-12)
        wrench = trajectory.series("/joints/pivot/wrench")
        forces = {line.get_label(): line.get_ydata() for line in FIGURES["wrench"](one).axes[0].lines}
        np.testing.assert_allclose(forces["pivot"], np.linalg.norm(wrench[:, :3], axis=1))
        residual = lines(FIGURES["residual"](one))
        worst = trajectory.series("/solver/max_joint_residual")
        np.testing.assert_allclose(np.nan_to_num(residual["all"]), worst[:, 0], rtol=1e-12)
        assert {"pivot", "socket"} <= set(residual)
        assert len(lines(FIGURES["iterations"](one))["Newton"]) == exported_run.FRAMES - 1
        stages = FIGURES["stages"](one).axes[0]
        assert len(stages.patches) == len(stages.get_yticklabels()) >= 2


def test_contact_forces_carry_the_weight(standing):
    with Trajectory(standing) as trajectory:
        drawn = lines(FIGURES["contact"](runs_of([trajectory])))
        found = [trajectory.contacts(k)["force"] for k in range(len(trajectory))]
        gap = lines(FIGURES["gap"](runs_of([trajectory])))["smallest gap"]
    sums = [np.linalg.norm(force, axis=1).sum() for force in found]
    np.testing.assert_allclose(drawn["sum of sizes"], sums)
    np.testing.assert_array_equal(drawn["number"], [len(force) for force in found])
    assert drawn["sum of sizes"].max() > 0.0 and np.isfinite(gap[1:]).all()


def test_sensors_have_axes_of_their_own(standing):
    with Trajectory(standing) as trajectory:
        figure = FIGURES["sensors"](runs_of([trajectory]))
        place, touches = figure.axes
        assert (place.get_ylabel(), touches.get_ylabel()) == ("place", "touches")
        assert [line.get_label() for line in place.lines] == ["x", "y", "z"]
        np.testing.assert_array_equal(place.lines[2].get_ydata(), trajectory.sensors()["place"][:, 2])
        np.testing.assert_array_equal(touches.lines[0].get_ydata(), trajectory.sensors()["touches"][:, 0])


def test_figures_without_data_are_not_drawn(folder, standing, tmp_path):
    with Trajectory(folder) as trajectory, Trajectory(standing) as other:
        assert FIGURES["contact"](runs_of([trajectory])) is None and FIGURES["sensors"](runs_of([trajectory])) is None
        for name in ("residual", "coordinate"):
            assert FIGURES[name](runs_of([other])) is None
            assert FIGURES[name](runs_of([other, trajectory])) is not None, "one of both has some"
        assert not draw([other], "coordinate", tmp_path / "a.svg") and not list(tmp_path.iterdir())


def test_two_runs_are_drawn_in_common_figures(folder, standing, tmp_path, capsys):
    assert main(["plot", str(folder), str(standing), "--format", "png", "--out", str(tmp_path)]) == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(f"{name}-both.png" for name in FIGURES)
    assert capsys.readouterr().out.split() == [str(tmp_path / f"{name}-both.png") for name in FIGURES]
    with Trajectory(folder) as first, Trajectory(standing) as second:
        runs = runs_of([first, second])
        assert [one.name for one in runs] == ["run", "standing"]
        energy = lines(FIGURES["energy"](runs))
        np.testing.assert_array_equal(energy["kinetic (standing)"], second.series("/energy/kinetic"))
        same = FIGURES["momentum"](runs_of([first, first]))
        solid, broken = same.axes[0].lines[0], same.axes[0].lines[3]
        assert solid.get_color() == broken.get_color() and solid.get_linestyle() != broken.get_linestyle()
        assert len({one.name for one in runs_of([first, first])}) == 2


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_figures_are_reproducible(folder, tmp_path, kind):
    with Trajectory(folder) as trajectory:
        for name in ("a", "b"):
            assert draw([trajectory], "energy", tmp_path / f"{name}.{kind}")
    first, second = (tmp_path / f"{name}.{kind}" for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size > 5000
