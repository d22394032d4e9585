"""Body pairs and the broad phase: allowed pairs, completeness, and the sum against that of ipctk."""

from dataclasses import replace

import numpy as np
import pytest
from contact_models import (
    ARRANGEMENTS,
    BOX_MESH,
    D_HAT,
    MESHES,
    NO_MESH,
    WIRE_MESH,
    as_model,
    bodies_over_a_plane,
    near_on,
    random_path,
    scene,
    states,
)

from abd.contact.candidates import contacts, find_candidates
from abd.contact.pairs import body_pairs
from abd.contact.path import standing
from abd.contact.surfaces import Surfaces, targets
from abd.model import WORLD, Joint, Kind, Model
from abd.potentials import contact
from abd.potentials.contact import ContactParameters


def pair_set(model: Model) -> set[tuple[int, int]]:
    pairs = body_pairs(model)
    return set(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True))


def test_pairs_need_two_surfaces():
    plane = np.full((4, 4), np.nan)
    plane[0], plane[3] = [0, 0, 1, 0], [0, 1, 0, -1]
    kinds = np.array([Kind.STATIC, Kind.DYNAMIC, Kind.DYNAMIC, Kind.STATIC])
    model = scene([NO_MESH, BOX_MESH, NO_MESH, NO_MESH], states(4, 0, 1.0), kind=kinds, plane=plane)
    assert pair_set(model) == {(1, 0), (1, 3)}


def test_pairs_follow_worlds_groups_and_materials():
    q = states(4, 0, 1.0)
    everyone = {(i, j) for i in range(4) for j in range(i + 1, 4)}
    assert pair_set(scene([BOX_MESH] * 4, q)) == everyone
    assert pair_set(scene([BOX_MESH] * 4, q, world=np.array([0, 1, 0, 1]))) == {(0, 2), (1, 3)}
    assert pair_set(scene([BOX_MESH] * 4, q, group=np.array([-1, 2, 2, -1]))) == everyone - {(1, 2)}
    slick = scene([BOX_MESH] * 4, q, material=np.array([1, 0, 1, 1]))
    assert pair_set(slick) == {(0, 1), (1, 2), (1, 3)}
    pairs = body_pairs(slick)
    np.testing.assert_array_equal(pairs.mu, 0.2)
    np.testing.assert_array_equal(pairs.stiffness, 2.0)


def test_joints_exclude_contact_unless_collide_is_set():
    q, frame = states(3, 0, 1.0), np.eye(4)
    joints = [
        Joint("a", "spherical", 26, 1, 0, frame, frame),
        Joint("b", "spherical", 26, 1, 2, frame, frame, collide=True),
        Joint("c", "spherical", 26, WORLD, 2, frame, frame),
    ]
    assert pair_set(replace(scene([BOX_MESH] * 3, q), joints=joints)) == {(0, 2), (1, 2)}


def test_separation_is_the_sum_of_radii_and_minimum():
    model = scene([BOX_MESH] * 2, states(2, 0, 1.0), radius=np.array([0.1, 0.02]))
    model = replace(model, settings=replace(model.settings, minimum_separation=0.003))
    assert body_pairs(model).xi[0] == pytest.approx(0.123)


def rows(found) -> list[tuple[int, int, int, int]]:
    return list(zip(*(getattr(found, name).tolist() for name in ("pair", "kind", "a", "b")), strict=True))


def test_pairs_in_reach_are_listed_once_in_order():
    model = scene([WIRE_MESH, BOX_MESH, WIRE_MESH], states(3, 1, 0.5))
    found = rows(find_candidates(model, Surfaces.of(model), body_pairs(model), standing(model.bodies.q), 1e6))
    assert found == sorted(set(found))
    expected = []
    for pair, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        a, b = MESHES[model.bodies.mesh[i]], MESHES[model.bodies.mesh[j]]
        for kind, vertices, others in ((0, a, b), (1, b, a)):
            for v in range(len(vertices.vertices)):
                loose, end = v in vertices.points, v in vertices.codim_edges
                for t in range(len(targets(others))):
                    triangle = t < len(others.triangles)
                    point = t >= len(others.triangles) + len(others.codim_edges)
                    if triangle or (end and not point) or (loose and (not point or kind == 0)):
                        expected.append((pair, kind, v, t))
        expected += [(pair, 2, e, f) for e in range(len(a.edges)) for f in range(len(b.edges))]
    assert found == expected


@pytest.mark.parametrize("seed", range(4))
def test_candidates_contain_all_close_pairs_along_a_path(seed):
    """All pairs closer than d_hat anywhere on an arc are listed, including those with a half-space."""
    model = bodies_over_a_plane(seed)
    surfaces, pairs = Surfaces.of(model), body_pairs(model)
    path = random_path(model, seed, shift=0.4, turn=0.8)
    listed = set(rows(find_candidates(model, surfaces, pairs, path, D_HAT)))
    assert len(listed) < len(find_candidates(model, surfaces, pairs, standing(model.bodies.q), 1e6))
    near = near_on(model, path, 60)
    assert len(near) > 5 and {tuple(row) for row in near.tolist()} <= listed


# the loose points of "rods and points" are left out by ipctk's broad phase
SOLIDS = {name: value for name, value in ARRANGEMENTS.items() if name not in ("deformed tetrahedra", "rods and points")}


@pytest.mark.parametrize("name", SOLIDS)
def test_energy_equals_ipctk_with_its_own_broad_phase(name):
    ipctk = pytest.importorskip("ipctk")
    arrangement = SOLIDS[name]
    model = as_model(arrangement)
    surfaces, pairs, q = Surfaces.of(model), body_pairs(model), model.bodies.q
    found = contacts(model, surfaces, pairs, find_candidates(model, surfaces, pairs, standing(q), D_HAT))
    energy = np.sum(contact.energy(found.positions(q), found, ContactParameters(1e6, D_HAT)))
    mesh, _ = arrangement.ipctk_mesh(ipctk)
    side = np.arange(len(arrangement.vertices)) >= arrangement.split
    mesh.can_collide = ipctk.make_vertex_patches_filter(side.astype(np.int32))
    collisions = ipctk.NormalCollisions()
    vertices = np.asfortranarray(arrangement.vertices)
    collisions.build(mesh, vertices, D_HAT, arrangement.xi)
    reference = ipctk.BarrierPotential(ipctk.ClampedLogBarrier(), D_HAT, 1e6)(collisions, mesh, vertices)
    assert energy > 0 and energy == pytest.approx(reference, rel=1e-9)
