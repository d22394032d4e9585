"""Potentials of contact and friction: sums, gradients and Hessians against ipctk, and the elements that the solver assembles.

For friction, displacements stand for the velocities of ipctk, and eps for its eps_v.
"""

from dataclasses import fields, replace

import numpy as np
import pytest
from differences import assert_agrees, differences
from ipctk_scene import half_space_contacts, scatter_gradient, scatter_hessian, scenes

from abd.potentials import contact, friction, mollifier
from abd.potentials.barrier import BARRIERS
from abd.potentials.contact import ContactParameters, Stencil

ipctk = pytest.importorskip("ipctk")

pytestmark = pytest.mark.usefixtures("without_core")

D_HAT = 1e-2
KAPPA = 1e7
SCENES = scenes(D_HAT)
IPCTK_BARRIERS = {"log": ipctk.ClampedLogBarrier, "log_sq": ipctk.ClampedLogSqBarrier}


def reference(scene, kind):
    """ipctk's energy, gradient and Hessian of a scene as functions of the vertices (v, 3)."""
    mesh, candidates = scene.ipctk_mesh(ipctk)
    potential = ipctk.BarrierPotential(IPCTK_BARRIERS[kind](), D_HAT, KAPPA)

    def of(function):
        def at(vertices):
            vertices, collisions = np.asfortranarray(vertices), ipctk.NormalCollisions()
            collisions.build(candidates, mesh, vertices, D_HAT, scene.xi)
            assert len(collisions) > 0
            return function(collisions, mesh, vertices)

        return at

    return of(potential), of(potential.gradient), of(lambda *given: potential.hessian(*given).toarray())


@pytest.mark.parametrize("kind", IPCTK_BARRIERS)
@pytest.mark.parametrize("name", SCENES)
def test_sum_gradient_and_hessian_equal_ipctk(name, kind):
    scene = SCENES[name]
    contacts, index = scene.contacts()
    parameters = ContactParameters(KAPPA, D_HAT, kind)
    x, count = scene.vertices[index], len(scene.vertices)
    energy = np.sum(contact.energy(x, contacts, parameters))
    gradient = scatter_gradient(contact.gradient(x, contacts, parameters), index, count)
    hessian = scatter_hessian(contact.hessian(x, contacts, parameters), index, count)
    assert energy > 0
    for what, value, known in zip(("energy", "gradient", "Hessian"), (energy, gradient, hessian), reference(scene, kind)):
        assert_agrees(value, known, scene.vertices, context=f"{name}, {what}")


@pytest.mark.parametrize("kind", BARRIERS)
def test_half_spaces_by_finite_differences(kind):
    contacts, x = half_space_contacts(0, 20)
    parameters = ContactParameters(KAPPA, D_HAT, kind)
    gradient, hessian = contact.gradient(x, contacts, parameters), contact.hessian(x, contacts, parameters)

    def moved(function):
        """Return a function of the displacement (3,) of the points."""
        return lambda shift: function(x + np.pad(shift[None], ((0, 3), (0, 0))), contacts, parameters)

    rise, turn = (differences(moved(function), np.zeros(3), 1e-8) for function in (contact.energy, contact.gradient))
    np.testing.assert_allclose(gradient[:, :3].T, rise, rtol=1e-4, atol=1e-5 * np.abs(gradient).max())
    np.testing.assert_allclose(hessian[:, :3].swapaxes(0, 1), turn, rtol=1e-4, atol=1e-5 * np.abs(hessian).max())
    below = x - 2 * D_HAT * contacts.plane[:, None, :3]
    assert np.all(np.isinf(contact.energy(below, contacts, parameters)))
    assert np.all(contact.gradient(below, contacts, parameters) == 0.0)
    assert len(contact.contact_elements(below, contacts, parameters)) == 0


def random_states(seed: int) -> np.ndarray:
    """(2, 12) states of two nearly rigid bodies near the identity."""
    q = np.concatenate([np.zeros((2, 3)), np.tile(np.eye(3).ravel(), (2, 1))], axis=1)
    return q + 1e-4 * np.random.default_rng(seed).normal(size=(2, 12))


def assembled(elements) -> np.ndarray:
    """(24, 24) second derivative of the two bodies."""
    ii, ij, jj = (block.sum(axis=0) for block in elements.blocks())
    return np.block([[ii, ij], [ij.T, jj]])


