"""Free motion and conservative mechanisms: what the integrators keep exactly, what they lose, and what forces and impacts add.

The closed forms are those of the *discrete* schemes (docs/theory.md, "The incremental potential"), so that they hold to rounding
and not only to the order of the scheme. Two are derived here.

Constant acceleration a: bdf1 gives ``x_n = x_0 + n h v_0 + h^2 a n (n + 1)/2``, generalized alpha is exact.

Rigid rotation about a principal axis: the columns of A across the axis turn together, so each is a complex number z.
The near-rigidity energy makes no torque, hence ``Im(conj(z_{n+1}) zt) = -c h^2 tau / I`` with zt the inertial target
of the scheme and |z| = 1: a recursion for the angle. The target is turned by the free motion.
"""

import mechanisms
import numpy as np
import pytest
from mechanisms import CONSERVED, energies
from on_device import NAME, assert_no_net_wrench, random_states

import abd
from abd.energies import momenta
from abd.io.frame import initial_report
from abd.potentials import arap, orthogonality
from abd.potentials.integrators import scheme

pytestmark = pytest.mark.device

BOX = (0.4, 0.3, 0.2)
INTEGRATORS = ("generalized_alpha", "bdf1")


def run(scene: abd.Scene, steps: int) -> tuple[abd.Simulation, list]:
    """The simulation after `steps` frames on the processor, and their reports."""
    simulation = abd.Simulation(scene, device=NAME)
    return simulation, [simulation.step() for _ in range(steps)]


def free_box(integrator: str, h: float, gravity=(0.0, 0.0, 0.0), tolerance: float = 1e-6, **body) -> abd.Scene:
    """One box of 24 kg in empty space."""
    scene = abd.Scene(gravity=gravity, solver={"dt": h, "integrator": integrator, "tolerance": tolerance})
    scene.add_body("box", box=BOX, density=1000.0, **body)
    return scene


def principal_inertia() -> np.ndarray:
    """(3,) moments of inertia of the box about its axes x, y, z [kg m^2]."""
    m, squares = 1000.0 * np.prod(BOX), np.square(BOX)
    return m / 12.0 * (squares.sum() - squares)


def discrete_angles(integrator: str, h: float, steps: int, w0: float, tau_over_inertia: float) -> np.ndarray:
    """(steps + 1,) angles [rad] of a rigid body turning about a principal axis, by the recursion above.

    The implicit part c h^2 tau / I of the displacement is the sine of the angle that is missing, the explicit part of
    generalized alpha, 1/2 - c, turns the target."""
    first = 1.0 if integrator == "bdf1" else 0.5
    shares = np.full(steps, first if integrator == "bdf1" else scheme(integrator, h).c)
    shares[0] = first
    turned = np.arcsin(shares * h * h * tau_over_inertia) + (first - shares) * h * h * tau_over_inertia
    speeds = w0 + h * tau_over_inertia * np.arange(steps)
    return np.concatenate([[0.0], np.cumsum(h * speeds + turned)])


@pytest.mark.parametrize("force", [(0.0, 0.0, 0.0), (12.0, -7.0, 30.0)])
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_free_fall_is_the_closed_form_of_the_scheme(integrator, force):
    h, steps, v0 = 0.01, 50, np.array([1.0, -2.0, 3.0])
    gravity = (0.0, 0.0, -9.81)
    simulation, reports = run(free_box(integrator, h, gravity, velocity=tuple(v0), force=force), steps)
    a = np.array(gravity) + np.array(force) / (1000.0 * np.prod(BOX))
    n = float(steps)
    share = n * (n + 1.0) / 2.0 if integrator == "bdf1" else n * n / 2.0
    box = simulation.bodies["box"]
    np.testing.assert_allclose(box.transform[:3, 3], n * h * v0 + h * h * a * share, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(box.velocity[:3, 3], v0 + n * h * a, rtol=1e-12, atol=1e-12)
    work = reports[-1].energy["external_work"]
    assert work == pytest.approx(np.dot(force, box.transform[:3, 3]), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("turn", [0.05, 1.0, 5.0])
@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (4.0, 1.0, -5.0)], ids=["principal axis", "tumbling"])
def test_a_free_spinner_loses_nothing(integrator, turn, axis):
    """It rotates by `turn` rad per step for a second."""
    spin = turn / 0.01 * np.array(axis) / np.linalg.norm(axis)
    _, reports = run(free_box(integrator, 0.01, angular_velocity=tuple(spin)), 100)
    momentum, energy = principal_inertia() * spin, 0.5 * principal_inertia() @ spin**2
    assert np.linalg.norm(reports[-1].momentum["angular"] - momentum) < 1e-10 * np.linalg.norm(momentum)
    assert abs(reports[-1].energy["kinetic"] - energy) < 1e-6 * energy


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_body_that_turns_freely_is_not_stretched(integrator):
    _, reports = run(free_box(integrator, 0.01, angular_velocity=(40.0, 10.0, -50.0), kappa=1e7), 50)
    assert max(report.max_orthogonality_error for report in reports) < 1e-12


