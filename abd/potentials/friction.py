"""Smoothed Coulomb friction with lagged normal force, normal and contact points (Li et al. 2020, section 5).

    E(x) = sum over contacts of  mu lambda f0(|u|),     u = (1 - n n^T) sum_k w_k (x_k - xh_k)

lambda = -dE_contact/dd is the normal force, n the unit normal and w the signed weights of the closest points at the
last lagging; xh are the reference positions of the slip (docs/theory.md, "Friction"). Bodies with a contact radius r
touch at their surfaces, ``x - r n`` on the first and ``x + r n`` on the second. Friction acts between these material
points, with the lever arm r n about the points, segments and triangles within (`freeze`). With the slip
``eps = eps_v beta`` [m], below which friction is static,

    f0(y) = y^2 (eps - y/3) / eps^2 + eps/3   for y < eps,     f0(y) = y   beyond

so that ``f1 = f0'`` rises from 0 to 1. The mollifier reduces the friction of nearly parallel edges continuously, like
their normal force (ipctk omits it). The energy is isotropic in the tangent plane: the projector ``1 - n n^T`` replaces
a tangent basis.

In the contact set of local minima (`abd.contact.minima`) some distances have negative weights. Two crossing edges have
one friction force, from the normal components of the forces of the pair and of its ends; it vanishes towards an end.
Faces, sides and corners under a vertex have friction of their own, with possibly negative loads, so that friction
passes continuously from feature to feature. Negative loads make the energy concave: the fraction `regularisation` of
their curvature is omitted.

Devices: ``cuda_kernels/friction/lagging.py`` and ``friction.py``, launched by ``abd/backends/warp/terms/friction.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from abd.potentials import mollifier
from abd.potentials.barrier import barrier
from abd.potentials.contact import (
    FIRST,
    Closest,
    ContactParameters,
    Contacts,
    Stencil,
    Weights,
    closest,
    homogeneous,
    thresholds,
)
from abd.potentials.distance import dot
from abd.potentials.elements import Elements
from abd.potentials.rolling import Resistances, tangents
from abd.rotations import polar
from abd.tables import Table
from cuda_kernels.shared.contact import ROLL, SLIDE, SPIN


@dataclass(frozen=True)
class Lagged(Table):
    """l lagged contacts.

    Attributes:
        source: (l,) indices of the contacts.
        load: (l,) mu lambda [N].
        n: (l, 3) unit normals, from the second body to the first.
        w: (l, 4) signed weights of the four points.
        Y_first, Y_second: (l, 4) homogeneous rest coordinates of the contact points; (1, 0, 0, 0) on a half-space.
        flipped: (l,) as in `Contacts`.
        start_stretch: (l, 3) stretch at the start of the step, over eps [-]; arc: (l, 3) difference between arc and chord of
            the slips [m] (`abd.potentials.arc_slip`).
        kind: (l,) resisted motion (`abd.potentials.rolling`).
    """

    source: np.ndarray
    load: np.ndarray
    n: np.ndarray
    w: np.ndarray
    Y_first: np.ndarray
    Y_second: np.ndarray
    flipped: np.ndarray
    start_stretch: np.ndarray
    arc: np.ndarray
    kind: np.ndarray


def lag(
    x: np.ndarray, contacts: Contacts, parameters: ContactParameters, weights: Weights | None = None,
    near: Closest | None = None,
) -> Lagged:  # fmt: skip
    """Lag the active contacts with friction, at positions x (m, 4, 3) [m]; parts of one item are merged."""
    near = closest(x, contacts) if near is None else near
    _, b1, _ = barrier(parameters.barrier, near.D, parameters.d_hat, contacts.xi)
    d = np.sqrt(near.D)
    load = -2.0 * contacts.mu * parameters.kappa * contacts.stiffness * d * b1
    load *= mollifier.value(x, thresholds(contacts)) * (1.0 if weights is None else weights.force)
    rows = np.flatnonzero(load)
    n = near.r / d[:, None]
    if weights is not None:
        rows, load[rows] = _main_parts(rows, load, np.where(contacts.flipped[:, None], -n, n), weights.item)
    Y_first, Y_second = homogeneous(contacts, near.w)
    return Lagged(
        source=rows,
        load=load[rows],
        n=near.r[rows] / d[rows, None],
        w=near.w[rows],
        Y_first=Y_first[rows],
        Y_second=Y_second[rows],
        flipped=contacts.flipped[rows],
        start_stretch=np.zeros((len(rows), 3)),
        arc=np.zeros((len(rows), 3)),
        kind=np.full(len(rows), SLIDE),
    )


def freeze(
    q: np.ndarray,
    contacts: Contacts,
    parameters: ContactParameters,
    radius: np.ndarray,
    heading: np.ndarray,
    resistances: Resistances,
    weights: Weights | None = None,
) -> tuple[Lagged, Contacts]:
    """Lag the contacts with sliding, rolling or spinning resistance, in the state q (n, 12).

    Args:
        radius: (n,) contact radii of the bodies [m].
        heading: (n, 3, 3) maps of the bodies at the inertial target. A surface rolls over the contact within the step,
            so that the material point is that at the end of the step. With the point at the start, a ball that rotates
            by w would roll with the lever arm r cos w.
        weights: as for `lag`.

    Returns:
        the lagged contacts, and contacts with their points moved to the surfaces: in rest coordinates by ``-r A^-1 n``
        on the first body and ``r A^-1 n`` on the second; or arms (`abd.potentials.rolling`). Their displacements determine
        the slip.
    """
    ratios = resistances.ratios(contacts.first, contacts.second)
    resists = (ratios > 0.0).any(axis=1).astype(float)
    loaded = lag(contacts.positions(q), replace(contacts, mu=resists), parameters, weights)
    lagged, points = on_surfaces(loaded, contacts[loaded.source], q, radius, heading, resistances)
    return replace(lagged, source=np.arange(len(lagged))), points


def on_surfaces(
    loaded: Lagged, contacts: Contacts, q: np.ndarray, radius: np.ndarray, heading: np.ndarray, resistances: Resistances
) -> tuple[Lagged, Contacts]:
    """Lagged contacts between the surfaces of bodies, with the rows of `loaded` as sources, and contacts with their points.

    Args:
        loaded: k loaded contacts, with loads of a coefficient of 1; contacts: the same ones; others as of `freeze`.
    """
    ratios = resistances.ratios(contacts.first, contacts.second)
    A, is_round = q[:, 3:].reshape(-1, 3, 3), bool(radius.any())
    maps = polar(heading @ np.linalg.inv(A)) @ A if is_round or (ratios[:, [ROLL, SPIN]] > 0.0).any() else A
    parts, moved = [], []
    for kind in (SLIDE, ROLL, SPIN):
        load = loaded.load * ratios[:, kind]
        rows = np.flatnonzero(ratios[:, kind] > 0.0)
        if kind != SLIDE and not len(rows):
            continue
        n, chosen = loaded.n[rows], contacts[rows]
        if kind == SLIDE:
            chosen, w = _with_planes_as_points(chosen, loaded.w[rows])
            owners = chosen.owners
            offsets = (1.0 - 2.0 * FIRST[chosen.stencil]) * radius[owners]
            if is_round:
                chosen = replace(chosen, rest=chosen.rest + _arms(maps[owners], offsets[..., None] * n[:, None]))
        else:
            w = np.tile([1.0, -1.0, -1.0, 1.0], (len(rows), 1))
            chosen = replace(chosen, stencil=np.full(len(rows), int(Stencil.EDGE_EDGE)))
            along = resistances.arms(chosen.first, chosen.second)[:, None] * (n if kind == ROLL else tangents(n))
            ends = np.zeros((len(rows), 4, 3))
            ends[:, 0] = ends[:, 2] = along
            chosen = replace(chosen, rest=_arms(maps[chosen.owners], ends))
        Y_first, Y_second = homogeneous(chosen, w)
        taken = (getattr(loaded, name)[rows] for name in ("flipped", "start_stretch", "arc"))
        parts.append(Lagged(rows, load[rows], n, w, Y_first, Y_second, *taken, np.full(len(rows), kind)))
        moved.append(chosen)
    if len(parts) == 1:
        return parts[0], moved[0]
    order = np.lexsort(tuple(np.concatenate([getattr(part, name) for part in parts]) for name in ("kind", "source")))
    return Lagged.joined(*parts)[order], Contacts.joined(*moved)[order]


def _main_parts(rows: np.ndarray, load: np.ndarray, n: np.ndarray, item: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The part with the largest load of every item, with the total load of the item along its normal, at least 0.

    Items with one part do not change; the parts keep their order.

    Args:
        load: (m,) signed loads; n: (m, 3) normals of the first bodies.
    """
    order = rows[np.lexsort((rows, -load[rows], item[rows]))]
    begins = np.flatnonzero(np.diff(item[order], prepend=-1))
    if len(begins) == len(order):
        return rows, load[rows]
    main, total = order[begins], np.add.reduceat(load[order, None] * n[order], begins)
    is_single = np.diff(begins, append=len(order)) == 1
    by_part = np.argsort(main)
    return main[by_part], np.where(is_single, load[main], np.maximum(dot(n[main], total), 0.0))[by_part]


