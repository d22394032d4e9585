"""Kernels of joint rows and measures against their definitions and finite differences."""

from dataclasses import replace

import numpy as np
import pytest
import warp as wp
from joint_tables import KINDS, PER_KIND, N, some_table, system_of
from on_device import DEVICE, assert_close, flags, pose_of, random_states, set_laws

from abd.backends.reference.numpy_bodies import maps
from abd.backends.reference.numpy_joints import NumpyJoints
from abd.backends.warp.iterate import Iterate
from abd.backends.warp.terms.joints import Joints
from abd.joint_model import Joint
from abd.joints.measures.measures import is_angle, is_custom
from abd.joints.rows import rows as joint_rows
from abd.joints.rows import table as definition
from abd.joints.rows.measured_rows import collect
from abd.joints.rows.table import MeasureTable, tabulate
from abd.model import WORLD
from cuda_kernels.joints import measures as kernels
from cuda_kernels.shared import slots

pytestmark = pytest.mark.device


def jointed(seed: int) -> list[Joint]:
    """Joints of four types between bodies and to the world, in no particular order."""
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
    """The kernels of linear joint rows, with the calls of `abd.joints.rows.rows`; every other joint is exact."""

    def __init__(self, seed: int):
        joints = [replace(j, enforcement=("penalty", "exact")[k % 2]) for k, j in enumerate(jointed(seed))]
        self.rows = joint_rows.compile_rows(joints, np.ones(len(joints)), np.full(len(joints), 5e-10))
        self.shift = 0.1 * np.random.default_rng(seed + 3).normal(size=(len(self.rows), 3))
        self.device = Joints(system_of(tabulate([], []), collect([]), self.rows), N, DEVICE)
        set_laws(self.device, np.zeros(0, np.int32), np.zeros((0, slots.COUNT)), np.zeros(0), self.shift)

    def energy(self, q: np.ndarray) -> np.ndarray:
        self.device.evaluate(Iterate(pose_of(q)), "current")
        count = len(self.rows)
        return DEVICE.read(self.device.energies["current"][0], count)

    def gradient(self, q: np.ndarray) -> np.ndarray:
        out, diagonal = DEVICE.zeros((N, 12), wp.float64), DEVICE.zeros((N, 12, 12), wp.float64)
        self.device.add_to(Iterate(pose_of(q), done=flags(N)[0]), out, diagonal)
        assert np.all(DEVICE.read(diagonal) == 0.0)
        return DEVICE.read(out)


def test_joint_rows_equal_their_definition():
    kernels, q = JointKernels(0), random_states(N, 1)
    assert_close(kernels.energy(q), joint_rows.energy(kernels.rows, q, kernels.shift))
    assert_close(kernels.gradient(q), joint_rows.gradient(kernels.rows, q, kernels.shift))


def test_errors_and_multipliers_of_exact_rows_equal_their_definition():
    kernels, q = JointKernels(0), random_states(N, 1)
    rows = kernels.rows
    defined = NumpyJoints(kernels.device.system, N)
    defined.begin(np.zeros(0, np.int32), np.zeros((0, slots.COUNT)), np.zeros(0), kernels.shift)
    errors, expected = DEVICE.upload(np.full(N, -1.0), wp.float64), np.full(N, -1.0)
    kernels.device.errors(pose_of(q), DEVICE.zeros(len(q), wp.int32), errors)
    np.maximum.at(expected, defined.owners, defined.errors(q))
    assert_close(DEVICE.read(errors), expected)
    missing = DEVICE.zeros((N, 12), wp.float64)
    skipped, left = flags(N, 1, 5, 6)
    kernels.device.add_missing(pose_of(q), skipped, missing)
    residuals, J = defined.closable(q, np.zeros((N, 12)))
    assert_close(DEVICE.read(missing), np.where(left[:, None], 0.0, defined.pull_back(residuals, J)))
    linear, measured, _ = defined.predicted(q, np.zeros((N, 12)))
    defined.update_multipliers(linear, measured, skipped=left)
    kernels.device.update_multipliers(pose_of(q), skipped)
    assert_close(DEVICE.read(kernels.device.linear.shift), defined.shift)
    assert 0 < rows.exact.sum() < len(rows)
    assert np.array_equal(defined.shift[~rows.exact], kernels.shift[~rows.exact])


