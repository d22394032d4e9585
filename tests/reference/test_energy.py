"""Energy and momenta of conservative mechanisms, and their convergence."""

import mechanisms
import numpy as np
import pytest
from mechanisms import CONSERVED, energies
from on_device import NAME

import abd
from abd.energies import momenta
from abd.io.initial import initial_report

pytestmark = pytest.mark.device


STEPS = {"slider_crank": 5e-3, "governor": 5e-3, "double_pendulum": 5e-3, "stiff_springs": 2e-3}


@pytest.mark.parametrize("name", STEPS)
def test_energy_is_conserved(name):
    """The error is 3 % in 1500 of the longest steps, and a quarter of that with steps half as long."""
    lost = []
    for parts in (1, 2):
        simulation = abd.Simulation(getattr(mechanisms, name)(STEPS[name] / parts), device=NAME)
        start = initial_report(simulation.model, simulation.host_state(), simulation.initial_contacts).energy
        reports = [start, *(simulation.step().energy for _ in range(1500 * parts))]
        found = np.array([sum(energy[part] for part in CONSERVED) for energy in reports])
        lost.append(np.abs((found - found[0]) / max(energy["kinetic"] for energy in reports[1:]))[1001:].max())
    assert lost[0] < 0.03 and lost[1] < 0.3 * lost[0] + 1e-6


def cart(dt: float) -> abd.Simulation:
    """A pendulum on a cart on a level rail."""
    scene = abd.Scene(gravity=(0, 0, -9.81), solver={"dt": dt})
    keys = {"proxy": True, "mass": 1.0, "inertia": (0.01,) * 3, "velocity": (1, 0, 0)}
    scene.add_body("cart", **keys)
    scene.add_body("bob", position=(0.7, 0, -0.7), **keys)
    scene.add_joint("slider", "rail", abd.WORLD, "cart", anchor=(0, 0, 0), axis=(1, 0, 0), enforcement="exact")
    scene.add_hinge("hinge", "cart", "bob", anchor=(0, 0, 0), axis=(0, 1, 0), enforcement="exact")
    return abd.Simulation(scene, device=NAME)


def test_momentum_along_a_rail_is_conserved():
    """Momentum is exact; the energy has the order of the integrator."""
    lost = []
    for parts in (1, 2):
        simulation = cart(0.01 / parts)
        before = momenta(simulation.model, simulation.stepper.q, simulation.stepper.qd)[0][0]
        found = energies(simulation, 1000 * parts)
        lost.append(np.ptp(found[2 * parts :]))
        after = momenta(simulation.model, simulation.stepper.q, simulation.stepper.qd)[0][0]
        assert after == pytest.approx(before, abs=1e-6)
    assert lost[0] < 1e-3 * 5.9 and lost[1] < 0.3 * lost[0]


@pytest.mark.parametrize("device", ["numpy", NAME])
def test_free_mechanisms_conserve_energy_and_momenta(device):
    scene = abd.Scene(gravity=(0, 0, -9.81), solver={"dt": 0.01})
    scene.add_body("one", box=(0.4, 0.1, 0.1), density=1000, velocity=(1, 2, 3), angular_velocity=(3, 2, 1))
    motion = {"velocity": (1, 2, 3), "angular_velocity": (-1, 5, 2)}
    scene.add_body("two", box=(0.4, 0.1, 0.1), density=1000, position=(0.4, 0.05, 0), **motion)
    scene.add_joint("spherical", "joint", "one", "two", anchor=(0.2, 0.02, 0), enforcement="exact")
    simulation = abd.Simulation(scene, device=device)

    def spin() -> np.ndarray:
        m, q, qd = simulation.model.bodies.mass, simulation.stepper.q, simulation.stepper.qd
        P, L = momenta(simulation.model, q, qd)
        return L - np.cross(m @ q[:, :3] / m.sum(), P)

    found = [energies(simulation, 1)[0]]
    first = spin()
    found.extend(energies(simulation, 100 if device == "numpy" else 1000))
    assert np.ptp(found) < 1e-5 * abs(found[0])
    np.testing.assert_allclose(spin(), first, atol=4e-5 * np.linalg.norm(first))


@pytest.mark.parametrize("frequency", [50.0, 400.0])
def test_vibration_does_not_affect_slow_motions(frequency):
    """A pendulum swings by 0.005 rad on a compliant hinge or spring that vibrates far more."""
    start, swung = 0.005, []
    for kind in ("compliant", "spring"):
        scene = abd.Scene(gravity=(0, 0, -9.81), solver={"dt": 0.01})
        where = (np.sin(start), 0, -np.cos(start))
        scene.add_body("bob", proxy=True, mass=1.0, inertia=(0.01,) * 3, position=where)
        if kind == "compliant":
            soft = {"enforcement": "compliant", "compliance": [1.0 / frequency**2] * 3 + [1e-9] * 2}
            scene.add_hinge("hinge", abd.WORLD, "bob", anchor=(0, 0, 0), axis=(0, 1, 0), **soft)
        else:
            ends = {"parent_anchor": (0, 0, 0), "child_anchor": (0, 0, 0)}
            scene.add_spring("spring", abd.WORLD, "bob", frequency**2, rest_length=1.0, **ends)
        simulation = abd.Simulation(scene, device=NAME)
        # a vibration that steps do not resolve fades, and its energy goes to no other motion
        angles = []
        for _ in range(1200):
            simulation.step()
            x, _, z = simulation.bodies["bob"].position
            angles.append(abs(np.arctan2(x, -z)))
        swung.append(max(angles[600:]))
    np.testing.assert_allclose(swung, start, rtol=0.02)


def test_pendulum_at_rest_stays_at_rest():
    for enforcement in ("exact", "penalty"):
        scene = abd.Scene(gravity=(0, 0, -9.81), solver={"dt": 0.01})
        for k in range(3):
            scene.add_body(f"link{k}", box=(0.05, 0.05, 0.5), density=1000, position=(0, 0, -0.25 - 0.5 * k))
            parent = f"link{k - 1}" if k else abd.WORLD
            scene.add_hinge(f"hinge{k}", parent, f"link{k}", anchor=(0, 0, -0.5 * k), axis=(0, 1, 0), enforcement=enforcement)
        simulation = abd.run(scene, steps=600, device=NAME)
        assert np.abs(simulation.stepper.qd).max() < 1e-6
