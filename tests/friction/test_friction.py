"""Friction against ipctk (displacements stand for its velocities, eps for its eps_v) and its own derivatives."""

from dataclasses import fields, replace

import numpy as np
import pytest
from half_spaces import half_space_contacts
from ipctk_scene import scatter_gradient, scatter_hessian, scenes
from ulp import assert_agrees

from abd.potentials import contact, friction, mollifier
from abd.potentials.contact import ContactParameters

ipctk = pytest.importorskip("ipctk")

D_HAT = 1e-2
KAPPA = 1e7
MU = 0.3
EPS = 1e-5
PARAMETERS = ContactParameters(KAPPA, D_HAT)
SCENES = scenes(D_HAT)
SLIPS = (0.0, 1e-2 * EPS, 0.7 * EPS, 3.0 * EPS, 1e3 * EPS)


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


def without_parallel(scene, contacts, lagged: friction.Lagged) -> np.ndarray:
    """Those (l,) that are not of nearly parallel edges, which ipctk leaves out."""
    x = contacts.positions(np.tile(np.concatenate([np.zeros(3), np.eye(3).ravel()]), (2, 1)))[lagged.source]
    return mollifier.value(x, contact.thresholds(contacts[lagged.source])) == 1.0


@pytest.mark.parametrize("size", SLIPS)
@pytest.mark.parametrize("name", SCENES)
def test_equals_ipctk(name, size):
    scene, contacts, lagged, index = lagged_scene(name)
    compared = without_parallel(scene, contacts, lagged)
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


def test_scalar_functions_equal_ipctk():
    y = EPS * np.array([0.0, 1e-6, 0.1, 0.5, 0.999, 1.0, 1.001, 10.0])
    for ours, theirs in (
        (friction.f0, ipctk.smooth_friction_f0),
        (friction.f1, ipctk.smooth_friction_f1),
        (friction.f1_over_y, ipctk.smooth_friction_f1_over_x),
        (friction.f2, ipctk.smooth_friction_f2),
    ):
        expected = np.array([theirs(value, EPS) for value in y])
        np.testing.assert_allclose(ours(y, EPS), expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


def test_normal_force_is_the_derivative_of_the_contact_energy():
    contacts, x = half_space_contacts(1, 10)
    lagged = friction.lag(x, contacts, PARAMETERS)
    step = 1e-8
    lift = step * contacts.plane[:, None, :3]
    slope = contact.energy(x + lift, contacts, PARAMETERS) - contact.energy(x - lift, contacts, PARAMETERS)
    np.testing.assert_allclose(lagged.load, -0.5 * slope / (2 * step), rtol=1e-5)
    np.testing.assert_allclose(lagged.n, contacts.plane[:, :3], atol=1e-12)


@pytest.mark.parametrize("angle", [0.1, 0.03, 0.01, 0.003, 0.0003])
def test_friction_of_nearly_parallel_edges_fades_with_their_force(angle):
    contacts, x = crossing_edges(angle)
    lagged = friction.lag(x, contacts, PARAMETERS)
    step = 1e-3 * D_HAT
    lift = step * np.array([0.0, 0.0, 1.0]) * np.array([1.0, 1.0, 0.0, 0.0])[None, :, None]
    slope = contact.energy(x + lift, contacts, PARAMETERS) - contact.energy(x - lift, contacts, PARAMETERS)
    np.testing.assert_allclose(lagged.load, -contacts.mu * slope / (2 * step), rtol=1e-5)


def crossing_edges(angle: float) -> tuple[contact.Contacts, np.ndarray]:
    """Two edges of 1 m, one half an activation above the other and turned by an angle."""
    scene = SCENES["boxes shifted both ways"]
    contacts, _ = scene.contacts(mu=MU)
    one = contacts[np.flatnonzero(contacts.stencil == contact.Stencil.EDGE_EDGE)[:1]]
    along = np.array([np.cos(angle), np.sin(angle), 0.0])
    x = np.array([[-along, along, [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]]) * 0.5
    x[0, :2, 2] = 0.5 * D_HAT
    return replace(one, rest=x), x


@pytest.mark.parametrize("stretched", [0.0, 0.6])
@pytest.mark.parametrize("size", [0.3 * EPS, 3.0 * EPS])
@pytest.mark.parametrize("name", ["boxes shifted both ways", "tetrahedra 1", "half-spaces"])
def test_elements_are_the_derivatives_by_the_bodies(name, size, stretched):
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
    for k in range(24):
        move = (step * (np.arange(24) == k)).reshape(2, 12)
        slope = (energy(q + move) - energy(q - move)) / (2 * step)
        assert g[k] == pytest.approx(slope, rel=1e-5, abs=1e-5 * np.abs(g).max())
        column = (gradient(q + move)[0] - gradient(q - move)[0]) / (2 * step)
        np.testing.assert_allclose(H[:, k], column, rtol=1e-4, atol=1e-5 * np.abs(H).max())


@pytest.mark.parametrize("size", [0.3, 3.0])
def test_model_with_full_regularisation_bounds_the_friction_energy(size):
    scene, _, lagged, index = lagged_scene("boxes shifted both ways")
    before = displacements(scene, size * EPS)[index]
    f, K = friction._force_and_stiffness(lagged, before, EPS, 1.0)
    slip = np.einsum("mk,mki->mi", lagged.w, before)
    rng = np.random.default_rng(5)
    for reach in (0.1, 1.0, 10.0):
        after = before + reach * size * EPS * rng.normal(size=before.shape)
        du = np.einsum("mk,mki->mi", lagged.w, after) - slip
        model = np.einsum("mi,mi->m", f, du) + 0.5 * np.einsum("mi,mij,mj->m", du, K, du)
        change = friction.energy(lagged, after, EPS) - friction.energy(lagged, before, EPS)
        assert (change <= model + 1e-9 * lagged.load * EPS).all()
        # the curvature itself is overtaken by slips that turn round
        if reach == 10.0 and size == 3.0:
            _, exact = friction._force_and_stiffness(lagged, before, EPS)
            assert (change > np.einsum("mi,mi->m", f, du) + 0.5 * np.einsum("mi,mij,mj->m", du, exact, du)).any()
