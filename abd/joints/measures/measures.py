"""Measures: scalar functions of two frames; rows, coordinates, limits and drives are made of them.

Frame D (parent) has the point o_D and the axes D = [x y z] (3x3, columns); frame C (child) has o_C and C. All are
linear in the affine states of their bodies. With ``d = o_C - o_D`` the *features*

    z = ( M = D^T C (9, row by row) ;  r = D^T d (3) ;  s = C^T d (3) ;  1 )

are bilinear in the two states and do not change when both bodies move as one. A measure applies one of the following
kinds of functions to up to three *functionals* ``u_k = numbers_k . z`` and returns ``scale f + offset``:

    AFFINE        u_0
    ANGLE         atan2(u_0, u_1), counted over any number of turns                    [rad]
    ELEVATION     atan2(u_0, sqrt(u_1^2 + u_2^2))                                      [rad]
    NORM          sqrt(u_0^2 + u_1^2 + u_2^2)
    LENGTH        |d|                                                                  [m]
    SURFACE_DOT   n(r) . M v, n the unit normal of an ellipsoid at r
    SURFACE_ROLL  theta of ``R_SD(r)^T M = Rz(theta + a) Rx(phi) Rz(-a)``              [rad]
    SURFACE_TILT  phi of the same product                                              [rad]
    ROTATION      |m o u| - theta, u and theta axis and angle of M, o elementwise; or w . u theta, if w is given  [rad]
    CUSTOM        value and derivatives by z from a user function (`abd.joints.custom.custom`)
    CUSTOM_ANGLE  the same, counted over any number of turns                           [rad]

The kernels of ``cuda_kernels/joints/measures.py`` mirror this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from abd.rotations import axial
from cuda_kernels.shared.joints import SHIFT, TINY_TANGENT, TURNING, MeasureKind

FEATURES = 16
NUMBERS = 3 * FEATURES


class RowFunction(Protocol):
    """Rows of a joint type as functions of ``M = D^T C`` and ``r = D^T d``, for k pairs of frames at once.

    Attributes:
        name: joint type; count: number of rows; parameters: number of joint parameters p.
    """

    name: str
    count: int
    parameters: int

    def values(self, M: np.ndarray, r: np.ndarray, p: np.ndarray) -> np.ndarray:
        """(k, rows) at M (k, 3, 3), r (k, 3) and parameters p (k, np)."""

    def slopes(self, M: np.ndarray, r: np.ndarray, p: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (k, rows) and derivatives (k, rows, 12) by the rows of M and by r.

        The lengths (k,) [m] scale finite-difference steps in r.
        """


@dataclass(frozen=True)
class Measure:
    """Scalar function of two frames.

    Attributes:
        name: "x", "theta", "rx" and so on.
        rotary: radians (or a pure number) rather than metres.
        kind: `MeasureKind`.
        numbers: (48,) three functionals of 16, or the parameters of a surface or rotation kind.
        scale, offset: value = scale f + offset.
        unilateral: the value is a gap that must not become negative, rather than a residual.
        may_close: the gap may be 0 without force; it is enforced one-sidedly, also if it is an angle.
        function: row function of a CUSTOM kind, with the numbers of `abd.joints.measures.custom_rows`.
    """

    name: str
    rotary: bool
    kind: MeasureKind
    numbers: np.ndarray
    scale: float = 1.0
    offset: float = 0.0
    unilateral: bool = False
    function: RowFunction | None = None
    may_close: bool = False


def functional(M=None, r=None, s=None, constant: float = 0.0) -> np.ndarray:
    """(16,) weights of the features: M (3, 3), r (3,), s (3,)."""
    out = np.zeros(FEATURES)
    if M is not None:
        out[:9] = np.asarray(M, dtype=float).ravel()
    if r is not None:
        out[9:12] = r
    if s is not None:
        out[12:15] = s
    out[15] = constant
    return out


