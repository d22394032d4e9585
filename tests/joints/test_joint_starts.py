"""Starts: at a limit, with requested rates of coordinates, and with velocities that violate joints."""

import numpy as np
import pytest
from common_scenes import hinged_bars

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


@pytest.mark.parametrize("start", range(len(STARTS)), ids=STARTS)
@pytest.mark.parametrize("kind", range(len(RANGED)), ids=RANGED)
def test_coordinate_can_start_at_a_bound(kind, start):
    """Each type and each start is tested with each of three steps."""
    dt, (ends, initial) = (0.01, 0.002, 0.0005)[(kind + start) % 3], list(STARTS.values())[start]
    kind, (coordinate, keys) = list(RANGED.items())[kind]
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


TILTED = {"parent_axis": (0, 0.5, 3**0.5 / 2), "child_axis": (0, 0, 1)}
TURN = {"axis_angle": {"axis": (1, 2, 3), "degrees": 30}}
TURNED = {"parent_frame": {"position": (0.5, 0, 0)}, "child_frame": TURN}
GAPS = {
    # name: type, position of the body, keys
    "rope": ("rope", (0, 0, -1), {"distance": 1.0, "parent_anchor": (0, 0, 0), "child_anchor": (0, 0, 0)}),
    "tilt": ("spherical", (0.5, 0, 0), {"max_tilt_deg": 30, "anchor": (0, 0, 0), **TILTED}),
    "rotation": ("spherical", (0.5, 0, 0), {"max_rotation_deg": (30, 30, 30), **TURNED}),
    "plane": ("planar_connector", (0, 0, 0), {"unilateral": True, "anchor": (0, 0, 0), "axis": (0, 0, 1)}),
}


@pytest.mark.parametrize("dt", [0.01, 0.0005])
@pytest.mark.parametrize("name", GAPS)
def test_gap_can_be_closed_at_the_start(name, dt):
    kind, place, keys = GAPS[name]
    scene = abd.Scene()
    scene.solver.dt = dt
    scene.add_body("body", box=(0.1, 0.1, 0.1), position=place)
    scene.add_joint(kind, "joint", abd.WORLD, "body", enforcement="exact", **keys)
    simulation = abd.run(scene, steps=5, device="cpu")
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


def chain(**first) -> abd.Scene:
    """Two bars of 1 m, hinged to the world at the origin and to one another, along x."""
    scene = hinged_bars(2, "penalty")
    scene.gravity = (0, 0, 0)
    for key, value in first.items():
        setattr(scene.joint("hinge0"), key, value)
    return scene


@pytest.mark.parametrize("key", [{"initial_rate": 3.0}, {"initial_rate_deg": 540.0 / np.pi}])
def test_coordinate_has_its_initial_rate(key):
    sim = abd.Simulation(chain(**key), device="numpy")
    assert sim.joints["hinge0"].coordinate().speed == pytest.approx(3.0, abs=1e-9)
    bars = [sim.bodies[f"bar{k}"] for k in range(2)]
    np.testing.assert_allclose(bars[0].angular_velocity, (0.0, 3.0, 0.0), atol=1e-9)
    np.testing.assert_allclose(bars[0].linear_velocity, (0.0, 0.0, -1.5), atol=1e-9)
    # the elbow is free: its end of the first bar has -3 m/s, and the impulse there turns the second one
    speed, spin = bars[1].linear_velocity[2], bars[1].angular_velocity[1]
    assert speed + 0.5 * spin == pytest.approx(-3.0, abs=1e-9)
    assert (1.0 + 0.1**2) / 12.0 * spin == pytest.approx(0.5 * speed, rel=1e-9)


@pytest.mark.parametrize(("root", "elbow"), [("compliant", "compliant"), ("compliant", "exact"), ("exact", "compliant")])
def test_bodies_move_with_compliant_joints_that_have_an_initial_rate(root, elbow):
    """Their velocities are those of stiff joints."""
    known = abd.Simulation(chain(initial_rate=3.0), device="numpy").stepper.qd
    scene, keys = chain(initial_rate=3.0), {"exact": {}, "compliant": {"linear_compliance": 1e-7, "rotary_compliance": 1e-7}}
    for name, enforcement in (("hinge0", root), ("hinge1", elbow)):
        for key, value in {"enforcement": enforcement, **keys[enforcement]}.items():
            setattr(scene.joint(name), key, value)
    np.testing.assert_allclose(abd.Simulation(scene, device="numpy").stepper.qd, known, atol=1e-9)


@pytest.mark.parametrize(("enforcement", "center"), [("exact", (0, 0, 0)), ("penalty", (1, 2, 0)), ("exact", (1e3, 0.1, 0.3))])
@pytest.mark.parametrize(
    "kind, coordinate", [("hinge", "theta"), ("slider", "z"), ("cylindrical", "theta"), ("universal", "roll")]
)
def test_joint_through_the_centre_of_mass_has_its_initial_rate(kind, coordinate, center, enforcement):
    scene = abd.Scene(gravity=(0, 0, 0))
    scene.add_body(
        "wheel", cylinder={"radius": 0.2, "length": 0.05}, position=center, euler={"order": "xyz", "degrees": (20, 30, 40)},
    )
    rate = {"coordinate": {coordinate: {"initial_rate": 5.0}}} | ({} if kind == "universal" else {"axis": (0.3, -0.2, 0.8)})
    scene.add_joint(kind, "axle", abd.WORLD, "wheel", anchor=center, enforcement=enforcement, **rate)
    sim = abd.Simulation(scene, device="numpy")
    assert sim.joints["axle"].coordinate(coordinate).speed == pytest.approx(5.0, abs=1e-9)


def test_inconsistent_velocities_are_projected_with_a_note():
    """A bar on a hinge at its end keeps (L^2/12) / (L^2/3) = 1/4 of a spin of 6 rad/s about its centre."""
    scene = abd.Scene(gravity=(0, 0, 0))
    scene.add_body("bar", box=(1.0, 0.01, 0.01), position=(0.5, 0, 0), angular_velocity=(0, 6.0, 0))
    scene.add_hinge("root", abd.WORLD, "bar", anchor=(0, 0, 0), axis=(0, 1, 0))
    sim = abd.Simulation(scene, device="numpy")
    assert sim.bodies["bar"].angular_velocity[1] == pytest.approx(1.5, rel=1e-3)
    assert any("bar" in note for note in sim.model.notes)


def test_contradictory_rates_are_refused():
    scene = chain(initial_rate=3.0)
    scene.add_hinge("again", abd.WORLD, "bar0", anchor=(0, 0, 0), axis=(0, 1, 0), initial_rate=-1.0)
    with pytest.raises(SceneError, match="rate"):
        abd.Simulation(scene, device="numpy")
