"""Islands and exclusive sums formed on the device equal those of the host."""

from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp
from on_device import NAME

from abd.backends.device.device import Device
from abd.backends.device.scan import Scan
from abd.backends.islands import Islands

pytestmark = pytest.mark.device
DEVICE = Device(NAME, records=True)


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
    """Pairs on the device with capacity for more; what lies beyond the count would tie everything to body 0."""
    capacity = np.zeros((len(pairs) + spare, 2), dtype=np.int32)
    capacity[: len(pairs)] = pairs
    capacity[len(pairs) :, 1] = np.arange(spare)
    counts = DEVICE.upload([len(pairs), 99], wp.int32)
    return DEVICE.upload(capacity, wp.vec2i), counts, len(capacity)


def formed(n: int, ties: np.ndarray, mobile: np.ndarray, *lists: np.ndarray) -> tuple[Islands, Islands]:
    """Islands formed on the device, and on the host."""
    device, host = Islands(DEVICE, n), Islands(DEVICE, n)
    for each in (device, host):
        each.tie(tied(ties))
    host.renumber(mobile, np.concatenate([pairs_of([]), *lists]))
    device.follow_joined(mobile)
    device.launch_renumber(DEVICE.upload((~mobile).astype(np.int32), wp.int32), *map(listed, lists))
    return device, host


def assert_same(device: Islands, host: Islands) -> None:
    """All tables."""
    read = DEVICE.read
    count, chunks = read(device.counts)
    assert (count, chunks) == (host.count, read(host.counts)[1])
    for name, length in (("island", host.n), ("order", host.n), ("chunk_start", chunks + 1), ("island_start", count + 1)):
        np.testing.assert_array_equal(read(getattr(device, name), length), read(getattr(host, name), length))
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


@pytest.mark.parametrize("count, capacity", [(0, 1), (1, 1), (31, 40), (32, 32), (33, 64), (5000, 5000), (70001, 90000)])
def test_exclusive_sums(count, capacity):
    counts = np.random.default_rng(count).integers(0, 9, capacity).astype(np.int32)
    sizes, offsets = DEVICE.upload(np.array([7, count]), wp.int32), DEVICE.upload(np.full(capacity + 1, -1), wp.int32)
    Scan(DEVICE).run(DEVICE.upload(counts, wp.int32), offsets, sizes, 1, capacity)
    expected = np.concatenate([[0], np.cumsum(counts[:count])])
    np.testing.assert_array_equal(DEVICE.read(offsets, count + 1), expected)
