"""Step statistics, laws and histories of joint rows: kernels against definitions."""

import numpy as np
import pytest
import warp as wp
from on_device import DEVICE, NAME, assert_close

import abd
from abd.backends.device.totals import Section, Totals
from abd.backends.device.upload import upload_law
from abd.backends.reference.on_numpy import NumpyBackend
from abd.contact.pair_law import PairLaw
from abd.joints.rows.forces import working_forces
from abd.potentials.integrators import row_weights, scheme
from abd.tables import copied
from cuda_kernels.contact.surfaces import CandidateList
from cuda_kernels.step import statistics

pytestmark = pytest.mark.device

DT = 0.01
CLOSE = 1e-12


def everything(**solver) -> abd.Scene:
    """Bodies of both elasticities under forces and couples, a fixed one, and joints with every law."""
    scene = abd.Scene(gravity=(0.3, -0.2, -9.81), solver={"dt": DT, **solver})
    for k in range(7):
        motion = {"velocity": (0.1 * k, 0.2, 0.0), "angular_velocity": (0.3, -0.2 * k, 0.5)}
        elastic = {"elasticity": "arap"} if k % 2 else {}
        loads = {"force": (1.0, 2.0, -0.5 * k), "torque": (0.02, -0.01, 0.03)}
        scene.add_body(f"b{k}", box=(0.4, 0.2, 0.1), position=(1.0 * k, 0, 0), **motion, **elastic, **loads)
    scene.add_body("wall", box=(1, 1, 1), position=(0, 5, 0), kind="static")

    def joint(kind, k, coordinate, enforcement="penalty", **keys):
        ends = {"anchor": (k - 0.5, 0, 0), "axis": (0, 1, 0), "enforcement": enforcement, **keys}
        getattr(scene, f"add_{kind}")(f"{kind}{k}", f"b{k - 1}", f"b{k}", **ends, coordinate=coordinate)

    pd = {"mode": "pd", "target": "0.2*sin(5*t)", "stiffness": 50.0, "damping": 2.0, "effort": 0.4}
    joint("hinge", 1, {"theta": {"range": (-0.02, 0.5), "friction": 0.1, "drive": pd, "armature": 0.02}})
    joint("hinge", 2, {"theta": {"drive": {"mode": "velocity", "target": 0.7}, "stiffness": 3.0, "damping": 0.2}}, "exact")
    compliant = {"limit": "compliant", "limit_compliance": 1e-2, "limit_damping": 4.0}
    joint("hinge", 3, {"theta": {"range": (-0.001, 0.001), **compliant, "drive": {"mode": "force", "target": 0.3}}})
    joint("slider", 4, {"z": {"range": (-0.3, 0.4), "friction": 1.0}}, "exact")
    joint("hinge", 5, {"theta": {"drive": {"mode": "brake", "effort": 0.2}}}, "compliant", compliance=1e-4)
    scene.add_rope("rope", "b5", "b6", parent_anchor=(0, 0, 0.05), child_anchor=(0, 0, 0.05), distance=1.01)
    return scene


@pytest.fixture(scope="module", params=["bdf1", "generalized_alpha"])
def simulation(request) -> abd.Simulation:
    made = abd.run(everything(integrator=request.param), steps=6, device=NAME)
    return made


def begun(backend, patch) -> list[np.ndarray]:
    """Where the laws, parameters and shifts will stand with which the next step begins."""
    begin, seen = backend.rows.begin_joints, []

    def watched(*arguments):
        out, joints = begin(*arguments), backend.joints
        seen.extend(backend.device.read(one) for one in (joints.rows.law, joints.rows.p, joints.linear.shift))
        return out

    patch.setattr(backend.rows, "begin_joints", watched)
    # a whole step would not call it
    patch.setattr(backend, "whole", None, raising=False)
    return seen


def test_history_of_joint_rows_equals_the_definition(simulation):
    """Histories agree after each step, also when a target changes."""
    slide = simulation.joints["slider4"].coordinate()
    slide.apply_force(2.0)
    stepper, system, backend = simulation.stepper, simulation.stepper.joints, simulation.backend
    assert {1, 2, 4, 6, 7} <= set(system.row_laws.law.tolist()) and system.linear.exact.any()
    for force in (2.0, -3.0):
        slide.apply_force(force)
        simulation.control.efforts.before_step()  # sets the row
        before, start = copied(stepper.memory), stepper.time
        rule = scheme(simulation.model.settings.integrator, DT)
        mode = stepper.modes.of(stepper.constrained)
        ch2, weights = rule.c * DT * DT, row_weights(rule, mode, *system.row_bodies)
        law, p = system.laws(before, weights, ch2, start + DT, simulation.model.settings.eps_v)
        expected_shift = system.shifts(before, ch2)
        with pytest.MonkeyPatch.context() as patch:
            seen = begun(backend, patch)
            # impacts turn rotors after the step
            patch.setattr(stepper.rebounds, "rebound", lambda *_: None)
            simulation.step()
        for one, other in zip(seen, (law, p, expected_shift), strict=True):
            assert_close(one, other, CLOSE)
        applied, after = stepper.applied, stepper.memory
        expected = system.remember(before, stepper.q, weights, applied.p, applied.shift, ch2)
        expected.history[4] = working_forces(system, applied, expected.history[0])
        for name in ("reference", "multiplier", "linear"):
            assert_close(getattr(after, name), getattr(expected, name), 1e-11)
        for row, other in zip(after.history, expected.history, strict=True):
            assert_close(row, other, 1e-9)


