"""Launches of the contact kernels of a model with its candidates."""

from dataclasses import replace

import numpy as np
import warp as wp
from contact_models import bodies_over_a_plane
from on_device import DEVICE, pose_of

from abd.backends.device.device import Device
from abd.backends.device.upload import allocate_struct
from abd.backends.reference.numpy_contacts import body_pair
from abd.backends.warp.iterate import Iterate
from abd.backends.warp.terms.contacts import Contacts
from abd.backends.warp.terms.friction import Friction
from abd.backends.warp.terms.reduction import Reduction
from abd.contact.candidates import Candidates, contacts
from abd.contact.pairs import body_pairs
from abd.contact.path import Path
from abd.contact.surfaces import Surfaces
from abd.model import Model
from abd.potentials import contact
from abd.potentials.elements import Elements
from cuda_kernels.bodies import affine
from cuda_kernels.contact import surfaces
from cuda_kernels.contact.ccd import MAX_ADVANCES, WITHIN, is_far, march
from cuda_kernels.contact.contact import pair_approaches
from cuda_kernels.contact.pair_law import activation

wp.set_module_options({"enable_backward": False, "max_unroll": 4})

KAPPA = 1e6


@wp.kernel
def march_each(
    first: wp.int32, s: surfaces.Surfaces, path: affine.Path, pairs: wp.array(dtype=wp.vec2i),
    candidates: wp.array(dtype=wp.vec4i), minimum: wp.float64, limit: wp.float64, gap: wp.array(dtype=wp.float64),
    approach: wp.array(dtype=wp.float64), alpha: wp.array(dtype=wp.float64),
):
    """Compute the safe alpha of each candidate."""
    k = wp.tid() + first
    c = candidates[k]
    alpha[k] = limit
    if not is_far(approach[c[0]], gap[k], limit):
        i = pairs[c[0]][0]
        j = pairs[c[0]][1]
        least = WITHIN * activation(s.between, i, j)
        alpha[k] = march(s, path, i, j, c, minimum, limit, gap[k], approach[c[0]], least, MAX_ADVANCES)


def upload_path(path: Path):
    """Upload a path to the device."""
    n = len(path.p)
    uploaded = allocate_struct(affine.Path, n, DEVICE)
    for name in ("p", "A", "dp", "w", "S", "bend", "affine_speed", "strain"):
        DEVICE.write(getattr(uploaded, name), np.ascontiguousarray(getattr(path, name)))
    DEVICE.write(uploaded.rate, path.rates(np.arange(n), np.zeros(n)))
    return uploaded


def with_stiffness(model: Model) -> Model:
    """Return the model with the contact stiffness `KAPPA` for all pairs."""
    return replace(model, settings=replace(model.settings, contact_stiffness=KAPPA))


