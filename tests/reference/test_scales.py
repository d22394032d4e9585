"""Mechanisms of any size and mass ratio take the same few iterations, without built-in length, mass or time."""

import logging
import math
import re

import numpy as np
import pytest
from common_scenes import hinged_bars, on_ground
from scipy.spatial.transform import Rotation

import abd

STEPS = 15


def placed(angles=(0.0, 0.0, 0.0), position=(0.0, 0.0, 0.0)):
    """(4, 4) transform: rotations about x, y, z, then a shift."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = Rotation.from_euler("xyz", angles).as_matrix(), position
    return T


def bennett(size, gravity, dt):
    """Bennett's overconstrained linkage: lengths a, b, a, b, twists with sin(alpha) / a = sin(beta) / b."""
    a, b, alpha, theta = 1.0, 2.0, 0.5, 1.0
    beta = math.asin(b * math.sin(alpha) / a)
    other = 2.0 * math.atan(math.sin((beta + alpha) / 2) / math.sin((beta - alpha) / 2) / math.tan(theta / 2))
    angles, lengths, twists = [theta, other, -theta, -other], [a, b, a, b], [alpha, beta, alpha, beta]
    scene = abd.Scene(gravity=(0, 0, -gravity), solver={"dt": dt})
    T = placed((0.0, 0.7, 0.0))
    names = ["world", "l0", "l1", "l2", "world"]
    joints = [T]
    for k in range(4):
        T = T @ placed((0.0, 0.0, angles[k]))
        if k < 3:
            middle = T @ placed(position=(lengths[k] / 2, 0.0, 0.0))
            turned = np.roll(Rotation.from_matrix(middle[:3, :3]).as_quat(), 1)
            box = [size * lengths[k], 0.05 * size, 0.05 * size]
            place = (size * middle[:3, 3]).tolist()
            scene.add_body(names[k + 1], box=box, position=place, quaternion=turned.tolist(), group=1)
        T = T @ placed(position=(lengths[k], 0.0, 0.0)) @ placed((twists[k], 0.0, 0.0))
        joints.append(T)
    assert np.abs(joints[4] - joints[0]).max() < 1e-12
    for k in range(4):
        ends = (names[k], names[k + 1]) if k < 3 else ("world", names[k])
        anchor, axis = (size * joints[k][:3, 3]).tolist(), joints[k][:3, 2].tolist()
        scene.add_hinge(f"j{k}", *ends, anchor=anchor, axis=axis, enforcement="exact")
    return scene


def hanging(light, heavy):
    scene = hinged_bars(2)
    scene.body("bar0").mass, scene.body("bar1").mass = light, heavy
    return scene


def run(scene):
    """Newton iterations of every step, largest strain, end of the first link."""
    simulation = abd.Simulation(scene, device="cpu")
    reports = [simulation.step() for _ in range(STEPS)]
    strain = max(report.max_orthogonality_error for report in reports)
    return [report.newton_iterations for report in reports], strain, next(iter(simulation.bodies.values())).transform[:3, 0]


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1e3])
@pytest.mark.parametrize("slower", [False, True])
def test_motion_of_a_linkage_scales_with_size(size, slower):
    """Motion is the same with gravity proportional to size, or time to its root."""
    scale = {"gravity": 9.81, "dt": 0.01 * math.sqrt(size)} if slower else {"gravity": 9.81 * size, "dt": 0.01}
    expected, _, pose = run(bennett(1.0, 9.81, 0.01))
    newton, strain, found = run(bennett(size, **scale))
    assert np.abs(np.subtract(newton, expected)).max() <= 1
    assert strain < 1e-5
    assert np.abs(found - pose).max() < 1e-5


@pytest.mark.parametrize(("light", "heavy"), [(1.0, 1e7), (1e7, 1.0), (1e-3, 1e2)])
def test_unequal_masses_take_few_iterations_and_stay_rigid(light, heavy):
    newton, strain, _ = run(hanging(light, heavy))
    assert max(newton) <= 10
    assert strain < 1e-5


