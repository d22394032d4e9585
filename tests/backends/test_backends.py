"""Backends agree: definitions and kernels take the same steps, and every run has the same bits."""

from functools import partial

import mechanisms
import numpy as np
import pytest
import warp as wp
from checkpoints import assert_goes_on
from common_scenes import every_law, on_slope
from on_device import NAME, follow

import abd
from abd.backends.device.device import Device
from abd.backends.reference.on_numpy import NumpyBackend
from abd.backends.warp import on_warp as small_scenes
from abd.backends.warp.on_warp import WarpBackend
from abd.model import Model
from abd.potentials.integrators import scheme
from cuda_kernels.step import control

pytestmark = pytest.mark.device

DT, TOLERANCE = 0.01, 1e-3
CLOSE = 10.0 * TOLERANCE * DT
"""Largest difference of positions [m] between solvers that stop at the tolerance."""


def landing_box(restitution: float = 0.0, **solver) -> abd.Scene:
    """A tilted box that falls on a plane with friction."""
    scene = abd.Scene(solver={"dt": DT, "tolerance": TOLERANCE, **solver})
    scene.add_material("wood", mu=0.3, restitution=restitution)
    scene.add_body("floor", half_space={"normal": [0, 0, 1], "offset": 0.0}, material="wood")
    turn = {"axis": [1, 0.3, 0], "degrees": 5}
    scene.add_body("box", box=[1, 1, 1], position=[0, 0, 0.6], axis_angle=turn, velocity=[0.3, 0, 0], material="wood")
    return scene


def workshop(**solver) -> abd.Scene:
    """Joints of every type, bodies with fixed axes, a body that follows a script and pushes; contact and friction."""
    scene = abd.Scene(solver={"dt": DT, "tolerance": TOLERANCE, **solver})
    scene.add_material("wood", mu=0.3)
    parts = {"material": "wood"}
    scene.add_body("floor", box=[6, 4, 0.2], position=[0, 0, -0.1], kind="static", **parts)
    scene.add_body("arm", box=[1, 0.2, 0.2], position=[0, 0, 0.5], angular_velocity=[0, 2, 0], **parts)
    scene.add_body("hand", box=[1, 0.2, 0.2], position=[1.1, 0, 0.5], elasticity="arap", **parts)
    scene.add_body("post", box=[0.2, 0.2, 1], position=[1.7, 0, 1.1], **parts)
    scene.add_body("hat", box=[0.3, 0.3, 0.1], position=[1.7, 0, 1.66], torque=[0, 0, 3.0], **parts)
    scene.add_body("block", box=[0.5, 0.5, 0.5], position=[-1.2, 0, 0.2505], **parts)
    scene.add_body("slider", box=[0.3, 0.3, 0.3], position=[-0.79, 0, 0.1505], fix=["y", "rx", "ry", "rz"], **parts)
    scene.add_body("wheel", box=[0.5, 0.5, 0.5], position=[0, 1.2, 2], fix=["x", "y", "z", "rx", "rz"], **parts)
    script = {"velocity": [0.5, 0, 0], "angular_velocity": [0, 0, 0.3]}
    scene.add_body("pusher", box=[0.3, 1, 0.4], position=[-1.61, 0, 0.3], kind="kinematic", motion=script, **parts)
    scene.add_hinge("elbow", "arm", "hand", anchor=[0.55, 0, 0.5], axis=[0, 1, 0])
    scene.add_spherical("wrist", "hand", "post", anchor=[1.65, 0, 0.5])
    scene.add_fixed("pin", "post", "hat", anchor=[1.7, 0, 1.6])
    scene.add_hinge("shoulder", abd.WORLD, "arm", anchor=[-0.5, 0, 0.5], axis=[0, 1, 0])
    return scene


def run(scene: abd.Scene, device: str, steps: int) -> tuple[np.ndarray, list]:
    """Positions (steps, n, 12) and reports of a run."""
    simulation = abd.Simulation(scene, device=device)
    reports, positions = zip(*follow(simulation, steps, lambda report: (report, simulation.host_state().q)))
    return np.array(positions), reports


