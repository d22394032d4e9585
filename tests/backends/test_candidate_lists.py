"""Candidate lists within a step: reuse at renewal, order, capacity."""

from dataclasses import replace

import numpy as np
import pytest
import warp as wp
from contact_models import near_on, random_path, scene, states
from contact_on_device import upload_path
from on_device import DEVICE, NAME

import abd
from abd.backends.warp.terms.candidates import Candidates
from abd.contact.pair_law import PairLaw
from abd.contact.pairs import body_pairs
from abd.errors import StepFailure

pytestmark = pytest.mark.device


def unlimited(n: int):
    """One island of n bodies, free to follow all of a path."""
    return DEVICE.zeros(n, wp.int32), DEVICE.upload(np.ones(1), wp.float64)


def rows(found: Candidates) -> np.ndarray:
    """(count, 5) bodies and primitives of the candidates, in their order."""
    items = DEVICE.read(found.items, found.count).reshape(-1, 4)
    return np.column_stack([found.pair_list()[items[:, 0]], items[:, 1:]])


def largest_motion(path):
    """Bound on how far any point moves along a path [m], of one island."""
    return DEVICE.upload([(np.linalg.norm(path.dp, axis=1) + path.affine_speed).max()], wp.float64)


def moved(model, q: np.ndarray):
    """The model in another state."""
    return replace(model, bodies=replace(model.bodies, q=q))


@pytest.mark.parametrize("seed", range(3))
def test_a_renewed_list_is_complete_and_reuses_earlier_pairs(seed):
    """The list contains all close pairs of five bodies that move at different speeds, in all steps."""
    model = scene([0, 1, 2, 0, 1], states(5, seed, 0.8), radius=np.array([0.0, 0.01, 0.02, 0.0, 0.005]))
    found = Candidates(model, DEVICE, PairLaw(model))
    limits, covered, searched, kept, named = unlimited(5), DEVICE.zeros(1, wp.int32), 0, 0, 0
    found.forget()
    for turn in range(12):
        path = random_path(model, 100 * seed + turn, 0.01, 0.005)
        slow = np.arange(5) >= 2
        for values in (path.dp, path.w, path.S):
            values[slow] *= 0.02
        arcs, motion = upload_path(path), largest_motion(path)
        found.test_cover(arcs, motion, *limits, covered)
        if is_renewed := not DEVICE.read(covered)[0]:
            found.renew(arcs, float(DEVICE.read(motion)[0]), *limits)
        if is_renewed and turn:
            numbers = DEVICE.read(found.kept, found.pair_count)
            kept, searched = kept + int((numbers >= 0).sum()), searched + int((numbers < 0).sum())
        listed = {tuple(row) for row in rows(found).tolist()}
        pairs = body_pairs(model)
        near = {(pairs.i[pair], pairs.j[pair], *rest) for pair, *rest in near_on(model, path, 20).tolist()}
        assert near <= listed and len(listed) == found.count
        named += len(near)
        model = moved(model, path.samples(np.array([1.0]))[0])
    assert kept > 0 and searched > 0 and named > 10


def test_list_beyond_its_memory_limit_is_refused():
    simulation = abd.Simulation("box_stack", device=NAME)
    simulation.step()
    found = simulation.backend.contacts.candidates
    for capacity, what in ((100, "body pairs"), (20_000, "primitives near")):
        found.most_bytes = capacity
        with pytest.raises(StepFailure, match=rf"the {what}.* GiB.*solver\.dt") as raised:
            simulation.step()
        assert raised.value.reason == "candidates"
    found.most_bytes = 1 << 30
    assert simulation.step().converged
