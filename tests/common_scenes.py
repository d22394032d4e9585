"""Scenes that tests of several folders use."""

from math import cos, degrees, sin

import numpy as np

import abd
from abd.errors import Problem
from abd.model import Model
from abd.scene.overlaps.intersections import Surveyor
from abd.scene.overlaps.separation import overlap_problems


def overlaps(model: Model) -> list[Problem]:
    """Return the overlaps at the start as problems."""
    surveyor, q = Surveyor(model), model.bodies.q
    return overlap_problems(surveyor, q, surveyor.survey(q), "at t = 0")


def on_ground(mu: float | None = None, name: str = "scene", body: str = "ground", restitution=None, **settings) -> abd.Scene:
    """Create a scene with a half-space, the body "ground", and the friction and restitution of all bodies.

    `settings` are the gravity and keys of the solver."""
    gravity = {"gravity": settings.pop("gravity")} if "gravity" in settings else {}
    scene = abd.Scene(name, solver=settings, **gravity)
    given = {key: value for key, value in (("mu", mu), ("restitution", restitution)) if value is not None}
    if given:
        scene.add_material("default", **given)
    scene.add_body(body, half_space={})
    return scene


def hinged_bars(count: int, enforcement: str = "exact", solver: dict | None = None, **keys) -> abd.Scene:
    """Create bars of 1 m and 1 kg, horizontal at the start, on hinges about y with these keys; the first hangs on the world."""
    scene = abd.Scene(solver={"dt": 0.01, **(solver or {})})
    keys |= {"axis": (0, 1, 0), "enforcement": enforcement}
    keys |= {"linear_compliance": 1e-6, "rotary_compliance": 1e-6} if enforcement == "compliant" else {}
    for k in range(count):
        scene.add_body(f"bar{k}", box=(1, 0.1, 0.1), mass=1.0, position=(k + 0.5, 0, 0))
        scene.add_hinge(f"hinge{k}", f"bar{k - 1}" if k else "world", f"bar{k}", anchor=(k, 0, 0), **keys)
    return scene


def every_law(**solver) -> abd.Scene:
    """Create bodies of both elasticities under forces and couples, a static one, and joints and springs with every law."""
    scene = abd.Scene(gravity=(0.3, -0.2, -9.81), solver={"dt": 0.01, **solver})
    for k in range(7):
        motion = {"velocity": (0.1 * k, 0.2, 0.0), "angular_velocity": (0.3, -0.2 * k, 0.5)}
        elastic = {"elasticity": "arap"} if k % 2 else {}
        loads = {"force": (1.0, 2.0, -0.5 * k), "torque": (0.02, -0.01, 0.03)}
        scene.add_body(f"b{k}", box=(0.4, 0.2, 0.1), position=(1.0 * k, 0, 0), **motion, **elastic, **loads)
    scene.add_body("wall", box=(1, 1, 1), position=(0, 5, 0), kind="static")

    def joint(kind, k, coordinate, enforcement="penalty", **keys):
        ends = {"anchor": (k - 0.5, 0, 0), "axis": (0, 1, 0), "enforcement": enforcement, **keys}
        getattr(scene, f"add_{kind}")(f"{kind}{k}", f"b{k - 1}", f"b{k}", **ends, coordinate=coordinate)

    pd = {"mode": "pd", "target": "0.2*sin(5*t)", "stiffness": 50.0, "damping": 2.0, "effort": 0.4}
    joint("hinge", 1, {"theta": {"range": (-0.02, 0.5), "friction": 0.1, "drive": pd, "armature": 0.02}})
    joint("hinge", 2, {"theta": {"drive": {"mode": "velocity", "target": 0.7}, "stiffness": 3.0, "damping": 0.2}}, "exact")
    compliant = {"limit": "compliant", "limit_compliance": 1e-2, "limit_damping": 4.0}
    joint("hinge", 3, {"theta": {"range": (-0.001, 0.001), **compliant, "drive": {"mode": "force", "target": 0.3}}})
    joint("slider", 4, {"z": {"range": (-0.3, 0.4), "friction": 1.0}}, "exact")
    joint("hinge", 5, {"theta": {"drive": {"mode": "brake", "effort": 0.2}}}, "compliant", compliance=1e-4)
    scene.add_rope("rope", "b5", "b6", parent_anchor=(0, 0, 0.05), child_anchor=(0, 0, 0.05), distance=1.01)
    for name, damping in (("spring", 0.0), ("damped spring", 3.0)):
        ends = {"parent_anchor": (0, 0.1, 0), "child_anchor": (0, -0.1, 0.05), "rest_length": 5.5}
        scene.add_spring(name, "b0", "b6", stiffness=300.0, damping=damping, **ends)
    return scene


