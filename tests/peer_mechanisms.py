"""Mechanisms by numbers: bodies, joints, springs, start.

Bodies are rigid, with principal axes along their own; all positions, axes and rotations are of the start, in the world.
SI units.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import fsolve
from scipy.spatial.transform import Rotation

WORLD = -1
G = 9.81


@dataclass(frozen=True)
class Body:
    """Mass [kg], principal inertia (3,) [kg m^2], centre of mass and rotation (3, 3); v, w of the start in the world."""

    mass: float
    inertia: tuple
    position: np.ndarray
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))
    velocity: np.ndarray = field(default_factory=lambda: np.zeros(3))
    spin: np.ndarray = field(default_factory=lambda: np.zeros(3))
    torque: tuple = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Joint:
    """Type, parent and child (`WORLD` for none), place, axis; constrained axes of the world of a spherical one."""

    type: str
    parent: int
    child: int
    anchor: tuple
    axis: tuple = (0.0, 0.0, 1.0)
    constrained: tuple = (1, 1, 1)


@dataclass(frozen=True)
class Spring:
    """Between two points, of the world at the start; [N/m], [N s/m], [m]."""

    parent: int
    child: int
    ends: tuple
    stiffness: float
    rest: float
    damping: float = 0.0


@dataclass(frozen=True)
class Mechanism:
    """Name, parts, the longest step [s] and the end [s]."""

    name: str
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    step: float
    duration: float
    springs: tuple[Spring, ...] = ()
    gravity: tuple = (0.0, 0.0, -G)


def turned(axis: tuple, angle: float) -> np.ndarray:
    """(3, 3) rotation by an angle [rad]."""
    return Rotation.from_rotvec(angle * np.asarray(axis, dtype=float)).as_matrix()


def slider_crank() -> Mechanism:
    """In space: a crank about x at (0, 0.1, 0.12), a rod of 0.3 m on two balls, a slider along x; 6 rad/s."""
    pivot, pin, end = np.array([0.0, 0.1, 0.12]), np.array([0.0, 0.1, 0.2]), np.array([0.2, 0.0, 0.0])
    spin = np.array([6.0, 0.0, 0.0])
    at_pin = np.cross(spin, pin - pivot)
    along = pin - end
    at_end = np.array([along @ at_pin / along[0], 0.0, 0.0])
    rod_spin = np.cross(along, at_pin - at_end) / (along @ along)
    frame = Rotation.align_vectors([along / np.linalg.norm(along)], [[1, 0, 0]])[0].as_matrix()
    crank = Body(0.12, (1e-4, 1e-4, 1e-5), 0.5 * (pivot + pin), velocity=0.5 * at_pin, spin=spin)
    rod = Body(0.5, (4e-5, 4e-3, 4e-3), 0.5 * (pin + end), frame, 0.5 * (at_pin + at_end), rod_spin)
    slider = Body(2.0, (1e-3,) * 3, end, velocity=at_end)
    joints = (
        Joint("hinge", WORLD, 0, tuple(pivot), (1, 0, 0)),
        Joint("spherical", 0, 1, tuple(pin)),
        Joint("spherical", 1, 2, tuple(end)),
        Joint("slider", WORLD, 2, tuple(end), (1, 0, 0)),
    )
    return Mechanism("spatial slider-crank", (crank, rod, slider), joints, 0.005, 2.0)


def double_pendulum() -> Mechanism:
    """Two bars of 1 kg and 1 m from level."""
    bodies = tuple(Body(1.0, (0.01, 0.1, 0.1), np.array([0.5 + k, 0, 0])) for k in range(2))
    joints = tuple(Joint("hinge", k - 1, k, (k, 0, 0), (0, 1, 0)) for k in range(2))
    return Mechanism("double pendulum", bodies, joints, 0.005, 2.0)


SQUEEZER = {
    "mass": (0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498),
    "inertia": (2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5),
    "A": (-0.06934, -0.00227), "B": (-0.03635, 0.03273), "C": (0.014, 0.072),
    "start": (-0.0620, 0.0, 0.4552, 0.2227, 0.4873, -0.2227, 1.2305),
}  # fmt: skip
"""Andrews' squeezer (Hairer and Wanner 1996, VII.7); beta, theta, gamma, phi, delta, omega, epsilon at the start."""