MOTION = {"velocity": (0.3, 0.2, 0.0), "angular_velocity": (0.0, 0.0, 1.0)}
TIGHT = {"tolerance": 1e-8, "friction_tolerance": 1e-8}
STEPS = {
    # name: scene, steps, largest difference of positions [m], whether bodies touch
    "landing box": (landing_box, 22, CLOSE, True),
    "rebounding box": (partial(landing_box, 0.7, **TIGHT), 22, 1e-9, True),
    "box that slides and turns on triangles": (lambda: on_slope(0.23, 0.5, 3, solver=TIGHT, **MOTION)[0], 12, 1e-10, True),
    "slider crank": (partial(mechanisms.slider_crank, 0.01), 12, 1e-9, False),
    "spectral radius that falls and rises": (partial(mechanisms.whirling, 0.14, tolerance=1e-9), 30, 1e-7, False),
    "all laws of joints, bdf1": (partial(every_law, tolerance=1e-9, integrator="bdf1"), 12, 5e-8, False),
    "all laws of joints, generalized alpha": (partial(every_law, tolerance=1e-9), 12, 5e-8, False),
}


@pytest.mark.parametrize("name", STEPS)
def test_definitions_and_kernels_take_the_same_steps(name):
    make, steps, within, touches = STEPS[name]
    (q_numpy, by_definition), (q_cpu, by_kernels) = (run(make(), device, steps) for device in ("numpy", NAME))
    assert np.abs(q_numpy - q_cpu).max() <= within
    assert any(report.contacts for report in by_kernels) == touches
    for one, other in zip(by_definition, by_kernels, strict=True):
        assert one.contacts == other.contacts
        assert one.energy["kinetic"] == pytest.approx(other.energy["kinetic"], rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("integrator", ["bdf1", "generalized_alpha"])
def test_a_workshop_is_the_same_on_numpy_and_cpu(integrator):
    scene = workshop(integrator=integrator)
    (q_numpy, by_definition), (q_cpu, by_kernels) = (run(scene, device, 5) for device in ("numpy", NAME))
    assert np.abs(q_numpy - q_cpu).max() <= 0.01 * CLOSE
    in_contact = [k for k, report in enumerate(by_kernels) if report.contacts]
    last, other = by_definition[in_contact[-1]], by_kernels[in_contact[-1]]
    assert last.contacts == other.contacts > 0
    assert last.min_gap == pytest.approx(other.min_gap, abs=CLOSE)
    assert last.max_joint_residual == pytest.approx(other.max_joint_residual, rel=1e-2)
    assert last.max_orthogonality_error == pytest.approx(other.max_orthogonality_error, rel=1e-2)
    assert last.energy["contact"] == pytest.approx(other.energy["contact"], rel=1e-3)
    assert last.energy["friction_work"] == pytest.approx(other.energy["friction_work"], rel=1e-3)
    assert last.energy["friction_work"] < 0.0


def started(backend, model: Model, simulation: abd.Simulation):
    """The backend amid a step from a simulation's state: friction lagged, linearised, all bodies in one island."""
    state, n = simulation.stepper.state(), len(model.bodies)
    backend.islands.join(np.array([(a, b) for a in range(n) for b in range(a)], dtype=int).reshape(-1, 2))
    rule = scheme(model.settings.integrator, DT)
    backend.states.load_state(state.q, state.qd, state.previous_q, state.previous_qd, state.bodies.forces)
    goals = simulation.stepper.prescribed.target_poses(state.time + DT)
    mode = simulation.stepper.modes.of(simulation.stepper.constrained)
    backend.steps.begin(rule, mode, model.settings.eps_v * DT, goals)
    backend.arcs.aim_at_targets(np.ones(n, int))
    backend.iteration.evaluate()
    backend.touch.lag_friction()
    backend.potential.linearize()
    return backend


def whole_hessian(backend: WarpBackend) -> np.ndarray:
    """(n, n, 12, 12) all blocks of a linearised backend, after `solve` has projected them."""
    n, read = backend.n, backend.device.read
    H = np.zeros((n, n, 12, 12))
    H[np.arange(n), np.arange(n)] = read(backend.potential.diagonal)
    for coupling, _ in backend.potential.couplings:
        pairs = int(read(coupling.count)[0])
        row, column, blocks = (read(getattr(coupling, k), pairs) for k in ("row", "column", "blocks"))
        np.add.at(H, (row, column), blocks)
        np.add.at(H, (column, row), blocks.transpose(0, 2, 1))
    return H


def trial_energies(backend, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Changes of the energies of the islands on the path up to alpha, and the sums of their sizes."""
    c, count = backend.iteration.control, backend.islands.count
    backend.device.write(c.alpha, alpha)
    backend.potential.evaluate_contacts()
    backend.iteration.search.evaluate_trial()
    return tuple(backend.device.read_all((c.change, count), (c.size, count)))


def largest_difference(value: np.ndarray, expected: np.ndarray) -> float:
    return float(np.max(np.abs(value - expected)) / np.max(np.abs(expected)))


@pytest.mark.parametrize(("make", "integrator"), [(landing_box, "bdf1"), (landing_box, "generalized_alpha"), (workshop, "bdf1")])
def test_gradient_hessian_direction_and_energies_are_the_same(make, integrator):
    simulation = abd.run(make(integrator=integrator), steps=14 if make is landing_box else 2, device=NAME)
    model = simulation.model
    kernels = started(WarpBackend(model, NAME), model, simulation)
    definition = started(NumpyBackend(model), model, simulation)
    assert definition.readings.contact_statistics()[1] > 0 and definition.friction.count == kernels.friction.count > 0
    both = kernels, definition
    for one in both:
        one.iteration.begin(1e-3, 1e-3, DT, model.settings.linear_tolerance)
        one.iteration.direction.launch()
        one.iteration.search.measure_slope(one.iteration.control.slope)
        one.iteration.search.shorten()
    assert kernels.device.read(kernels.iteration.control.flags)[control.COVERED]
    definition.touch.renew(0.0, definition.iteration.control.limit)
    definition.iteration.search.stop_at_contacts()
    gradients, directions = ([one.device.read(array) for one, array in zip(both, arrays)] for arrays in (
        [one.potential.gradient for one in both], [one.linear.direction for one in both],
    ))  # fmt: skip
    assert largest_difference(*gradients) <= 1e-10
    assert largest_difference(whole_hessian(kernels), definition.potential.blocks) <= 1e-10
    assert largest_difference(*directions) <= 1e-7
    for name, tolerance in (("moved", 1e-7), ("slope", 1e-7), ("limit", 1e-5)):
        alpha, expected = (one.device.read(getattr(one.iteration.control, name), one.islands.count) for one in both)
        np.testing.assert_allclose(alpha, expected, rtol=tolerance)
    (change, size), (expected_change, expected_size) = (trial_energies(one, 0.5 * alpha) for one in both)
    np.testing.assert_allclose(change, expected_change, atol=1e-9 * expected_size.max())
    np.testing.assert_allclose(size, expected_size, rtol=1e-8)
    kernels.potential.evaluate_contacts()
    assert kernels.readings.contact_statistics()[1] == definition.readings.contact_statistics()[1]
    np.testing.assert_array_equal(kernels.touch.touching(), definition.touch.touching())


def test_repeated_runs_are_bitwise_equal():
    (first, reports), (second, again) = (run(workshop(), NAME, 12) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    for one, other in zip(reports, again, strict=True):
        assert one.energy == other.energy and one.min_gap == other.min_gap


@pytest.mark.skipif(wp.config.mode == "debug", reason="kernels that check indices run on one thread")
def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    """All divisible launches are divided by the number of threads, whatever their size."""
    whole = Device.launch

    def cut(self, kernel, count, *inputs, grain=1, begin=0):
        whole(self, kernel, count, *inputs, grain=grain if grain > 1 << 20 else 1, begin=begin)

    monkeypatch.setattr(Device, "launch", cut)
    monkeypatch.setattr(small_scenes, "SMALL", 0)  # what is recorded has one thread
    results = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("ABD_THREADS", threads)
        simulation = abd.Simulation(workshop(), device=NAME)
        assert simulation.backend.device.threads == (1 if simulation.backend.device.wide else int(threads))
        simulation.run(steps=8)
        results.append(simulation.checkpoint())
    for other in results[1:]:
        for name, value in results[0].items():
            np.testing.assert_equal(value, other[name], err_msg=name)


@pytest.mark.parametrize("integrator", ["bdf1", "generalized_alpha"])
@pytest.mark.parametrize(("device", "make", "steps"), [(NAME, workshop, 12), (NAME, landing_box, 22), ("numpy", landing_box, 15)])
def test_a_restored_checkpoint_continues_bit_for_bit(device, make, steps, integrator):
    first, second = (abd.Simulation(make(integrator=integrator), device=device) for _ in range(2))
    first.run(steps=steps - 10)
    assert_goes_on(first, second, 10)
    assert second.frame == steps and first.step().energy == second.step().energy


def test_runs_do_not_depend_on_the_linear_solver():
    direct, _ = run(workshop(linear_solver="direct"), NAME, 8)
    pcg, reports = run(workshop(linear_solver="pcg", linear_tolerance=1e-6), NAME, 8)
    assert sum(report.linear_iterations for report in reports) > 100
    assert np.abs(pcg - direct).max() <= CLOSE
