"""Defaults that follow from the bodies of a scene, so that no unit of length, mass or time is built in.

`tolerance`: with L the median full length of the dynamic bodies (`abd.joints.sizes`) and g gravity,

    tolerance = min(3.2e-4 sqrt(g L), 1e-4 L / dt)

which is 1e-3 m/s for bodies of 1 m. The second bound keeps bodies that fall by more than their size in a step from being
moved at will. Without gravity the largest initial speed stands for sqrt(g L), or that which forces would give.

`kappa`: the strain |A A^T - 1| of a body of volume v and half length l that carries a force F through its length is
``F l / (2 kappa v)``, that of one that spins with speed u at its end ``m u^2 / (12 kappa v)``. Kappa is what holds both
below `STRAIN` for

    F     M (3 g + u^2 / D) + forces, M and D mass and extent of all that is joined to the body: what the lowest point of
          a pendulum carries, u the largest initial speed in it
    rest  2 rho g D v / l, as a force: what is as dense as the densest body, rests on it as high as the scene, or hits it
          from there
    u^2   that of a turn by `TURN` per step, at least

Forces that drives or contacts bring beyond that are seen when the scene runs: the strain is said there.
"""

from __future__ import annotations

import numpy as np

from abd.joints.link_graph import joined_components
from abd.joints.sizes import half_length
from abd.model import Kind, Model

SPEED_SHARE = 1e-3 / np.sqrt(9.81)
"""Tolerance over the speed sqrt(g L)."""
WAY_SHARE = 1e-4
"""Largest way per step within the tolerance, over the size of a body; a tenth of it where no speed is known."""
STRAIN = 1e-5
"""Strain that the default kappa allows."""
TURN = 0.1
"""Turn per step [rad] that it is stiff enough for in any case."""


def default_tolerance(model: Model) -> float:
    """Tolerance [m/s] of scenes that give none."""
    length = _typical_length(model)
    if length == 0.0:
        return 1e-3  # nothing moves by forces
    speed = np.sqrt(np.linalg.norm(model.settings.gravity) * length) or _initial_speed(model)
    way = length / model.settings.dt
    return float(min(SPEED_SHARE * speed, WAY_SHARE * way) if speed > 0.0 else 0.1 * WAY_SHARE * way)


def default_kappa(model: Model) -> np.ndarray:
    """(n,) kappa [Pa] of bodies that give none."""
    bodies, settings = model.bodies, model.settings
    n, g = len(bodies), float(np.linalg.norm(settings.gravity))
    half = half_length(bodies.mass, bodies.moment)
    dynamic = (bodies.kind == Kind.DYNAMIC) & (half > 0.0)
    density = np.divide(bodies.mass, bodies.volume, out=np.zeros(n), where=bodies.volume > 0.0)
    label = joined_components(model)
    extent = _extents(bodies.q[:, :3], half, label, dynamic)
    mass, force, speed = np.zeros(n), np.zeros(n), np.zeros(n)
    own = np.linalg.norm(bodies.force, axis=1)
    own += np.divide(np.linalg.norm(bodies.torque, axis=1), half, out=np.zeros(n), where=half > 0.0)
    np.add.at(mass, label[dynamic], bodies.mass[dynamic])
    np.add.at(force, label[dynamic], own[dynamic])
    np.maximum.at(speed, label[dynamic], _speeds(model, half)[dynamic])
    M, F, u, D = mass[label], force[label], speed[label], extent[label]
    load = F + M * (3.0 * g + np.divide(u * u, D, out=np.zeros(n), where=D > 0.0))
    across = np.divide(half, 2.0 * bodies.volume, out=np.zeros(n), where=bodies.volume > 0.0)
    spinning = density * np.maximum(u, TURN * half / settings.dt) ** 2 / 12.0
    pressing = np.where(bodies.mesh >= 0, density[dynamic].max(initial=0.0) * g * settings.diagonal, 0.0)
    stress = np.maximum.reduce([load * across, spinning, pressing])
    # bodies that are moved, or made of nothing, are as stiff as the stiffest of the others
    return np.where(dynamic, stress, stress[dynamic].max(initial=0.0) or 1e9 * STRAIN) / STRAIN


def _typical_length(model: Model) -> float:
    """Median full length [m] of the dynamic bodies, 0 without any."""
    bodies = model.bodies
    half = half_length(bodies.mass, bodies.moment)[bodies.kind == Kind.DYNAMIC]
    return 2.0 * float(np.median(half[half > 0.0])) if (half > 0.0).any() else 0.0


def _speeds(model: Model, half: np.ndarray) -> np.ndarray:
    """(n,) initial speeds of the bodies' ends [m/s]."""
    qd = model.bodies.qd
    return np.linalg.norm(qd[:, :3], axis=1) + half * np.linalg.norm(qd[:, 3:], axis=1) / np.sqrt(2.0)


def _initial_speed(model: Model) -> float:
    """Largest initial speed of the dynamic bodies, or that which their forces give them over their length [m/s]."""
    bodies = model.bodies
    dynamic = (bodies.kind == Kind.DYNAMIC) & (bodies.mass > 0.0)
    half = half_length(bodies.mass, bodies.moment)
    work = np.linalg.norm(bodies.force, axis=1) * half + np.linalg.norm(bodies.torque, axis=1)
    driven = np.sqrt(work / np.where(bodies.mass > 0.0, bodies.mass, np.inf))
    return float(np.maximum(_speeds(model, half), driven)[dynamic].max(initial=0.0))


def _extents(p: np.ndarray, half: np.ndarray, label: np.ndarray, dynamic: np.ndarray) -> np.ndarray:
    """(n,) extents [m] of the groups of bodies at places p (n, 3), by their labels (n,)."""
    n = len(p)
    low, high, longest = np.full((n, 3), np.inf), np.full((n, 3), -np.inf), np.zeros(n)
    np.minimum.at(low, label[dynamic], p[dynamic])
    np.maximum.at(high, label[dynamic], p[dynamic])
    np.maximum.at(longest, label[dynamic], half[dynamic])
    some = np.isfinite(low).all(axis=1)
    out = 2.0 * longest
    out[some] += np.linalg.norm(high[some] - low[some], axis=1)
    return out
