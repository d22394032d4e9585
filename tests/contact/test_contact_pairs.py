"""Pairs of bodies: filters, parameters, activation and force; the broad phase."""

from dataclasses import replace

import numpy as np
import pytest
from contact_models import (
    ARRANGEMENTS,
    BOX_MESH,
    D_HAT,
    as_model,
    scene,
    states,
)
from ipctk_scene import TETRAHEDRON, TETRAHEDRON_TRIANGLES
from on_device import NAME

import abd
from abd.certificate.certificate import certify
from abd.contact.candidates import contacts, find_candidates
from abd.contact.pair_law import D_HAT_SHARE, FORCE_SHARE, PairLaw, PairParameters
from abd.contact.pairs import body_pairs
from abd.contact.path import standing
from abd.contact.surfaces import Surfaces
from abd.errors import SceneError
from abd.model import Model
from abd.potentials import contact
from abd.potentials.barrier import BARRIERS, barrier
from abd.potentials.contact import ContactParameters


@pytest.mark.parametrize("device", ["numpy", "cpu"])
def test_filtered_pairs_have_no_contact(tmp_path, device):
    """A ball passes the first of three boxes that overlap, and hits the second one."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01})
    scene.add_body("box", box=(0.1, 0.1, 0.1), repeat={"count": (3, 1, 1), "step": (0.05, 0, 0)})
    scene.add_body("ball", sphere={"radius": 0.05}, position=(-0.2, 0, 0), velocity=(2, 0, 0))
    scene.add_contact_filter("box_0_0_0", "box_1_0_0", "box_2_0_0")
    scene.add_contact_filter("ball", "box_0_0_0")
    scene.save(tmp_path / "saved.toml")
    assert abd.load(tmp_path / "saved.toml") == scene
    simulation = abd.run(scene, steps=20, device=device, record=tmp_path / "run")
    x = [simulation.bodies[name].position[0] for name in ("box_0_0_0", "ball", "box_1_0_0")]
    assert abs(x[0]) < 1e-12 and x[1] < x[2] - 0.1 and x[2] > 0.051
    assert certify(tmp_path / "run").ok


def test_overlapping_bodies_are_filtered_on_request(tmp_path):
    scene = abd.Scene(gravity=(0, 0, 0), output={"frames": 2})
    for name, x in (("left", -1.0), ("right", 1.0)):
        scene.add_body(name, box=(1, 1, 1), position=(x, 0, 0), kind="static")
    scene.add_body("wedged", box=(1, 1, 1))
    scene.add_body("apart", box=(1, 1, 1), position=(0, 5, 0))
    scene.add_body("inside", box=(1, 1, 1), position=(0, 5.5, 0.2))
    scene.add_body("ground", half_space={"offset": -0.4})
    scene.save(tmp_path / "scene.toml")
    with pytest.raises(SceneError, match="'ground'"):
        abd.load(tmp_path / "scene.toml", allow_overlaps=True).started()
    scene.spec.body.pop()
    scene.save(tmp_path / "scene.toml")
    with pytest.raises(SceneError, match="'inside'"):
        abd.load(tmp_path / "scene.toml").started()
    loaded = abd.load(tmp_path / "scene.toml", allow_overlaps=True)
    pairs = {tuple(sorted(one.bodies)) for one in loaded.spec.contact_filter}
    assert pairs == {("left", "wedged"), ("right", "wedged"), ("apart", "inside")}
    assert any("initial overlaps" in note and "'inside'" in note for note in loaded.notes)
    assert not any("moved" in note for note in loaded.started().notes)


def test_components_and_disabled_bodies():
    scene = abd.Scene()
    corners, triangles = TETRAHEDRON, TETRAHEDRON_TRIANGLES
    two = {"vertices": np.concatenate([corners, corners + 2]), "triangles": np.concatenate([triangles, triangles + 4])}
    scene.add_body("two", surface={name: rows.tolist() for name, rows in two.items()}, split_components=True)
    scene.add_body("off", box=(1, 1, 1), enabled=False)
    scene.add_contact_filter("two_1", "off", "two_0")
    np.testing.assert_array_equal(scene.compile().filtered, [[0, 1]])
    scene.add_contact_filter("two_0", "two_7")
    with pytest.raises(SceneError, match="no body 'two_7'"):
        scene.compile()


G = 9.81


def boxes(solver: dict | None = None) -> abd.Scene:
    """A box of 0.1 x 0.2 x 0.3 m, a plate of 5 mm a hundred times as heavy, a huge wall far away, a half-space."""
    scene = abd.Scene(solver=solver or {})
    scene.add_body("ground", half_space={})
    scene.add_body("box", box=(0.1, 0.2, 0.3), density=1000.0, position=(0, 0, 1))
    scene.add_body("plate", box=(2.0, 1.2, 0.005), density=50000.0, position=(0, 0, 2))
    scene.add_body("wall", box=(1.0, 30.0, 30.0), kind="static", position=(50, 0, 0))
    return scene


def law_of(scene: abd.Scene) -> PairLaw:
    return PairLaw(scene.compile())


def pair(law: PairLaw, i: int, j: int) -> tuple[float, float]:
    """Activation [m] and force [N]."""
    bodies, xi = (np.array([i]), np.array([j])), np.zeros(1)
    return float(law.activation(*bodies)[0]), float(law.force(*bodies, xi)[0])


def test_the_thinner_of_two_bodies_sets_the_activation_and_the_lighter_one_the_force():
    law = law_of(boxes())
    assert pair(law, 1, 0) == pytest.approx((D_HAT_SHARE * 0.1, FORCE_SHARE * 6.0 * G))
    assert pair(law, 1, 2) == pytest.approx((D_HAT_SHARE * 0.005, FORCE_SHARE * G * 600.0 * 6.0 / 606.0))
    assert pair(law, 1, 3) == pair(law, 1, 0), "what stands still, and is large, does not count"


def test_pair_parameters_do_not_depend_on_step_or_other_bodies():
    scene = boxes({"dt": 1e-4})
    scene.add_body("crumb", box=(1e-3,) * 3, position=(0, 0, 3))
    law = law_of(scene)
    assert pair(law, 1, 2) == pair(law_of(boxes()), 1, 2)
    assert pair(law, 1, 4)[0] == pytest.approx(D_HAT_SHARE * 1e-3)


def test_given_parameters_apply_to_all_pairs():
    law = law_of(boxes({"d_hat": 2e-3, "contact_stiffness": 1e7}))
    i, j, xi = np.array([1, 1, 2]), np.array([0, 2, 3]), np.array([0.0, 1e-3, 0.0])
    a = law.activation(i, j)
    assert (a == 2e-3).all() and law.regular(i, j).max() == 2e-3
    np.testing.assert_allclose(law.stiffness(i, j, a, xi), 1e7, rtol=1e-14)


@pytest.mark.parametrize("kind", BARRIERS)
@pytest.mark.parametrize("xi", [0.0, 0.05])
def test_the_force_is_one_function_of_the_gap_in_activations(kind, xi):
    """This holds for pairs with their own activation, up to the curvature of d^2 at radii as small as gaps."""
    law = law_of(boxes({"barrier": kind}))
    forces = []
    for a in (1e-4, 1e-6):
        law.own = PairParameters(law.keys(np.array([0]), np.array([1])), np.array([a]), np.array([3.0]))
        kappa = law.stiffness(np.array([1]), np.array([0]), np.array([a]), np.array([xi]))
        d = xi + a * np.array([0.1, 0.5, 0.9])
        forces.append(-kappa * 2.0 * d * barrier(kind, d**2, a, xi)[1])
    np.testing.assert_allclose(forces[0], forces[1], rtol=1e-2)
    assert (forces[0] > 0.0).all()


@pytest.mark.parametrize("ratio", [1e3, 1e6])
def test_heavy_bodies_rest_on_light_ones(ratio):
    scene = abd.Scene(solver={"dt": 0.01})
    scene.add_body("ground", half_space={})
    scene.add_body("light", box=(0.1,) * 3, density=100.0, position=(0, 0, 0.05 + 1e-4), kappa=1e12)
    scene.add_body("heavy", box=(0.1,) * 3, density=100.0 * ratio, position=(0, 0, 0.15 + 2e-4), kappa=1e12)
    simulation = abd.Simulation(scene, device=NAME)
    start = simulation.stepper.q[2, 2]
    report = simulation.run(steps=20)
    assert report.min_gap > 1e-5 * D_HAT_SHARE * 0.1
    assert abs(simulation.stepper.q[2, 2] - start) < 3e-4


def pair_set(model: Model) -> set[tuple[int, int]]:
    pairs = body_pairs(model)
    return set(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True))


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


def test_separation_is_the_sum_of_radii_and_minimum():
    model = scene([BOX_MESH] * 2, states(2, 0, 1.0), radius=np.array([0.1, 0.02]))
    model = replace(model, settings=replace(model.settings, minimum_separation=0.003))
    assert body_pairs(model).xi[0] == pytest.approx(0.123)


# the loose points of "rods and points" are left out by ipctk's broad phase
SOLIDS = {name: value for name, value in ARRANGEMENTS.items() if name not in ("deformed tetrahedra", "rods and points")}


@pytest.mark.usefixtures("without_core")
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
