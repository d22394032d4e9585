"""The device under test, states on it and comparisons."""

import os

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.upload import allocate_struct
from abd.backends.reference.numpy_bodies import state
from cuda_kernels.bodies import poses
from cuda_kernels.bodies.affine import Pose

NAME = os.environ.get("ABD_TEST_DEVICE", "cpu")
"""Name of the device (`pytest --device`)."""
DEVICE = Device(NAME)


def follow(simulation, steps: int, read) -> list:
    """Return ``read(report)`` after each step."""
    return [read(simulation.step()) for _ in range(steps)]


def random_states(count: int, seed: int, strain: float = 0.05) -> np.ndarray:
    """Return (count, 12) states with random rotations and strains."""
    rng = np.random.default_rng(seed)
    turns = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    turns *= np.sign(np.linalg.det(turns))[:, None, None]
    return state(rng.normal(size=(count, 3)), (np.eye(3) + strain * rng.normal(size=(count, 3, 3))) @ turns)


def flags(count: int, *chosen: int):
    """Return (count,) flags, int32 on the device and bool on the host, which are true at the chosen indices."""
    host = np.isin(np.arange(count), chosen)
    return DEVICE.upload(host.astype(np.int32), wp.int32), host


def pose_of(q: np.ndarray):
    """Upload the state q (n, 12)."""
    pose = allocate_struct(Pose, len(q), DEVICE)
    DEVICE.launch(poses.unpack, len(q), DEVICE.upload(q, wp.float64), pose)
    return pose


def set_laws(joints, law: np.ndarray, p: np.ndarray, reference: np.ndarray, shift: np.ndarray) -> None:
    """Write laws (R,), parameters (R, 8), references (m,) and shifts (l, 3) of joint rows to the device."""
    pairs = ((joints.rows.law, law), (joints.rows.p, p), (joints.measures.reference, reference))
    for array, values in (*pairs, (joints.linear.shift, shift)):
        DEVICE.write(array, values)


def assert_close(value: np.ndarray, expected: np.ndarray, relative: float = 1e-10) -> None:
    """Assert that all entries are equal to `relative` of the largest entry."""
    assert value.shape == expected.shape
    assert np.max(np.abs(value - expected), initial=0.0) <= relative * np.max(np.abs(expected), initial=1e-300)


def assert_no_net_wrench(q: np.ndarray, gradient: np.ndarray) -> None:
    """Assert that forces and torques about the origin of a gradient (n, 12) sum to zero."""
    A, G = q[:, 3:].reshape(-1, 3, 3), gradient[:, 3:].reshape(-1, 3, 3)
    spin = np.cross(A.transpose(0, 2, 1), G.transpose(0, 2, 1)).sum(axis=(0, 1))
    torque = spin + np.cross(q[:, :3], gradient[:, :3]).sum(axis=0)
    assert np.abs(gradient).max() > 0.0
    assert np.abs([gradient[:, :3].sum(axis=0), torque]).max() <= 1e-9 * np.abs(gradient).max()
