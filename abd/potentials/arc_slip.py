"""Slip of rotating bodies along arcs.

Friction measures the slip of a step on chords, from the old to the new position of a material point
(`abd.potentials.friction`). The sliding velocity at the end of the step differs. At a contact with the arm a from the
centre of a body that rotates by w, the surface moves by ``w x a`` in addition to the translation. The difference
between arc and chord is therefore added to the slip, in the tangent plane of the normal n. The slip remains linear in
the state. An arm has two parts.

The arm of a rounding, or of rolling resistance (`abd.potentials.rolling`), *stays* in place while the body rolls. Its
material point moves along a cycloid, whose chord is ``r sin w`` while the surface moves by ``r w``. With the rotation
R(w) of the step, the map A at its start and the rest coordinates X of the point that arrives at the arm, the difference
is

    w x a - (R(w) - 1) A X

The other part, to a vertex or the centre of its rounding, is *carried* by the body. Under the rotation s = w . n about
the normal, an arm a in the tangent plane moves along an arc whose end direction differs by s/2 from its chord. With
chords, friction on a coin that spins flat is reduced by the cosine of this angle, and accelerates it beyond half a
turn. With a at the end of the step the difference is

    s n x a - (1 - R(-s n)) a  =  (s - sin s) n x a - (1 - cos s) a

A face does not carry the vertex that touches it. The arm leads to the material point that the vertex reaches by
rotations about n. Of two crossing edges both carry the contact. (Rotations across n tip a mesh over its contact or roll
it from facet to facet, where chords are the slip.)

A sticking contact must not slip along its chord. With arcs about centres that move on straight lines, a box that
rotates about a sticking corner would creep by ``s^2/2`` of its arm per step. The correction of a carried contact is
therefore at most

    rho(s) |d|,    rho(s) = | s/2 cot(s/2) - 1 + i s/2 |

d is the relative displacement of its points: that of the last step with the present rotation, or that by their
velocities if it is less. rho is the difference between arc and chord relative to the chord, for an arc about its own
centre. A body that spins in place gets the full correction, a sticking contact (d = 0) none, and the transition is
continuous.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from abd.potentials.contact import FIRST, Contacts, Stencil
from abd.potentials.distance import dot
from abd.potentials.friction import Lagged
from abd.rotations import axial, cross_product, nearest_rotation_vectors, polar, rotations
from abd.tables import Table
from cuda_kernels.shared.contact import OVER, SLIDE, SLOW


@dataclass(frozen=True)
class Course:
    """Motion of n bodies in a step.

    Attributes:
        begin: (n, 12) states at its start; end: (n, 12) inertial targets, targets of prescribed bodies, or an iterate.
        turn: (n, 3) rotation vectors, including whole turns [rad].
    """

    begin: np.ndarray
    end: np.ndarray
    turn: np.ndarray


def along_arcs(
    lagged: Lagged, contacts: Contacts, q: np.ndarray, course: Course, radius: np.ndarray
) -> tuple[Lagged, Contacts]:
    """Lagged contacts with the arc correction of their slips, and contacts with face points moved to where vertices go.

    Args:
        contacts: the lagged contacts; q: (n, 12) state in which they were lagged; radius: (n,) of the bodies' rounding
            [m].
    """
    i, j, n = contacts.first, contacts.second, lagged.n
    turns = (np.linalg.norm(course.turn, axis=1) >= SLOW)[np.stack([i, j])].any(axis=0)
    if not turns.any():
        return lagged, contacts
    slides, turning = lagged.kind == SLIDE, _Turning.of(course, q)
    first = _Side.of(turning[i], lagged.Y_first, slides, -radius[i, None] * n, n)
    second = _Side.of(turning[j], lagged.Y_second, slides, radius[j, None] * n, n)
    end_i, end_j = first.carried, second.carried
    # vertices belong to the first bodies
    on_face = (slides & (contacts.stencil == Stencil.POINT_TRIANGLE))[:, None]
    end_j = np.where(on_face, second.now + end_i - first.now, end_j)
    moved = np.where(on_face, second.rest_coordinates(end_j) - second.rest_coordinates(second.carried), 0.0)
    arc_excess = first.arc_excess(end_i) - second.arc_excess(end_j)
    swept_paths = zip((first.by_last_step, first.by_velocity), (second.by_last_step, second.by_velocity), strict=True)
    displacements = [np.linalg.norm(_flat(of_i - of_j, n), axis=1) for of_i, of_j in swept_paths]
    largest = rho(np.maximum(np.abs(first.spin), np.abs(second.spin))) * np.minimum(*displacements)
    size = np.linalg.norm(arc_excess, axis=1)
    some = slides & turns & (size > 0.0)
    part = np.where(some, np.minimum(1.0, largest / np.where(some, size, 1.0)), 0.0)[:, None]
    out = _flat(first.rolling_excess - second.rolling_excess, n) + part * arc_excess
    moved = part * moved
    arc = np.where(turns[:, None], out, 0.0)
    Y_second = lagged.Y_second + np.concatenate([np.zeros((len(lagged), 1)), moved], axis=1)
    of_second = 1.0 - FIRST[contacts.stencil]
    points = replace(contacts, rest=contacts.rest + of_second[..., None] * moved[:, None])
    return replace(lagged, arc=arc, Y_second=Y_second), points


@dataclass(frozen=True)
class _Turning(Table):
    """Rotations of n bodies in a step.

    Attributes:
        A, begin: (n, 3, 3) maps at lagging and at the start of the step; inverse: of A.
        to_end: (n, 3, 3) rotations from lagging to the end of the step.
        w: (n, 3) rotation vectors of the step [rad]; R: (n, 3, 3) their rotations; dp: (n, 3) displacements [m].
    """

    A: np.ndarray
    begin: np.ndarray
    inverse: np.ndarray
    to_end: np.ndarray
    w: np.ndarray
    R: np.ndarray
    dp: np.ndarray

    @classmethod
    def of(cls, course: Course, q: np.ndarray) -> _Turning:
        """Rotations of bodies that are in the states q (n, 12) at lagging."""
        A, begin, end = (state[:, 3:].reshape(-1, 3, 3) for state in (q, course.begin, course.end))
        inverse, w = np.linalg.inv(A), nearest_rotation_vectors(end @ np.linalg.inv(begin), course.turn)
        return cls(A, begin, inverse, polar(end @ inverse), w, rotations(w), (course.end - course.begin)[:, :3])


@dataclass(frozen=True)
class _Side:
    """The bodies on one side of l contacts.

    Attributes:
        n: (l, 3) normals; spin: (l,) rotations about them [rad].
        rolling_excess: (l, 3) differences between arcs and chords of the arms that stay [m].
        now, carried: (l, 3) carried arms in the tangent plane, at lagging and at the end of the step.
        by_last_step: (l, 3) displacements of their ends if the last step had this rotation [m]; by_velocity: (l, 3) by
            their velocities [m].
        inverse: (l, 3, 3) of the maps; remaining: (l, 2) cosine and sine of the remaining rotations about n since lagging.
    """

    n: np.ndarray
    spin: np.ndarray
    rolling_excess: np.ndarray
    now: np.ndarray
    carried: np.ndarray
    by_last_step: np.ndarray
    by_velocity: np.ndarray
    inverse: np.ndarray
    remaining: np.ndarray

    @classmethod
    def of(cls, body: _Turning, Y: np.ndarray, slides: np.ndarray, rounding: np.ndarray, n: np.ndarray) -> _Side:
        """Side with bodies (l,) that touch at Y (l, 4); sliding contacts have rounding arms (l, 3)."""
        A, begin, inverse, to_end, w, R, dp = (getattr(body, one.name) for one in fields(body))
        fixed_arm = np.where(slides[:, None], rounding, _times(to_end @ A, Y[:, 1:]))
        material_point = _times(inverse @ to_end.transpose(0, 2, 1), fixed_arm)
        rolling_excess = cross_product(w, fixed_arm) - _times((R - np.eye(3)) @ begin, material_point)
        within = np.where(slides[:, None], Y[:, 1:] - material_point, 0.0)
        arm = _times(A, within)
        now = _flat(arm, n)
        by_last_step, by_velocity = dp + arm - _times(R.transpose(0, 2, 1), arm), dp + cross_product(w, arm)
        cosine = 0.5 * (np.trace(to_end, axis1=1, axis2=2) - dot(n, _times(to_end, n)))
        remaining = np.stack([cosine, dot(axial(to_end), n)], axis=1)
        size = np.linalg.norm(remaining, axis=1, keepdims=True)
        remaining = np.where(size > OVER, remaining / np.maximum(size, OVER), (1.0, 0.0))
        carried = remaining[:, :1] * now + remaining[:, 1:] * cross_product(n, now)
        return cls(n, dot(w, n), rolling_excess, now, carried, by_last_step, by_velocity, inverse, remaining)

    def arc_excess(self, arm: np.ndarray) -> np.ndarray:
        """(l, 3) differences between arcs about n and their chords for arms (l, 3) in the tangent plane [m]."""
        s = self.spin[:, None]
        return (s - np.sin(s)) * cross_product(self.n, arm) - (1.0 - np.cos(s)) * arm

    def rest_coordinates(self, arm: np.ndarray) -> np.ndarray:
        """(l, 3) rest coordinates of arms (l, 3) in the tangent plane at the end of the step."""
        return _times(self.inverse, self.remaining[:, :1] * arm - self.remaining[:, 1:] * cross_product(self.n, arm))


def _times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("lij,lj->li", A, x)


def _flat(u: np.ndarray, n: np.ndarray) -> np.ndarray:
    return u - dot(u, n)[:, None] * n


def rho(s: np.ndarray) -> np.ndarray:
    """(l,) difference between arc and chord, relative to the chord, of an arm that rotates by s (l,) [rad]."""
    half = 0.5 * s
    near = half < 1e-4
    along = np.where(near, 0.0, half / np.where(near, 1.0, np.tan(half)) - 1.0)
    return np.hypot(along, half)
