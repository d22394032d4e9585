"""Step statistics: kernels against definitions."""

import numpy as np
import pytest
import warp as wp
from common_scenes import every_law, on_ground
from on_device import DEVICE, NAME, assert_close

import abd
from abd.backends.device.totals import Section, Totals
from abd.backends.device.upload import upload_law
from abd.backends.reference.on_numpy import NumpyBackend
from abd.contact.pair_law import PairLaw
from abd.potentials.integrators import scheme
from cuda_kernels.contact.surfaces import CandidateList
from cuda_kernels.step import statistics

pytestmark = pytest.mark.device

DT = 0.01
CLOSE = 1e-12


def test_contact_statistics_equal_the_definitions():
    scene = on_ground(0.3, dt=DT, d_hat=2e-3)
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
    simulation = abd.Simulation(every_law(), device=device)
    report = simulation.step()
    read, kinetic = simulation.joint_readings(), report.energy["kinetic"]
    angular = report.momentum["angular"].copy()
    q = simulation.stepper.q
    kept = q.copy()
    simulation.step()
    assert report.energy["kinetic"] == kinetic and (report.momentum["angular"] == angular).all()
    assert (read.q == kept).all() and (q == kept).all() and not (simulation.stepper.q == kept).all()
    assert float(read.energy.sum()) == pytest.approx(report.energy["joint"], rel=1e-9)
