"""Contacts over many steps: friction holds, a cradle keeps its energy, a ball rolls in a trough of triangles as on a cylinder."""

from math import cos, pi, sin, sqrt, tan

import numpy as np
import pytest

import abd

pytestmark = pytest.mark.slow
G = 9.81


def test_a_box_near_the_angle_of_friction_stays_for_a_hundred_seconds():
    slope = 0.5
    normal, downhill = np.array([sin(slope), 0.0, cos(slope)]), np.array([cos(slope), 0.0, -sin(slope)])
    scene = abd.Scene()
    scene.add_material("default", mu=tan(slope) / 0.95)
    scene.add_body("slope", half_space={"normal": tuple(normal)})
    turn = {"axis": (0.0, 1.0, 0.0), "degrees": float(np.degrees(slope))}
    scene.add_body("box", box=(0.2, 0.2, 0.2), position=tuple(0.1004 * normal), axis_angle=turn)
    sim, places = abd.Simulation(scene, device="cpu"), []
    for _ in range(10_000):
        sim.step()
        places.append(sim.bodies["box"].position @ downhill)
    assert np.ptp(places) < 1e-6


def test_a_cradle_of_five_balls_keeps_its_energy_for_ten_swings():
    length, radius, angle, h = 0.3, 0.025, 0.4, 1e-3
    scene = abd.Scene(solver={"dt": h, "tolerance": 1e-4})
    scene.add_material("default", restitution=1.0)
    for k in range(5):
        x, a = (2.0 * radius + 1e-4) * k, angle if k == 0 else 0.0
        place = {"position": (x - length * sin(a), 0.0, -length * cos(a)), "density": 7800.0}
        turn = {"axis": (0.0, 1.0, 0.0), "degrees": float(np.degrees(a))}
        scene.add_body(f"ball{k}", sphere={"radius": radius}, axis_angle=turn, **place)
        hinge = {"anchor": (x, 0.0, 0.0), "axis": (0.0, 1.0, 0.0), "enforcement": "exact"}
        scene.add_hinge(f"string{k}", abd.WORLD, f"ball{k}", **hinge)
    sim = abd.Simulation(scene, device="cpu")
    lowest, energies = -float(sim.model.bodies.mass.sum()) * G * length, []
    for _ in range(round(20.0 * pi * sqrt(length / G) / h)):
        energy = sim.step().energy
        energies.append(energy["kinetic"] + energy["gravity"] + energy["elastic"] - lowest)
    assert energies[-1] > 0.95 * energies[0] and max(energies) < (1.0 + 1e-9) * energies[0]


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
