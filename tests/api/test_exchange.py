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


def test_numpy_backend_returns_its_own_arrays():
    simulation = falling("numpy")
    simulation.step()
    assert simulation.state.q is simulation.backend.at.q
    np.testing.assert_array_equal(simulation.state.qd, simulation.stepper.qd)
    assert simulation.state.body_frame.shape == (3, 4, 4)


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
    assert simulation.bodies["one"].velocity[:3, 3] == pytest.approx((1.0, 2.0, 3.0))
    report = simulation.step()
    plain.step()
    assert report.step == 2 and report.time == pytest.approx(0.02)
    moved = simulation.stepper.q - before
    assert moved[0, :3] == pytest.approx((0.01, 0.02, 0.03 - 9.81e-4)) and not moved[2].any()
    np.testing.assert_allclose(simulation.stepper.q, plain.stepper.q, atol=1e-12)


class Elsewhere:
    """An array on a device of DLPack."""

    def __init__(self, kind: int, number: int):
        self.place = kind, number

    def __dlpack_device__(self):
        return self.place


@pytest.mark.parametrize(
    ("qd", "message"),
    [
        (np.zeros((3, 12), dtype=np.float32), "velocities must be float64, not float32"),
        (np.zeros((2, 12)), r"velocities must have the shape \(3, 12\), not \(2, 12\)"),
        (np.full((3, 12), np.nan), "velocities of row 0 are not finite"),
        (Elsewhere(2, 7), "velocities are on cuda:7, but the simulation is on"),
        (Elsewhere(10, 0), "velocities are on a device of DLPack's type 10"),
    ],
)
def test_velocities_of_wrong_shape_are_refused(qd, message):
    simulation = falling()
    before = simulation.checkpoint()
    with pytest.raises(ValueError, match=message):
        simulation.set_velocities(qd)
    assert simulation.checkpoint()["qd"].tobytes() == before["qd"].tobytes()


@pytest.mark.parametrize("q", [np.zeros((2, 12)), np.full((3, 12), np.nan), np.full((3, 12), 10**70), np.full((3, 12), 1e300)])
def test_poses_of_wrong_shape_or_size_are_refused(q):
    simulation = falling()
    with pytest.raises(ValueError, match="q must be 3 x 12 finite numbers"):
        simulation.move_to(q)
