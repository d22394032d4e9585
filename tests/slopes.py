"""A body on a slope."""

from math import cos, degrees, sin

import numpy as np

import abd


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
