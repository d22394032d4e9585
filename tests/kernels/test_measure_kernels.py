"""Kernels of measures against their definition, and the definition against finite differences."""

import numpy as np
import pytest
import warp as wp
from joint_tables import KINDS, PER_KIND, N, kept, some_table, system_of
from on_device import DEVICE, assert_close, pose_of, random_states

from abd.backends.warp.terms.joints import Joints
from abd.joints.measures.measures import is_angle, is_custom
from abd.joints.rows import table as definition
from abd.joints.rows.measured_rows import collect
from abd.joints.rows.table import MeasureTable
from abd.model import WORLD
from cuda_kernels.joints import measures as kernels

pytestmark = pytest.mark.device


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
    table = kept(table, ~is_custom(table.kind))
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
