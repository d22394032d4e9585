"""Slips of bodies that turn, along the arcs of their turns.

Friction measures the slip of a step on chords, from where a point of the material was to where it is
(`abd.potentials.friction`). How fast surfaces pass one another where the step ends, and so what slides and where it pushes, is
another thing: a contact on an arm a from the centre of a body that turns by w passes ``w x a`` besides the translation. So
what the arc is longer than the chord is added to the slip, in the tangent plane of the normal n; it stays linear in the
state. An arm has two parts.

What is round rolls over its contact: the arm of a rounding, or of a body that resists turning (`abd.potentials.rolling`),
*stays* where it is. Its end came down along a cycloid, whose chord is ``r sin w`` long where the surface has passed ``r w``.
With R(w) the turn that the step leads to, A the map where it begins and X what comes to the arm at the end, the arc is longer by

    w x a - (R(w) - 1) A X

The rest, to a vertex or the centre of its rounding, is *carried* by the body. By the turn s = w . n about the normal an arm a in
the tangent plane moves along an arc whose end lies s/2 off its chord: along chords friction brakes a coin that spins flat
by the cosine of that, and drives it beyond half a turn. With a at the end of the step the arc is longer by

    s n x a - (1 - R(-s n)) a  =  (s - sin s) n x a - (1 - cos s) a

A face does not carry the vertex that touches it: what touches in the end is the material to which the vertex has come by turns
about n, and the arm leads there. Edges that cross carry their contact both. (Turns across n tip a mesh over what touches, or
roll it from facet to facet, where chords are what is slipped.)

What sticks must not slip along its chord: if arcs were measured from centres which have come straight, a box that turns about
a corner that sticks would creep by ``s^2/2`` of its arm per step. So a carried contact gets no more of that than

    rho(s) |d|,    rho(s) = | s/2 cot(s/2) - 1 + i s/2 |

d the chord on which its points parted in the last step, if that went as this one does, or how far their velocities part them
in this one if that is less (so that what starts with the velocities of a body that sticks sticks), and rho what an arc about its
own centre is longer than its chord, of the chord. What spins on the spot gets all of it, what stuck (d = 0) nothing, and nothing
jumps between.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from abd.model import Model
from abd.potentials.contact import FIRST, Contacts, Stencil
from abd.potentials.distance import dot
from abd.potentials.friction import Lagged
from abd.potentials.rolling import SLIDE
from abd.rotations import axial, nearest_rotation_vectors, polar, rotations

SLOW = 1e-5
"""Turn in a step [rad] below which arcs are chords."""

OVER = 1e-9
"""Cosine and sine of a turn about n below which a body has been turned over, and has none."""


def counts(model: Model) -> bool:
    """Whether slips are measured so; bdf2's reference is no pose, from which a body could turn."""
    return model.settings.integrator != "bdf2"


@dataclass(frozen=True)
class Course:
    """How n bodies go through a step.

    Attributes:
        begin: (n, 12) states where it begins; end: (n, 12) where they are led, to inertial targets and goals of prescribed
            bodies, or where an iterate has got them.
        turn: (n, 3) rotation vectors by which they turn, whole turns included [rad].
    """

    begin: np.ndarray
    end: np.ndarray
    turn: np.ndarray


def along_arcs(
    lagged: Lagged, contacts: Contacts, q: np.ndarray, course: Course, radius: np.ndarray
) -> tuple[Lagged, Contacts]:
    """What was frozen, with what its arcs are longer than the chords, and its points on faces moved to where vertices
    go.

    Args:
        contacts: the frozen ones; q: (n, 12) state in which they were frozen; radius: (n,) of the bodies' rounding [m].
    """
    i, j, n = contacts.first, contacts.second, lagged.n
    slides = lagged.kind == SLIDE
    turns = (np.linalg.norm(course.turn, axis=1) >= SLOW)[np.stack([i, j])].any(axis=0)
    first = _Side.of(course, q, i, lagged.Y_first, slides, -radius[i, None] * n, n)
    second = _Side.of(course, q, j, lagged.Y_second, slides, radius[j, None] * n, n)
    end_i, end_j = first.carried, second.carried
    # vertices are of the first bodies
    on_face = (slides & (contacts.stencil == Stencil.POINT_TRIANGLE))[:, None]
    end_j = np.where(on_face, second.now + end_i - first.now, end_j)
    moved = np.where(on_face, second.at_rest(end_j) - second.at_rest(second.carried), 0.0)
    two = lagged.two_sided[:, None]
    spun = first.spun(end_i) - np.where(two, second.spun(end_j), 0.0)
    swept_paths = zip((first.came, first.goes), (second.came, second.goes), strict=True)
    parted = [np.linalg.norm(_flat(of_i - np.where(two, of_j, 0.0), n), axis=1) for of_i, of_j in swept_paths]
    most = rho(np.maximum(np.abs(first.spin), np.abs(second.spin))) * np.minimum(*parted)
    size = np.linalg.norm(spun, axis=1)
    some = slides & turns & (size > 0.0)
    part = np.where(some, np.minimum(1.0, most / np.where(some, size, 1.0)), 0.0)[:, None]
    out = _flat(first.rolled - np.where(two, second.rolled, 0.0), n) + part * spun
    moved = part * moved
    arc = np.where(turns[:, None], out, 0.0)
    Y_second = lagged.Y_second + np.concatenate([np.zeros((len(lagged), 1)), moved], axis=1)
    of_second = 1.0 - FIRST[contacts.stencil]
    points = replace(contacts, rest=contacts.rest + of_second[..., None] * moved[:, None])
    return replace(lagged, arc=arc, Y_second=Y_second), points


