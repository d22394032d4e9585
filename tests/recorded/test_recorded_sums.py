"""Contact and friction where launches are recorded: the same bits as where the host counts, and nothing else is kept.

A record is made at one pose and replayed at others, among them some with more, fewer and no contacts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import warp as wp
from contact_models import random_path
from contact_on_device import Kernels, upload_path
from on_device import DEVICE, NAME, assert_close, pose_of

import abd
from abd.backends.device.device import Device
from abd.backends.warp.iterate import Iterate
from abd.backends.warp.terms import reduction
from abd.model import Model
from cuda_kernels.bodies import poses

pytestmark = pytest.mark.device

D_HAT, EPS = 0.02, 1e-3
SIDE, FLOOR = 3, 0


def pile() -> Model:
    """27 boxes half of d_hat apart, in three layers on a half-space, with friction."""
    scene = abd.Scene(solver={"d_hat": D_HAT})
    scene.add_material("wood", mu=0.4)
    scene.add_body("floor", half_space={"normal": [0, 0, 1], "offset": 0.0}, material="wood")
    for k, (i, j, layer) in enumerate(np.ndindex(SIDE, SIDE, SIDE)):
        place = (1.0 + 0.5 * D_HAT) * np.array([i, j, layer]) + [0, 0, 0.5 + 0.5 * D_HAT]
        scene.add_body(f"box {k}", box=[1, 1, 1], position=place.tolist(), material="wood")
    return scene.compile()


MODEL = pile()


def spread(factor: float, above: int = 0) -> np.ndarray:
    """States of the bodies with the distances of those from number `above` on multiplied by a factor; 1 is the pile."""
    q = MODEL.bodies.q.copy()
    q[1 + above :, :3] *= factor
    return q


CROWDED, WIDE, HALF = spread(1.0), spread(1.0 + 2.0 * D_HAT), spread(1.0 + 2.0 * D_HAT, 14)
"""All contacts, none, and those among the first half of the boxes."""


def path_from(q: np.ndarray, seed: int, motion: float):
    """A path on which everything moves at random."""
    return random_path(replace(MODEL, bodies=replace(MODEL.bodies, q=q)), seed, motion, motion)


class Sums:
    """Contact and friction of the pile on one device, with the arrays that they read and add to."""

    def __init__(self, records: bool, one_by_one: bool | None = None):
        self.device = Device(NAME, records)
        # the list serves all poses
        self.kernels = Kernels(MODEL, path_from(CROWDED, 0, 0.2 * D_HAT), self.device, one_by_one)
        self.contacts, self.friction, n = self.kernels.contacts, self.kernels.friction, len(MODEL.bodies)
        self.n, self.pose, self.rest = n, pose_of(CROWDED), pose_of(spread(1.0005))
        self.gradient, self.diagonal = DEVICE.zeros((n, 12), wp.float64), DEVICE.zeros((n, 12, 12), wp.float64)
        self.at, self.ch2 = Iterate(self.pose, rest=self.rest), DEVICE.upload(np.ones(n), wp.float64)
        self.friction.set_eps(EPS)
        self.contacts.evaluate(self.at, "current")
        self.friction.lag(self.at, self.pose)

    def move(self, q: np.ndarray) -> None:
        """Other contents of the same arrays."""
        DEVICE.launch(poses.unpack, self.n, DEVICE.upload(q, wp.float64), self.pose)

    def compute(self) -> None:
        """What an iteration takes from contact and friction; may be recorded."""
        self.contacts.evaluate(self.at, "current")
        self.friction.evaluate(self.at, "current")
        self.contacts.linearize(self.pose)
        self.friction.linearize(self.at)
        for part in (self.contacts, self.friction):
            part.reduce(self.gradient, self.diagonal)

    def clear(self) -> None:
        self.gradient.zero_()
        self.diagonal.zero_()

    def results(self) -> dict[str, np.ndarray]:
        """Everything that was computed, as far as it means something."""
        read, friction = DEVICE.read, self.friction
        count = self.contacts.candidates.count
        found = {"gradient": read(self.gradient), "diagonal": read(self.diagonal)}
        found["energy"], found["gap"], found["parts"] = (read(array, count) for array in self.contacts.arrays("current"))
        found["friction"] = read(friction.energies("current"), friction.count)
        found["work"] = read(friction.works(self.pose, self.rest, self.rest, self.ch2), friction.count)
        for name, part in (("contact", self.contacts.reduction), ("friction", friction.reduction)):
            found[f"{name} counts"], c = read(part.counts), part.coupling
            pairs, runs = found[f"{name} counts"].tolist()
            found[f"{name} starts"] = read(c.starts)
            found[f"{name} entries"] = read(c.entries, found[f"{name} starts"][-1])
            found |= {f"{name} {key}": read(getattr(c, key), pairs) for key in ("row", "column", "blocks")}
            found |= {f"{name} {key}": read(getattr(part.runs, key), runs) for key in ("pair", "begin", "end")}
        return found


def computed(sums: Sums, q: np.ndarray) -> dict[str, np.ndarray]:
    """Results at a state without a record."""
    sums.move(q)
    sums.clear()
    sums.compute()
    return sums.results()


def assert_same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    """The same bits."""
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def recorded(sums: Sums, call) -> wp.Graph:
    """A graph of what a call launches; it allocates nothing."""
    sums.contacts.follow_list()
    generation = sums.device.generation
    with wp.ScopedCapture(device=sums.device.warp) as capture:
        call()
    assert sums.device.generation == generation
    return capture.graph


@pytest.fixture(scope="module")
def expected() -> list[dict[str, np.ndarray]]:
    """Results at all states where the host counts."""
    sums = Sums(False)
    return [computed(sums, q) for q in (CROWDED, WIDE, HALF)]


def test_the_states_differ(expected):
    crowded, wide, half = (results["contact counts"] for results in expected)
    assert crowded[1] >= crowded[0] > half[0] > 0 and wide[0] == 0
    assert crowded[1] > crowded[0] or DEVICE.wide, "there those that act are listed one by one"
    assert expected[0]["friction counts"][1] > 0 and expected[0]["friction"].any()


def test_without_a_record_the_bits_are_the_same(expected):
    sums = Sums(True)
    for q, results in zip((CROWDED, WIDE, HALF, CROWDED), (*expected, expected[0]), strict=True):
        assert_same(computed(sums, q), results)


@pytest.mark.parametrize("at", [CROWDED, WIDE], ids=["with contacts", "without contacts"])
def test_a_record_gives_the_same_bits_at_other_poses(expected, at):
    sums = Sums(True)
    sums.move(at)
    graph = recorded(sums, sums.compute)
    for q, results in zip((WIDE, CROWDED, HALF, WIDE), (*np.roll(expected, -1)[[0, 2, 1]], expected[1]), strict=True):
        sums.move(q)
        sums.clear()
        wp.capture_launch(graph)
        assert_same(sums.results(), results)


def test_friction_that_is_lagged_anew_needs_no_new_record(expected):
    sums, other = Sums(True), Sums(False)
    graph, generation = recorded(sums, sums.compute), sums.device.generation
    for q in (HALF, WIDE, CROWDED):
        for one in (sums, other):
            one.move(q)
            one.contacts.evaluate(one.at, "current")
            one.friction.lag(one.at, one.pose)
            one.move(HALF)
            one.clear()
        assert sums.device.generation == generation
        wp.capture_launch(graph)
        other.compute()
        assert_same(sums.results(), other.results())
    assert other.friction.count > 0


def test_too_little_room_is_told_and_made(expected, monkeypatch):
    monkeypatch.setattr(reduction, "RESERVED", 1)
    sums = Sums(True)
    part = sums.contacts.reduction
    sums.move(WIDE)
    graph = recorded(sums, sums.compute)
    sums.move(CROWDED)
    wp.capture_launch(graph)
    needed, counts = DEVICE.read(part.needed), DEVICE.read(part.counts)
    assert needed.tolist() == expected[0]["contact counts"].tolist()
    assert counts[0] == part.pair_room < needed[0] and counts[1] <= part.run_room < needed[1]
    column = DEVICE.read(part.coupling.column, counts[0])
    expected_entries = [*range(0, 2 * counts[0], 2), *(2 * np.flatnonzero(column != FLOOR) + 1)]
    entries = DEVICE.read(part.coupling.entries, DEVICE.read(part.coupling.starts)[-1])
    assert sorted(entries) == sorted(expected_entries)
    generation = sums.device.generation
    assert part.make_room(*needed.tolist()) and sums.device.generation > generation
    assert not part.make_room(*needed.tolist())
    graph = recorded(sums, sums.compute)
    sums.clear()
    wp.capture_launch(graph)
    assert_same(sums.results(), expected[0])


@pytest.mark.parametrize("records", [False, True])
def test_item_by_item_the_sums_are_the_same(expected, records):
    """As on CUDA, without and with a record."""
    sums = Sums(records, one_by_one=True)
    graph = recorded(sums, sums.compute) if records else None
    for q, results in zip((CROWDED, HALF, WIDE), (expected[0], expected[2], expected[1]), strict=True):
        found = computed(sums, q)
        if records:
            sums.clear()
            wp.capture_launch(graph)
            assert_same(sums.results(), found)
        for name in ("gradient", "diagonal", "contact blocks", "friction blocks"):
            assert_close(found[name], results[name], 1e-12)
        for name in ("row", "column", "entries"):
            np.testing.assert_array_equal(found[f"contact {name}"], results[f"contact {name}"])


def test_times_of_impact_and_trials_can_be_recorded():
    """Along a path: what stops it, energies at its end from bounds, and the exchange of the slots; likewise with marches that
    are closed up."""
    results = []
    for records, one_by_one in ((False, False), (True, False), (True, True)):
        sums = Sums(records, one_by_one)
        sums.move(HALF)
        course = path_from(HALF, 1, D_HAT)
        path, end = upload_path(course), pose_of(course.state(0.7))
        island, alpha = DEVICE.zeros(sums.n, wp.int32), DEVICE.upload(np.array([0.7]), wp.float64)
        safe = DEVICE.zeros(sums.n, wp.float64)
        sums.friction.evaluate(sums.at, "current")

        def along(sums=sums, path=path, island=island, alpha=alpha, safe=safe, end=end):
            sums.contacts.evaluate(sums.at, "current")
            sums.contacts.times_of_impact(path, island, alpha, safe)
            at = replace(sums.at, trial=end, along=(island, alpha))
            sums.contacts.evaluate(at, "trial")
            sums.friction.evaluate(at, "trial")
            sums.contacts.exchange(at)
            sums.friction.exchange(at)

        if records:
            wp.capture_launch(recorded(sums, along))
        else:
            along()
        read, count, friction = DEVICE.read, sums.contacts.candidates.count, sums.friction
        found = {"safe": read(safe).min(keepdims=True), "gaps": read(sums.contacts.body_gaps())}
        for slot in ("current", "trial"):
            found |= {f"{slot} {k}": read(array, count) for k, array in enumerate(sums.contacts.arrays(slot))}
            found[f"{slot} friction"] = read(friction.energies(slot), friction.count)
        results.append(found)
    for other in results[1:]:
        assert_same(results[0], other)
    assert (results[0]["safe"] < 0.7).any() and (results[0]["current 0"] != results[0]["trial 0"]).any()
    assert (results[0]["current friction"] != results[0]["trial friction"]).any()