class Kernels:
    """Contact kernels of a model with the candidates of one path; `per_item` selects the sums of CUDA."""

    def __init__(self, model: Model, path: Path, device: Device = DEVICE, per_item: bool | None = None):
        model = with_stiffness(model)
        self.model, self.n = model, len(model.bodies)
        self.contacts = Contacts(model, device)
        self.contacts.set_scale(1.0)
        self.friction = Friction(model, device, self.contacts)
        for part in (self.contacts, self.friction):
            part.reduction = Reduction(device, len(model.bodies), per_item)
        self.path = upload_path(path)
        unlimited = DEVICE.upload(np.ones(1), wp.float64)
        self.contacts.candidates.renew_last(self.path, 0.0, DEVICE.zeros(self.n, wp.int32), unlimited)

    def candidates(self) -> Candidates:
        """Return the candidates, with pairs numbered as in `body_pairs`."""
        found = self.contacts.candidates
        pairs = body_pairs(self.model)
        number = {pair: k for k, pair in enumerate(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True))}
        numbers = np.array([number[tuple(pair)] for pair in found.pair_list().tolist()], dtype=int)
        items = DEVICE.read(found.items, found.count).reshape(-1, 4).astype(int)
        return Candidates(numbers[items[:, 0]], *items[:, 1:].T)

    def listed(self) -> contact.Contacts:
        """Return the candidates as contacts of the definitions, in the order of the kernels."""
        return contacts(self.model, Surfaces.of(self.model), body_pairs(self.model), self.candidates())

    def energies(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return energies and gaps [m] of the candidates."""
        self.contacts.evaluate(Iterate(pose_of(q)), "current")
        energy, gap, _ = self.contacts.arrays("current")
        count = self.contacts.candidates.count
        return DEVICE.read(energy, count), DEVICE.read(gap, count) * self.model.settings.d_hat

    def assembled(self, reduction) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient (n, 12) and blocks (n, n, 12, 12) of a reduction with elements."""
        gradient, diagonal = DEVICE.zeros((self.n, 12), wp.float64), DEVICE.zeros((self.n, 12, 12), wp.float64)
        reduction.reduce(self.contacts.done, gradient, diagonal)
        blocks, bodies = np.zeros((self.n, self.n, 12, 12)), np.arange(self.n)
        blocks[bodies, bodies] = DEVICE.read(diagonal)
        if pairs := int(DEVICE.read(reduction.counts)[0]):
            row, column, B = (
                DEVICE.read(getattr(reduction.coupling, name), pairs) for name in ("row", "column", "blocks")
            )
            blocks[row, column], blocks[column, row] = B, B.transpose(0, 2, 1)
        return DEVICE.read(gradient), blocks

    def linearized(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient and blocks of the contacts."""
        self.energies(q)
        self.contacts.linearize(pose_of(q))
        return self.assembled(self.contacts.reduction)

    def times_of_impact(self, limit: float = 1.0) -> np.ndarray:
        """Return the safe alpha of each candidate from the start of the path."""
        gap = DEVICE.upload(self.energies(self.model.bodies.q)[1], wp.float64)
        c, law = self.contacts.candidates, self.contacts.law
        out, approach = DEVICE.zeros(max(c.count, 1), wp.float64), DEVICE.zeros(max(c.pair_count, 1), wp.float64)
        DEVICE.launch(pair_approaches, c.pair_count, c.listed, self.contacts.done, self.path, approach)
        query = self.contacts.surfaces, self.path, c.pairs, c.items, law.minimum, limit, gap, approach
        DEVICE.launch(march_each, c.count, *query, out)
        return DEVICE.read(out, c.count)


def clear_of_the_plane(seed: int, **settings) -> Model:
    """Create three intersecting bodies slightly above the half-space, with many contacts of all kinds."""
    model = bodies_over_a_plane(seed, d_hat=0.2, **settings)
    q, plane, surfaces = model.bodies.q, model.bodies.plane.copy(), Surfaces.of(model)
    heights = []
    for b in range(3):
        x = q[b, :3] + surfaces.vertices[surfaces.vertex_range(b)] @ q[b, 3:].reshape(3, 3).T
        heights.append((x @ plane[3, :3]).min() - model.bodies.radius[b])
    plane[3, 3] = min(heights) - 0.1
    return replace(model, bodies=replace(model.bodies, plane=plane))


def assembled(n: int, listed: contact.Contacts, elements: Elements) -> tuple[np.ndarray, np.ndarray]:
    """Return gradient (n, 12) and blocks (n, n, 12, 12) of elements."""
    i, j = body_pair(listed, elements)
    gradient, blocks = np.zeros((n, 12)), np.zeros((n, n, 12, 12))
    for body, part in zip((i, j), elements.gradients(), strict=True):
        np.add.at(gradient, body, part)
    ii, ij, jj = elements.blocks()
    for place, part in (((i, i), ii), ((i, j), ij), ((j, i), ij.transpose(0, 2, 1)), ((j, j), jj)):
        np.add.at(blocks, place, part)
    return gradient, blocks


def law(model: Model) -> contact.ContactParameters:
    """Return the contact parameters of `with_stiffness(model)`."""
    return contact.ContactParameters(KAPPA, model.settings.d_hat, model.settings.barrier)


def heavy(model: Model) -> Model:
    """Return the model with huge moments of inertia."""
    return replace(model, bodies=replace(model.bodies, moment=1e20 * np.ones((len(model.bodies), 3))))
