"""Contact potential: sum, gradient and Hessian against ipctk, and the elements the solver assembles."""

import numpy as np
import pytest
from half_spaces import half_space_contacts
from ipctk_scene import scatter_gradient, scatter_hessian, scenes
from ulp import assert_agrees

from abd.potentials import contact, mollifier
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
    step = 1e-8
    for k in range(3):
        move = np.zeros((4, 3))
        move[0, k] = step
        rise = contact.energy(x + move, contacts, parameters) - contact.energy(x - move, contacts, parameters)
        turn = contact.gradient(x + move, contacts, parameters) - contact.gradient(x - move, contacts, parameters)
        np.testing.assert_allclose(gradient[:, k], rise / (2 * step), rtol=1e-4, atol=1e-5 * np.abs(gradient).max())
        np.testing.assert_allclose(hessian[:, k], turn / (2 * step), rtol=1e-4, atol=1e-5 * np.abs(hessian).max())
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


@pytest.mark.parametrize("name", ["boxes turned by 0.01", "tetrahedra 1", "deformed tetrahedra", "rods and points"])
def test_element_gradients_sum_to_body_gradients(name):
    contacts, _ = SCENES[name].contacts()
    assert np.any(contacts.flipped) or name != "tetrahedra 1"
    parameters = ContactParameters(KAPPA, D_HAT)
    q = random_states(1)
    elements = contact.contact_elements(contacts.positions(q), contacts, parameters)
    gradient = np.stack([part.sum(axis=0) for part in elements.gradients()])
    step = 1e-8
    for body in range(2):
        for k in range(12):
            move = np.zeros((2, 12))
            move[body, k] = step
            slope = body_energy(q + move, contacts, parameters) - body_energy(q - move, contacts, parameters)
            assert gradient[body, k] == pytest.approx(slope / (2 * step), rel=2e-5, abs=2e-6 * np.abs(gradient).max())


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


def test_mollifier_element_is_the_gauss_newton_form_of_the_cross_product():
    contacts, _ = SCENES["boxes turned by 0.01"].contacts()
    parameters = ContactParameters(KAPPA, D_HAT)
    q = random_states(2)
    x = contacts.positions(q)
    elements = contact.contact_elements(x, contacts, parameters)
    second = np.flatnonzero(elements.Y_i[:, 0] == 0.0)
    assert len(second) == 2

    def cross(vector):
        state = vector.reshape(2, 12)[:, 3:].reshape(2, 3, 3)
        return np.cross(state[0] @ elements.Y_i[e, 1:], state[1] @ elements.Y_j[e, 1:])

    near = contact.closest(x, contacts)
    for e in second:
        c, eps_x = np.sum(cross(q.ravel()) ** 2), contact.thresholds(contacts)[elements.source[e]]
        slope = mollifier.mollifier(c, eps_x)[1]
        b = contact.barrier("log", near.D[elements.source[e]], D_HAT)[0]
        jacobian = np.stack([cross(q.ravel() + 0.5 * row) - cross(q.ravel() - 0.5 * row) for row in np.eye(24)], axis=1)
        expected = 2.0 * KAPPA * b * slope * jacobian.T @ jacobian
        ii, ij, jj = (part[e] for part in elements.blocks())
        block = np.block([[ii, ij], [ij.T, jj]])
        np.testing.assert_allclose(block, expected, atol=1e-9 * np.abs(expected).max() + 1e-12)
