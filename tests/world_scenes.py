"""Scenes for tests of worlds, including steps that fail."""

import numpy as np
import pytest
from common_scenes import on_ground

import abd


def pile(speed: float = 0.0) -> abd.Scene:
    """Create three tilted boxes above each other, and a pendulum with a drive."""
    scene = on_ground(dt=0.01)
    for k in range(3):
        turn = {"axis": (1, k, 2), "degrees": 20 * k}
        place = {"position": (0.02 * k, 0, 0.09 + 0.17 * k), "axis_angle": turn}
        scene.add_body(f"box{k}", box=(0.1,) * 3, velocity=(speed, 0, 0), **place)
    scene.add_body("rod", box=(0.5, 0.05, 0.05), position=(2.25, 0, 1))
    drive = {"mode": "pd", "target": 1.0, "stiffness": 5.0, "damping": 0.5}
    scene.add_hinge("pivot", abd.WORLD, "rod", anchor=(2, 0, 1), axis=(0, 1, 0), coordinate={"theta": {"drive": drive}})
    return scene


def tumbling(k: int = 0, boxes: int = 3) -> abd.Scene:
    """Create boxes with friction and restitution, whose initial states depend on k."""
    scene = on_ground(dt=0.01, tolerance=1e-3)
    scene.add_material("default", mu=0.4, restitution=0.2)
    for b in range(boxes):
        turn = {"axis": (1, b, 2), "degrees": 20 * b + 7 * k}
        place = (0.03 * b * (1 + 0.1 * k), 0.01 * k, 0.09 + 0.17 * b + 0.004 * k)
        state = {"velocity": (0.3 * k, 0.1 * k, -0.2 * k), "position": place, "axis_angle": turn}
        scene.add_body(f"box{b}", box=(0.1,) * 3, density=1000, **state)
    return scene


def heap(seed: int) -> abd.Scene:
    """Create five boxes in random poses above the ground, with friction and restitution."""
    rng = np.random.default_rng(seed)
    scene = on_ground(dt=0.01, tolerance=1e-3)
    scene.add_material("default", mu=0.4, restitution=0.2)
    for k in range(5):
        turn = {"axis": rng.normal(size=3).tolist(), "degrees": float(rng.uniform(0, 40))}
        place = (*rng.uniform(-0.03, 0.03, 2).tolist(), 0.1 + 0.18 * k)
        rng.uniform(-1, 1, 3)  # keep the sequence of poses that the seeds of tests were chosen for
        scene.add_body(f"box{k}", box=(0.1,) * 3, density=1000, position=place, axis_angle=turn)
    return scene


def armed(k: int, wrist: dict, enforcement: str = "exact", **solver) -> abd.Scene:
    """Create two boxes and a driven arm that hits them; initial states and drive depend on k."""
    scene = on_ground(**({"dt": 0.01, "tolerance": 1e-3} | solver))
    scene.add_material("default", mu=0.4, restitution=0.3)
    for b in range(2):
        turn = {"axis": (1, b, 2), "degrees": 20 * b + 3 * k}
        place = {"position": (0.02 * b + 0.01 * k, 0, 0.09 + 0.17 * b), "axis_angle": turn}
        scene.add_body(f"box{b}", box=(0.1,) * 3, density=1000, velocity=(0.4 * k - 0.5, 0, 0), **place)
    scene.add_body("arm", box=(0.3, 0.04, 0.04), density=1000, position=(0.45, 0, 0.3))
    scene.add_body("hand", box=(0.04, 0.04, 0.2), density=1000, position=(0.32, 0, 0.22))
    drive = {"mode": "pd", "target_deg": f"-60*sin({10 + k}*t)", "stiffness": 60.0, "damping": 1.0}
    hinge = {"axis": (0, 1, 0), "enforcement": enforcement}
    scene.add_hinge("shoulder", abd.WORLD, "arm", anchor=(0.6, 0, 0.3), drive=drive, **hinge)
    scene.add_hinge("wrist", "arm", "hand", anchor=(0.32, 0, 0.3), coordinate={"theta": wrist}, **hinge)
    return scene


def side_by_side(
    scenes: list[abd.Scene], device: str, joints: tuple[str, ...] = (), dt: tuple[float, ...] | None = None
) -> tuple[abd.Simulation, list[abd.Simulation]]:
    """Create a simulation whose worlds are scenes, and single runs of these, with time steps `dt` if given.

    The scenes differ in initial states and in the drives of some joints.
    """
    out = scenes[0].replicate(len(scenes))
    for world, single in enumerate(scenes):
        for body in single.spec.body:
            one = out.body(f"w{world}_{body.name}")
            one.velocity, one.position, one.axis_angle = body.velocity, body.position, body.axis_angle
        for name in joints:
            out.joint(f"w{world}_{name}").drive = single.joint(name).drive
    many, alone = abd.Simulation(out, device=device), [abd.Simulation(one, device=device) for one in scenes]
    if dt is not None:
        many.worlds.dt = dt
        for one, step in zip(alone, dt, strict=True):
            one.worlds.dt = step
    return many, alone


def swinging(worlds: int, *fast: int, **solver) -> abd.Scene:
    """Create worlds of two hanging links, some of which are so fast that their steps do not converge."""
    scene = abd.Scene(solver={"dt": 0.01, "max_newton": 2, "retries": 0, **solver})
    hinge = {"axis": (0, 1, 0), "enforcement": "exact"}
    for k, parent in enumerate((abd.WORLD, "link0")):
        scene.add_body(f"link{k}", box=(0.05, 0.05, 0.4), density=1000, position=(0, 0, -0.2 - 0.4 * k))
        scene.add_hinge(f"hinge{k}", parent, f"link{k}", anchor=(0, 0, -0.4 * k), **hinge)
    out = scene.replicate(worlds)
    for world in range(worlds):
        rate, link = 40.0 if world in fast else 0.1, out.body(f"w{world}_link1")
        link.velocity, link.angular_velocity = (-0.2 * rate, 0, 0), (0, rate, 0)
    return out


