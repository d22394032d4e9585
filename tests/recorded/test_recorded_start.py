"""Starts of steps on the device: that of the definition to the last bit, with few looks and launches."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from executors import pair, step_both
from executors import simulation as recorded_simulation

import abd
from abd.backends.device import graphs
from abd.backends.device.device import Device
from abd.backends.recorded.start import Start
from abd.backends.reference.start import Start as DefinedStart
from abd.backends.warp.terms import reduction
from abd.step import substep
from abd.step.start import start

SCENES = Path(__file__).parents[2] / "scenes"
ROUNDED, ROUNDING = ("wall", "ragdoll"), 1e-9
"""Where a factor takes in pairs that are near but do not touch, its sums run in another order."""
STEPS = 16
"""With bodies that fall, touch and come to rest."""
LAUNCHES = 80
"""Outside of graphs, in a step without renewals of the list but that at its start."""


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Records replace what they hold at once."""
    monkeypatch.setattr(graphs, "PATIENCE", 1)


def boxes(places, mu: float = 0.4, velocity=(0, 0, 0), **solver) -> abd.Scene:
    """Cubes of 0.2 m at heights above the floor, one stack for each list."""
    scene = abd.Scene(solver={"dt": 0.01, "d_hat": 1e-3, "linear_solver": "direct", **solver})
    scene.add_material("stone", mu=mu)
    scene.add_body("floor", half_space={}, material="stone")
    for k, stack in enumerate(places):
        for i, z in enumerate(stack):
            scene.add_body(
                f"box {k} {i}",
                box=[0.2, 0.2, 0.2],
                position=[0.5 * k, 0.01 * i, z],
                material="stone",
                velocity=velocity,
            )
    return scene


def stack(**keys) -> abd.Scene:
    return boxes([[0.1005, 0.301, 0.5015, 0.702]], **keys)


def wall() -> abd.Scene:
    """A loose wall, and a cube that hits it."""
    scene = boxes([[0.1005, 0.301, 0.5015], [0.1005, 0.301]])
    scene.add_body("ball", box=[0.15, 0.15, 0.15], position=[-0.4, 0, 0.3], material="stone", velocity=(6, 0, 1))
    return scene


def moved() -> abd.Scene:
    """A kinematic plate under a stack."""
    scene = boxes([[0.31, 0.512]])
    motion = {"velocity": [0.3, 0, 0.25]}
    scene.add_body(
        "plate", box=[0.4, 0.4, 0.1], position=[0, 0, 0.15], material="stone", kind="kinematic", motion=motion
    )
    return scene


def links(count: int = 6, **keys) -> abd.Scene:
    """Bars on hinges about y, horizontal at first."""
    scene = abd.Scene(solver={"dt": 0.01})
    for k in range(count):
        scene.add_body(f"bar{k}", box=(1, 0.1, 0.1), mass=1.0, position=(k + 0.5, 0, 0))
        parent = f"bar{k - 1}" if k else "world"
        scene.add_hinge(f"hinge{k}", parent, f"bar{k}", anchor=(k, 0, 0), axis=(0, 1, 0), **keys)
    return scene


def shipped(name: str):
    return lambda: abd.load(SCENES / f"{name}.toml")


MAKERS = {
    "stack": stack,
    "without friction": lambda: stack(mu=0.0),
    "friction lagged thrice": lambda: stack(friction_iterations=3),
    "given stiffness": lambda: stack(contact_stiffness=1e6),
    "falling apart": lambda: boxes([[0.15, 0.4], [0.3], [0.102, 0.303]], velocity=(1, 0, -2)),
    "wall": wall,
    "moved": moved,
    "asleep": lambda: boxes([[0.1005, 0.301], [0.6]], sleep_speed=0.05, sleep_time=0.03),
    "chain": links,
    "chain with limits": lambda: links(3, range=(-0.3, 0.2)),
    "ragdoll": shipped("ragdoll"),
    "bridge of ropes": shipped("rope_bridge"),
}


