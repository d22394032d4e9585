"""Edges within flat faces are not looked for, and nothing is missed without them."""

from __future__ import annotations

import numpy as np
import pytest
from on_device import DEVICE

import abd
from abd.backends.device.upload import upload_surfaces
from abd.contact.candidates import EDGE_EDGE, find_candidates
from abd.contact.flat_edges import within_faces
from abd.contact.pair_law import PairLaw
from abd.contact.pairs import body_pairs
from abd.contact.path import standing
from abd.contact.surfaces import Surfaces


def mesh_of(**shape):
    scene = abd.Scene()
    scene.add_body("one", **shape)
    return scene.compile().meshes[0]


@pytest.mark.parametrize(
    ("shape", "edges", "flat"),
    [
        ({"box": (0.1, 0.2, 0.3)}, 18, 6),
        # of n facets: n diagonals, and 2 n spokes of the ends
        ({"cylinder": {"radius": 0.1, "length": 0.3, "segments": 24}}, 144, 72),
        ({"cone": {"radius": 0.1, "length": 0.3, "segments": 24}}, 72, 24),
        ({"sphere": {"radius": 0.1, "subdivisions": 1}}, 120, 0),
    ],
)
def test_edges_that_only_cut_faces_into_triangles(shape, edges, flat):
    found = within_faces(mesh_of(**shape))
    assert len(found) == edges and found.sum() == flat


def test_borders_folds_and_slight_bends_are_looked_for():
    sheet = {"vertices": [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 1e-9)], "triangles": [(0, 1, 2), (0, 2, 3)]}
    assert not within_faces(mesh_of(surface=sheet, thickness=0.01, mass=1.0)).any()
    sheet["vertices"][3] = (0, 1, 0)
    mesh = mesh_of(surface=sheet, thickness=0.01, mass=1.0)
    assert [tuple(edge) for edge in np.sort(mesh.edges[within_faces(mesh)], axis=1)] == [(0, 2)]
    folded = {"vertices": [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0.2, 0.9, 0)], "triangles": [(0, 1, 2), (1, 0, 3)]}
    assert not within_faces(mesh_of(surface=folded, thickness=0.01, mass=1.0)).any()


@pytest.mark.device
def test_they_do_not_widen_the_tree_of_the_others():
    """CUDA sorts edges by their places within the bounds of all: with some far away all others would lie at one place."""
    scene = abd.Scene()
    scene.add_body("one", cylinder={"radius": 0.1, "length": 0.3, "segments": 24})
    scene.add_body("other", sphere={"radius": 0.1, "subdivisions": 1}, position=(1.0, 0.0, 0.0))
    model = scene.compile()
    surfaces = upload_surfaces(model, DEVICE, PairLaw(model))
    for mesh, tree in zip(model.meshes, surfaces.trees[1::3], strict=True):
        lower, upper = tree.lowers.numpy(), tree.uppers.numpy()
        np.testing.assert_allclose(lower.min(axis=0), mesh.vertices.min(axis=0), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(upper.max(axis=0), mesh.vertices.max(axis=0), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal((lower > upper).all(axis=1), within_faces(mesh))


@pytest.mark.parametrize(("contact_set", "count"), [("minima", 144), ("ipc", 324)])
def test_two_boxes_offer_the_edges_that_meet(contact_set, count):
    scene = abd.Scene(solver={"contact_set": contact_set})
    for k in range(2):
        scene.add_body(f"box{k}", box=(0.1,) * 3, position=(0.0, 0.0, 0.15 * k))
    model = scene.compile()
    found = find_candidates(model, Surfaces.of(model), body_pairs(model), standing(model.bodies.q), 1e6)
    assert (found.kind == EDGE_EDGE).sum() == count