def _with_planes_as_points(contacts: Contacts, w: np.ndarray) -> tuple[Contacts, np.ndarray]:
    """Contacts with the origins of half-spaces as points on the second bodies, whose surfaces may move; w: (l, 4) weights."""
    plane = contacts.stencil == Stencil.POINT_PLANE
    if not plane.any():
        return contacts, w
    rest = contacts.rest.copy()
    rest[plane, 1:] = 0.0
    stencil = np.where(plane, int(Stencil.EDGE_EDGE), contacts.stencil)
    return replace(contacts, stencil=stencil, rest=rest), np.where(plane[:, None], (1.0, 0.0, -1.0, 0.0), w)


def _arms(maps: np.ndarray, along: np.ndarray) -> np.ndarray:
    """(l, 4, 3) rest coordinates of world vectors `along` (l, 4, 3) on bodies with the maps (l, 4, 3, 3)."""
    return np.linalg.solve(maps, along[..., None])[..., 0]


def f0(y: np.ndarray, eps: float) -> np.ndarray:
    """Smoothed |y| [m] of slips y >= 0 [m]."""
    return np.where(y < eps, y**2 * (eps - y / 3.0) / eps**2 + eps / 3.0, y)


def f1(y: np.ndarray, eps: float) -> np.ndarray:
    """``f0'`` [-]: the mobilised fraction of the friction force."""
    return y * f1_over_y(y, eps)