@pytest.mark.parametrize("kind", BARRIERS)
@pytest.mark.parametrize("name", SCENES)
def test_elements_are_positive_semi_definite(name, kind):
    scene = SCENES[name]
    contacts, index = scene.contacts()
    elements = contact.contact_elements(scene.vertices[index], contacts, ContactParameters(KAPPA, D_HAT, kind))
    ii, ij, jj = elements.blocks()
    single = np.block([[ii, ij], [ij.transpose(0, 2, 1), jj]])
    values = np.linalg.eigvalsh(single)
    assert np.all(values[:, 0] >= -1e-12 * np.maximum(values[:, -1], 1e-300))


def test_blocks_are_the_second_derivative_along_the_normal():
    """For two flat faces the distance is linear in the states, so the block is exact."""
    contacts, _ = SCENES["boxes shifted both ways"].contacts()
    contacts = contacts[contacts.stencil == Stencil.POINT_TRIANGLE]
    parameters = ContactParameters(KAPPA, D_HAT)
    q = np.concatenate([np.zeros((2, 3)), np.tile(np.eye(3).ravel(), (2, 1))], axis=1)
    block = assembled(contact.contact_elements(contacts.positions(q), contacts, parameters))
    press = np.zeros(24)
    press[2], press[14] = 1.0, -1.0
    tilt = np.zeros(24)
    tilt[9] = 1.0  # A_zx of body 0: lifts its points in proportion to x
    step = 1e-5
    for direction in (press, tilt, press + tilt):
        states = (q + s * direction.reshape(2, 12) for s in (step, 0.0, -step))
        energies = [contact.energy(contacts.positions(one), contacts, parameters).sum() for one in states]
        second = (energies[0] - 2 * energies[1] + energies[2]) / step**2
        assert direction @ block @ direction == pytest.approx(second, rel=1e-4)


MU = 0.3
EPS = 1e-5
PARAMETERS = ContactParameters(KAPPA, D_HAT)


def lagged_scene(name: str):
    scene = SCENES[name]
    contacts, index = scene.contacts(mu=MU)
    lagged = friction.lag(scene.vertices[index], contacts, PARAMETERS)
    return scene, contacts, lagged, index[lagged.source]


def displacements(scene, size: float) -> np.ndarray:
    """(v, 3) displacements: a slide of the second body, with scatter."""
    u = 0.3 * np.random.default_rng(0).normal(size=scene.vertices.shape)
    u[scene.split :] += [1.0, 0.5, 0.1]
    return size * u


@pytest.mark.parametrize("size", [0.0, 1e-2 * EPS, 0.7 * EPS, 3.0 * EPS, 1e3 * EPS])
@pytest.mark.parametrize("name", SCENES)
def test_friction_equals_ipctk(name, size):
    scene, contacts, lagged, index = lagged_scene(name)
    # ipctk leaves out nearly parallel edges
    x = contacts.positions(np.tile(np.concatenate([np.zeros(3), np.eye(3).ravel()]), (2, 1)))[lagged.source]
    compared = mollifier.value(x, contact.thresholds(contacts[lagged.source])) == 1.0
    lagged = friction.Lagged(*(getattr(lagged, one.name)[compared] for one in fields(lagged)))
    index = index[compared]
    mesh, candidates = scene.ipctk_mesh(ipctk)
    count = len(scene.vertices)
    u = displacements(scene, size)
    barrier_potential = ipctk.BarrierPotential(ipctk.ClampedLogBarrier(), D_HAT, KAPPA)
    friction_potential = ipctk.FrictionPotential(EPS)

    def reference(verb):
        """The verb of ipctk as a function of lagged vertices and displacements (2, v, 3)."""

        def evaluate(both):
            vertices, moved = (np.asfortranarray(part) for part in both)
            normal, tangential = ipctk.NormalCollisions(), ipctk.TangentialCollisions()
            normal.build(candidates, mesh, vertices, D_HAT, scene.xi)
            tangential.build(mesh, vertices, normal, barrier_potential, MU)
            value = verb(tangential, mesh, moved)
            return value.toarray() if hasattr(value, "toarray") else value

        return evaluate

    both = np.stack([scene.vertices, u])
    energy = np.sum(friction.energy(lagged, u[index], EPS))
    gradient = scatter_gradient(friction.gradient(lagged, u[index], EPS), index, count)
    hessian = scatter_hessian(friction.hessian(lagged, u[index], EPS), index, count)
    assert_agrees(energy, reference(friction_potential), both, context=f"{name}, energy")
    assert_agrees(gradient, reference(friction_potential.gradient), both, context=f"{name}, gradient")
    assert_agrees(hessian, reference(friction_potential.hessian), both, context=f"{name}, Hessian")