def sleepers(start: float = -2.0, **solver) -> abd.Scene:
    """Create two boxes at rest on the ground, far apart, and one on a rail from x = `start` that meets the first at 4 m/s."""
    scene = on_ground(0.5, **({"dt": 0.01, "d_hat": 1e-3, "sleep_speed": 2e-3, "sleep_time": 0.1} | solver))
    for name, x in (("near", 0.0), ("far", 40.0)):
        scene.add_body(name, box=[0.5, 0.5, 0.5], position=[x, 0, 0.2505])
    rail = ["y", "z", "rx", "ry", "rz"]
    scene.add_body("runner", box=[0.5, 0.5, 0.5], position=[start, 0, 0.5], velocity=[4, 0, 0], fix=rail)
    return scene


def squares(n: int, width: float = 1.0) -> dict:
    """Create a flat surface of n^2 squares of two triangles, with its centre at the origin."""
    x = np.linspace(-0.5, 0.5, n + 1) * width
    starts = [i * (n + 1) + j for i in range(n) for j in range(n)]
    triangles = [t for a in starts for b in (a + n + 1,) for t in ((a, b, b + 1), (a, b + 1, a + 1))]
    return {"vertices": [(a, b, 0.0) for a in x for b in x], "triangles": triangles}


def on_slope(
    angle: float, mu: float, floor: str | int = "half-space", gap: float = 2e-4, solver: dict | None = None, **body
) -> tuple[abd.Scene, np.ndarray]:
    """Create a scene with "body", a box of 0.2 m unless keys give another shape, at a gap above a slope towards +x.

    Args:
        floor: "half-space", "box", or n for a surface of n^2 squares.

    Returns:
        the scene and the direction downhill (3,).
    """
    scene = abd.Scene(solver=solver)
    scene.add_material("default", mu=mu)
    normal, downhill = np.array([sin(angle), 0.0, cos(angle)]), np.array([cos(angle), 0.0, -sin(angle)])
    turn = {"axis_angle": {"axis": (0.0, 1.0, 0.0), "degrees": degrees(angle)}}
    if floor == "half-space":
        scene.add_body("slope", half_space={"normal": tuple(normal)})
    elif floor == "box":
        scene.add_body("slope", kind="static", box=(4.0, 4.0, 0.2), position=tuple(-0.1 * normal), **turn)
    else:
        scene.add_body("slope", kind="static", surface=squares(floor), **turn)
    place = (0.1 + gap) * normal + (0.0, 0.013, 0.0)
    scene.add_body("body", position=tuple(place), **({"box": (0.2, 0.2, 0.2), **turn} | body))
    return scene, downhill


def pinched(mode: str, **solver) -> abd.Scene:
    """Create a kinematic ram that pushes a box against a wall."""
    scene = abd.Scene(gravity=(0.0, 0.0, 0.0), solver={"kinematic_block": mode, **solver})
    scene.add_body("wall", kind="static", box=(0.1, 1.0, 1.0), position=(0.5, 0.0, 0.0))
    scene.add_body("box", box=(0.1, 0.1, 0.1), position=(0.3, 0.0, 0.0))
    scene.add_body("ram", kind="kinematic", box=(0.2, 0.2, 0.2), motion={"velocity": (1.0, 0.0, 0.0)})
    return scene