def loaded(kappa):
    """A tonne at the end of a link of 1 kg that swings down from level."""
    scene = abd.Scene(solver={"dt": 0.005})
    scene.add_body("load", box=(0.2, 0.2, 0.2), mass=1000.0, position=(1.0, 0.0, 0.0), group=1, kappa=1e12)
    scene.add_body("link", box=(1.0, 0.1, 0.1), mass=1.0, position=(0.5, 0.0, 0.0), group=1, kappa=kappa)
    scene.add_hinge("pivot", "world", "link", anchor=(0, 0, 0), axis=(0, 1, 0), enforcement="exact")
    scene.add_fixed("weld", "link", "load", anchor=(1, 0, 0), enforcement="exact")
    return abd.Simulation(scene, device="cpu")


def test_strain_is_reported_with_a_sufficient_kappa(caplog):
    """Strain is reported from 1e-5 on, and again after each tenfold increase."""
    with caplog.at_level(logging.WARNING, logger="abd"):
        simulation = loaded(1e7)
        strains = [simulation.step().max_orthogonality_error for _ in range(40)]
        lines = [record.getMessage() for record in caplog.records]
        said, bound = [], 1e-5
        for strain in strains:
            if strain > bound:
                said.append(strain)
                bound = 10.0 * strain
        assert len(lines) == len(said) == 3 and said[0] < 1e-3 < 1e-2 < max(strains)
        assert all(line.startswith("link strains by ") for line in lines)
        enough = [float(re.search(r"kappa = (\S+) would", line)[1]) for line in lines]
        assert enough == pytest.approx([1e13 * strain for strain in said], rel=0.1)
        caplog.clear()
        simulation = loaded(enough[-1])
        assert max(simulation.step().max_orthogonality_error for _ in range(40)) < 2e-5
    assert not caplog.records


def driven(**drive):
    """50 kg at the end of a link of 1 kg that a drive turns, without gravity."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.005})
    scene.add_body("link", box=(1.0, 0.1, 0.1), mass=1.0, position=(0.5, 0.0, 0.0), group=1)
    scene.add_body("load", box=(0.2, 0.2, 0.2), mass=50.0, position=(1.0, 0.0, 0.0), group=1)
    pivot = {"anchor": (0, 0, 0), "axis": (0, 1, 0), "enforcement": "exact"}
    scene.add_hinge("pivot", "world", "link", drive=drive, **pivot)
    scene.add_fixed("weld", "link", "load", anchor=(1, 0, 0), enforcement="exact")
    return abd.Simulation(scene, device="cpu")


LIMITED = {"mode": "velocity", "target": 20.0, "effort": 2e4}
GAINS = {"mode": "pd", "target": 1.0, "stiffness": 1e5, "damping": 1e3}


def test_huge_effort_limits_do_not_make_bodies_infinitely_stiff():
    stiffest, usual = (driven(**{**LIMITED, "effort": effort}).model.bodies for effort in (1e30, 1e4))
    assert (stiffest.kappa < 1e3 * usual.kappa).all() and (stiffest.kappa > usual.kappa).all()


def pressed():
    """Ten tonnes on a hinged flap of a kilogram, which a post holds up at its other end."""
    scene = abd.Scene(solver={"dt": 0.005})
    scene.add_body("post", box=(0.1, 0.1, 0.1), kind="static", position=(0.95, 0.0, -0.101))
    scene.add_body("flap", box=(1.0, 0.1, 0.1), mass=1.0, position=(0.5, 0.0, 0.0))
    scene.add_body("block", box=(0.2, 0.2, 0.2), mass=1e4, position=(0.5, 0.0, 0.151))
    scene.add_hinge("pivot", "world", "flap", anchor=(0, 0, 0), axis=(0, 1, 0), enforcement="exact")
    return abd.Simulation(scene, device="cpu")


def crumb():
    """A cube of 3 mm and 0.1 g between a fixed block and one of 40 kg that comes at 2 m/s."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01})
    scene.add_body("anvil", box=(0.2, 0.2, 0.2), kind="static", position=(0.0, 0.0, -0.1))
    scene.add_body("crumb", box=(0.003, 0.003, 0.003), density=3500.0, position=(0.0, 0.0, 0.002))
    scene.add_body("hammer", box=(0.2, 0.2, 0.2), density=5000.0, position=(0.0, 0.0, 0.12), velocity=(0, 0, -2.0))
    return abd.Simulation(scene, device="cpu")


