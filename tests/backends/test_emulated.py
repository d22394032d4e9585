"""Every branch of CUDA, on the processor: the same steps as the processor's own."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

import abd
from abd.backends.device.device import EMULATED, Device
from abd.backends.device.graphs import Graphs
from abd.errors import DeviceError
from cuda_kernels.parallel import islands

SCENES = ("falling_box", "box_stack", "card_house", "chain", "ragdoll", "gear_train")


@wp.kernel
def take_a_ticket(first: wp.int32, ticket: wp.array(dtype=wp.int32), order: wp.array(dtype=wp.int32)):
    order[wp.tid() + first] = wp.atomic_add(ticket, 0, 1)


@pytest.mark.parametrize("scene", SCENES)
def test_scenes_take_the_same_steps(scene):
    """Sums have another order there, so that states differ by rounding."""
    emulated, plain = (abd.Simulation(scene, device=name) for name in (EMULATED, "cpu"))
    assert emulated.backend.device.wide and emulated.backend.iteration is not None
    if scene == "card_house":
        # cards that land stick or slip by what rounding tips: they are compared once they stand
        for _ in range(20):
            plain.step()
        emulated.restore(plain.checkpoint())
    for _ in range(3):
        there, here = emulated.step(), plain.step()
        assert there.newton_iterations == here.newton_iterations and there.contacts == here.contacts
    np.testing.assert_allclose(emulated.stepper.q, plain.stepper.q, atol=1e-9)


@pytest.mark.parametrize("scene", [*SCENES, "wrecking_ball"])
def test_no_order_of_threads_changes_a_bit(scene):
    """Sums whose order threads decide, or items that read what others write, would."""
    one, other = (abd.Simulation(scene, device=name) for name in (EMULATED, f"{EMULATED}:1"))
    for _ in range(3):
        here, there = one.step(), other.step()
        assert here.newton_iterations == there.newton_iterations and here.energy == there.energy
    assert np.array_equal(one.stepper.q, other.stepper.q)


def test_the_order_is_that_of_the_seed():
    """All items are run once, and not from the first to the last."""
    device, count = Device(f"{EMULATED}:3"), 40
    order, ticket = device.zeros(count, wp.int32), device.zeros(1, wp.int32)
    device.launch(take_a_ticket, count, ticket, order)
    found = device.read(order)
    assert sorted(found) == list(range(count)) and list(found) != list(range(count))


@pytest.mark.parametrize("name", ["emulated:", "emulated:x", "emulate"])
def test_other_names_are_refused(name):
    with pytest.raises(DeviceError, match=r"no device|unknown device"):
        abd.Simulation("falling_box", device=name)


@pytest.mark.parametrize("count", [None, 0, 1])
def test_an_empty_array_is_read(count):
    device = Device(EMULATED)
    assert device.read(device.zeros(0, wp.float64), count).shape == (0,)


def test_a_half_space_leaves_the_bounds_of_the_tree_to_the_others():
    """A tree whose leaves are sorted along a curve through its bounds has no depth to speak of, unless one box spoils them."""
    scene = abd.Scene()
    scene.add_body("ground", half_space={})
    scene.add_body("box", box=(1, 1, 1), position=(3, 0, 1))
    candidates = (simulation := abd.Simulation(scene, device="cpu")).backend.contacts.candidates
    simulation.step()
    lower, upper = (values.numpy() for values in (candidates.lower, candidates.upper))
    assert (lower[0] > upper[0]).all() and np.abs([lower[1], upper[1]]).max() < 10.0
    assert np.min(lower, axis=0).max() < 10.0 and np.max(upper, axis=0).max() < 10.0


def test_a_record_holds_flags_and_numbers():
    """Kernels of both types in one record, one type twice: each writes its own array."""
    device = Device("emulated")
    island = device.upload([1, 0, 1, 0, 1], wp.int32)
    flags, numbers = device.upload([7, 9], wp.int32), device.upload([0.5, 0.25], wp.float64)
    outs = [device.zeros(5, kind) for kind in (wp.int32, wp.float64, wp.int32)]

    def body():
        for values, out in zip((flags, numbers, flags), outs, strict=True):
            device.launch(islands.to_bodies[values.dtype], 5, island, values, out)

    graphs = Graphs(device)
    for _ in range(2):
        graphs.run("both", body)
    assert graphs.recorded == 1
    for out, values in zip(outs, ([9, 7], [0.25, 0.5], [9, 7]), strict=True):
        assert device.read(out).tolist() == [values[k % 2] for k in range(5)]


def test_a_rehearsal_loads_what_launches_take():
    """Warp compiles a module for each number of threads in a block: one is enough."""
    device = Device(EMULATED)
    array = device.zeros(1, wp.int32)
    Graphs(device).run("ticket", lambda: device.launch(take_a_ticket, 1, array, array))
    assert len(take_a_ticket.module.execs) == 1


def test_the_record_not_used_for_longest_goes_first():
    """One that is used again and again stays, however many others there are."""
    device = Device(EMULATED)
    array, graphs = device.zeros(1, wp.int32), Graphs(device)
    for other in range(100):
        for key in ("hot", other):
            graphs.run(key, lambda: device.launch(take_a_ticket, 1, array, array))
    assert graphs.recorded == 101
