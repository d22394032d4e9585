"""Scenes of mechanisms with exact joints between proxies, for a step h [s]. SI units."""

import numpy as np
import reference_cases as cases
from scipy.optimize import fsolve
from scipy.spatial.transform import Rotation

import abd

G = cases.G
EXACT = {"enforcement": "exact"}
CONSERVED = ("kinetic", "gravity", "elastic", "joint")
"""Terms of the energy that a conservative mechanism conserves."""


def new_scene(h: float, gravity=(0.0, 0.0, -G), **solver) -> abd.Scene:
    """Create a scene without bodies."""
    return abd.Scene(gravity=gravity, solver={"dt": h, **solver})


def quaternion(rotation: np.ndarray) -> tuple:
    """Return the quaternion (w, x, y, z) of a rotation (3, 3)."""
    return tuple(np.roll(Rotation.from_matrix(rotation).as_quat(), 1))


def rotation_about(axis: tuple, angle: float) -> np.ndarray:
    """Return the rotation (3, 3) by an angle [rad]."""
    return Rotation.from_rotvec(angle * np.asarray(axis, dtype=float)).as_matrix()


def slider_crank(h: float, **solver) -> abd.Scene:
    """Create a spatial slider-crank: a crank about x at 6 rad/s, a rod with two spherical joints, a slider along x."""
    pivot, pin, end = np.array([0.0, 0.1, 0.12]), np.array([0.0, 0.1, 0.2]), np.array([0.2, 0.0, 0.0])
    spin, along = np.array([6.0, 0.0, 0.0]), pin - end
    at_pin = np.cross(spin, pin - pivot)
    at_end = np.array([along @ at_pin / along[0], 0.0, 0.0])
    rod = {"angular_velocity": np.cross(along, at_pin - at_end) / (along @ along), "velocity": 0.5 * (at_pin + at_end)}
    frame = Rotation.align_vectors([along / np.linalg.norm(along)], [[1, 0, 0]])[0].as_matrix()
    scene = new_scene(h, **solver)
    cases.link(scene, "crank", 0.12, (1e-4, 1e-4, 1e-5), 0.5 * (pivot + pin), velocity=0.5 * at_pin, angular_velocity=spin)
    cases.link(scene, "rod", 0.5, (4e-5, 4e-3, 4e-3), 0.5 * (pin + end), quaternion=quaternion(frame), **rod)
    cases.link(scene, "slider", 2.0, (1e-3,) * 3, end, velocity=at_end)
    scene.add_hinge("main", abd.WORLD, "crank", anchor=pivot, axis=(1, 0, 0), **EXACT)
    scene.add_spherical("pin", "crank", "rod", anchor=pin, **EXACT)
    scene.add_spherical("wrist", "rod", "slider", anchor=end, **EXACT)
    scene.add_slider("slide", abd.WORLD, "slider", anchor=end, axis=(1, 0, 0), **EXACT)
    return scene


def double_pendulum(h: float, **solver) -> abd.Scene:
    """Create two bars of 1 kg and 1 m, initially horizontal."""
    scene = new_scene(h, **solver)
    for k in range(2):
        cases.link(scene, f"bar{k}", 1.0, (0.01, 0.1, 0.1), (0.5 + k, 0, 0))
        scene.add_hinge(f"pin{k}", f"bar{k - 1}" if k else abd.WORLD, f"bar{k}", anchor=(k, 0, 0), axis=(0, 1, 0), **EXACT)
    return scene


MASSES = (0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498)
INERTIAS = (2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5)
START = (-0.0620, 0.4552, 0.2227, 0.4873, -0.2227, 1.2305)


