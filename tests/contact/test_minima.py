"""Local minima and their friction: kernels against the definitions, the definitions against finite differences."""

from dataclasses import replace

import numpy as np
import pytest
from contact_models import ARRANGEMENTS, as_model, crossed_edges
from contact_on_device import DEVICE, Kernels, assembled, clear_of_the_plane, heavy, law
from differences import differences
from on_device import assert_close, pose_of

import abd
from abd.backends.warp.iterate import Iterate
from abd.contact.candidates import contacts, find_candidates
from abd.contact.minima import Minima, find_minima
from abd.contact.pairs import body_pairs
from abd.contact.path import standing
from abd.contact.surfaces import Surfaces
from abd.contact.topology import Topology
from abd.model import Model
from abd.potentials import contact, friction
from abd.potentials.contact import Stencil
from abd.potentials.rolling import Resistances


def local(model: Model) -> Model:
    """The model with contact at local minima; only meshes without loose parts are closed."""
    meshes = [replace(mesh, closed=len(mesh.codim_edges) + len(mesh.points) == 0) for mesh in model.meshes]
    return replace(model, meshes=meshes, settings=replace(model.settings, contact_set="minima"))


SCENES = {name: local(as_model(arrangement)) for name, arrangement in ARRANGEMENTS.items()}
SCENES |= {f"crowd {seed}": local(clear_of_the_plane(seed)) for seed in range(3)}
SCENES |= {"crowd with separation": local(clear_of_the_plane(4, minimum_separation=0.005))}


def parts_of(model: Model, found=None) -> tuple[Minima, contact.Contacts]:
    """The parts of candidates, by default of all that come near."""
    surfaces, pairs = Surfaces.of(model), body_pairs(model)
    if found is None:
        found = find_candidates(model, surfaces, pairs, standing(model.bodies.q), 2.0 * model.settings.d_hat)
    listed = contacts(model, surfaces, pairs, found)
    return find_minima(surfaces, Topology.of(model, surfaces), pairs, found, listed), listed


