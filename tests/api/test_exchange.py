"""States as arrays without a copy, and velocities set from outside."""

import numpy as np
import pytest
import warp as wp
from on_device import DEVICE, NAME

import abd

pytestmark = pytest.mark.device


def falling(device: str = NAME) -> abd.Simulation:
    """Two boxes in the air and a fixed one."""
    scene = abd.Scene(solver={"dt": 0.01, "integrator": "bdf1"})
    for k, name in enumerate(("one", "other")):
        scene.add_body(name, box=(0.1, 0.1, 0.1), position=(k, 0, 1), velocity=(0, 0, 0.5))
    scene.add_body("post", box=(0.1, 0.1, 0.1), position=(0, 3, 0), kind="static")
    return abd.Simulation(scene, device=device)


def test_the_state_is_read_without_a_copy():
    simulation = falling()
    simulation.step()
    q, qd = simulation.state.q, simulation.state.qd
    assert (q.shape, qd.shape, q.dtype, q.device) == ((3, 12), (3, 12), wp.float64, DEVICE.warp)
    np.testing.assert_array_equal(q.numpy(), simulation.stepper.q)
    np.testing.assert_array_equal(qd.numpy(), simulation.stepper.qd)
    assert q.__dlpack_device__() == ((1, 0) if q.device.is_cpu else (2, q.device.ordinal))
    if q.device.is_cpu:
        for array in (q, qd):
            assert np.from_dlpack(array).ctypes.data == array.ptr == np.asarray(array).ctypes.data
    else:
        for array in (q, qd):
            assert array.__cuda_array_interface__["data"][0] == array.ptr
            assert wp.from_dlpack(array).ptr == array.ptr


@pytest.mark.parametrize("kind", [np.asarray, lambda qd: wp.array(qd, dtype=wp.float64, device=DEVICE.warp), np.ndarray.tolist])
def test_velocities_can_be_set_from_arrays_of_other_libraries(kind):
    simulation, plain = falling(), falling("numpy")
    for one in (simulation, plain):
        one.step()
    qd = simulation.stepper.qd.copy()
    qd[0, :3], qd[2, :3] = (1.0, 2.0, 3.0), (9.0, 9.0, 9.0)
    before = simulation.stepper.q.copy()
    simulation.set_velocities(kind(qd))
    plain.set_velocities(qd)
    np.testing.assert_array_equal(simulation.stepper.q, before)
    qd[2] = 0.0
    np.testing.assert_array_equal(simulation.state.qd.numpy(), qd)
    np.testing.assert_array_equal(plain.state.qd, qd)
    assert plain.state.q.shape == (3, 12) and plain.state.body_frame.shape == (3, 4, 4)
    assert simulation.bodies["one"].velocity[:3, 3] == pytest.approx((1.0, 2.0, 3.0))
    report = simulation.step()
    plain.step()
    assert report.step == 2 and report.time == pytest.approx(0.02)
    moved = simulation.stepper.q - before
    assert moved[0, :3] == pytest.approx((0.01, 0.02, 0.03 - 9.81e-4)) and not moved[2].any()
    np.testing.assert_allclose(simulation.stepper.q, plain.stepper.q, atol=1e-12)