def f1_over_y(y: np.ndarray, eps: float) -> np.ndarray:
    """``f0'/y`` [1/m], finite at 0."""
    return np.where(y < eps, (2.0 - y / eps) / eps, 1.0 / np.maximum(y, eps))


def f2(y: np.ndarray, eps: float) -> np.ndarray:
    """``f0''`` [1/m], never negative."""
    return np.where(y < eps, 2.0 * (1.0 - y / eps) / eps, 0.0)


def slip(lagged: Lagged, displacement: np.ndarray) -> np.ndarray:
    """(l, 3) tangential slips [m], along arcs, for displacements ``x - xh`` (l, 4, 3) [m] of the contact points."""
    u = np.einsum("mk,mki->mi", lagged.w, displacement)
    return u - dot(u, lagged.n)[:, None] * lagged.n + lagged.arc


def stretch(lagged: Lagged, displacement: np.ndarray, eps: float | np.ndarray) -> np.ndarray:
    """(l, 3) stretches [m] of the contacts' springs: the initial stretch plus the slip of the step."""
    return slip(lagged, displacement) + np.reshape(eps, (-1, 1)) * lagged.start_stretch


def energy(lagged: Lagged, displacement: np.ndarray, eps: float) -> np.ndarray:
    """(l,) energies [J]."""
    return lagged.load * f0(np.linalg.norm(stretch(lagged, displacement, eps), axis=1), eps)


def gradient(lagged: Lagged, displacement: np.ndarray, eps: float) -> np.ndarray:
    """(l, 12) gradients by the four points [N]; minus the friction forces."""
    f, _ = _force_and_stiffness(lagged, displacement, eps)
    return np.einsum("mk,mi->mki", lagged.w, f).reshape(-1, 12)


def force(lagged: Lagged, displacement: np.ndarray, eps: float | np.ndarray) -> np.ndarray:
    """(l, 3) derivatives [N] by the slips; minus the friction forces on the first bodies."""
    return _force_and_stiffness(lagged, displacement, eps)[0]


def hessian(lagged: Lagged, displacement: np.ndarray, eps: float) -> np.ndarray:
    """(l, 12, 12) exact Hessians [N/m], positive semidefinite for positive loads."""
    _, K = _force_and_stiffness(lagged, displacement, eps)
    return np.einsum("mk,ml,mij->mkilj", lagged.w, lagged.w, K).reshape(-1, 12, 12)


def friction_elements(
    lagged: Lagged, displacement: np.ndarray, eps: float, regularisation: np.ndarray | float = 0.0
) -> Elements:
    """One element per lagged contact; i and j are the bodies of the body pair.

    `regularisation` (l,) is the weight of the bound of the curvature relative to the curvature
    (`cuda_kernels.step.newton`).
    """
    f, K = _force_and_stiffness(lagged, displacement, eps, np.broadcast_to(regularisation, len(lagged)))
    elements = Elements.between(lagged.source, f, K, lagged.Y_first, lagged.Y_second)
    return elements.exchanged(lagged.flipped)


def _force_and_stiffness(
    lagged: Lagged, displacement: np.ndarray, eps: float, regularisation: np.ndarray | float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives (l, 3), (l, 3, 3) by the relative displacement of the first contact point; u is the stretch.

        f = load f1 t,    K = load [ f1' t t^T + (f1/|u|) (1 - n n^T - t t^T) ],    t = u/|u|

    Both terms of K are positive semidefinite. f1/|u|, which is at least f1', bounds the curvature along the slip:
    ``load f1/(2|u|) |u'|^2`` plus a constant is an upper bound of the energy and touches it at u. The curvature is a
    mean of the bound, with weight `regularisation`, and f1'. A negative load is bounded by its tangent.
    """
    u = stretch(lagged, displacement, eps)
    y = np.linalg.norm(u, axis=1)
    t = u / np.where(y > 0.0, y, 1.0)[:, None]
    along = np.einsum("mi,mj->mij", t, t)
    tangent = np.eye(3) - np.einsum("mi,mj->mij", lagged.n, lagged.n)
    secant = f1_over_y(y, eps)
    is_negative = lagged.load < 0.0
    bend = np.where(is_negative, f2(y, eps), regularisation * secant + (1.0 - regularisation) * f2(y, eps))
    K = bend[:, None, None] * along + secant[:, None, None] * (tangent - along)
    stiffness = np.where(is_negative, 1.0 - regularisation, 1.0) * lagged.load
    return (lagged.load * f1(y, eps))[:, None] * t, stiffness[:, None, None] * K
