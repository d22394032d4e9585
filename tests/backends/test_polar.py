"""Closest rotations of many matrices at once."""

import numpy as np
import pytest

from abd.rotations import NEWTON_COUNT, PORTION, polar


@pytest.mark.parametrize("strain", [0.0, 1e-9, 1e-4, 0.03, 0.5])
def test_batched_polar_factors_equal_single_ones(strain):
    rng = np.random.default_rng(3)
    A = np.linalg.qr(rng.standard_normal((PORTION + 100, 3, 3)))[0]
    A[:, :, 0] *= np.linalg.det(A)[:, None]
    A[:PORTION] += strain * rng.standard_normal((PORTION, 3, 3))
    R = polar(A)
    alone = np.concatenate([polar(A[k : k + NEWTON_COUNT - 1]) for k in range(0, len(A), NEWTON_COUNT - 1)])
    assert np.abs(R - alone).max() < 1e-13
    assert np.abs(R.transpose(0, 2, 1) @ R - np.eye(3)).max() < 1e-14 and (np.linalg.det(R) > 0.0).all()


def test_mirrored_matrices_become_rotations():
    A = np.tile(np.diag([1.0, 1.0, -1.0]), (2 * NEWTON_COUNT, 1, 1))
    A[::2] = np.eye(3)
    assert np.allclose(np.linalg.det(polar(A)), 1.0) and (polar(A)[::2] == np.eye(3)).all()