def seven_bodies(h: float, **solver) -> abd.Scene:
    """Create Andrews' squeezer (Hairer and Wanner 1996, VII.7), which has three planar loops, a motor torque and a spring."""
    d, da, e, ea, rr, ra, ss, sa = 28e-3, 11.5e-3, 20e-3, 14.21e-3, 7e-3, 0.92e-3, 35e-3, 18.74e-3
    sb, sc, sd, ta, tb, u, ua, ub = 10.43e-3, 18e-3, 20e-3, 23.08e-3, 9.16e-3, 40e-3, 12.28e-3, 4.49e-3
    zf, zt, fa = 20e-3, 40e-3, 14.21e-3
    (xa, ya), (xb, yb), (xc, yc) = (-0.06934, -0.00227), (-0.03635, 0.03273), (0.014, 0.072)
    sin, cos = np.sin, np.cos

    def gaps(angles):
        """Return the gaps at the joint of four bodies for theta = 0."""
        beta, gamma, phi, delta, omega, eps = angles
        px, py = (rr - d) * cos(beta), (rr - d) * sin(beta)
        return [
            px - ss * sin(gamma) - xb, py + ss * cos(gamma) - yb,
            px - e * sin(phi + delta) - zt * cos(delta) - xa, py + e * cos(phi + delta) - zt * sin(delta) - ya,
            px - zf * cos(omega + eps) - u * sin(eps) - xa, py - zf * sin(omega + eps) + u * cos(eps) - ya,
        ]  # fmt: skip

    b, g, p, dl, o, ep = fsolve(gaps, START, xtol=1e-14)
    centres = (
        (ra * cos(b), ra * sin(b)),
        (rr * cos(b) - da * cos(b), rr * sin(b) - da * sin(b)),
        (xb + sa * sin(g) + sb * cos(g), yb - sa * cos(g) + sb * sin(g)),
        (xa + zt * cos(dl) + (e - ea) * sin(p + dl), ya + zt * sin(dl) - (e - ea) * cos(p + dl)),
        (xa + ta * cos(dl) - tb * sin(dl), ya + ta * sin(dl) + tb * cos(dl)),
        (xa + u * sin(ep) + (zf - fa) * cos(o + ep), ya - u * cos(ep) + (zf - fa) * sin(o + ep)),
        (xa + ua * sin(ep) - ub * cos(ep), ya - ua * cos(ep) - ub * sin(ep)),
    )
    scene = new_scene(h, (0.0, 0.0, 0.0), **solver)
    for k, (mass, inertia, centre) in enumerate(zip(MASSES, INERTIAS, centres)):
        cases.link(scene, f"b{k}", mass, (inertia,) * 3, (*centre, 0.0), torque=(0, 0, 0 if k else 0.033))
    common = ((rr - d) * cos(b), (rr - d) * sin(b))
    places = {
        ("world", "b0"): (0.0, 0.0), ("b0", "b1"): (rr * cos(b), rr * sin(b)), ("world", "b2"): (xb, yb),
        ("world", "b4"): (xa, ya), ("b4", "b3"): (xa + zt * cos(dl), ya + zt * sin(dl)), ("world", "b6"): (xa, ya),
        ("b6", "b5"): (xa + u * sin(ep), ya - u * cos(ep)), **{("b1", f"b{k}"): common for k in (2, 3, 5)},
    }  # fmt: skip
    for k, (ends, place) in enumerate(places.items()):
        scene.add_hinge(f"j{k}", *ends, anchor=(*place, 0.0), axis=(0, 0, 1), **EXACT)
    tip = (xb + sd * cos(g) + sc * sin(g) - centres[2][0], yb + sd * sin(g) - sc * cos(g) - centres[2][1], 0.0)
    ends = {"parent_anchor": (xc, yc, 0.0), "child_anchor": tip}
    scene.add_spring("spring", abd.WORLD, "b2", stiffness=4530.0, rest_length=77.85e-3, **ends)
    return scene