PD = {"mode": "pd", "target": "sin(5*t)", "stiffness": 50.0, "damping": 2.0}
HINGES = {
    "penalty": {},
    "exact": {"enforcement": "exact"},
    "friction": {"friction": 0.2},
    "limit": {"range": (-1, 0.02)},
    "impact": {"coordinate": {"theta": {"range": (-1, 0.02), "limit_restitution": 0.5}}},
    "drive": {"drive": PD},
    "limited drive": {"drive": PD | {"effort": 0.5}},
    "position drive": {"enforcement": "exact", "drive": {"mode": "position", "target": "sin(5*t)"}},
    "spring": {"coordinate": {"theta": {"stiffness": 30.0, "damping": 0.1}}},
    "rotor": {"armature": 0.1},
    "coupling": {},
}
"""Keys of a hinge that uses one feature of the solver."""
BODIES = {
    "prescribed": {"box": (1, 1, 0.1), "kind": "kinematic", "motion": {"formulas": {"x": "0.02*sin(20*t)"}}},
    "substeps": {"box": (1, 1, 0.01), "kind": "static"},
    "distant": {"box": (2, 2, 2), "position": (1e4, 0, 0)},
}
"""Keys of a body that uses one feature of the solver; a cube falls on it."""


def add_feature(scene: abd.Scene, kind: str, world: int) -> None:
    """Add bodies of a world that use one feature of the solver."""
    for k in range(2 if kind == "coupling" else 1) if kind in HINGES else ():
        rod = scene.add_body(f"rod{k}", box=(0.5, 0.05, 0.05), position=(0.25, k, 2), world=world)
        scene.add_hinge(f"hinge{k}", abd.WORLD, rod, anchor=(0, k, 2), axis=(0, 1, 0), **HINGES[kind])
    if kind == "coupling":
        scene.add_coupling("gear", "hinge0.theta", terms=[{"coordinate": "hinge1.theta", "factor": -2.0}])
    if kind in BODIES:
        height, speed = (0.2, -30.0) if kind == "substeps" else (0.101, 0.0)
        scene.add_body(f"plate{world}", world=world, **BODIES[kind])
        scene.add_body(f"cube{world}", box=(0.1,) * 3, position=(0, 0, height), velocity=(0, 0, speed), world=world)


def with_feature(kind: str) -> abd.Scene:
    """Create a scene of one feature, or of a stack on a slope, of two bodies that fall close to each other, or of a driven arm
    and a ball on a rail."""
    scene = abd.Scene(solver={"dt": 0.005, "tolerance": 5e-4})
    scene.add_material("default", mu=0.4, restitution=0.1)
    if kind == "stack":
        scene.add_body("slope", half_space={"normal": (0.2, 0, 1)})
        turn = {"axis": (0, 1, 0), "degrees": float(np.degrees(np.arctan(0.2)))}
        for k in range(3):
            height = (0.0505 + 0.101 * k) / np.hypot(0.2, 1.0)
            scene.add_body(f"box{k}", box=(0.1,) * 3, position=(0.2 * height, 0, height), axis_angle=turn)
    elif kind == "fall":
        spin = {"axis_angle": {"axis": (1, 2, 3), "degrees": 40}, "angular_velocity": (1, 2, 3)}
        scene.add_body("floor", box=(2, 2, 0.1), kind="static", position=(0, 0, -0.05))
        scene.add_body("box", box=(0.1, 0.2, 0.3), position=(0, 0, 0.2), velocity=(0.5, 0, -1), **spin)
        scene.add_body("ball", sphere={"radius": 0.05}, position=(0.02, 0.03, 0.45))
    elif kind == "arm":
        scene.add_body("arm", box=(0.5, 0.05, 0.05), position=(0.25, 0, 2))
        scene.add_body("hand", sphere={"radius": 0.04}, position=(0.5, 0, 2.3))
        effort = {"friction": 0.2, "drive": PD | {"effort": 5.0}}
        scene.add_hinge("pivot", abd.WORLD, "arm", anchor=(0, 0, 2), axis=(0, 1, 0), enforcement="exact", **effort)
        scene.add_slider("rail", "arm", "hand", anchor=(0.5, 0, 2.3), axis=(0, 0, 1), range=(-2e-4, 0.1))
    else:
        add_feature(scene, kind, world=0)
    return scene


def step_and_compare(many: abd.Simulation, alone: list[abd.Simulation], steps: int) -> list:
    """Take steps after each of which the worlds have the states and times of the single runs; return the reports."""
    reports = []
    for step in range(steps):
        reports.append(many.step())
        states = [one.reshape(len(alone), -1, 12) for one in (many.stepper.q, many.stepper.qd)]
        for world, one in enumerate(alone):
            one.step()
            for found, there in zip(states, (one.stepper.q, one.stepper.qd), strict=True):
                np.testing.assert_array_equal(found[world], there, err_msg=f"step {step}, world {world}")
        np.testing.assert_array_equal(reports[-1].world_time, [one.time for one in alone])
    return reports


def assert_same_work(many: abd.Simulation, alone: list[abd.Simulation], within: dict[str, float]) -> None:
    """Assert that works of all worlds are the sums of those of single runs, by relative tolerances."""
    for name, rel in within.items():
        total = sum(getattr(one.stepper.work, name) for one in alone)
        assert getattr(many.stepper.work, name) == pytest.approx(total, rel=rel, abs=1e-9), name
