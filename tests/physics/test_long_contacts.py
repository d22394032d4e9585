"""A ball rolls for long in a trough of triangles as on a cylinder."""

from math import cos, pi, sin, sqrt

import numpy as np
import pytest

import abd

pytestmark = pytest.mark.slow
G = 9.81


@pytest.mark.parametrize("facets", [90, 180])
def test_a_ball_rolls_in_a_trough_of_facets_as_in_a_cylinder(facets):
    """Half a period is pi sqrt(7 (R - r) / (5 g)) (1 + a^2 / 16)."""
    R, r, a, width = 0.5, 0.1, 0.3, 0.2
    angle = np.linspace(-pi / 2, pi / 2, facets + 1)
    ring = np.stack([R * np.sin(angle), -R * np.cos(angle)], axis=1).tolist()
    vertices = [(x, y, z) for y in (-width, width) for x, z in ring]
    triangles = [t for k in range(facets) for t in ((k, k + 1, facets + 2 + k), (k, facets + 2 + k, facets + 1 + k))]
    scene = abd.Scene()
    scene.add_material("default", mu=0.8)
    scene.add_body("trough", kind="static", surface={"vertices": vertices, "triangles": triangles})
    away = R - r - 6e-4
    scene.add_body("ball", sphere={"radius": r}, position=(away * sin(a), 0.03, -away * cos(a)))
    sim, x = abd.Simulation(scene, device="cpu"), [away * sin(a)]
    for _ in range(200):
        sim.step()
        x.append(sim.bodies["ball"].position[0])
    passages = [0.01 * (k + x[k] / (x[k] - x[k + 1])) for k in range(200) if x[k] * x[k + 1] < 0.0]
    assert np.diff(passages)[0] == pytest.approx(pi * sqrt(7.0 * (R - r) / (5.0 * G)) * (1.0 + a * a / 16.0), rel=0.02)
