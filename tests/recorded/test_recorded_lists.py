"""The list of candidates where launches are recorded: the same as where the host sizes them, with one read, in arrays
that stay; what it covers is tested and spent in a record."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import warp as wp
from contact_models import random_path, scene, states
from contact_on_device import clear_of_the_plane, upload_path
from on_device import DEVICE

from abd.backends.device.device import Device
from abd.backends.device.upload import new_path
from abd.backends.device.watching.launches import Launches
from abd.backends.warp.terms.candidates import Candidates
from abd.backends.warp.terms.list_rooms import BYTES
from abd.contact.pair_law import PairLaw
from abd.contact.path import standing
from abd.errors import StepFailure

RESIDENT = Device(DEVICE.name, records=True)


def unlimited(n: int):
    """One island of n bodies, free to follow all of a path."""
    return DEVICE.zeros(n, wp.int32), DEVICE.upload(np.ones(1), wp.float64)


def tumbling(turns: int):
    """A model of two tumbling boxes, a tetrahedron and wire among slower ones, and where it goes, turn by turn."""
    model = scene([0, 1, 2, 0, 1, 0], states(6, 1, 0.8), radius=np.array([0.0, 0.01, 0.02, 0.0, 0.005, 0.0]))
    for turn in range(turns):
        path = random_path(model, turn, 0.01, 0.005)
        for values in (path.dp, path.w, path.S):
            values[2:] *= 0.02
        yield model, path
        model = replace(model, bodies=replace(model.bodies, q=path.state(1.0)))


def pile(turns: int):
    """Boxes in layers, so that every one has many neighbours, that settle a little in every turn."""
    side, layers = 3, 4
    x, y, z = np.meshgrid(np.arange(side), np.arange(side), np.arange(layers), indexing="ij")
    q = np.tile(np.concatenate([np.zeros(3), np.eye(3).ravel()]), (side * side * layers, 1))
    q[:, :3] = 1.04 * np.column_stack([x.ravel(), y.ravel(), z.ravel()])
    model = scene([0] * len(q), q)
    for turn in range(turns):
        path = random_path(model, turn, 0.003, 0.002)
        path.dp[:, 2] -= 0.004 * model.bodies.q[:, 2]
        path.dp[::3] *= 0.02
        yield model, path
        model = replace(model, bodies=replace(model.bodies, q=path.state(1.0)))


def contents(found: Candidates) -> dict[str, np.ndarray]:
    """All that a list says."""
    pairs, count = found.pair_count, found.count
    read = DEVICE.read
    return {
        "pairs": read(found.pairs, pairs),
        "items": read(found.items, count),
        "segment": read(found.segment, pairs + 1) if pairs else np.zeros(0),
        "group": read(found.group),
        "left": read(found.left, pairs),
        "kept": read(found.kept, pairs),
        "slack": read(found.slack),
        "searched": read(found.searched),
        "counts": read(found.counts),
    }


@pytest.mark.parametrize("way", [tumbling, pile])
def test_lists_are_the_same_on_the_way(way):
    """Candidates and their order, margins that are left, what is kept: bit for bit, renewal by renewal."""
    lists, kept, renewals = [], 0, 0
    for turn, (model, path) in enumerate(way(10)):
        if not lists:
            lists = [Candidates(model, device, PairLaw(model)) for device in (DEVICE, RESIDENT)]
            # as on CUDA, on any device
            lists[1].batch = lists[1].kinds = 1
        if turn == 6:
            for found in lists:
                found.forget()
        limits = unlimited(len(model.bodies))
        uploaded = upload_path(path)
        motion = float((np.linalg.norm(path.dp, axis=1) + path.reach).max())
        renewed = [found.cover(uploaded, motion, *limits) for found in lists]
        assert renewed[0] == renewed[1]
        for found in lists:
            found.moved(uploaded, motion, *limits)
        here, there = (contents(found) for found in lists)
        for name in here:
            np.testing.assert_array_equal(here[name], there[name], err_msg=name)
        assert here["counts"].tolist() == [lists[0].pair_count, lists[0].count]
        renewals += renewed[0]
        kept += int((here["kept"] >= 0).sum()) if renewed[0] else 0
    assert renewals > 2 and kept > 0 and lists[0].count > 30


def test_bodies_with_many_partners_have_them_in_order():
    """Their pairs are sorted by a thread each: the same as by one thread for all of them."""
    model = scene([0] * 40, states(40, 3, 0.6))
    path, limits = upload_path(standing(model.bodies.q)), unlimited(40)
    expected, found = Candidates(model, DEVICE, PairLaw(model)), Candidates(model, RESIDENT, PairLaw(model))
    found.sorted_alone = 16
    for one in (expected, found):
        one.build(path, *limits)
    many = np.diff(DEVICE.read(found.group))
    assert (many > 30).sum() > 5 and ((many > 12) & (many <= 16)).any() and (many[many > 0] <= 12).any()
    for name, values in contents(expected).items():
        np.testing.assert_array_equal(contents(found)[name], values, err_msg=name)


def test_a_renewal_reads_once_and_keeps_its_arrays():
    """Unless something has to grow; then the passes run again, and records of before are void."""
    model = clear_of_the_plane(0)
    path, limits = upload_path(standing(model.bodies.q)), unlimited(4)
    found = Candidates(model, RESIDENT, PairLaw(model))
    reads = []
    for _ in range(3):
        before = RESIDENT.generation
        rooms = list(found.rooms)
        with Launches(RESIDENT) as launches:
            found.build(path, *limits)
        calls = {work.name: work.calls for work in launches.works()}
        reads.append(calls["host: read"])
        assert "host: scan" not in calls
        assert (found.rooms == rooms) == (reads[-1] == 1)
        if RESIDENT.generation == before:
            assert found.rooms == rooms
    assert reads[0] > 1 and reads[1:] == [1, 1]
    assert found.pair_room >= found.pair_count > 0 and found.room >= found.count > 0
    assert found.pairs.shape[0] >= found.pair_room and found.segment.shape[0] > found.pair_room
    assert found.left.shape[0] >= found.pair_room and found.items.shape[0] >= found.room
    generation = RESIDENT.generation
    found.build(path, *limits)
    assert RESIDENT.generation == generation


def test_a_list_without_room_is_refused_before_it_is_made():
    """With the error that the processor gives, and within the bytes set aside."""
    model = clear_of_the_plane(0)
    path, limits = upload_path(standing(model.bodies.q)), unlimited(4)
    errors = []
    for device in (DEVICE, RESIDENT):
        told = []
        for most in (100, 5_000, 30_000):
            found = Candidates(model, device, PairLaw(model))
            found.most_bytes = most
            rooms = list(found.rooms)
            with pytest.raises(StepFailure, match=r" GiB set aside") as raised:
                found.build(path, *limits)
            assert raised.value.reason == "candidates"
            assert found.count == found.pair_count == 0 and not found.reusable
            taken = sum(size * room for size, room, was in zip(BYTES, found.rooms, rooms, strict=True) if room > was)
            assert taken <= most
            told.append(str(raised.value).split(" of this")[0])
            found.most_bytes = 1 << 30
            found.build(path, *limits)
            assert found.count > 0
        errors.append(told)
    assert errors[0] == errors[1] == ["the body pairs", "the primitives near other bodies", "the candidate contacts"]


def test_what_is_covered_is_tested_and_spent_in_a_record():
    """One record of a test and of a motion, replayed while path, reach and limits change; the host's calls agree."""
    model = clear_of_the_plane(0)
    n = len(model.bodies)
    island = DEVICE.zeros(n, wp.int32)
    limit, covered = DEVICE.upload(np.ones(1), wp.float64), RESIDENT.zeros(1, wp.int32)
    reach, path = RESIDENT.zeros(1, wp.float64), new_path(RESIDENT, n)
    recorded, called = Candidates(model, RESIDENT, PairLaw(model)), Candidates(model, DEVICE, PairLaw(model))
    start = upload_path(standing(model.bodies.q))
    for found in (recorded, called):
        found.build(start, island, limit)
    graphs = []
    for record in (
        lambda: recorded.test_cover(path, reach, reach, island, limit, covered),
        lambda: recorded.spend(path, reach, reach, island, limit),
    ):
        with wp.ScopedCapture(device=RESIDENT.warp) as capture:
            record()
        graphs.append(capture.graph)
    rng, answers = np.random.default_rng(0), []
    wp.capture_launch(graphs[1])
    called.moved(path, 0.0, island, limit)  # along what was searched
    for turn in range(12):
        dp = 0.1 * called.margin * rng.normal(size=(n, 3))
        if turn % 4 == 0:
            dp[:] = dp[0]
        DEVICE.write(path.dp, dp)
        motion = float(np.linalg.norm(dp, axis=1).max())
        DEVICE.write(reach, np.array([motion]))
        DEVICE.write(limit, np.array([0.3 + 0.7 * (turn % 2)]))
        wp.capture_launch(graphs[0])
        answers.append(called.covers(path, motion, island, limit))
        assert DEVICE.read(covered)[0] == answers[-1]
        if answers[-1]:
            wp.capture_launch(graphs[1])
            called.moved(path, motion, island, limit)
        np.testing.assert_array_equal(DEVICE.read(recorded.slack), DEVICE.read(called.slack))
        np.testing.assert_array_equal(
            DEVICE.read(recorded.left, recorded.pair_count), DEVICE.read(called.left, called.pair_count)
        )
    assert any(answers) and not all(answers)
    # a list that was forgotten covers nothing, the shortest way included
    recorded.forget()
    DEVICE.write(reach, np.zeros(1))
    wp.capture_launch(graphs[0])
    assert DEVICE.read(covered)[0] == 0


def test_nothing_that_may_touch():
    """Half a scene without pairs: an empty list covers every motion up to its slack."""
    model = scene([0, 0], np.array([[0.0] * 12, [50.0] + [0.0] * 11]) + np.r_[0, 0, 0, np.eye(3).ravel()])
    path, limits = upload_path(standing(model.bodies.q)), unlimited(2)
    for device in (DEVICE, RESIDENT):
        found = Candidates(model, device, PairLaw(model))
        assert found.cover(path, 0.0, *limits) and found.count == found.pair_count == 0
        assert found.covers(path, 0.4 * float(DEVICE.read(found.slack)[0]), *limits)
        assert not found.covers(path, 0.6 * float(DEVICE.read(found.slack)[0]), *limits)
        assert DEVICE.read(found.counts).tolist() == [0, 0] and not DEVICE.read(found.group).any()