def entry(i: int, j: int, weight: float = 1.0) -> np.ndarray:
    """(16,) functional ``weight M_ij``."""
    M = np.zeros((3, 3))
    M[i, j] = weight
    return functional(M=M)


def along(k: int, weight: float = 1.0) -> np.ndarray:
    """(16,) functional ``weight r_k``: displacement of C along axis k of D [m]."""
    r = np.zeros(3)
    r[k] = weight
    return functional(r=r)


def measure(name: str, rotary: bool, kind: MeasureKind, *functionals: np.ndarray, **keys) -> Measure:
    """Measure with the given functionals; `keys` are scale, offset and unilateral."""
    numbers = np.zeros(NUMBERS)
    for k, values in enumerate(functionals):
        numbers[FEATURES * k : FEATURES * k + len(values)] = values
    return Measure(name, rotary, kind, numbers, **keys)


def features(D: np.ndarray, C: np.ndarray, d: np.ndarray) -> np.ndarray:
    """(m, 16) features of frames D, C (m, 3, 3) and displacements d (m, 3)."""
    M = np.einsum("mki,mkj->mij", D, C)
    r, s = np.einsum("mki,mk->mi", D, d), np.einsum("mki,mk->mi", C, d)
    return np.concatenate([M.reshape(-1, 9), r, s, np.ones((len(d), 1))], axis=1)