def seven_bodies() -> Mechanism:
    """Andrews' squeezer: three loops in a plane; 0.033 N m on the crank, a spring of 4530 N/m."""
    d, da, e, ea, rr, ra, ss, sa = 28e-3, 11.5e-3, 20e-3, 14.21e-3, 7e-3, 0.92e-3, 35e-3, 18.74e-3
    sb, sc, sd, ta, tb, u, ua, ub = 10.43e-3, 18e-3, 20e-3, 23.08e-3, 9.16e-3, 40e-3, 12.28e-3, 4.49e-3
    zf, zt, fa, rest = 20e-3, 40e-3, 14.21e-3, 77.85e-3
    (xa, ya), (xb, yb) = SQUEEZER["A"], SQUEEZER["B"]

    def gaps(rest_of, theta=0.0):
        beta, gamma, phi, delta, omega, eps = rest_of
        px = rr * np.cos(beta) - d * np.cos(beta + theta)
        py = rr * np.sin(beta) - d * np.sin(beta + theta)
        return [
            px - ss * np.sin(gamma) - xb, py + ss * np.cos(gamma) - yb,
            px - e * np.sin(phi + delta) - zt * np.cos(delta) - xa,
            py + e * np.cos(phi + delta) - zt * np.sin(delta) - ya,
            px - zf * np.cos(omega + eps) - u * np.sin(eps) - xa,
            py - zf * np.sin(omega + eps) + u * np.cos(eps) - ya,
        ]  # fmt: skip

    b, _, *others = SQUEEZER["start"]
    b, g, p, dl, o, ep = fsolve(gaps, [b, *others], xtol=1e-14)
    sin, cos = np.sin, np.cos
    centres = (
        (ra * cos(b), ra * sin(b)),
        (rr * cos(b) - da * cos(b), rr * sin(b) - da * sin(b)),
        (xb + sa * sin(g) + sb * cos(g), yb - sa * cos(g) + sb * sin(g)),
        (xa + zt * cos(dl) + (e - ea) * sin(p + dl), ya + zt * sin(dl) - (e - ea) * cos(p + dl)),
        (xa + ta * cos(dl) - tb * sin(dl), ya + ta * sin(dl) + tb * cos(dl)),
        (xa + u * sin(ep) + (zf - fa) * cos(o + ep), ya - u * cos(ep) + (zf - fa) * sin(o + ep)),
        (xa + ua * sin(ep) - ub * cos(ep), ya - ua * cos(ep) - ub * sin(ep)),
    )
    bodies = [Body(m, (i, i, i), np.array([*c, 0.0])) for m, i, c in zip(SQUEEZER["mass"], SQUEEZER["inertia"], centres)]
    bodies[0] = Body(bodies[0].mass, bodies[0].inertia, bodies[0].position, torque=(0, 0, 0.033))
    meeting = ((rr - d) * cos(b), (rr - d) * sin(b), 0.0)
    places = {
        (WORLD, 0): (0.0, 0.0, 0.0), (0, 1): (rr * cos(b), rr * sin(b), 0.0), (WORLD, 2): (xb, yb, 0.0),
        (WORLD, 4): (xa, ya, 0.0), (4, 3): (xa + zt * cos(dl), ya + zt * sin(dl), 0.0),
        (WORLD, 6): (xa, ya, 0.0), (6, 5): (xa + u * sin(ep), ya - u * cos(ep), 0.0),
    }  # fmt: skip
    joints = [Joint("hinge", *pair, place) for pair, place in places.items()]
    joints += [Joint("hinge", 1, k, meeting) for k in (2, 3, 5)]
    tip = (xb + sd * cos(g) + sc * sin(g), yb + sd * sin(g) - sc * cos(g), 0.0)
    spring = Spring(WORLD, 2, ((*SQUEEZER["C"], 0.0), tip), 4530.0, rest)
    keys = {"springs": (spring,), "gravity": (0.0, 0.0, 0.0)}
    return Mechanism("planar seven-body loop", tuple(bodies), tuple(joints), 1e-4, 0.03, **keys)


def four_bar() -> Mechanism:
    """RigidBodyDynamics.jl's four-bar, in space: 3 redundant rows."""
    angles, lengths = (1.6707963267948966, 0.2116909101262484, 1.5397303602625536), (0.5, 1.20, 0.75)
    along = [np.array([np.cos(angle), 0.0, np.sin(angle)]) for angle in angles]
    starts = [np.zeros(3), lengths[0] * along[0], np.array([1.10, 0.0, 0.0])]
    bodies = tuple(
        Body(m, (0.5 * i, i, 0.5 * i), starts[k] + 0.5 * lengths[k] * along[k], turned((0, 1, 0), -angles[k]))
        for k, (m, i) in enumerate(((0.5, 0.333), (1.0, 0.537), (0.75, 0.4)))
    )
    axis, end = (0.0, -1.0, 0.0), tuple(starts[2] + lengths[2] * along[2])
    joints = tuple(Joint("hinge", p, c, tuple(a), axis) for p, c, a in zip((WORLD, 0, WORLD), range(3), starts))
    loop = Joint("hinge", 1, 2, end, axis)
    return Mechanism("four-bar in space", bodies, (*joints, loop), 0.005, 2.0)


