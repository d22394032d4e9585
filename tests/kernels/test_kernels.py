"""Kernels of single bodies, barriers and arcs against their definitions and against finite differences."""

from dataclasses import replace

import numpy as np
import pytest
import warp as wp
from differences import differences
from on_device import DEVICE, assert_close, pose_of, random_states

from abd.backends import body_data
from abd.backends.device.upload import allocate_struct, upload_struct
from abd.backends.reference import numpy_bodies
from abd.backends.reference.numpy_bodies import BodyEnergies, maps, projectors, state
from abd.contact import path as paths_definition
from abd.model import Elasticity, Kind
from abd.potentials import arap, inertia, orthogonality, prescribed
from abd.potentials.barrier import BARRIERS, barrier
from abd.potentials.forces import generalised_force
from cuda_kernels.bodies import affine, bodies, fixed, paths
from cuda_kernels.contact import barrier as barrier_kernels

pytestmark = pytest.mark.device

N = 24
NOT_DONE = DEVICE.zeros(N, wp.int32)
CH2 = 4e-4 * np.linspace(0.5, 1.5, N)


def body_constants(seed: int, **changes) -> body_data.BodyData:
    """Random constants of N free dynamic bodies."""
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=(N, 3))
    axis /= np.linalg.norm(axis, axis=1)[:, None]
    data = body_data.BodyData(
        kind=np.full(N, Kind.DYNAMIC, np.int32), mass=rng.uniform(1, 2, N), moment=rng.uniform(0.1, 1, (N, 3)),
        stiffness=rng.uniform(1e3, 1e4, N), arap=np.zeros(N, np.int32), force=rng.normal(size=(N, 3)),
        torque=rng.normal(size=(N, 3)), weight=rng.uniform(1, 2, N), spread=rng.uniform(0.1, 1, N), translation=np.ones((N, 3)),
        rotation=np.zeros(N, np.int32), axis=axis, rest_axis=axis, surface=np.zeros((N, 3)),
    )
    return replace(data, **changes)


def step_data(seed: int) -> numpy_bodies.StepData:
    """A random step in which no body is held."""
    rng = np.random.default_rng(seed)
    target, goal = random_states(N, seed + 1), random_states(N, seed + 2)
    return numpy_bodies.StepData(
        pt=target[:, :3], At=maps(target), pk=goal[:, :3], Ak=maps(goal), lp=rng.normal(size=(N, 3)),
        lA=rng.normal(size=(N, 3, 3)), held=np.zeros(N, bool), gravity=np.array([0.3, -0.2, -9.81]),
        scale=rng.uniform(0.2, 1.0, size=N), penalty=3.0, ch2=CH2,
    )


