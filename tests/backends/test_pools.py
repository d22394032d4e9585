"""Named arrays that grow: what was last asked for alike has room alike."""

import numpy as np
import pytest
import warp as wp
from on_device import DEVICE

from abd.backends.device.pool import Pool, room_for

pytestmark = pytest.mark.device


@pytest.mark.parametrize("count", [0, 1, 128, 129, 256, 257, 1000, 10**9])
def test_a_room_holds_what_it_is_for_and_at_most_twice_that(count):
    room = room_for(count)
    assert count <= room <= max(128, 2.0 * count)
    assert room_for(room) == room


@pytest.mark.parametrize("seed", range(20))
def test_the_room_of_one_is_that_of_all_that_were_last_asked_for_with_it(seed):
    rng = np.random.default_rng(seed)
    pool, most = Pool(DEVICE), int(rng.integers(100))
    for name in ("one", "other"):
        for count in (*rng.integers(0, most + 1, size=rng.integers(6)), most):
            pool.get(name, int(count), wp.float64)
    assert pool.room("one") == pool.room("other") >= most
