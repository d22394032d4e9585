"""Joints may start exactly at a limit, which holds from the first step."""

import numpy as np
import pytest

import abd
from abd.errors import SceneError

RANGED = {
    # type: coordinate, keys
    "hinge": ("theta", {"axis": (0, 1, 0)}),
    "slider": ("z", {"axis": (0, 0, 1)}),
    "cylindrical": ("z", {"axis": (0, 0, 1)}),
    "universal": ("roll", {}),
    "gimbal": ("pitch", {}),
    "planar": ("x", {"axis": (0, 1, 0)}),
}
STARTS = {
    # range, initial value
    "lower": ((0.0, 1.0), 0.0),
    "upper": ((-1.0, 0.0), 0.0),
    "elsewhere": ((-1.0, 0.3), 0.3),
    "rounded": ((np.pi / 6.0, 1.0), float(np.radians(30.0)) - 1e-9),
}


@pytest.mark.parametrize("dt", [0.01, 0.002, 0.0005])
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("kind", RANGED)
def test_coordinate_can_start_at_a_bound(kind, start, dt):
    (coordinate, keys), (ends, initial) = RANGED[kind], STARTS[start]
    scene = abd.Scene(gravity=(0, 0, -9.81))
    scene.solver.dt = dt
    scene.add_body("bar", box=(1, 0.1, 0.1), density=100, position=(0.5, 0, 0))
    settings = {coordinate: {"range": ends, "initial": initial}}
    scene.add_joint(kind, "joint", abd.WORLD, "bar", anchor=(0, 0, 0), coordinate=settings, enforcement="exact", **keys)
    simulation = abd.Simulation(scene, device="cpu")
    assert simulation.joints["joint"].coordinate(coordinate).value == pytest.approx(initial, abs=1e-9)
    for _ in range(5):
        simulation.step()
        value = simulation.joints["joint"].coordinate(coordinate).value
        assert ends[0] - 1e-6 <= value <= ends[1] + 1e-6


@pytest.mark.parametrize("beyond", [1e-4, 0.1])
def test_coordinate_cannot_start_beyond_its_range(beyond):
    scene = abd.Scene()
    scene.add_body("bar", box=(1, 0.1, 0.1), position=(0.5, 0, 0))
    scene.add_hinge("joint", abd.WORLD, "bar", anchor=(0, 0, 0), axis=(0, 1, 0), range=(beyond, 1.0))
    with pytest.raises(SceneError, match="inside its range"):
        abd.Simulation(scene, device="numpy")


GAPS = {
    # name: type, position of the body, keys
    "rope": ("rope", (0, 0, -1), {"distance": 1.0, "parent_anchor": (0, 0, 0), "child_anchor": (0, 0, 0)}),
    "tilt": (
        "spherical",
        (0.5, 0, 0),
        {"max_tilt_deg": 30, "parent_axis": (0, 0.5, 3**0.5 / 2), "child_axis": (0, 0, 1)},
    ),
    "rotation": ("spherical", (0.5, 0, 0), {"max_rotation_deg": (30, 30, 30)}),
    "plane": ("planar_connector", (0, 0, 0), {"unilateral": True, "anchor": (0, 0, 0), "axis": (0, 0, 1)}),
}


@pytest.mark.parametrize("dt", [0.01, 0.0005])
@pytest.mark.parametrize("name", GAPS)
def test_gap_can_be_closed_at_the_start(name, dt):
    kind, place, keys = GAPS[name]
    scene = abd.Scene()
    scene.solver.dt = dt
    scene.add_body("body", box=(0.1, 0.1, 0.1), position=place)
    if name == "rotation":
        keys = keys | {"parent_frame": {"position": place}, "child_frame": {"axis_angle": {"axis": (1, 2, 3), "degrees": 30}}}
    elif name == "tilt":
        keys = keys | {"anchor": (0, 0, 0)}
    scene.add_joint(kind, "joint", abd.WORLD, "body", enforcement="exact", **keys)
    simulation = abd.Simulation(scene, device="cpu")
    simulation.run(steps=5)
    assert all(gap.value > -3e-6 for gap in simulation.joints["joint"].gaps.values())


@pytest.mark.parametrize("dt", [0.01, 0.0005])
@pytest.mark.parametrize("value", [0.1, 0.11, 0.0999999])
def test_coordinate_can_be_set_to_a_loaded_limit(value, dt):
    scene = abd.Scene(solver={"dt": dt})
    scene.add_body("arm", box=(0.36, 0.05, 0.05), position=(0.2, 0, 0), mass=2, inertia=(0.002, 0.03, 0.03))
    pivot = {"anchor": (0, 0, 0), "axis": (0, 1, 0), "enforcement": "exact", "range": (-0.4, 0.1)}
    scene.add_hinge("pivot", abd.WORLD, "arm", **pivot)
    simulation = abd.Simulation(scene, device="cpu")
    theta = simulation.joints["pivot"].coordinate("theta")
    theta.set(value)
    simulation.run(steps=20)
    assert theta.value == pytest.approx(0.1, abs=1e-5) and theta.value < 0.1
    assert theta.limit_force == pytest.approx(-2 * 9.81 * 0.2 * np.cos(0.1), rel=0.01)
