"""The list of candidates over a step: what is kept when it is renewed, in which order, how much room it may take."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import warp as wp
from contact_models import D_HAT, random_path, scene, states
from contact_on_device import upload_path
from on_device import DEVICE, NAME

import abd
from abd.backends.warp.terms.candidates import Candidates
from abd.contact.candidates import contacts, find_candidates
from abd.contact.pair_law import PairLaw
from abd.contact.pairs import body_pairs
from abd.contact.path import standing
from abd.contact.surfaces import Surfaces
from abd.errors import StepFailure
from abd.potentials import contact
from cuda_kernels.parallel import counting, scans

pytestmark = pytest.mark.device


def unlimited(n: int):
    """One island of n bodies, free to follow all of a path."""
    return DEVICE.zeros(n, wp.int32), DEVICE.upload(np.ones(1), wp.float64)


def rows(found: Candidates) -> np.ndarray:
    """(count, 5) bodies and primitives of the candidates, in their order."""
    items = DEVICE.read(found.items, found.count).reshape(-1, 4)
    return np.column_stack([found.pair_list()[items[:, 0]], items[:, 1:]])


def largest_motion(path) -> float:
    """Bound on how far any point moves along a path [m]."""
    return float((np.linalg.norm(path.dp, axis=1) + path.reach).max())


def near_on(model, path) -> set[tuple]:
    """Candidates that come within d_hat at one of many places on a path."""
    surfaces, pairs = Surfaces.of(model), body_pairs(model)
    everything = find_candidates(model, surfaces, pairs, standing(model.bodies.q), 1e6)
    complete = contacts(model, surfaces, pairs, everything)
    near = np.zeros(len(everything), bool)
    for alpha in np.linspace(0.0, 1.0, 20):
        near |= np.sqrt(contact.closest(complete.positions(path.state(alpha)), complete).D) < complete.xi + D_HAT
    found = np.column_stack([pairs.i, pairs.j])[everything.pair]
    named = np.column_stack([found, everything.kind, everything.a, everything.b])[near]
    return {tuple(row) for row in named.tolist()}


def moved(model, q: np.ndarray):
    """The model in another state."""
    return replace(model, bodies=replace(model.bodies, q=q))


@pytest.mark.parametrize("seed", range(3))
def test_a_renewed_list_misses_nothing_and_keeps_what_it_can(seed):
    """Five bodies walk at different speeds; at every turn of the way the list holds all that comes near on it."""
    model = scene([0, 1, 2, 0, 1], states(5, seed, 0.8), radius=np.array([0.0, 0.01, 0.02, 0.0, 0.005]))
    found = Candidates(model, DEVICE, PairLaw(model))
    limits, searched, kept, named = unlimited(5), 0, 0, 0
    found.forget()
    for turn in range(12):
        path = random_path(model, 100 * seed + turn, 0.01, 0.005)
        slow = np.arange(5) >= 2
        for values in (path.dp, path.w, path.S):
            values[slow] *= 0.02
        if found.cover(upload_path(path), largest_motion(path), *limits) and turn:
            numbers = DEVICE.read(found.kept, found.pair_count)
            kept, searched = kept + int((numbers >= 0).sum()), searched + int((numbers < 0).sum())
        listed = {tuple(row) for row in rows(found).tolist()}
        near = near_on(model, path)
        assert near <= listed and len(listed) == found.count
        named += len(near)
        model = moved(model, path.state(1.0))
    assert kept > 0 and searched > 0 and named > 10


def test_the_order_does_not_depend_on_how_the_list_came_about():
    """Pairs by their bodies, candidates by the trees of the meshes: the same after many renewals as in a new list."""
    model = scene([0, 1, 2, 0, 1, 0], states(6, 4, 0.8))
    walked = Candidates(model, DEVICE, PairLaw(model))
    limits = unlimited(6)
    for turn in range(6):
        path = random_path(model, turn, 0.02, 0.01)
        walked.cover(upload_path(path), largest_motion(path), *limits)
        model = moved(model, path.state(1.0))
    path = upload_path(random_path(model, 50, 0.02, 0.01))
    walked.forget()
    fresh = Candidates(model, DEVICE, PairLaw(model))
    for found in (walked, fresh):
        found.build(path, *limits)
    assert walked.travel != fresh.travel
    np.testing.assert_array_equal(rows(walked), rows(fresh))
    pairs = fresh.pair_list()
    assert fresh.count > 50 and (np.lexsort(pairs.T[::-1]) == np.arange(len(pairs))).all()


def test_a_list_without_room_is_refused():
    simulation = abd.Simulation("box_stack", device=NAME)
    simulation.step()
    found = simulation.backend.contacts.candidates
    for room, what in ((100, "body pairs"), (10_000, "primitives near"), (20_000, "candidate contacts")):
        found.most_bytes = room
        with pytest.raises(StepFailure, match=rf"the {what}.* GiB.*solver\.dt") as raised:
            simulation.step()
        assert raised.value.reason == "candidates"
    found.most_bytes = 1 << 30
    assert simulation.step().converged


def test_counts_beyond_32_bits_are_told():
    """Offsets would wrap around; the total that decides on room does not, and nothing is launched over it."""
    counts, sizes = DEVICE.upload(np.full(10_000, 2**20), wp.int32), DEVICE.upload([7, 10_000], wp.int32)
    sums, before, offsets = DEVICE.zeros(40, wp.int64), DEVICE.zeros(40, wp.int32), DEVICE.zeros(10_001, wp.int32)
    totals, found = DEVICE.upload([0, 5, 0], wp.int64), DEVICE.upload([9, 9, 9], wp.int32)
    for which, kind, room in ((1, 0, 2**31 - 1), (0, 1, 7 * 2**20), (0, 2, 7 * 2**20 - 1)):
        lanes = DEVICE.lanes(32)
        DEVICE.launch(counting.chunk_totals, 40 * lanes, lanes, counts, sizes, which, 256, sums)
        DEVICE.launch(
            counting.settle_total, lanes, lanes, sizes, which, 256, sums, kind, room, before, offsets, totals, found
        )  # fmt: skip
        DEVICE.launch(scans.offset_chunks, 40 * lanes, lanes, counts, sizes, which, 256, before, offsets)
    assert DEVICE.read(totals).tolist() == [10_000 * 2**20, 7 * 2**20, 7 * 2**20]
    assert DEVICE.read(found).tolist() == [0, 7 * 2**20, 0]
    assert DEVICE.read(offsets, 8).tolist() == [k * 2**20 for k in range(8)]
