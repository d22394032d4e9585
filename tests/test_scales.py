"""No length, mass or time of its own: mechanisms of any size, and of any ratio of masses, take the same few iterations."""

import math

import numpy as np
import pytest
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
    """A heavy link at the end of a light one."""
    scene = abd.Scene()
    for k, mass in enumerate((light, heavy)):
        scene.add_body(f"l{k}", box=(1.0, 0.1, 0.1), mass=mass, position=(k + 0.5, 0.0, 0.0))
    for k, parent in enumerate(("world", "l0")):
        scene.add_hinge(f"j{k}", parent, f"l{k}", anchor=(k, 0, 0), axis=(0, 1, 0), enforcement="exact")
    return scene


def run(scene):
    """Newton iterations of every step, largest strain, end of the first link."""
    simulation = abd.Simulation(scene, device="cpu")
    reports = [simulation.step() for _ in range(STEPS)]
    strain = max(report.max_orthogonality_error for report in reports)
    return [report.newton_iterations for report in reports], strain, simulation.bodies["l0"].transform[:3, 0]


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1e3])
@pytest.mark.parametrize("slower", [False, True])
def test_a_linkage_moves_alike_at_any_size(size, slower):
    """With gravity that grows with the size, or time that grows with its root."""
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
