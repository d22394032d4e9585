"""Friction in the contact set of local minima: shared friction of edges, convex model with negative parts."""

import numpy as np
import pytest
from contact_models import crossed_edges
from contact_on_device import DEVICE, Kernels, assembled, law
from on_device import assert_close, pose_of

import abd
from abd.backends.warp.iterate import Iterate
from abd.contact.candidates import contacts, find_candidates
from abd.contact.minima import find_minima
from abd.contact.pairs import body_pairs
from abd.contact.path import standing
from abd.contact.surfaces import Surfaces
from abd.contact.topology import Topology
from abd.potentials import friction
from abd.potentials.contact import Stencil
from abd.potentials.rolling import Resistances

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
    """What friction freezes in the state of the model, its contacts, and the parts of the candidates."""
    surfaces, pairs, q = Surfaces.of(model), body_pairs(model), model.bodies.q
    found = find_candidates(model, surfaces, pairs, standing(q), 2.0 * D_HAT)
    listed = contacts(model, surfaces, pairs, found)
    parts = find_minima(surfaces, Topology.of(model, surfaces), pairs, found, listed)
    parameters = law(model)
    heading, resists = q[:, 3:].reshape(-1, 3, 3), Resistances.of(model)
    weights = parts.weights(q, parameters)
    radius = model.bodies.radius
    return *friction.freeze(q, parts.contacts, parameters, radius, heading, resists, weights), parts, len(listed)


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
def test_kernels_equal_the_definition(make, regularisation):
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
