"""Contact potential: sum, gradient and Hessian against ipctk, and the elements the solver assembles."""

import numpy as np
import pytest
from differences import differences
from half_spaces import half_space_contacts
from ipctk_scene import scatter_gradient, scatter_hessian, scenes
from ulp import assert_agrees

from abd.potentials import contact
from abd.potentials.barrier import BARRIERS
from abd.potentials.contact import ContactParameters, Stencil

ipctk = pytest.importorskip("ipctk")

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


def body_energy(q, contacts, parameters):
    return np.sum(contact.energy(contacts.positions(q), contacts, parameters))


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
        energies = [body_energy(q + s * direction.reshape(2, 12), contacts, parameters) for s in (step, 0.0, -step)]
        second = (energies[0] - 2 * energies[1] + energies[2]) / step**2
        assert direction @ block @ direction == pytest.approx(second, rel=1e-4)
