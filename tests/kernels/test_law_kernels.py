"""Kernels of laws and measured rows against their definitions, and the definitions against finite differences."""

from dataclasses import fields

import numpy as np
import pytest
import warp as wp
from joint_tables import N, some_table, system_of
from on_device import DEVICE, assert_close, flags, pose_of, random_states, set_laws

from abd.backends.reference.numpy_joints import NumpyJoints
from abd.backends.warp.iterate import Iterate
from abd.backends.warp.terms.joints import Joints
from abd.joints.measures.measures import is_custom
from abd.joints.rows import laws, measured_rows, table
from abd.joints.rows.laws import Law
from abd.joints.rows.measured_rows import MeasuredRows, collect, factor, power_series, spline
from cuda_kernels.joints import measured_rows as row_kernels
from cuda_kernels.shared import slots

pytestmark = pytest.mark.device

ROWS = 300
CURVED = (Law.QUADRATIC, Law.ONE_SIDED, Law.CUBIC, Law.BARRIER, Law.FRICTION, Law.GIVEN)
"""Laws whose curvature is psi'' wherever they have one."""


def some_parameters(law: np.ndarray, x: np.ndarray, seed: int) -> np.ndarray:
    """(R, 8) parameters that put the values x (R,) on all branches of their laws; every third row is exact."""
    rng = np.random.default_rng(seed)
    count = len(x)
    p = np.zeros((count, slots.COUNT))
    p[:, slots.STRENGTH] = rng.uniform(0.5, 50.0, count)
    p[:, slots.CENTRE] = x + rng.normal(size=count)
    p[:, slots.TARGET] = p[:, slots.CENTRE] + 0.3 * rng.normal(size=count)
    gaps = np.isin(law, (Law.BARRIER, Law.ONE_SIDED, Law.CUBIC))
    p[gaps, slots.SIGN] = rng.choice([-1.0, 1.0], gaps.sum())
    p[:, slots.WIDTH] = rng.uniform(0.3, 2.0, count) * np.where(law == Law.SATURATED, p[:, slots.STRENGTH], 1.0)
    p[:, slots.DAMPING], p[:, slots.LAST_GAP] = rng.uniform(0.0, 5.0, count), rng.normal(size=count)
    given = law == Law.GIVEN
    p[given, slots.HERE] = x[given] + 0.3 * rng.normal(size=given.sum())
    p[given, slots.ENERGY] = rng.uniform(1.0, 2.0, given.sum())
    p[::3, slots.TOLERANCE] = 1e-3
    p[gaps, slots.TOLERANCE] = 0.0
    return p


def some_rows(measures: int, seed: int) -> MeasuredRows:
    """Rows of one to three factors, polynomials and splines of any measures."""
    rng = np.random.default_rng(seed)

    def pieces():
        kind = rng.integers(3)
        if kind == 0:
            return factor(rng.normal())
        if kind == 1:
            return power_series(0.3 * rng.normal(size=rng.integers(1, 7)))
        knots = np.sort(rng.normal(size=5)) + 0.1 * np.arange(5)
        return spline(np.stack([knots, rng.normal(size=5)], axis=1), rng.normal())

    counts = np.resize([1, 1, 2, 3], ROWS)
    return collect([[(int(m), pieces()) for m in rng.choice(measures, count, replace=False)] for count in counts])