class BodyKernels:
    """The kernels of single bodies, with the calls of `BodyEnergies`."""

    def __init__(self, data: body_data.BodyData):
        self.data = upload_struct(bodies.BodyData, data, DEVICE)

    def step(self, step: numpy_bodies.StepData) -> bodies.StepData:
        out = bodies.StepData()
        for name in ("pt", "pk", "lp"):
            setattr(out, name, DEVICE.upload(getattr(step, name), wp.vec3d))
        for name in ("At", "Ak", "lA"):
            setattr(out, name, DEVICE.upload(getattr(step, name), wp.mat33d))
        out.held = DEVICE.upload(step.held, wp.int32)
        out.gravity, out.ch2 = wp.vec3d(*step.gravity), DEVICE.upload(step.ch2, wp.float64)
        out.scale = DEVICE.upload(step.scale, wp.float64)
        out.penalty = DEVICE.upload([step.penalty], wp.float64)
        return out

    def energy(self, step, q: np.ndarray, reference: np.ndarray) -> np.ndarray:
        out = DEVICE.zeros(N, wp.float64)
        poses = pose_of(reference), pose_of(q)
        DEVICE.launch(bodies.body_energies, N, self.data, self.step(step), *poses, NOT_DONE, out)
        return DEVICE.read(out)

    def linearized(self, step, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        zero, gradient = DEVICE.zeros((N, 12, 12), wp.float64), DEVICE.zeros((N, 12), wp.float64)
        blocks = DEVICE.zeros((N, 12, 12), wp.float64)
        DEVICE.launch(bodies.linearize_bodies, N, self.data, self.step(step), pose_of(q), NOT_DONE, zero, gradient, blocks)
        return DEVICE.read(gradient), DEVICE.read(blocks)


def only(*names: str, **changes) -> body_data.BodyData:
    """Random constants of which all that make an energy vanish, but `names`."""
    zero = {"mass": np.zeros(N), "stiffness": np.zeros(N)}
    zero |= {name: np.zeros((N, 3)) for name in ("moment", "force", "torque")}
    return body_constants(0, **{key: value for key, value in zero.items() if key not in names}, **changes)


def of_inertia(data, step, q, reference):
    mass, target = step.scale[:, None] * BodyEnergies(data).mass_matrix, state(step.pt, step.At)
    weight = -(CH2 * data.mass)[:, None] * step.gravity
    force = np.pad(weight, ((0, 0), (0, 9)))
    return (
        inertia.energy(mass, q, target) + np.sum(force * (q - reference), axis=1), inertia.gradient(mass, q, target) + force,
        inertia.hessian(mass),
    )


def of_elasticity(energy, **options):
    def evaluate(data, step, q, reference):
        k, A = CH2 * data.stiffness, maps(q)
        blocks = np.zeros((N, 12, 12))
        blocks[:, 3:, 3:] = energy.hessian(k, A, **options)
        return energy.energy(k, A), state(np.zeros((N, 3)), energy.gradient(k, A)), blocks

    return evaluate


def of_forces(data, step, q, reference):
    at_reference = generalised_force(data.mass, step.gravity, data.force, data.torque, maps(reference))
    now = generalised_force(data.mass, step.gravity, data.force, data.torque, maps(q))
    work = np.sum(at_reference * (q - reference), axis=1)
    return -CH2 * work, -CH2[:, None] * now, np.zeros((N, 12, 12))


def of_penalty(data, step, q, reference):
    weights = data.weight, data.spread, step.penalty
    distances = q[:, :3] - step.pk, maps(q) - step.Ak, step.lp, step.lA
    blocks = prescribed.hessian(*weights)
    return prescribed.energy(*weights, *distances), state(*prescribed.gradient(*weights, *distances)), blocks


ENERGIES = {
    "inertia": (only("mass", "moment"), of_inertia),
    "orthogonality": (only("stiffness"), of_elasticity(orthogonality, project=True)),
    "arap": (only("stiffness", arap=np.full(N, Elasticity.ARAP, np.int32)), of_elasticity(arap)),
    "forces": (only("force"), of_forces),
    "couples": (only("torque"), of_forces),
    "prescribed": (only(kind=np.full(N, Kind.KINEMATIC, np.int32)), of_penalty),
}


@pytest.mark.parametrize("name", ENERGIES)
def test_body_energies_equal_their_definitions(name):
    data, definition = ENERGIES[name]
    step, q, reference = step_data(3), random_states(N, 4), random_states(N, 5)
    energy, gradient, blocks = definition(data, step, q, reference)
    kernels = BodyKernels(data)
    assert_close(kernels.energy(step, q, reference), energy)
    for value, expected in zip(kernels.linearized(step, q), (gradient, blocks), strict=True):
        assert_close(value, expected)


@pytest.mark.parametrize("name", ENERGIES)
def test_body_kernels_agree_with_finite_differences(name):
    data, _ = ENERGIES[name]
    kernels, step, q = BodyKernels(data), step_data(3), random_states(N, 4)
    gradient, _ = kernels.linearized(step, q)
    slopes = differences(lambda shift: kernels.energy(step, q + shift, q), np.zeros(12), 1e-6)
    assert_close(gradient, slopes.T, 1e-7)


@pytest.mark.parametrize("name", [name for name in ENERGIES if name != "couples"])
def test_body_blocks_are_the_derivatives_of_the_gradients(name):
    """At rotations the projected blocks of near-rigidity are the Hessians."""
    data, _ = ENERGIES[name]
    kernels, step, q = BodyKernels(data), step_data(3), random_states(N, 4, strain=0.0)
    slopes = differences(lambda shift: kernels.linearized(step, q + shift)[0], np.zeros(12), 1e-6)
    assert_close(kernels.linearized(step, q)[1], slopes.transpose(1, 2, 0), 1e-6)


def test_projection_equals_its_definition():
    """P v, P_i B P_j and 1 - P on the diagonal agree for all kinds of fixed degrees of freedom."""
    rng = np.random.default_rng(0)
    translation = rng.integers(0, 2, (N, 3)).astype(float)
    data = body_constants(1, rotation=np.arange(N, dtype=np.int32) % 3, translation=translation)
    step = step_data(2)
    step.held = np.arange(N) % 7 == 0
    P, kernels = projectors(data, step.held), BodyKernels(data)
    v = rng.normal(size=(N, 12))
    vectors = DEVICE.upload(v, wp.float64)
    DEVICE.launch(fixed.project_vectors, N, kernels.data, kernels.step(step), vectors)
    assert_close(DEVICE.read(vectors), np.einsum("nij,nj->ni", P, v))
    row, column = np.arange(N), rng.permutation(N)
    for other, diagonal in ((column, 0), (row, 1)):
        B = rng.normal(size=(N, 12, 12))
        blocks, scratch = DEVICE.upload(B, wp.float64), DEVICE.zeros((N, 12, 12), wp.float64)
        DEVICE.launch(
            fixed.project_blocks, *(N, DEVICE.upload(np.array([N]), wp.int32), kernels.data, kernels.step(step)),
            *(DEVICE.upload(row, wp.int32), DEVICE.upload(other, wp.int32), scratch, blocks, diagonal),
        )
        assert_close(DEVICE.read(blocks), P @ B @ P[other] + diagonal * (np.eye(12) - P))


@wp.kernel
def evaluate_barriers(
    first: wp.int32, kind: wp.int32, D: wp.array(dtype=wp.float64), d_hat: wp.float64, xi: wp.float64,
    out: wp.array(dtype=wp.vec3d),
):
    k = wp.tid() + first
    out[k] = barrier_kernels.barrier(kind, D[k], d_hat, xi)


@pytest.mark.parametrize("xi", [0.0, 5e-3])
@pytest.mark.parametrize("kind", BARRIERS)
def test_barriers_equal_their_definition(kind, xi):
    d_hat = 1e-2
    d = xi + d_hat * np.concatenate([np.logspace(-6, 0, 200), np.linspace(0.01, 1.5, 200)])
    out = DEVICE.zeros(len(d), wp.vec3d)
    squares = DEVICE.upload(d**2, wp.float64)
    DEVICE.launch(evaluate_barriers, len(d), BARRIERS.index(kind), squares, d_hat, xi, out)
    for value, expected in zip(DEVICE.read(out).T, barrier(kind, d**2, d_hat, xi), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("turn", [0.0, 0.1, 2.0])
def test_arcs_equal_their_definition(turn):
    data = body_constants(1, rotation=np.arange(N, dtype=np.int32) % 3)
    rng = np.random.default_rng(2)
    q, direction = (random_states(N, 3), np.concatenate([rng.normal(size=(N, 3)), turn * rng.normal(size=(N, 9))], axis=1))
    half = rng.uniform(0.5, 1.0, (N, 3))
    path, speed, limit = allocate_struct(affine.Path, N, DEVICE), DEVICE.zeros(N, wp.float64), DEVICE.zeros(N, wp.float64)
    boxes = DEVICE.upload(-half, wp.vec3d), DEVICE.upload(half, wp.vec3d)
    wider = DEVICE.upload(-1.2 * half, wp.vec3d), DEVICE.upload(1.2 * half, wp.vec3d)
    moves = DEVICE.upload(direction, wp.float64)
    body, arguments = upload_struct(bodies.BodyData, data, DEVICE), (moves, path, speed, limit)
    DEVICE.launch(paths.direction_paths, N, body, *boxes, *wider, pose_of(q), NOT_DONE, *arguments)
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    corners = signs * half[:, None]
    radius = np.linalg.norm(np.einsum("nij,nkj->nki", maps(q), corners), axis=2).max(axis=1)
    expected = paths_definition.direction_path(q, direction, numpy_bodies.turning(data), radius)
    for name in ("p", "A", "dp", "w", "S"):
        assert_close(DEVICE.read(getattr(path, name)), getattr(expected, name))
    moved = direction[:, None, :3] + np.einsum("nij,nkj->nki", maps(direction), 1.2 * corners)
    assert_close(DEVICE.read(speed), np.linalg.norm(moved, axis=2).max(axis=1))
    for name in ("bend", "affine_speed", "strain"):
        bound, exact = DEVICE.read(getattr(path, name)), getattr(expected, name)
        assert (bound >= exact * (1 - 1e-12)).all() and (bound <= 3.0 * exact + 1e-12).all()
    strain = np.linalg.norm(expected.S, 2, axis=(1, 2))
    assert (DEVICE.read(limit) * strain <= 0.5 + 1e-12).all()
    island, trial = DEVICE.upload(np.arange(N), wp.int32), allocate_struct(affine.Pose, N, DEVICE)
    alpha = rng.random(N)
    DEVICE.launch(affine.advance, N, path, island, NOT_DONE, DEVICE.upload(alpha, wp.float64), trial)
    assert_close(DEVICE.read(trial.p), expected.origins(np.arange(N), alpha))
    assert_close(DEVICE.read(trial.A), expected.maps(np.arange(N), alpha))