def governor(h: float, **solver) -> abd.Scene:
    """Create a governor: a shaft at 2 pi rad/s, two arms, a collar on a slider, and springs between collar and arms."""
    spin, tilt, scene = np.array([0.0, 0.0, 2.0 * np.pi]), np.radians(30.0), new_scene(h, **solver)
    cases.link(scene, "shaft", 2.0, (0.02, 0.02, 0.04), (0.0, 0.0, 0.25), angular_velocity=spin)
    cases.link(scene, "collar", 1.0, (0.002, 0.002, 0.004), (0.0, 0.0, 0.15), angular_velocity=spin)
    scene.add_hinge("bearing", abd.WORLD, "shaft", anchor=(0, 0, 0), axis=(0, 0, 1), **EXACT)
    scene.add_slider("guide", "shaft", "collar", anchor=(0, 0, 0.15), axis=(0, 0, 1), **EXACT)
    for name, side in (("right", 1.0), ("left", -1.0)):
        hinge, down = np.array([0.05 * side, 0.0, 0.5]), np.array([side * np.sin(tilt), 0.0, -np.cos(tilt)])
        place, along = hinge + 0.35 * down, rotation_about((0, 1, 0), -np.arctan2(down[2], down[0]))
        motion = {"quaternion": quaternion(along), "velocity": np.cross(spin, place), "angular_velocity": spin}
        cases.link(scene, name, 1.0, (0.002, 0.02, 0.02), place, **motion)
        scene.add_hinge(f"{name} hinge", "shaft", name, anchor=hinge, axis=(0, 1, 0), **EXACT)
        ends = {"parent_anchor": (-0.1, 0, 0), "child_anchor": (0.03 * side, 0, 0)}
        scene.add_spring(f"{name} spring", name, "collar", stiffness=1000.0, rest_length=0.2, **ends)
    return scene


def top(h: float, spin: float = 150.0, **solver) -> abd.Scene:
    """Create a symmetric top of 1 kg, tilted by 0.5 rad, whose tip is 0.5 m from its centre of mass."""
    R, scene = rotation_about((0, 1, 0), 0.5), new_scene(h, **solver)
    place = {"position": 0.5 * R[:, 2], "quaternion": quaternion(R), "angular_velocity": spin * R[:, 2]}
    cases.link(scene, "top", 1.0, (0.05, 0.05, 0.02), **place)
    scene.add_spherical("tip", abd.WORLD, "top", anchor=(0, 0, 0), **EXACT)
    return scene


def whirling(turn: float, inertia: float = 0.01, **solver) -> abd.Scene:
    """Create a body of 1 kg, 0.5 m from a hinge, about which it turns by `turn` [rad] in a step of 10 ms."""
    scene = new_scene(0.01, **solver)
    motion = {"velocity": (0, 0, -50.0 * turn), "angular_velocity": (0, 100.0 * turn, 0)}
    cases.link(scene, "body", 1.0, (inertia,) * 3, (0.5, 0, 0), **motion)
    scene.add_hinge("pivot", abd.WORLD, "body", anchor=(0, 0, 0), axis=(0, 1, 0), **EXACT)
    return scene


def stiff_springs(h: float, **solver) -> abd.Scene:
    """Create a pendulum of two links of 10 g and a ball of 1 kg, with springs of 1e4 and 1e5 N/m to the world."""
    scene, before = new_scene(h, **solver), abd.WORLD
    parts = (("first", 0.01, (1e-6, 1e-5, 1e-5), 0.1), ("second", 0.01, (1e-6, 1e-5, 1e-5), 0.3), ("ball", 1.0, (1e-3,) * 3, 0.4))
    for k, (name, mass, inertia, x) in enumerate(parts):
        cases.link(scene, name, mass, inertia, (x, 0, 0))
        scene.add_hinge(f"hinge{k}", before, name, anchor=(0.2 * k, 0, 0), axis=(0, 1, 0), **EXACT)
        before = name
    for name, x, stiffness, length in (("second", 0.3, 1e4, 0.3), ("ball", 0.6, 1e5, np.hypot(0.2, 0.3))):
        ends = {"parent_anchor": (x, 0, 0.3), "child_anchor": (0, 0, 0)}
        scene.add_spring(f"spring {name}", abd.WORLD, name, stiffness=stiffness, rest_length=length, **ends)
    return scene


def energies(simulation: abd.Simulation, steps: int) -> np.ndarray:
    """Return the conserved energy [J] after each step (steps,)."""
    reports = (simulation.step() for _ in range(steps))
    return np.array([sum(report.energy[name] for name in CONSERVED) for report in reports])