def follow_starts(scene, steps: int, within: float = 0.0) -> list[tuple[int, int]]:
    """Steps of both, whose starts are the same to the last bit, or to `within` [m] where linear solves round differently;
    how many paths and trials the starts by the definition took."""
    direct, recorded = pair(scene)
    direct.backend.start = DefinedStart(direct.backend)
    direct.backend.whole = recorded.backend.whole = None  # a step in one piece starts by itself
    taken = []
    for _ in range(steps):
        found = []

        def noted(backend, *arguments, found=found):
            with (
                patch.object(backend.arcs, "follow_velocity", wraps=backend.arcs.follow_velocity) as follow,
                patch.object(backend.arcs, "try_step", wraps=backend.arcs.try_step) as trial,
            ):
                start(backend, *arguments)
            found.append((backend.states.read_positions(), (follow.call_count, trial.call_count)))

        with patch.object(substep, "start", noted):
            step_both(direct, recorded, within, counts=())
        assert len(found) % 2 == 0
        half = len(found) // 2
        for (expected, counts), (positions, none) in zip(found[:half], found[half:], strict=True):
            np.testing.assert_allclose(positions, expected, rtol=0.0, atol=within)
            assert none == (0, 0)
            taken.append(counts)
    return taken


@pytest.mark.parametrize("name", MAKERS)
def test_starts_are_those_of_the_definition(name):
    assert len(follow_starts(MAKERS[name](), STEPS, ROUNDING if name in ROUNDED else 0.0)) >= STEPS


def test_second_paths_and_islands_that_stay_are_met():
    """All branches of a start. Boxes that fall on one another, and one by itself."""
    falling = boxes([[0.103, 0.306, 0.509, 0.712], [0.15]])
    assert {(1, 1), (1, 2), (2, 2), (2, 3)} <= set(follow_starts(falling, STEPS, ROUNDING))


def test_a_second_path_that_needs_another_list():
    """What is fast leaves even the largest margin."""
    with patch.object(Start, "_go_on", autospec=True, side_effect=Start._go_on) as gone_on:
        follow_starts(wall(), STEPS, ROUNDING)
    assert gone_on.called


@pytest.mark.parametrize("short", ["frozen contacts", "pairs of frozen contacts", "pairs in contact"])
def test_a_start_without_room_makes_it(short, monkeypatch):
    direct, recorded = pair(stack())
    for _ in range(3):
        step_both(direct, recorded)
    backend = recorded.backend
    friction, contacts = backend.friction, backend.contacts
    part = friction if short == "frozen contacts" else (friction if "frozen" in short else contacts).reduction
    if part is friction:
        friction.pool._arrays.pop("load")
    else:
        monkeypatch.setattr(reduction, "RESERVED", 1)
        part.pair_room = part.run_room = 1
    # records anew, as launches that are not recorded make room themselves
    monkeypatch.setattr(backend.iteration.graphs, "patience", 0)
    backend.device.generation += 1
    make_room, made = part.make_room, []

    def making(*numbers):
        made.append(numbers)
        # the arrays were long enough
        backend.device.generation += 1
        return make_room(*numbers)

    with patch.object(part, "make_room", making):
        step_both(direct, recorded)
    assert 1 <= len(made) <= 2


class Counted:
    """Reads of a device, and launches outside of graphs."""

    def __init__(self, device: Device):
        self.reads = self.launches = 0
        self.device = device

    def __enter__(self) -> Counted:
        read, launch = self.device.read, self.device.launch

        def reading(*arguments):
            self.reads += 1
            return read(*arguments)

        def launching(*arguments, **keys):
            self.launches += 1
            launch(*arguments, **keys)

        self._patches = patch.object(self.device, "read", reading), patch.object(self.device, "launch", launching)
        for one in self._patches:
            one.start()
        return self

    def __exit__(self, *_) -> None:
        for one in self._patches:
            one.stop()


WAY = 60
"""Launches of the proof of a way."""


@pytest.mark.parametrize(
    ("name", "around"), [("stack", 26), ("without friction", 22), ("chain", 12), ("chain with limits", 13)]
)
def test_what_a_step_reads_and_launches(name, around):
    """The motion and the list of the start, its status, the pairs of the list for the linear solver, an iteration each,
    and figures; gaps of joints once; six for the proof of the way; who is struck, at the start and the end; gaps of pairs in
    contact; loads of friction; twice what jumps, where contacts last; velocities and states, for impacts; with angles that
    count turns, one more in each iteration."""
    simulation = recorded_simulation(MAKERS[name](), True)
    each = 2 if simulation.stepper.joints.counts_turns else 1
    for _ in range(40):
        simulation.step()
    for _ in range(3):
        iteration = simulation.backend.iteration
        with (
            Counted(simulation.backend.device) as counted,
            patch.object(iteration, "_renew", wraps=iteration._renew) as again,
        ):
            report = simulation.step()
        assert counted.reads <= around + each * report.newton_iterations + 2 * again.call_count
        assert counted.launches <= LAUNCHES * (1 + again.call_count) + WAY
