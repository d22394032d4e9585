"""Threads that record at once, each a simulation of its own."""

import threading

import numpy as np
import pytest
from test_recorded import PCG, links, pile

import abd

SCENES = (lambda: pile({"linear_solver": "direct"}), lambda: links(6, "exact"), lambda: pile(PCG, boxes=7))


def end_of(number: int, ends: list, device: str, steps: int) -> None:
    """Where a scene is after so many steps that it is recorded."""
    sim = abd.Simulation(SCENES[number](), device=device)
    sim.run(steps=steps)
    ends[number] = sim.stepper.q.copy(), sim.backend.graphs.recorded + sim.backend.whole.taken


@pytest.mark.parametrize(("device", "steps"), [("cpu", 30), ("emulated", 12)])
def test_threads_that_record_at_once_do_not_meet(device, steps):
    """On CUDA they share a stream, in which one that records has to be the only one."""
    alone, together = [None] * len(SCENES), [None] * len(SCENES)
    for number in range(len(SCENES)):
        end_of(number, alone, device, steps)
    threads = [threading.Thread(target=end_of, args=(number, together, device, steps)) for number in range(len(SCENES))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for (q, recorded), (other, also) in zip(alone, together, strict=True):
        assert recorded > 0 and also == recorded
        np.testing.assert_array_equal(q, other)
