"""Contact kernels against the definitions: candidates, energies, blocks, friction, times of impact."""


import numpy as np
import pytest
import warp as wp
from contact_models import ARRANGEMENTS, D_HAT, as_model, bodies_over_a_plane, near_on, random_path, scene, states
from contact_on_device import Kernels, assembled, clear_of_the_plane, heavy, law
from on_device import DEVICE, assert_close, pose_of

from abd.backends.warp.iterate import Iterate
from abd.contact.candidates import find_candidates
from abd.contact.ccd import time_of_impact
from abd.contact.pairs import body_pairs
from abd.contact.path import standing
from abd.contact.surfaces import Surfaces
from abd.model import Kind
from abd.potentials import contact, friction
from abd.potentials.barrier import BARRIERS
from abd.potentials.rolling import Resistances
from cuda_kernels.shared.contact import WITHIN

pytestmark = pytest.mark.device

EPS = 1e-5
SCENES = {name: as_model(arrangement) for name, arrangement in ARRANGEMENTS.items()}
SCENES |= {f"crowd {seed}": clear_of_the_plane(seed) for seed in range(3)}
SCENES |= {f"crowd, {kind}": clear_of_the_plane(3, barrier=kind) for kind in BARRIERS[1:]}
SCENES |= {"crowd with separation": clear_of_the_plane(4, minimum_separation=0.005)}
PER_ITEM = pytest.mark.parametrize("per_item", [False, True], ids=["by runs", "per item"])


@PER_ITEM
@pytest.mark.parametrize("name", SCENES)
def test_energies_gradients_and_blocks_equal_the_definition(name, per_item):
    """Bodies are so heavy that the curvature of the distance is negligible."""
    model, q = heavy(SCENES[name]), SCENES[name].bodies.q
    kernels = Kernels(model, standing(q), per_item=per_item)
    listed = kernels.listed()
    x = listed.positions(q)
    energy, gap = kernels.energies(q)
    expected = contact.energy(x, listed, law(model))
    inside = np.isfinite(expected)
    assert np.count_nonzero(expected[inside]) > 0
    assert_close(energy[inside], expected[inside])
    assert (energy[~inside] >= 1e300).all() and (gap[~inside] <= 0.0).all()
    definition = assembled(len(q), listed, contact.contact_elements(x, listed, law(model)))
    for value, reference in zip(kernels.linearized(q), definition, strict=True):
        assert_close(value, reference)


@PER_ITEM
@pytest.mark.parametrize("slide", [0.3 * EPS, 3.0 * EPS])
@pytest.mark.parametrize("name", [*list(SCENES)[:4], "boxes turned by 0.0001", "rods and points", "crowd 0"])
def test_friction_equals_its_definition(name, slide, per_item):
    model, q = SCENES[name], SCENES[name].bodies.q
    kernels = Kernels(model, standing(q), per_item=per_item)
    listed = kernels.listed()
    kernels.energies(q)
    heading = q + 0.3 * np.random.default_rng(3).normal(size=q.shape)
    kernels.friction.lag(Iterate(pose_of(q), rest=pose_of(q)), pose_of(heading))
    turned = heading[:, 3:].reshape(-1, 3, 3)
    lagged, frozen = friction.freeze(q, listed, law(model), model.bodies.radius, turned, Resistances.of(model))
    assert kernels.friction.count == len(lagged) > 0
    rest = q + slide * np.random.default_rng(1).normal(size=q.shape)
    moved, moves = frozen.positions(q - rest), model.bodies.kind == Kind.DYNAMIC
    poses = pose_of(q), pose_of(rest)
    at = Iterate(poses[0], rest=poses[1])
    kernels.friction.set_eps(EPS)
    kernels.friction.evaluate(at, "current")
    energy = kernels.friction.pool.get("energy_current", 1, wp.float64)
    assert_close(DEVICE.read(energy, len(lagged)), friction.energy(lagged, moved, EPS))
    for regularisation in (0.0, 0.3, 1.0):
        DEVICE.write(kernels.contacts.law.regularisation, np.full(len(q), regularisation))
        kernels.friction.linearize(at)
        gradient, blocks = kernels.assembled(kernels.friction.reduction)
        definition = assembled(len(q), frozen, friction.friction_elements(lagged, moved, EPS, regularisation))
        assert_close(gradient[moves], definition[0][moves])
        assert_close(blocks[moves][:, moves], definition[1][moves][:, moves])
    work = -np.sum(friction.force(lagged, moved, EPS) * friction.slip(lagged, moved))
    ch2 = DEVICE.upload(np.full(len(q), 0.5), wp.float64)
    works = DEVICE.read(kernels.friction.works(*poses, ch2), len(lagged))
    assert works.sum() == pytest.approx(2.0 * work, rel=1e-10)


MOTIONS = {"slow": (0.05, 0.05), "turning": (0.1, 1.0), "fast": (1.0, 0.5), "spinning": (0.05, 4.0)}


@pytest.mark.parametrize("motion", MOTIONS)
def test_times_of_impact_equal_the_definition(motion):
    stopped = []
    for seed in range(3):
        model = clear_of_the_plane(seed)
        path = random_path(model, seed, *MOTIONS[motion])
        kernels = Kernels(model, path)
        for limit in (1.0, 0.4):
            least = WITHIN * model.settings.d_hat
            expected = time_of_impact(path, kernels.listed(), limit, iterations=256, least=least)
            np.testing.assert_allclose(kernels.times_of_impact(limit), expected, rtol=0, atol=1e-9)
        stopped.append(np.mean(expected < limit))
    assert 0.0 < np.mean(stopped) < 1.0


@pytest.mark.parametrize("motion", MOTIONS)
def test_candidates_contain_all_close_pairs_on_arcs(motion):
    """All pairs closer than d_hat anywhere on a path are listed once by kernels and definition, also with shared meshes and a
    half-space."""
    count = 0
    for seed in range(4):
        model = bodies_over_a_plane(seed)
        if seed % 2:
            model = scene([0, 1, 2, 0, 1], states(5, seed, 0.8), radius=np.array([0.0, 0.01, 0.02, 0.0, 0.005]))
        path, surfaces, pairs = random_path(model, seed, *MOTIONS[motion]), Surfaces.of(model), body_pairs(model)
        near = near_on(model, path, 60)
        for found in (Kernels(model, path).candidates(), find_candidates(model, surfaces, pairs, path, D_HAT)):
            names = set(zip(found.pair.tolist(), found.kind.tolist(), found.a.tolist(), found.b.tolist(), strict=True))
            assert len(names) == len(found)
            assert motion != "slow" or len(found) < len(find_candidates(model, surfaces, pairs, standing(model.bodies.q), 1e6))
            assert {tuple(row) for row in near.tolist()} <= names
        count += len(near)
    assert count > 20