@pytest.mark.parametrize(
    ("axis", "h", "w0", "tau"), [(0, 0.01, -1.0, 3.0), (1, 0.01, -1.0, 3.0), (2, 0.01, -1.0, 3.0), (2, 0.005, 6.0, 0.0)]
)
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_turn_about_a_principal_axis_follows_the_discrete_rotation(integrator, axis, h, w0, tau):
    steps, unit, inertia = round(1.0 / h), np.eye(3)[axis], principal_inertia()[axis]
    simulation, reports = run(free_box(integrator, h, angular_velocity=tuple(w0 * unit), torque=tuple(tau * unit)), steps)
    angles = discrete_angles(integrator, h, steps, w0, tau / inertia)
    transform = simulation.bodies["box"].transform
    i, j = (axis + 1) % 3, (axis + 2) % 3
    turned = np.arctan2(transform[j, i], transform[i, i])
    assert abs(np.angle(np.exp(1.0j * (turned - angles[-1])))) < 1e-6
    speed = w0 + h * steps * tau / inertia
    assert reports[-1].momentum["angular"][axis] == pytest.approx(inertia * speed, rel=1e-6, abs=1e-7)
    np.testing.assert_allclose(transform[:3, 3], 0.0, atol=1e-12)


def two_boxes(integrator: str, mu: float) -> abd.Scene:
    """A fast light box on its way to a heavy one at rest, which it meets off centre and askew."""
    scene = abd.Scene(gravity=(0.0, 0.0, 0.0), solver={"dt": 0.01, "integrator": integrator, "tolerance": 1e-3})
    scene.add_material("rough", mu=mu)
    scene.add_body("heavy", box=(0.4, 0.4, 0.4), material="rough")
    scene.add_body(
        "light", box=(0.2, 0.3, 0.1), position=(-0.6, 0.12, 0.07), axis_angle={"axis": (1.0, 2.0, 3.0), "degrees": 40.0},
        velocity=(3.0, 0.0, 0.0), angular_velocity=(0.0, 2.0, 1.0), material="rough",
    )
    return scene


@pytest.mark.parametrize("mu", [0.0, 0.5])
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_an_impact_keeps_the_linear_momentum_and_adds_no_energy(integrator, mu):
    simulation, reports = run(two_boxes(integrator, mu), 40)
    begin = simulation.model.bodies.mass[1] * np.array([3.0, 0.0, 0.0])
    drift = max(np.linalg.norm(report.momentum["linear"] - begin) for report in reports)
    assert np.linalg.norm(simulation.bodies["heavy"].velocity[:3, 3]) > 0.1, "they meet"
    assert drift < 1e-9 * np.linalg.norm(begin)
    totals = [sum(r.energy[name] for name in ("kinetic", "elastic", "contact")) for r in reports]
    assert np.all(np.diff(totals) <= 1e-3 * totals[0])
    assert reports[-1].energy["friction_work"] <= 0.0


@pytest.mark.parametrize("energy", [orthogonality, arap])
def test_near_rigidity_has_no_net_force_and_torque(energy):
    q = random_states(1, 0)
    g_A = energy.gradient(np.array([1e9]), q[:, 3:].reshape(-1, 3, 3))
    assert_no_net_wrench(q, np.concatenate([np.zeros((1, 3)), g_A.reshape(1, 9)], axis=1))


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
    np.testing.assert_allclose(spin(), first, atol=6e-5 * np.linalg.norm(first))


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