def crossing_edges(angle: float) -> tuple[contact.Contacts, np.ndarray]:
    """Two edges of 1 m, one half an activation above the other and turned by an angle."""
    contacts, _ = SCENES["boxes shifted both ways"].contacts(mu=MU)
    one = contacts[np.flatnonzero(contacts.stencil == contact.Stencil.EDGE_EDGE)[:1]]
    along = np.array([np.cos(angle), np.sin(angle), 0.0])
    x = np.array([[-along, along, [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]]) * 0.5
    x[0, :2, 2] = 0.5 * D_HAT
    return replace(one, rest=x), x


@pytest.mark.parametrize("angle", [None, 0.1, 0.03, 0.01, 0.003, 0.0003])
def test_the_load_is_the_derivative_of_the_contact_energy(angle):
    """This holds above half-spaces, and for nearly parallel edges, whose friction fades with their force."""
    contacts, x = half_space_contacts(1, 10) if angle is None else crossing_edges(angle)
    lagged = friction.lag(x, contacts, PARAMETERS)
    lift = np.zeros_like(x) + contacts.plane[:, None, :3]
    lift[:, :2, 2] += angle is not None
    step = 1e-5 * D_HAT
    ends = [contact.energy(x + s * step * lift, contacts, PARAMETERS) for s in (1, -1)]
    np.testing.assert_allclose(lagged.load, -contacts.mu * (ends[0] - ends[1]) / (2 * step), rtol=1e-5)
    np.testing.assert_allclose(lagged.n, [[0, 0, 1]] if angle else contacts.plane[:, :3], atol=1e-12)


@pytest.mark.parametrize("stretched", [0.0, 0.6])
@pytest.mark.parametrize("size", [0.3 * EPS, 3.0 * EPS])
@pytest.mark.parametrize("name", ["boxes shifted both ways", "tetrahedra 1", "half-spaces"])
def test_friction_elements_are_the_derivatives_by_the_bodies(name, size, stretched):
    if name == "half-spaces":
        contacts, x = half_space_contacts(2, 5)
        lagged = friction.lag(x, contacts, PARAMETERS)
    else:
        _, contacts, lagged, _ = lagged_scene(name)
    aside = np.cross(lagged.n, np.random.default_rng(4).normal(size=lagged.n.shape))
    lagged = replace(lagged, start_stretch=stretched * aside / np.linalg.norm(aside, axis=1)[:, None])
    rest = np.tile(np.concatenate([np.zeros(3), np.eye(3).ravel()]), (2, 1))
    q = rest + size * np.random.default_rng(3).normal(size=(2, 12))
    points = contacts.positions(rest)[lagged.source]

    def energy(q):
        return np.sum(friction.energy(lagged, contacts.positions(q)[lagged.source] - points, EPS))

    def gradient(q):
        moved = contacts.positions(q)[lagged.source] - points
        elements = friction.friction_elements(lagged, moved, EPS)
        return np.concatenate([part.sum(axis=0) for part in elements.gradients()]), elements

    g, elements = gradient(q)
    ii, ij, jj = (block.sum(axis=0) for block in elements.blocks())
    H = np.block([[ii, ij], [ij.T, jj]])
    assert np.linalg.eigvalsh(H)[0] >= -1e-12 * np.linalg.eigvalsh(H)[-1]
    step = 1e-5 * EPS
    np.testing.assert_allclose(g, differences(energy, q, step), rtol=1e-5, atol=1e-5 * np.abs(g).max())
    turn = differences(lambda q: gradient(q)[0], q, step)
    np.testing.assert_allclose(H, turn, rtol=1e-4, atol=1e-5 * np.abs(H).max())