def test_contact_statistics_equal_the_definitions():
    scene = abd.Scene(solver={"dt": DT, "d_hat": 2e-3})
    scene.add_material("default", mu=0.3)
    scene.add_body("ground", half_space={})
    for k in range(3):
        scene.add_body(f"box{k}", box=(0.1,) * 3, position=(0.3 * k, 0, 0.051), velocity=(0.5, 0, 0))
    scene.add_body("above", box=(0.1,) * 3, position=(0, 0, 3.0))
    simulation = abd.run(scene, steps=8, device=NAME)
    stepper = simulation.stepper
    found, q = stepper.statistics, stepper.q
    definition = NumpyBackend(simulation.model)
    # the boxes start within their activation
    definition.touch.set_pair_parameters(simulation.backend.pair_law.own)
    definition.states.load_state(q, stepper.qd, q, stepper.qd)
    definition.steps.begin(scheme("bdf1", DT), np.zeros(simulation.backend.n, int), 1e-5, None)
    definition.arcs.aim_at_targets(np.zeros(simulation.backend.n, int))
    assert found.contacts == definition.readings.contact_statistics()[1] > 0
    assert found.smallest_gap == pytest.approx(definition.readings.smallest_gap(), rel=1e-10)
    assert found.contact == pytest.approx(definition.contacts.energy(q).sum() / DT**2, rel=1e-9)
    assert found.friction_work < 0.0 and stepper.work.friction < found.friction_work
    np.testing.assert_array_equal(simulation.backend.touch.touching(), definition.touch.touching())
    assert stepper.constrained.tolist() == [False, True, True, True, False]
    definition.states.velocity = stepper.qd
    assert_close(simulation.backend.readings.vertex_speeds(), definition.readings.vertex_speeds(), CLOSE)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 5000])
def test_totals_do_not_depend_on_threads_or_capacity(count):
    """Totals are folded in chunks of 64 (three levels for 5000 items), without remains of larger counts."""
    totals = Totals(DEVICE, {"other": Section(1, 1), "contact": Section(4, statistics.CONTACT_SUMS)})
    rng = np.random.default_rng(count)
    scene = abd.Scene()
    for name, x in (("a", 0.0), ("b", 1.0)):
        scene.add_body(name, box=(0.1, 0.1, 0.1), position=(x, 0, 0))
    model = scene.compile()
    law, listed = PairLaw(model), CandidateList()
    listed.pairs = DEVICE.upload([[0, 1]], wp.vec2i)
    between, activation = upload_law(law, DEVICE), law.d_hat.min()
    for size in (6000, count):
        energy, gap = rng.normal(size=size), 4.0 * rng.uniform(size=size)
        arrays = [DEVICE.upload(one, wp.float64) for one in (energy, gap)]
        listed.items = DEVICE.upload(np.zeros((max(size, 1), 4)), wp.vec4i)
        scale, listed.counts = DEVICE.upload([2.0, 4.0], wp.float64), DEVICE.upload([1, size], wp.int32)
        totals.launch("contact", statistics.contact_statistics, size, listed, *arrays, between, scale, grain=1)
    found = totals.read()["contact"]
    # launches that cover more than there is come to the same
    totals.fill("contact")
    totals.launch("contact", statistics.contact_statistics, 7000, listed, *arrays, between, scale, grain=1)
    assert totals.read()["contact"] == found
    total, active, closest, _ = found
    assert total == pytest.approx(0.5 * energy.sum(), abs=1e-12 * np.abs(energy).sum())
    assert active == np.count_nonzero(gap < 1.0)
    assert -closest == pytest.approx(activation * gap.min(initial=np.inf), rel=1e-14)
    assert totals.read()["other"] == [0.0]


@pytest.mark.parametrize("device", [NAME, "numpy"])
def test_report_does_not_change_after_its_step(device):
    simulation = abd.Simulation(everything(), device=device)
    report = simulation.step()
    read, kinetic = simulation.joint_readings(), report.energy["kinetic"]
    angular = report.momentum["angular"].copy()
    q = simulation.stepper.q
    kept = q.copy()
    simulation.step()
    assert report.energy["kinetic"] == kinetic and (report.momentum["angular"] == angular).all()
    assert (read.q == kept).all() and (q == kept).all() and not (simulation.stepper.q == kept).all()
    assert float(read.energy.sum()) == pytest.approx(report.energy["joint"], rel=1e-9)
