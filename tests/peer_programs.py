"""Mechanisms of `peer_mechanisms` as scenes, and their energy."""

import numpy as np
from peer_mechanisms import WORLD, Mechanism
from scipy.spatial.transform import Rotation

import abd


def our_scene(mechanism: Mechanism, h: float, **solver) -> abd.Scene:
    """With exact joints."""
    scene = abd.Scene(gravity=mechanism.gravity, solver={"dt": h, **solver})
    for k, body in enumerate(mechanism.bodies):
        quaternion = np.roll(Rotation.from_matrix(body.rotation).as_quat(), 1)
        motion = {"velocity": tuple(body.velocity), "angular_velocity": tuple(body.spin), "torque": body.torque}
        place = {"position": tuple(body.position), "quaternion": tuple(quaternion)}
        scene.add_body(f"b{k}", proxy=True, mass=body.mass, inertia=body.inertia, **place, **motion)
    names = {WORLD: abd.WORLD} | {k: f"b{k}" for k in range(len(mechanism.bodies))}
    for k, joint in enumerate(mechanism.joints):
        keys = {"anchor": joint.anchor, "enforcement": "exact"}
        if joint.type != "spherical":
            keys["axis"] = joint.axis
        elif not all(joint.constrained):
            keys |= {"constrained": [x for x, held in zip("xyz", joint.constrained) if held], "frame": "world"}
        scene.add_joint(joint.type, f"j{k}", names[joint.parent], names[joint.child], **keys)
    for k, spring in enumerate(mechanism.springs):
        ends = {"parent_anchor": local(mechanism, spring.parent, spring.ends[0])}
        ends["child_anchor"] = local(mechanism, spring.child, spring.ends[1])
        keys = {"rest_length": spring.rest, "damping": spring.damping}
        scene.add_spring(f"s{k}", names[spring.parent], names[spring.child], stiffness=spring.stiffness, **ends, **keys)
    return scene


def local(mechanism: Mechanism, body: int, point) -> tuple:
    """A point of the world at the start in the axes of a body."""
    if body == WORLD:
        return tuple(point)
    one = mechanism.bodies[body]
    return tuple(one.rotation.T @ (np.asarray(point) - one.position))


def initial_energy(mechanism: Mechanism) -> float:
    """[J] at the start, as `energies` counts it."""
    bodies = mechanism.bodies
    places, turns = np.array([[body.position for body in bodies]]), np.array([[body.rotation for body in bodies]])
    speeds, spins = np.array([[body.velocity for body in bodies]]), np.array([[b.rotation.T @ b.spin for b in bodies]])
    return float(energies(mechanism, places, turns, speeds, spins)[0][0])


def energies(mechanism: Mechanism, places, turns, speeds, spins) -> tuple[np.ndarray, float]:
    """(t,) energies [J] of bodies, and the largest kinetic one: places (t, n, 3), turns (t, n, 3, 3), spins in body axes."""
    mass = np.array([body.mass for body in mechanism.bodies])
    inertia = np.array([body.inertia for body in mechanism.bodies])
    kinetic = 0.5 * (np.sum(mass * np.sum(speeds**2, axis=2), axis=1) + np.sum(inertia * spins**2, axis=(1, 2)))
    energy = kinetic - np.sum(mass[:, None] * places * mechanism.gravity, axis=(1, 2))
    for spring in mechanism.springs:
        ends = [
            point if body == WORLD else places[:, body] + turns[:, body] @ local(mechanism, body, point)
            for body, point in zip((spring.parent, spring.child), spring.ends)
        ]
        length = np.linalg.norm(np.subtract(*ends), axis=-1)
        energy = energy + 0.5 * spring.stiffness * (length - spring.rest) ** 2
    return energy, float(kinetic.max())