def test_joint_gradient_and_blocks_agree_with_finite_differences():
    """The energy is quadratic, so that central differences with a large step are exact up to rounding."""
    kernels, q = JointKernels(0), random_states(N, 1)
    coupling = kernels.device.coupling
    low, high, blocks = (DEVICE.read(array) for array in (coupling.row, coupling.column, coupling.blocks))
    H = np.zeros((N, N, 12, 12))
    H[np.arange(N), np.arange(N)] = DEVICE.read(kernels.device.diagonal)
    H[low, high], H[high, low] = blocks, blocks.transpose(0, 2, 1)
    rng = np.random.default_rng(2)
    for _ in range(10):
        d = rng.normal(size=(N, 12))
        slope = kernels.energy(q + d).sum() - kernels.energy(q - d).sum()
        assert slope == pytest.approx(2.0 * np.sum(kernels.gradient(q) * d), rel=1e-9)
        turn = 0.5 * (kernels.gradient(q + d) - kernels.gradient(q - d))
        assert_close(np.einsum("mnij,nj->mi", H, d), turn)


def some_inputs(table: MeasureTable, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States, references many turns away, and what a user's function supplies."""
    rng = np.random.default_rng(seed)
    m = len(table)
    return random_states(N, seed), rng.uniform(-100.0, 100.0, m), rng.normal(size=(m, 16))


def on_device(table: MeasureTable, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values and gradients by the kernels."""
    q, reference, supplied = some_inputs(table, seed)
    measures, m = Joints(system_of(table, collect([])), N, DEVICE).measures, len(table)
    DEVICE.write(measures.reference, reference)
    DEVICE.write(measures.supplied, supplied)
    values = DEVICE.zeros(m, wp.float64)
    child, parent = DEVICE.zeros((m, 12), wp.float64), DEVICE.zeros((m, 12), wp.float64)
    DEVICE.launch(kernels.measure_values, m, measures, pose_of(q), values)
    DEVICE.launch(kernels.measure_gradients, m, measures, pose_of(q), DEVICE.zeros(len(q), wp.int32), child, parent)
    return DEVICE.read(values), DEVICE.read(child), DEVICE.read(parent)


@pytest.mark.parametrize("seed", [0, 1])
def test_measure_kernels_equal_their_definition(seed: int):
    table = some_table(seed)
    q, reference, supplied = some_inputs(table, seed + 10)
    values, child, parent = on_device(table, seed + 10)
    expected, by_child, by_parent = definition.linearize(table, q, reference, supplied)
    for kind in KINDS:
        k = table.kind == kind
        assert k.sum() == PER_KIND
        # Of every measure, relative to its own gradient: some are large where a functional nearly vanishes.
        size = np.linalg.norm(by_child[k], axis=1)
        assert_close(values[k], expected[k], 1e-12)
        assert_close(child[k] / size[:, None], by_child[k] / size[:, None], 1e-12)
        assert_close(parent[k] / size[:, None], by_parent[k] / size[:, None], 1e-12)
    assert np.all(parent[table.parent == WORLD] == 0.0)
    turning = is_angle(table.kind)
    assert np.max(np.abs(values[turning] - reference[turning])) <= np.pi


def test_gradients_of_measures_agree_with_finite_differences():
    table = some_table(2)
    table = table.part(~is_custom(table.kind))
    q, reference, _ = some_inputs(table, 12)
    reference, by_child, by_parent = definition.linearize(table, q, reference)
    inner = table.parent != WORLD
    rng, step = np.random.default_rng(3), 1e-5
    for _ in range(4):
        direction = rng.normal(size=q.shape)
        ends = [definition.values(table, q + s * step * direction, reference) for s in (2.0, 1.0, -1.0, -2.0)]
        slope = (8.0 * (ends[1] - ends[2]) - (ends[0] - ends[3])) / (12.0 * step)
        expected = np.sum(by_child * direction[table.child], axis=1)
        expected += np.where(inner, np.sum(by_parent * direction[table.parent], axis=1), 0.0)
        size = np.linalg.norm(by_child, axis=1)
        regular = size < 100.0
        assert regular.mean() > 0.95
        assert np.max(np.abs(slope - expected)[regular] / (1.0 + size[regular])) < 1e-6
