"""Kernels of joint rows against their definition and against finite differences."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
import warp as wp
from contact_models import bodies_over_a_plane
from on_device import DEVICE, assert_close, pose_of, random_states

from abd.backends.joint_rows import JointRows
from abd.backends.numpy_bodies import maps
from abd.joints import rows as joint_rows
from abd.model import WORLD, Joint

N = 24


def jointed(seed: int) -> list[Joint]:
    """Joints of every type between bodies and to the world, in no particular order."""
    rng = np.random.default_rng(seed)
    frames = np.tile(np.eye(4), (N, 2, 1, 1))
    frames[:, 0, :3, :3], frames[:, 1, :3, :3] = (maps(random_states(N, seed + k, strain=0.0)) for k in (1, 2))
    frames[:, :, :3, 3] = rng.normal(size=(N, 2, 3))
    types, joints = ("spherical", "fixed", "hinge", "pin"), []
    for k in range(N):
        parent, child = rng.choice(N, 2, replace=False)
        parent = WORLD if k % 5 == 0 else int(parent)
        kwargs = {"strength_ratio": 100.0, "stiffness_mass": float(rng.uniform(1, 3)), "length": 0.3}
        joints.append(Joint(f"joint {k}", types[k % 4], 0, parent, int(child), *frames[k], **kwargs))
    return joints


class JointKernels:
    """The kernels of joint rows, with the calls of `abd.joints.rows`."""

    def __init__(self, seed: int):
        model = bodies_over_a_plane(0)
        bodies_of_joints = replace(model.bodies, names=["body"] * N)
        self.device_rows = JointRows(replace(model, bodies=bodies_of_joints, joints=jointed(seed)), DEVICE)
        self.rows = self.device_rows.host

    def energy(self, q: np.ndarray) -> np.ndarray:
        self.device_rows.evaluate(pose_of(q), "current")
        count = self.device_rows.count
        return DEVICE.read(self.device_rows.pool.get("energy_current", count, wp.float64), count)

    def gradient(self, q: np.ndarray) -> np.ndarray:
        out = DEVICE.zeros((N, 12), wp.float64)
        self.device_rows.add_gradient(pose_of(q), out)
        return DEVICE.read(out)


def test_joint_rows_equal_their_definition():
    kernels, q = JointKernels(0), random_states(N, 1)
    assert_close(kernels.device_rows.residuals(pose_of(q)), joint_rows.residual(kernels.rows, q))
    assert_close(kernels.energy(q), joint_rows.energy(kernels.rows, q))
    assert_close(kernels.gradient(q), joint_rows.gradient(kernels.rows, q))


def test_joint_gradient_and_blocks_agree_with_finite_differences():
    """The energy is a quadratic form: central differences with a large step are exact up to rounding."""
    kernels, q = JointKernels(0), random_states(N, 1)
    diagonal, pairs, blocks = joint_rows.hessian(kernels.rows, N)
    H = np.zeros((N, N, 12, 12))
    H[np.arange(N), np.arange(N)] = diagonal
    H[pairs[:, 0], pairs[:, 1]], H[pairs[:, 1], pairs[:, 0]] = blocks, blocks.transpose(0, 2, 1)
    rng = np.random.default_rng(2)
    for _ in range(10):
        d = rng.normal(size=(N, 12))
        slope = kernels.energy(q + d).sum() - kernels.energy(q - d).sum()
        assert slope == pytest.approx(2.0 * np.sum(kernels.gradient(q) * d), rel=1e-9)
        turn = 0.5 * (kernels.gradient(q + d) - kernels.gradient(q - d))
        assert_close(np.einsum("mnij,nj->mi", H, d), turn)


def test_joints_between_bodies_make_no_net_force_or_torque():
    kernels, q = JointKernels(0), random_states(N, 1)
    inner = np.flatnonzero(kernels.rows.parent != WORLD)
    chosen = joint_rows.Rows(*(getattr(kernels.rows, field.name)[inner] for field in fields(joint_rows.Rows)))
    g = kernels.gradient(q)
    world = kernels.rows.parent == WORLD
    held = joint_rows.Rows(*(getattr(kernels.rows, field.name)[world] for field in fields(joint_rows.Rows)))
    g = g - joint_rows.gradient(held, q)
    assert len(chosen) > 20
    assert np.abs(g[:, :3].sum(axis=0)).max() <= 1e-9 * np.abs(g).max()
    spin = np.cross(maps(q).transpose(0, 2, 1), maps(g).transpose(0, 2, 1)).sum(axis=(0, 1))
    assert np.abs(np.cross(q[:, :3], g[:, :3]).sum(axis=0) + spin).max() <= 1e-9 * np.abs(g).max()
