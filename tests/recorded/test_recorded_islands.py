"""Islands formed, and reduced over, by launches alone: the same as on the host, bit for bit."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp
from on_device import NAME

from abd.backends.device.device import Device
from abd.backends.numbering import Numbering
from abd.backends.warp.islands import Islands
from cuda_kernels.parallel import sums

pytestmark = pytest.mark.device
DEVICE = Device(NAME, records=True)
FOLDS = {sums.SUM: np.add, sums.MIN: np.minimum, sums.MAX: np.maximum}


class NoRows:
    """No rows with measures."""

    term_measure = np.zeros(0, dtype=int)

    def __len__(self) -> int:
        return 0


def tied(pairs: np.ndarray) -> SimpleNamespace:
    """As much of a joint system as ties its bodies: child and parent of linear rows."""
    linear = SimpleNamespace(child=pairs[:, 0], parent=pairs[:, 1])
    none = NoRows.term_measure
    return SimpleNamespace(linear=linear, rows=NoRows(), table=SimpleNamespace(child=none, parent=none))


def pairs_of(values) -> np.ndarray:
    return np.array(values, dtype=np.int32).reshape(-1, 2)


def listed(pairs: np.ndarray, spare: int = 3) -> tuple:
    """Pairs on the device with room for more; what lies beyond the count would tie everything to body 0."""
    room = np.zeros((len(pairs) + spare, 2), dtype=np.int32)
    room[: len(pairs)] = pairs
    room[len(pairs) :, 1] = np.arange(spare)
    counts = DEVICE.upload([len(pairs), 99], wp.int32)
    return DEVICE.upload(room, wp.vec2i), counts, len(room)


def formed(n: int, ties: np.ndarray, mobile: np.ndarray, *lists: np.ndarray) -> tuple[Islands, Numbering]:
    """Islands formed on the device, and on the host."""
    device, host = Islands(DEVICE, n), Numbering(n)
    for each in (device, host):
        each.tie(tied(ties))
    host.renumber(mobile, np.concatenate([pairs_of([]), *lists]))
    device.follow_joined(mobile)
    device.launch_renumber(DEVICE.upload((~mobile).astype(np.int32), wp.int32), *map(listed, lists))
    return device, host


def assert_same(device: Islands, host: Numbering) -> None:
    """All tables, against those that `_assign` makes of the same islands."""
    assigned = Islands(DEVICE, host.n)
    assigned._assign(host.division)
    read = DEVICE.read
    np.testing.assert_array_equal(read(device.island, host.n), host.host)
    count, chunks = read(device.counts)
    assert (count, chunks) == (host.count, assigned.chunks)
    for name, length in (("order", host.n), ("chunk_start", chunks + 1), ("island_start", count + 1)):
        np.testing.assert_array_equal(read(getattr(device, name), length), read(getattr(assigned, name), length))
    assert device.count == host.count
    np.testing.assert_array_equal(device.host, host.host)


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(seed):
    random = np.random.default_rng(seed)
    n = int(random.choice([1, 2, 3, 7, 40, 300, 2000]))
    mobile = random.random(n) < random.choice([0.05, 0.5, 0.95])

    def some(share: float) -> np.ndarray:
        pairs = random.integers(n, size=(int(share * n), 2))
        return pairs_of(pairs[pairs[:, 0] != pairs[:, 1]])

    ties, near = some(random.choice([0.0, 0.3])), some(random.choice([0.0, 0.4, 2.0]))
    assert_same(*formed(n, ties, mobile, near, some(0.1)))


@pytest.mark.parametrize("order", ["ascending", "descending", "random", "bits"])
def test_long_chains(order):
    n, random = 5000, np.random.default_rng(1)
    links = pairs_of(np.stack([np.arange(1, n), np.arange(n - 1)], axis=1))
    if order == "descending":
        links = links[::-1]
    elif order == "random":
        links = random.permutation(n)[random.permutation(links)].astype(np.int32)
    elif order == "bits":
        links = links[np.argsort([bin(k)[::-1] for k in range(n - 1)])]
    cut = np.delete(links, 1234, axis=0)
    assert_same(*formed(n, pairs_of([]), np.ones(n, bool), cut))
    assert_same(*formed(n, cut, np.ones(n, bool)))


def test_one_island_of_many_chunks_and_many_of_one_body():
    n = 3000
    star = pairs_of([(k, n // 2) for k in range(n) if k != n // 2 and k % 3])
    assert_same(*formed(n, pairs_of([]), np.ones(n, bool), star))
    assert_same(*formed(n, pairs_of([]), np.ones(n, bool)))


def test_nothing_moves_and_nothing_is_there():
    assert_same(*formed(600, pairs_of([]), np.zeros(600, bool), pairs_of([(3, 4)])))
    assert_same(*formed(5, pairs_of([(2, 1)]), np.zeros(5, bool)))
    device, host = formed(0, pairs_of([]), np.zeros(0, bool))
    assert device.count == host.count == 1


def test_numbering_anew_starts_from_nothing():
    n = 900
    chain = pairs_of([(k, k - 1) for k in range(1, n)])
    device, host = formed(n, pairs_of([]), np.ones(n, bool), chain)
    held = DEVICE.zeros(n, wp.int32)
    for kept in (chain[:500], chain[700:], chain):
        host.renumber(np.ones(n, bool), kept)
        device.launch_renumber(held, listed(kept))
        assert_same(device, host)


def test_parts_of_joints_follow_who_moves():
    """A chain whose middle is held, let go, and held elsewhere, with the same joints."""
    n = 700
    device, host, none = Islands(DEVICE, n), Numbering(n), pairs_of([])
    for each in (device, host):
        each.tie(tied(pairs_of([(k, k - 1) for k in range(1, n)])))
    for held in (300, None, 20):
        mobile = np.arange(n) != held
        host.renumber(mobile, none)
        device.follow_joined(mobile)
        device.launch_renumber(DEVICE.upload((~mobile).astype(np.int32), wp.int32), listed(none))
        assert_same(device, host)


def groups(n: int, count: int, seed: int) -> np.ndarray:
    """Pairs that make about `count` islands of n bodies."""
    random = np.random.default_rng(seed)
    owner = random.integers(count, size=n)
    order = np.argsort(owner, kind="stable")
    same = owner[order][1:] == owner[order][:-1]
    return pairs_of(np.stack([order[1:], order[:-1]], axis=1)[same])


def recorded(work):
    """Record the launches of `work`, and replay them."""
    work()  # loads the kernels
    wp.capture_begin(device=DEVICE.warp)
    work()
    return wp.capture_end(device=DEVICE.warp)


def values_of(kind, n: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.normal(size=n) if kind is wp.float64 else random.integers(-9, 9, size=n).astype(np.int32)


@pytest.mark.parametrize("kind", [wp.float64, wp.int32])
@pytest.mark.parametrize("operation", FOLDS)
@pytest.mark.parametrize("n", [1, 60, 3000])
def test_reductions_are_recorded_and_follow_the_islands(n, operation, kind):
    """The graph of one numbering serves the next one, and the sums have the bits of launches that are not recorded."""
    device = Islands(DEVICE, n)
    direct = Islands(Device(NAME), n)
    values, out = DEVICE.zeros(n, kind), DEVICE.zeros(n, kind)
    one = DEVICE.zeros(1, kind)

    def work():
        device.reduce(values, operation, out)
        device.fold(out, operation, one)

    graph, held = recorded(work), DEVICE.zeros(n, wp.int32)
    for count in (1, 7, 1400):
        pairs, body = groups(n, count, count), values_of(kind, n, count)
        device.launch_renumber(held, listed(pairs))
        direct.renumber(np.ones(n, bool), pairs)
        DEVICE.write(values, body)
        wp.capture_launch(graph)
        found = DEVICE.read(out, device.count)
        expected = direct.reduce(direct.device.upload(body, kind), operation, direct.device.zeros(n, kind))
        np.testing.assert_array_equal(found, direct.device.read(expected, direct.count))
        order = np.argsort(direct.host, kind="stable")
        starts = np.searchsorted(direct.host[order], np.arange(direct.count))
        np.testing.assert_allclose(found, FOLDS[operation].reduceat(body[order], starts), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(DEVICE.read(one)[0], FOLDS[operation].reduce(found), rtol=1e-12, atol=1e-12)


def test_few_workers_take_many_reductions_in_turns():
    n = 4000
    device, host = formed(n, pairs_of([]), np.ones(n, bool), groups(n, 900, 1))
    values = DEVICE.upload(values_of(wp.float64, n, 1), wp.float64)
    expected = DEVICE.read(device.reduce(values, sums.SUM, DEVICE.zeros(n, wp.float64)))
    device._workers = 7
    np.testing.assert_array_equal(DEVICE.read(device.reduce(values, sums.SUM, DEVICE.zeros(n, wp.float64))), expected)
    assert np.abs(expected[: host.count]).min() > 0.0 and not expected[host.count :].any()


@pytest.mark.parametrize("kind", [wp.float64, wp.int32])
@pytest.mark.parametrize("operation", [sums.MIN, sums.MAX])
def test_what_islands_have_is_carried_to_those_that_unite_them(operation, kind):
    n = 800
    pairs, more = groups(n, 300, 1), groups(n, 90, 2)
    device, host = formed(n, pairs_of([]), np.ones(n, bool), pairs)
    old, values = host.host, values_of(kind, host.count, 3)
    array = DEVICE.zeros(n, kind)
    DEVICE.write(array, values)
    device.keep_numbering()
    both = np.concatenate([pairs, more])
    host.renumber(np.ones(n, bool), both)
    device.launch_renumber(DEVICE.zeros(n, wp.int32), listed(both))
    assert host.count < len(values)
    device.launch_carry(array, operation, array)
    expected = host.carry(old, values, FOLDS[operation])
    np.testing.assert_array_equal(DEVICE.read(array, host.count), expected)


def test_settled_islands_are_flagged_by_a_recorded_launch():
    n = 500
    device, host = formed(n, pairs_of([]), np.ones(n, bool), groups(n, 40, 5))
    converged = DEVICE.zeros(n, wp.int32)
    graph = recorded(lambda: device.launch_settle(converged))
    for seed in range(2):
        flags = np.random.default_rng(seed).integers(2, size=host.count).astype(np.int32)
        DEVICE.write(converged, flags)
        wp.capture_launch(graph)
        np.testing.assert_array_equal(DEVICE.read(device.done, n), flags[host.host])
    device.unsettle()
    assert not DEVICE.read(device.done).any()


def test_the_numbering_itself_reads_nothing():
    """The host looks when it is asked, and once."""

    class Reads:
        inside_graphs = True

        def __init__(self):
            self.names = []

        def transfer(self, name, array, count):
            self.names.append(name)
            return nullcontext()

        def launch(self, kernel, count, inputs):
            return nullcontext()

    n, watch = 200, Reads()
    device, _ = formed(n, pairs_of([]), np.ones(n, bool), groups(n, 9, 1))
    near, held = listed(groups(n, 12, 2)), DEVICE.zeros(n, wp.int32)
    values = DEVICE.zeros(n, wp.float64)
    DEVICE.observer = watch
    try:
        device.keep_numbering()
        device.launch_renumber(held, near)
        device.launch_carry(values, sums.MAX, values)
        device.launch_settle(held)
        device.unsettle()
        assert set(watch.names) <= {"sort"}
        assert len(np.unique(device.host)) == device.count and device.host is device.host
        assert watch.names.count("read") == 2
    finally:
        DEVICE.observer = None