class Both:
    """The same measured rows on the device and by their definition, with laws on all of their branches."""

    def __init__(self, seed: int):
        every = some_table(seed)
        self.table = every.part(~is_custom(every.kind))
        self.q = random_states(N, seed + 20)
        self.system = system_of(self.table, some_rows(len(self.table), seed))
        reference = table.values(self.table, self.q, np.zeros(len(self.table)))
        x = measured_rows.evaluate(self.system.rows, reference)[0]
        laws_of_rows = np.random.default_rng(seed).permutation(np.resize(list(Law), ROWS)).astype(np.int32)
        # a power series makes 1e5 of a few radians, of which a sine would show the last digits
        self.law = np.where((laws_of_rows == Law.SINE) & (np.abs(x) > 1e3), Law.OFF, laws_of_rows)
        self.p = some_parameters(self.law, x, seed)
        self.defined, self.device = NumpyJoints(self.system, N), Joints(self.system, N, DEVICE)
        laws = (self.law, self.p, reference, np.zeros((0, 3)))
        self.defined.begin(*laws)
        set_laws(self.device, *laws)

    def linearized(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient (n, 12) and blocks (n, n, 12, 12) by the kernels."""
        gradient, diagonal = DEVICE.zeros((N, 12), wp.float64), DEVICE.zeros((N, 12, 12), wp.float64)
        self.device.add_to(Iterate(pose_of(q), done=flags(N)[0]), gradient, diagonal)
        c, blocks = self.device.coupling, np.zeros((N, N, 12, 12))
        i, j, between = DEVICE.read(c.row), DEVICE.read(c.column), DEVICE.read(c.blocks)
        blocks[np.arange(N), np.arange(N)] = DEVICE.read(diagonal)
        blocks[i, j], blocks[j, i] = between, between.transpose(0, 2, 1)
        return DEVICE.read(gradient), blocks

    def folded(self, values: np.ndarray, start: float, fold) -> np.ndarray:
        """(n,) values (R,) of the rows folded into the bodies that own them."""
        out = np.full(N, start)
        fold.at(out, self.defined.owners, values)
        return out


def law_kernel_values(law: np.ndarray, p: np.ndarray, x: np.ndarray, regularisation: float) -> list[np.ndarray]:
    """Energy, slope and curvature (R,) by the kernels, of rows that are single factors of one and act on a body each."""
    count = len(x)
    host = collect([[(k, factor(1.0))] for k in range(count)])
    rows = row_kernels.MeasuredRows()
    for field in (one for one in fields(host) if one.name != "relations"):
        values = getattr(host, field.name)
        setattr(rows, field.name, DEVICE.upload(values, wp.int32 if values.dtype == np.int32 else wp.float64))
    rows.law, rows.p = DEVICE.upload(law, wp.int32), DEVICE.upload(p, wp.float64)
    ends = row_kernels.Ends()
    ends.of_row, ends.body = (DEVICE.upload(np.arange(k), wp.int32) for k in (count + 1, count))
    measured, regularisations = DEVICE.upload(x, wp.float64), DEVICE.upload(np.full(count, regularisation), wp.float64)
    value, energy, slope, curvature, weight = (DEVICE.zeros(count, wp.float64) for _ in range(5))
    DEVICE.launch(row_kernels.row_energies, count, rows, measured, value, energy)
    DEVICE.launch(row_kernels.row_slopes, count, rows, ends, measured, regularisations, value, slope, curvature, weight)
    assert np.array_equal(DEVICE.read(value), x)
    return [DEVICE.read(array) for array in (energy, slope, curvature)]


@pytest.mark.parametrize("regularisation", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("law", list(Law), ids=lambda law: law.name)
def test_law_kernels_equal_their_definition(law: Law, regularisation: float):
    x = np.random.default_rng(0).normal(size=400)
    laws_of_rows = np.full(400, law, dtype=np.int32)
    p = some_parameters(laws_of_rows, x, 1)
    expected = laws.evaluate(laws_of_rows, p, x, regularisation)
    for value, wanted in zip(law_kernel_values(laws_of_rows, p, x, regularisation), expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-12, atol=1e-12 * p[:, slots.STRENGTH].max())
    assert expected[2].min() >= 0.0


@pytest.mark.parametrize("law", [law for law in Law if law != Law.OFF], ids=lambda law: law.name)
def test_slopes_and_curvatures_of_laws_agree_with_finite_differences(law: Law):
    x, step = np.random.default_rng(2).normal(size=400), 1e-6
    laws_of_rows = np.full(400, law, dtype=np.int32)
    p = some_parameters(laws_of_rows, x, 3)
    p[:, slots.LAST_GAP] = np.where(np.arange(400) % 2 == 0, p[:, slots.LAST_GAP], -10.0)
    if law == Law.FRICTION:
        p[:, slots.AIM] = x  # expected to end where it is: the secant is the tangent
    if law == Law.BARRIER:
        p[:, slots.LAST_GAP] = np.abs(p[:, slots.LAST_GAP])
    ends = [laws.evaluate(laws_of_rows, p, x + s * step) for s in (1.0, -1.0)]
    _, slope, curvature = laws.evaluate(laws_of_rows, p, x)
    # A gap's branches meet at 0, at the barrier's width and at the last gap; a barrier is too steep near 0.
    g, last = p[:, slots.SIGN] * (x - p[:, slots.CENTRE]), p[:, slots.LAST_GAP]
    gaps = law in (Law.BARRIER, Law.ONE_SIDED, Law.CUBIC)
    seams = [g, g - p[:, slots.WIDTH], g - last] if gaps else []
    smooth = np.all([np.abs(seam) > 1e-2 for seam in seams], axis=0) if seams else np.ones(400, dtype=bool)
    if law == Law.BARRIER:
        smooth &= g > 0.0
    assert smooth.sum() > 100
    found = (ends[0][0] - ends[1][0]) / (2.0 * step)
    np.testing.assert_allclose(found[smooth], slope[smooth], rtol=1e-6, atol=1e-6)
    turn = (ends[0][1] - ends[1][1]) / (2.0 * step)
    if law in CURVED:
        np.testing.assert_allclose(turn[smooth], curvature[smooth], rtol=1e-5, atol=1e-5)
    else:
        assert np.all(curvature >= turn - 1e-5)
    if law == Law.SATURATED:
        y, edge = np.abs(x - p[:, slots.CENTRE]), p[:, slots.EFFORT] / p[:, slots.STRENGTH]
        smooth = (np.abs(y - edge) > 1e-4) & (y > 1e-4)
        own = laws.evaluate(laws_of_rows, p, x, regularisation=0.0)[2]
        np.testing.assert_allclose(turn[smooth], own[smooth], rtol=1e-4, atol=1e-4)
        assert np.all(own <= curvature)


def test_measured_rows_agree_with_finite_differences():
    both, step = Both(0), 1e-6
    v = np.random.default_rng(5).normal(size=len(both.table))
    direction = np.random.default_rng(6).normal(size=len(v))
    rows = both.system.rows
    _, slope = measured_rows.evaluate(rows, v)
    ends = [measured_rows.evaluate(rows, v + s * step * direction)[0] for s in (1.0, -1.0)]
    expected = np.zeros(ROWS)
    np.add.at(expected, rows.term_row, slope * direction[rows.term_measure])
    np.testing.assert_allclose((ends[0] - ends[1]) / (2.0 * step), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", [0, 1])
def test_energies_gradients_and_blocks_equal_their_definition(seed: int):
    both = Both(seed)
    q = both.q + 1e-3 * np.random.default_rng(seed).normal(size=both.q.shape)
    both.device.evaluate(Iterate(pose_of(q)), "current")
    energies = DEVICE.read(both.device.energies["current"][1], ROWS)
    np.testing.assert_allclose(energies, both.defined.energy(q), rtol=1e-11, atol=1e-11)
    gradient, blocks = both.linearized(q)
    expected_gradient, expected_blocks = both.defined.linearize(q)
    for value, expected in ((gradient, expected_gradient), (blocks, expected_blocks)):
        assert_close(value, expected, 1e-12)
    H = blocks.transpose(0, 2, 1, 3).reshape(12 * N, 12 * N)
    assert np.linalg.eigvalsh(H).min() >= -1e-12 * np.abs(H).max()


def test_gaps_weights_and_errors_equal_their_definition():
    both = Both(2)
    q = both.q + 0.1 * np.random.default_rng(7).normal(size=both.q.shape)
    fractions = DEVICE.upload(np.ones(N), wp.float64)
    both.device.measure_gaps(pose_of(both.q))
    both.device.open_fractions(pose_of(q), fractions)
    expected = both.defined.open_fractions(both.defined.gaps(both.q), both.defined.gaps(q))
    assert expected.min() < 1.0
    np.testing.assert_allclose(DEVICE.read(fractions), both.folded(expected, 1.0, np.minimum), rtol=1e-10)
    errors = DEVICE.upload(np.full(N, -1.0), wp.float64)
    both.device.errors(pose_of(q), DEVICE.zeros(N, wp.int32), errors)
    expected = both.folded(both.defined.errors(q), -1.0, np.maximum)
    assert np.count_nonzero(expected > 0.0) > N // 6 > 0 < np.count_nonzero(expected < 0.0)
    np.testing.assert_allclose(DEVICE.read(errors), expected, rtol=1e-10)


def test_multipliers_absorb_the_remainder_of_the_linear_model():
    both = Both(3)
    direction = 1e-2 * np.random.default_rng(8).normal(size=both.q.shape)
    on_device = DEVICE.upload(direction, wp.float64)
    residuals, J = both.defined.closable(both.q, direction)
    linear, measured, _ = both.defined.predicted(both.q, direction)
    both.linearized(both.q)
    worst, energy, missing = DEVICE.zeros(N, wp.float64), DEVICE.zeros(N, wp.float64), DEVICE.zeros((N, 12), wp.float64)
    both.device.predicted_errors(pose_of(both.q + direction), on_device, DEVICE.zeros(N, wp.int32), worst, energy)
    skipped, left = flags(N, 2, 3)
    both.device.add_missing(pose_of(both.q + direction), skipped, missing)
    unlimited = np.where((both.p[:, slots.TOLERANCE] > 0.0) & (both.law == Law.QUADRATIC), np.abs(measured) / 1e-3, 0.0)
    np.testing.assert_allclose(DEVICE.read(worst), both.folded(unlimited, 0.0, np.maximum), rtol=1e-10)
    energies = np.bincount(both.defined.owners, np.sum(both.defined.strengths * residuals**2, axis=1), N)
    np.testing.assert_allclose(DEVICE.read(energy), energies, rtol=1e-10)
    open_by = both.defined.left_open(residuals)[~left[both.defined.owners]].max()
    assert DEVICE.read(worst)[~left].max() == pytest.approx(open_by, rel=1e-10)
    assert_close(DEVICE.read(missing)[~left], both.defined.pull_back(residuals, J)[~left], 1e-11)
    assert not DEVICE.read(missing)[left].any()
    both.defined.update_multipliers(linear, measured, skipped=left)
    both.device.update_multipliers(pose_of(both.q + direction), skipped)
    moved = both.defined.p[:, slots.CENTRE] != both.p[:, slots.CENTRE]
    assert moved.sum() > 15
    reached = DEVICE.read(both.device.rows.p)
    assert_close(reached[:, slots.CENTRE], both.defined.p[:, slots.CENTRE], 1e-12)
    assert np.array_equal(np.delete(reached, slots.CENTRE, axis=1), np.delete(both.p, slots.CENTRE, axis=1))