def governor() -> Mechanism:
    """A shaft of 2 pi rad/s, two arms of 0.5 m on it, a collar that slides along it, held to the arms by springs."""
    spin, tilt = np.array([0.0, 0.0, 2.0 * np.pi]), np.radians(30.0)
    parts = [(2.0, (0.02, 0.02, 0.04), np.array([0.0, 0.0, 0.25]), np.eye(3))]
    joints, springs = [Joint("hinge", WORLD, 0, (0.0, 0.0, 0.0))], []
    for side in (1.0, -1.0):
        hinge = np.array([0.05 * side, 0.0, 0.5])
        down = np.array([side * np.sin(tilt), 0.0, -np.cos(tilt)])
        parts.append((1.0, (0.002, 0.02, 0.02), hinge + 0.35 * down, turned((0, 1, 0), -np.arctan2(down[2], down[0]))))
        joints.append(Joint("hinge", 0, len(parts) - 1, tuple(hinge), (0.0, 1.0, 0.0)))
        ends = (tuple(hinge + 0.25 * down), (0.03 * side, 0.0, 0.15))
        springs.append(Spring(len(parts) - 1, 3, ends, 1000.0, 0.2))
    parts.append((1.0, (0.002, 0.002, 0.004), np.array([0.0, 0.0, 0.15]), np.eye(3)))
    joints.append(Joint("slider", 0, 3, (0.0, 0.0, 0.15)))
    bodies = tuple(Body(m, i, p, r, np.cross(spin, p), spin) for m, i, p, r in parts)
    return Mechanism("governor with springs", bodies, tuple(joints), 0.005, 1.0, tuple(springs))


def top(spin: float, step: float) -> Mechanism:
    """A symmetric top of 1 kg on its tip, 0.5 m below, tilted by half a radian."""
    R = turned((0, 1, 0), 0.5)
    w = spin * R[:, 2]
    body = Body(1.0, (0.05, 0.05, 0.02), 0.5 * R[:, 2], R, spin=w)
    return Mechanism(f"top of {spin:g} rad/s", (body,), (Joint("spherical", WORLD, 0, (0, 0, 0)),), step, 0.2)


def stiff_springs() -> Mechanism:
    """A pendulum of two light links of 10 g with a ball of 1 kg at its end, held by springs of 1e4 and 1e5 N/m."""
    bodies = (
        *(Body(0.01, (1e-6, 1e-5, 1e-5), np.array([0.1 + 0.2 * k, 0.0, 0.0])) for k in range(2)),
        Body(1.0, (1e-3,) * 3, np.array([0.4, 0.0, 0.0])),
    )
    joints = (
        Joint("hinge", WORLD, 0, (0.0, 0.0, 0.0), (0, 1, 0)),
        Joint("hinge", 0, 1, (0.2, 0.0, 0.0), (0, 1, 0)),
        Joint("hinge", 1, 2, (0.4, 0.0, 0.0), (0, 1, 0)),
    )
    springs = (
        Spring(WORLD, 1, ((0.3, 0.0, 0.3), (0.3, 0.0, 0.0)), 1e4, 0.3),
        Spring(WORLD, 2, ((0.6, 0.0, 0.3), (0.4, 0.0, 0.0)), 1e5, float(np.hypot(0.2, 0.3))),
    )
    return Mechanism("stiff springs on light links", bodies, joints, 0.002, 0.5, springs)


def spherical_chain() -> Mechanism:
    """Exudyn's chain of four bodies; the centre of the first one slides along x."""
    bodies = tuple(Body(2.0, (6.0, 1.0, 6.0), np.array([-0.3 + 0.6 * k, 0.0, 0.0])) for k in range(4))
    first = Joint("spherical", WORLD, 0, (-0.3, 0, 0), constrained=(0, 1, 1))
    others = (Joint("spherical", k - 1, k, (0.6 * k - 0.6, 0.0, 0.1)) for k in range(1, 4))
    return Mechanism("spherical chain", bodies, (first, *others), 0.01, 2.0, gravity=(0.0, -G, 0.0))


def mechanisms() -> list[Mechanism]:
    """All of them."""
    return [
        slider_crank(), double_pendulum(), four_bar(), seven_bodies(), governor(), top(150.0, 4e-3),
        top(1500.0, 4e-4), stiff_springs(), spherical_chain(),
    ]  # fmt: skip