def dropped(size):
    """A tilted box: weight and impacts strain one of 100 m a thousand times as much as one of 0.1 m of the same material."""
    scene = on_ground(dt=0.01 * np.sqrt(size / 0.1))
    tilted = {"axis": (1.0, 2.0, 0.5), "degrees": 40.0}
    scene.add_body("box", box=(size, 0.8 * size, 0.6 * size), position=(0.0, 0.0, 2.0 * size), axis_angle=tilted)
    return abd.Simulation(scene, device="numpy")


LINE = r"{} strains by \S+ .* its kappa is \S+ Pa; kappa = \S+ would"
KAPPA_CASES = {
    # name: simulation, steps, bounds of the largest strain, body of which a warning tells
    "a tonne on a link of a kilogram": (lambda: loaded("auto"), 80, (0.0, 1e-5), None),
    "a drive with an effort limit": (lambda: driven(**LIMITED), 20, (1e-7, 1e-5), None),
    "a drive with gains": (lambda: driven(**GAINS), 20, (1e-7, 1e-5), None),
    "a crumb between heavy bodies": (crumb, 10, (0.0, 1e-4), None),
    "a small box that is dropped": (lambda: dropped(0.1), 40, (0.0, 1e-3), None),
    "a large box that is dropped": (lambda: dropped(100.0), 40, (0.0, 1e-3), None),
    "a drive without a limit": (lambda: driven(mode="position", target=0.5), 20, (1e-5, np.inf), "link"),
    "contacts": (pressed, 20, (1e-5, np.inf), "flap"),
}


@pytest.mark.parametrize("name", KAPPA_CASES)
def test_the_default_kappa_holds_known_loads_and_others_are_reported(name, caplog):
    """Weight, effort limits, gains and the distance from the target are known; unlimited drives and contacts are not."""
    make, steps, (low, high), body = KAPPA_CASES[name]
    with caplog.at_level(logging.WARNING, logger="abd"):
        simulation = make()
        assert low < max(simulation.step().max_orthogonality_error for _ in range(steps)) < high
    lines = [record.getMessage() for record in caplog.records if "strains" in record.getMessage()]
    assert bool(lines) == (body is not None) and all(re.match(LINE.format(body), line) for line in lines)
    assert make is not crumb or simulation.bodies["hammer"].position[2] > 0.1, "the hammer lies on the crumb"


@pytest.mark.parametrize(
    ("edge", "dt", "gravity", "tolerance"),
    [
        (1.0, 1e-5, -9.81, 1e-3),
        (0.2, 1e-5, -9.81, 1e-3),
        (1e-3, 1e-5, -9.81, 3e-3 * 1e-3**0.5),
        (100.0, 1e-5, -9.81, 1e-2),
        (0.2, 1e-2, 0.0, 2e-4),
        (0.2, 1e-3, 0.0, 1e-3),
        (0.2, 1e-5, 0.0, 1e-3),
    ],
)
def test_default_tolerance_scales_with_the_root_of_the_size_and_without_a_known_speed_is_bounded(edge, dt, gravity, tolerance):
    for given, expected in (({}, tolerance), ({"tolerance": 0.4}, 0.4)):
        scene = abd.Scene(gravity=(0, 0, gravity), solver={"dt": dt, **given})
        scene.add_body("box", box=(edge, edge, edge))
        assert scene.compile().settings.tolerance == pytest.approx(expected, rel=1e-12)
