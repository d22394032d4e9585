"""Scenes for tests of worlds, and worlds that fail."""

from __future__ import annotations

import numpy as np

import abd
from abd.errors import StepFailure
from abd.step import substep


def pile(speed: float = 0.0) -> abd.Scene:
    """Three boxes that fall askew upon one another, and a pendulum with a drive."""
    scene = abd.Scene(solver={"dt": 0.01})
    scene.add_body("ground", half_space={})
    for k in range(3):
        turn = {"axis": (1, k, 2), "degrees": 20 * k}
        place = {"position": (0.02 * k, 0, 0.09 + 0.17 * k), "axis_angle": turn}
        scene.add_body(f"box{k}", box=(0.1,) * 3, velocity=(speed, 0, 0), **place)
    scene.add_body("rod", box=(0.5, 0.05, 0.05), position=(2.25, 0, 1))
    drive = {"mode": "pd", "target": 1.0, "stiffness": 5.0, "damping": 0.5}
    scene.add_hinge("pivot", abd.WORLD, "rod", anchor=(2, 0, 1), axis=(0, 1, 0), coordinate={"theta": {"drive": drive}})
    return scene


def tumbling(k: int = 0, boxes: int = 3) -> abd.Scene:
    """Boxes that are thrown upon one another, rough and a little elastic; every k another throw."""
    scene = abd.Scene(solver={"dt": 0.01, "tolerance": 1e-3})
    scene.add_material("default", mu=0.4, restitution=0.2)
    scene.add_body("ground", half_space={})
    for b in range(boxes):
        turn = {"axis": (1, b, 2), "degrees": 20 * b + 7 * k}
        place = (0.03 * b * (1 + 0.1 * k), 0.01 * k, 0.09 + 0.17 * b + 0.004 * k)
        thrown = {"velocity": (0.3 * k, 0.1 * k, -0.2 * k), "position": place, "axis_angle": turn}
        scene.add_body(f"box{b}", box=(0.1,) * 3, density=1000, **thrown)
    return scene


def side_by_side(scenes: list[abd.Scene], device: str) -> abd.Simulation:
    """Scenes that differ in how their bodies begin, as worlds of one."""
    out = scenes[0].replicate(len(scenes))
    for world, alone in enumerate(scenes):
        for body in alone.spec.body:
            one = out.body(f"w{world}_{body.name}")
            one.velocity, one.position, one.axis_angle = body.velocity, body.position, body.axis_angle
    return abd.Simulation(out, device=device)


def without_a_way(monkeypatch, *worlds: int) -> None:
    """Let every minimisation fail in which bodies of these worlds take part."""
    solve = substep.solve_step

    def refuse(backend, *rest):
        failing = np.isin(backend.model.bodies.world, worlds) & ~backend.idle.absent & backend.idle.mobile
        if failing.any():
            raise StepFailure("not_converged", "no way", islands=failing)
        return solve(backend, *rest)

    monkeypatch.setattr(substep, "solve_step", refuse)
