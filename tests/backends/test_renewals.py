"""A candidate list that is renewed on the way: what was proven for the pairs before holds for the islands after."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

import abd
from abd.backends.warp.on_warp import WarpBackend
from abd.backends.warp.terms.contacts import Contacts

H, SPENT = 0.01, 0.81
GAP = 1.2e-3
"""Between the first two boxes [m]: beyond d_hat, and a fraction of the list's margin."""


def three_boxes() -> WarpBackend:
    """Boxes in a row, the third far off; a list that holds the first pair, with a margin of a twentieth of an edge."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": H, "d_hat": 1e-3})
    for name, x in (("a", 0.0), ("b", 0.1 + GAP), ("c", 0.5)):
        scene.add_body(name, box=(0.1, 0.1, 0.1), position=(x, 0, 0))
    at_rest = abd.Simulation(scene, device="cpu")
    at_rest.step()
    backend = at_rest.backend
    backend.contacts.candidates.forget()
    moves(backend, c=(0, 0, 0.01))
    backend.arcs.follow_velocity(np.ones(3, dtype=int))
    assert backend.contacts.candidates.pair_list().tolist() == [[0, 1]]
    return backend


def moves(backend: WarpBackend, **by: tuple[float, float, float]) -> None:
    """The start leads the named bodies so far [m]; the others rest."""
    lead = np.zeros((3, 3))
    for name, displacement in by.items():
        lead["abc".index(name)] = displacement
    backend.device.write(backend.track.lead.dp, lead)
    backend.track.lead.load.zero_()


def unite(backend: WarpBackend, proven: bool, recorded: bool = False) -> np.ndarray:
    """Safe fractions after the first box runs into the second, and the third comes from afar to join them."""
    moves(backend, a=(0.05, 0, 0), c=(-0.35, 0, 0))
    contacts, stop = backend.contacts, backend.contacts.times_of_impact
    # as if nothing were proven, where that is asked for
    contacts.times_of_impact = lambda *arguments: stop(*arguments[:4], proven and len(arguments) > 4 and arguments[4])
    assert backend.islands.count == 2
    alpha = _follow_recorded(backend) if recorded else backend.arcs.follow_velocity(np.ones(3, dtype=int))
    assert backend.islands.count == 1
    pairs = contacts.candidates.pair_list().tolist()
    kept = backend.device.read(contacts.candidates.kept, len(pairs))
    assert kept[pairs.index([0, 1])] >= 0 > kept[pairs.index([1, 2])]
    return alpha


def _follow_recorded(backend: WarpBackend) -> np.ndarray:
    """What a record does, piece by piece."""
    iteration, read = backend.iteration, backend.device.read
    backend.track.launch_start()
    iteration.control.limit.fill_(1.0)
    backend.potential.know_contacts()
    iteration.path.follow()
    iteration._renew(float(read(iteration.path.largest)[0]))
    iteration.path.stop_at_contacts(proven=True)
    return read(iteration.control.limit, backend.islands.count)


@pytest.mark.parametrize("recorded", [False, True])
def test_an_island_keeps_to_what_stopped_a_part_of_it(recorded):
    """The first pair is kept, and not looked at again: the limit that was found for it has to hold for all three."""
    alpha = unite(three_boxes(), True, recorded)
    np.testing.assert_allclose(alpha, SPENT * GAP / 0.05, rtol=1e-6)
    np.testing.assert_array_equal(alpha, unite(three_boxes(), False, recorded))


def test_what_is_proven_of_kept_pairs_is_not_proven_again():
    """Beyond their limits, which nobody asks for, only pairs that are new count; here they do not meet within them."""
    backend = three_boxes()
    unite(backend, proven=True)
    d, found = backend.device, []
    for proven in (True, False):
        limit, out = d.upload(np.ones(1), wp.float64), d.zeros(3, wp.float64)
        Contacts.times_of_impact(backend.contacts, backend.track.path, backend.islands.island, limit, out, proven)
        found.append(d.read(out).min())
    np.testing.assert_allclose(found, [1.0, SPENT * GAP / 0.05], rtol=1e-6)