def definition(model: Model, parts: Minima, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradient (n, 12) and blocks (n, n, 12, 12) of the parts at the states q (n, 12)."""
    weights, x = parts.weights(q, law(model)), parts.contacts.positions(q)
    return assembled(len(q), parts.contacts, contact.contact_elements(x, parts.contacts, law(model), weights=weights))


def off_ties(model: Model) -> np.ndarray:
    """The model's states, moved so that no distances are equal: the energy has no second derivative at equal distances."""
    scale = np.abs(Surfaces.of(model).vertices).max()
    q = model.bodies.q + 1e-4 / scale * np.random.default_rng(0).normal(size=model.bodies.q.shape)
    q[:, 3:] = model.bodies.q[:, 3:] if scale > 10.0 else q[:, 3:]
    return q


def on_bodies(n: int, parts: contact.Contacts, gradient: np.ndarray) -> np.ndarray:
    """(n, 12) gradients of bodies from those (k, 12) of the parts' points."""
    points = np.concatenate([np.ones((len(parts), 4, 1)), parts.rest], axis=2)
    total = np.zeros((n, 3, 4))
    np.add.at(total, parts.owners, np.einsum("mki,mkj->mkij", gradient.reshape(-1, 4, 3), points))
    return np.concatenate([total[:, :, 0], total[:, :, 1:].reshape(n, 9)], axis=1)


@pytest.mark.parametrize("name", SCENES)
def test_the_gradient_is_that_of_the_energy(name):
    model = SCENES[name]
    parts, listed = parts_of(model)
    parameters, q = law(model), off_ties(model)
    weights, x = parts.weights(q, parameters), parts.contacts.positions(q)
    gradient = on_bodies(len(q), parts.contacts, contact.gradient(x, parts.contacts, parameters, weights))
    assert_close(definition(model, parts, q)[0], gradient)
    sound, size = np.isfinite(parts.energy(q, parameters, len(listed))), np.abs(gradient).max()
    slopes = differences(lambda q: parts.energy(q, parameters, len(listed))[sound].sum(), q, 1e-8)
    assert size > 0.0
    assert gradient.ravel() == pytest.approx(slopes, rel=2e-5, abs=5e-6 * size)


@pytest.mark.device
@pytest.mark.parametrize("per_item", [False, True], ids=["by runs", "per item"])
@pytest.mark.parametrize("name", SCENES)
def test_kernels_equal_the_definition(name, per_item):
    model, q = heavy(SCENES[name]), SCENES[name].bodies.q
    kernels = Kernels(model, standing(q), per_item=per_item)
    parts, listed = parts_of(model, kernels.candidates())
    energy, gap = kernels.energies(q)
    expected = parts.energy(q, law(model), len(listed))
    inside = np.isfinite(expected)
    assert np.count_nonzero(expected[inside]) > 0
    # where features tie, one candidate or another may carry them
    assert energy[inside].sum() == pytest.approx(expected[inside].sum(), rel=1e-9)
    assert (energy[~inside] >= 1e300).all() and (gap[~inside] <= 0.0).all()
    assert_close(kernels.linearized(q)[0], definition(model, parts, q)[0])
    moved = off_ties(model)
    for value, reference in zip(kernels.linearized(moved), definition(model, parts, moved), strict=True):
        assert_close(value, reference)


@pytest.mark.parametrize("inside", [0.1, 0.3, 0.6])
def test_crossing_near_an_edge_end_has_the_transverse_curvature(inside):
    """Moving a crossing along an edge, `inside` activations from its end, changes T only."""
    model = crossed_edges(inside)
    parts, listed = parts_of(model)
    parameters, q = law(model), model.bodies.q
    of_edges = parts.source[parts.crossing[:, 0]]
    crossing = int(of_edges[parts.energy(q, parameters, len(listed))[of_edges].argmax()])
    rows = np.flatnonzero(parts.source == crossing)
    weights = parts.weights(q, parameters)
    weights = contact.Weights(*(getattr(weights, name)[rows] for name in ("force", "value", "item")))
    here = parts.contacts[rows]
    hessian, bound = (
        assembled(
            len(q), here, contact.contact_elements(here.positions(q), here, parameters, np.inf, regularisation, weights)
        )[1][1, 1, :3, :3]
        for regularisation in (0.0, 1.0)
    )
    step = 1e-3 * inside * model.settings.d_hat

    def energy(move: np.ndarray) -> float:
        moved = q.copy()
        moved[1, :3] += move
        return parts.energy(moved, parameters, len(listed))[crossing]

    axes = step * np.eye(3)
    for a, b in ((0, 0), (2, 2), (0, 2)):
        corners = [s * t * energy(s * axes[a] + t * axes[b]) for s in (1, -1) for t in (1, -1)]
        second = sum(corners) / (4.0 * step**2)
        assert hessian[a, b] == pytest.approx(second, rel=1e-3, abs=1e-3 * abs(hessian[2, 2]))
    assert np.linalg.eigvalsh(bound).min() >= -1e-9 * hessian[2, 2]
    assert np.linalg.eigvalsh(bound - hessian).min() >= -1e-9 * hessian[2, 2]


D_HAT, EPS, MU = 0.01, 1e-5, 0.5


def crossed(inside: float):
    return crossed_edges(inside, D_HAT, MU)


def valley():
    """A box with a corner down over a flat V of a sheet: two faces count, the edge between them is taken off."""
    x, rise = 0.2, 0.04
    vertices = [(-x, -x, rise), (0, -x, 0), (x, -x, rise), (-x, x, rise), (0, x, 0), (x, x, rise)]
    triangles = [(0, 1, 4), (0, 4, 3), (1, 2, 5), (1, 5, 4)]
    scene = abd.Scene(solver={"d_hat": D_HAT})
    scene.add_material("default", mu=MU)
    scene.add_body("sheet", surface={"vertices": vertices, "triangles": triangles}, mass=1.0, inertia=(1, 1, 1))
    turned = {"axis": (1.0, -1.0, 0.0), "degrees": 54.7356}
    scene.add_body("box", box=(0.1, 0.1, 0.1), position=(0.0001, 0.03, 0.05 * np.sqrt(3.0) + 0.3 * D_HAT), axis_angle=turned)
    return abd.Simulation(scene, device="numpy").model


def frozen(model):
    """What friction freezes in the state of the model, its contacts, the parts of the candidates, and their number."""
    (parts, listed), q, parameters = parts_of(model), model.bodies.q, law(model)
    heading, radius, resists = q[:, 3:].reshape(-1, 3, 3), model.bodies.radius, Resistances.of(model)
    of_parts = friction.freeze(q, parts.contacts, parameters, radius, heading, resists, parts.weights(q, parameters))
    return *of_parts, parts, len(listed)


@pytest.mark.parametrize("inside", [2.0, 0.6, 0.1, 0.01])
def test_friction_load_of_two_edges_is_the_normal_derivative(inside):
    model = crossed(inside)
    lagged, points, parts, count = frozen(model)
    edges = points.stencil == Stencil.EDGE_EDGE
    assert (lagged.load >= 0.0).all() and edges.any()
    step, ends = 1e-7, []
    for sign in (1.0, -1.0):
        q = model.bodies.q.copy()
        q[1, 2] += sign * step
        energy = parts.energy(q, law(model), count)
        ends.append(energy[np.unique(parts.source[parts.crossing[:, 0]])].sum())
    load = -MU * (ends[0] - ends[1]) / (2.0 * step)
    assert lagged.load[edges].sum() == pytest.approx(load, rel=1e-5) and load > 0.0


@pytest.mark.parametrize("regularisation", [0.0, 0.4, 1.0])
def test_full_regularisation_makes_the_model_convex(regularisation):
    model = valley()
    lagged, points, _, _ = frozen(model)
    assert (lagged.load < 0.0).any() and lagged.load.sum() > 0.0
    q = model.bodies.q
    moved = points.positions(1e-6 * np.random.default_rng(0).normal(size=q.shape))
    _, blocks = assembled(len(q), points, friction.friction_elements(lagged, moved, EPS, regularisation))
    matrix = blocks.transpose(0, 2, 1, 3).reshape(12 * len(q), -1)
    least = np.linalg.eigvalsh(matrix)[0] / np.abs(matrix).max()
    assert least >= -1e-12 if regularisation == 1.0 else np.isfinite(least)


@pytest.mark.device
@pytest.mark.parametrize("make", [lambda: crossed(0.6), lambda: crossed(0.05), valley], ids=["crossing", "end", "valley"])
@pytest.mark.parametrize("regularisation", [0.0, 0.3, 1.0])
def test_friction_kernels_equal_the_definition(make, regularisation):
    model = make()
    q = model.bodies.q
    kernels = Kernels(model, standing(q))
    kernels.energies(q)
    kernels.friction.lag(Iterate(pose_of(q), rest=pose_of(q)), pose_of(q))
    lagged, points, _, _ = frozen(model)
    assert kernels.friction.count == len(lagged) > 0
    rest = q + 0.5 * EPS * np.random.default_rng(1).normal(size=q.shape)
    at = Iterate(pose_of(q), rest=pose_of(rest))
    kernels.friction.set_eps(EPS)
    DEVICE.write(kernels.contacts.law.regularisation, np.full(len(q), regularisation))
    kernels.friction.linearize(at)
    elements = friction.friction_elements(lagged, points.positions(q - rest), EPS, regularisation)
    for value, expected in zip(kernels.assembled(kernels.friction.reduction), assembled(len(q), points, elements), strict=True):
        assert_close(value, expected)