def evaluate(
    kind: np.ndarray,
    numbers: np.ndarray,
    z: np.ndarray,
    d: np.ndarray,
    supplied: np.ndarray | None = None,
    with_slopes: bool = True,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Functions f without scale and offset, and their derivatives.

    Args:
        kind: (m,); numbers: (m, 48); z: (m, 16) features; d: (m, 3) displacements.
        supplied: (m, 16) value and derivatives by z of CUSTOM measures.
        with_slopes: if False, the derivatives are incomplete.

    Returns:
        f (m,), derivatives by the first 15 features (m, 15), derivatives by d at constant features (m, 3).
    """
    m = len(kind)
    f, gz, gd = np.zeros(m), np.zeros((m, FEATURES)), np.zeros((m, 3))
    N = numbers.reshape(m, 3, FEATURES)
    u = np.einsum("mkz,mz->mk", N, z)
    weight = np.zeros((m, 3))
    present = np.bincount(kind, minlength=len(MeasureKind)).tolist()
    for of_functionals, function in OF_FUNCTIONALS.items():
        if present[of_functionals]:
            k = np.flatnonzero(kind == of_functionals)
            f[k], weight[k] = function(u[k])
    if with_slopes:
        gz += np.einsum("mk,mkz->mz", weight, np.where(weight[:, :, None] != 0.0, N, 0.0))

    if present[MeasureKind.LENGTH]:
        k = kind == MeasureKind.LENGTH
        f[k] = np.linalg.norm(d[k], axis=1)
        gd[k] = d[k] / np.maximum(f[k], TINY)[:, None]
    for special, function in SPECIAL_FUNCTIONS.items():
        if present[special]:
            k = kind == special
            f[k], gz[k, :15] = _by_complex_step(function, numbers[k], z[k])
    if present[MeasureKind.CUSTOM] or present[MeasureKind.CUSTOM_ANGLE]:
        k = is_custom(kind)
        f[k], gz[k, :15] = supplied[k, 0], supplied[k, 1:]
    return f, gz[:, :15], gd


def _affine(u: np.ndarray) -> tuple[np.ndarray, np.ndarray | tuple]:
    """Functions (k,) of functionals u (k, 3), and their derivatives (k, 3)."""
    return u[:, 0], (1.0, 0.0, 0.0)


def _angle(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    square = u[:, 0] ** 2 + u[:, 1] ** 2
    slopes = np.stack([u[:, 1] / square, -u[:, 0] / square, np.zeros(len(u))], axis=1)
    return np.arctan2(u[:, 0], u[:, 1]), slopes


def _elevation(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    flat = np.hypot(u[:, 1], u[:, 2])
    square = flat**2 + u[:, 0] ** 2
    slope = -u[:, 0] / (square * np.maximum(flat, TINY))
    return np.arctan2(u[:, 0], flat), np.stack([flat / square, slope * u[:, 1], slope * u[:, 2]], axis=1)


def _norm(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    value = np.sqrt(np.sum(u**2, axis=1))
    return value, u / np.maximum(value, TINY)[:, None]


OF_FUNCTIONALS = {
    int(MeasureKind.AFFINE): _affine,
    int(MeasureKind.ANGLE): _angle,
    int(MeasureKind.ELEVATION): _elevation,
    int(MeasureKind.NORM): _norm,
}


TINY = 1e-300
STEP = 1e-30


def _by_complex_step(function, numbers: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values (k,) and derivatives (k, 15) of an analytic function of the features, exact to rounding."""
    gradient = np.empty((len(z), 15))
    for column in range(15):
        shifted = z.astype(complex)
        shifted[:, column] += 1j * STEP
        gradient[:, column] = function(numbers, shifted).imag / STEP
    return function(numbers, z.astype(complex)).real, gradient


def complex_angle(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """atan2 of complex-step numbers."""
    value = np.arctan2(y.real, x.real)
    return value + 1j * (x.real * y.imag - y.real * x.imag) / (x.real**2 + y.real**2)


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.sqrt(np.sum(v * v, axis=1))[:, None]


def surface_triad(numbers: np.ndarray, r: np.ndarray) -> np.ndarray:
    """R_SD (k, 3, 3) at the point r (k, 3) of an ellipsoid; columns: x along the parallel, y, and the normal z.

    ``numbers[:, :3]`` are the semi-axes (A, B, C) [m]. ``numbers[:, 3]`` is 1 for OpenSim's variant: x is that of
    ``Rx(psi) Ry(g)`` and the normal that of ``(p_x/A, p_y/B, p_z/C)``.
    """
    axes = numbers[:, :3]
    unit = r / axes
    flat = np.sqrt(unit[:, 1] ** 2 + unit[:, 2] ** 2)
    size = np.sqrt(unit[:, 0] ** 2 + flat**2)
    sg, cg = unit[:, 0] / size, flat / size
    spsi, cpsi = -unit[:, 1] / flat, unit[:, 2] / flat
    stretch = _stretch(numbers)
    x = _unit(np.stack([stretch[:, 0] * cg, stretch[:, 1] * spsi * sg, -stretch[:, 2] * cpsi * sg], axis=1))
    z = surface_normal(numbers, r)
    y = _unit(np.cross(z, x))
    return np.stack([x, y, z], axis=2)


def surface_normal(numbers: np.ndarray, r: np.ndarray) -> np.ndarray:
    """(k, 3) z axis of `surface_triad`; also defined at the poles."""
    return _unit(r / numbers[:, :3] / _stretch(numbers))


def _stretch(numbers: np.ndarray) -> np.ndarray:
    """(k, 3) semi-axes, or ones for OpenSim's variant."""
    return np.where(numbers[:, 3:4] == 1.0, 1.0, numbers[:, :3])


def _surface_dot(numbers: np.ndarray, z: np.ndarray) -> np.ndarray:
    """``numbers[:, 4:7]`` is the direction v in C."""
    normal = surface_normal(numbers, z[:, 9:12])
    return np.einsum("ki,kij,kj->k", normal, z[:, :9].reshape(-1, 3, 3), numbers[:, 4:7])


def _surface_turn(numbers: np.ndarray, z: np.ndarray) -> np.ndarray:
    """R_CS Rz(a) (k, 3, 3) with a = ``numbers[:, 7]``."""
    R = np.einsum("kji,kjl->kil", surface_triad(numbers, z[:, 9:12]), z[:, :9].reshape(-1, 3, 3))
    c, s = np.cos(numbers[:, 7]), np.sin(numbers[:, 7])
    turn = np.zeros((len(z), 3, 3))
    turn[:, 0, 0], turn[:, 0, 1], turn[:, 1, 0], turn[:, 1, 1], turn[:, 2, 2] = c, -s, s, c, 1.0
    return R @ turn


def _surface_roll(numbers: np.ndarray, z: np.ndarray) -> np.ndarray:
    R = _surface_turn(numbers, z)
    return complex_angle(R[:, 1, 0], R[:, 0, 0]) - numbers[:, 7]


def _surface_tilt(numbers: np.ndarray, z: np.ndarray) -> np.ndarray:
    R = _surface_turn(numbers, z)
    return complex_angle(R[:, 2, 1], R[:, 2, 2])


def _rotation(numbers: np.ndarray, z: np.ndarray) -> np.ndarray:
    """``numbers[:, :3]`` are the largest rotations m about x, y and z [rad], or 0 if ``numbers[:, 3:6]`` is w.

    At M = 1 u is (1, 1, 1)/sqrt 3.
    """
    component = numbers[:, 3:6].any(axis=1)
    if component.any():
        value = np.empty(len(z), dtype=complex)
        vectors = analytic_rotation_vectors(z[component, :9].reshape(-1, 3, 3))
        value[component] = np.einsum("ki,ki->k", numbers[component, 3:6], vectors)
        if not component.all():
            value[~component] = _rotation(numbers[~component], z[~component])
        return value
    sines, cosine = _sines_and_cosine(z[:, :9].reshape(-1, 3, 3))
    shifted = sines + SHIFT
    sine = np.sqrt(np.sum(shifted * shifted, axis=1))
    u = shifted / sine[:, None]
    return np.sqrt(np.sum((numbers[:, :3] * u) ** 2, axis=1)) - complex_angle(sine, cosine)


def _sines_and_cosine(M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Axis times sine (k, 3) and cosine (k,) of rotations M (k, 3, 3)."""
    return axial(M), 0.5 * (M[:, 0, 0] + M[:, 1, 1] + M[:, 2, 2] - 1.0)


def analytic_rotation_vectors(M: np.ndarray) -> np.ndarray:
    """(k, 3) axial vectors of rotations M (k, 3, 3), also complex, times ``theta / sin theta``.

    Near 0 by the series of atan in the tangent.
    """
    sines, cosine = _sines_and_cosine(M)
    square = np.sum(sines * sines, axis=1)
    small = (square.real < TINY_TANGENT * cosine.real**2) & (cosine.real > 0.0)
    tangent = np.where(small, square, 0.0) / np.where(small, cosine, 1.0) ** 2
    series = (1.0 - tangent * (1.0 / 3.0 - tangent * (0.2 - tangent / 7.0))) / np.where(small, cosine, 1.0)
    sine = np.sqrt(np.where(small, 1.0, square + SHIFT**2))
    return sines * np.where(small, series, complex_angle(sine, cosine) / sine)[:, None]


SPECIAL_FUNCTIONS = {
    MeasureKind.SURFACE_DOT: _surface_dot,
    MeasureKind.SURFACE_ROLL: _surface_roll,
    MeasureKind.SURFACE_TILT: _surface_tilt,
    MeasureKind.ROTATION: _rotation,
}


_IS_TURNING = np.isin(np.arange(len(MeasureKind)), TURNING)


def is_angle(kind: np.ndarray) -> np.ndarray:
    """(m,) whether measures of these kinds count turns."""
    return _IS_TURNING[kind]


def is_custom(kind: np.ndarray) -> np.ndarray:
    """(m,) whether user functions supply the values of these kinds."""
    return (kind == MeasureKind.CUSTOM) | (kind == MeasureKind.CUSTOM_ANGLE)