@dataclass(frozen=True)
class _Side:
    """The bodies on one side of l contacts.

    Attributes:
        n: (l, 3) normals; spin: (l,) turns about them [rad].
        rolled: (l, 3) what the arcs of the arms that stay are longer than the chords of what comes there [m].
        now, carried: (l, 3) the arms that are carried, in the tangent plane, where they were frozen and at the end of the step.
        came: (l, 3) chords on which the ends of these have come, if the last step went as this one does; goes: (l, 3) their
            displacements by their velocities [m].
        inverse: (l, 3, 3) of the maps; left: (l, 2) cosine and sine of the turns about n from where they were frozen on.
    """

    n: np.ndarray
    spin: np.ndarray
    rolled: np.ndarray
    now: np.ndarray
    carried: np.ndarray
    came: np.ndarray
    goes: np.ndarray
    inverse: np.ndarray
    left: np.ndarray

    @classmethod
    def of(
        cls, course: Course, q: np.ndarray, body: np.ndarray, Y: np.ndarray, slides: np.ndarray, rounding: np.ndarray,
        n: np.ndarray,
    ) -> _Side:  # fmt: skip
        """Of bodies (l,) that touch at Y (l, 4), of which those that slide are rounded by arms (l, 3)."""
        A, begin, end = (state[body, 3:].reshape(-1, 3, 3) for state in (q, course.begin, course.end))
        inverse = np.linalg.inv(A)
        to_end = polar(end @ inverse)
        w = nearest_rotation_vectors(end @ np.linalg.inv(begin), course.turn[body])
        R = rotations(w)
        stays = np.where(slides[:, None], rounding, _times(to_end @ A, Y[:, 1:]))
        comes = _times(inverse @ to_end.transpose(0, 2, 1), stays)
        rolled = np.cross(w, stays) - _times((R - np.eye(3)) @ begin, comes)
        within = np.where(slides[:, None], Y[:, 1:] - comes, 0.0)
        arm = _times(A, within)
        now = _flat(arm, n)
        dp = (course.end - course.begin)[body, :3]
        came, goes = dp + arm - _times(R.transpose(0, 2, 1), arm), dp + np.cross(w, arm)
        cosine = 0.5 * (np.trace(to_end, axis1=1, axis2=2) - dot(n, _times(to_end, n)))
        left = np.stack([cosine, dot(axial(to_end), n)], axis=1)
        size = np.linalg.norm(left, axis=1, keepdims=True)
        left = np.where(size > OVER, left / np.maximum(size, OVER), (1.0, 0.0))
        carried = left[:, :1] * now + left[:, 1:] * np.cross(n, now)
        return cls(n, dot(w, n), rolled, now, carried, came, goes, inverse, left)

    def spun(self, arm: np.ndarray) -> np.ndarray:
        """(l, 3) what arcs about n to arms (l, 3) in the tangent plane are longer than their chords [m]."""
        s = self.spin[:, None]
        return (s - np.sin(s)) * np.cross(self.n, arm) - (1.0 - np.cos(s)) * arm

    def at_rest(self, arm: np.ndarray) -> np.ndarray:
        """(l, 3) rest coordinates of arms (l, 3) in the tangent plane at the end of the step."""
        return _times(self.inverse, self.left[:, :1] * arm - self.left[:, 1:] * np.cross(self.n, arm))


def _times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("lij,lj->li", A, x)


def _flat(u: np.ndarray, n: np.ndarray) -> np.ndarray:
    return u - dot(u, n)[:, None] * n


def rho(s: np.ndarray) -> np.ndarray:
    """(l,) what the arc of an arm that turns by s (l,) [rad] about its own centre is longer than its chord, of the chord."""
    half = 0.5 * s
    near = half < 1e-4
    along = np.where(near, 0.0, half / np.where(near, 1.0, np.tan(half)) - 1.0)
    return np.hypot(along, half)
