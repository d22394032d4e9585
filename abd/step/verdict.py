"""Reasons to reject a substep. Each verdict is a `StepFailure` that is returned, not raised; `abd.step.frame` acts on it.

**Swept path.** Iterates never intersect, but a fast body may end up behind an obstacle. The arcs from the state to the converged
iterate (`abd.contact.path.between`) are therefore proven collision-free by conservative advancement, also after 8, 16, 32 ...
iterations. Otherwise the path through the iterates, whose arcs are collision-free, replaces the direct arc if it is close to it:
for each pair of bodies with an unproven arc and every iterate, there must be a parameter of the arc at which the bodies have
nearly the same relative pose. The part of the smaller body that the arc takes into the bounding box of the larger one is
displaced there by at most `TUBE` of the thinner one's thickness. A path farther away may have led around the other body.

**Fast new contact.** An impact acts at the end of its substep, with the attitudes of the bodies there. Bodies that come into
contact must not move relative to each other by more than `FAR` sizes of the smaller one.

**Contact began.** Contact, a limit or a rope acts on the articulation of a body with a smooth scheme: the substep is repeated
with implicit Euler there.
"""

from __future__ import annotations

import numpy as np

from abd.backends.protocol import Backend, Pending
from abd.contact.pair_law import thinnest_extents
from abd.contact.path import between
from abd.energies import spin
from abd.errors import StepFailure
from abd.joints.rows.sizes import half_length
from abd.model import Kind, Model

FINAL = ("blocked", "limits")
"""Failures that no shorter substep resolves."""
FIRST_CHECK = 8
"""Iterations before the first check of the swept path."""
TUBE = 0.5
"""Largest displacement of two bodies relative to each other between an iterate and the direct arc, over the thickness of the
thinner one. Where the arc crosses the middle of a body, an iterate this close to it still intersects that body."""
SAMPLES = 65
"""Number of parameters of the arc at which the distance is computed."""
FAR = 1.0
"""Largest relative motion of bodies with a new contact in a substep, in sizes of the smaller one."""


class ContactBegan(StepFailure):
    """Contacts, limits or ropes act on bodies (n,) bool of a smooth scheme."""

    def __init__(self, bodies: np.ndarray):
        super().__init__("contact_began", "contact began in a smooth substep", concerned=bodies)


class PathNotFree(StepFailure):
    """Swept paths of some pairs in a substep of h [s], scalar or (n,), are not free of collisions; `fast`: of a new contact."""

    def __init__(self, pairs: np.ndarray, names: list[str], h: float | np.ndarray, fast: bool = False):
        bodies = tuple(names[body] for body in dict.fromkeys(pairs[0].tolist()))
        subject = " and ".join(f"'{name}'" for name in bodies)
        remedy = "reduce solver.dt"
        if len(bodies) == 1:
            subject += ", which is strained by more than half"
            remedy += ", or limit the effort of drives that work against joints, limits or contacts"
        substep = f"a substep of {float(np.broadcast_to(h, len(names))[int(pairs[0, 0])]):.3g} s"
        passed = f"{subject}: the swept path of {substep} is not proven free of collisions at any length; {remedy}"
        too_fast = f"{subject} come into contact and move by more than the smaller body's size in {substep}"
        super().__init__(
            "fast_contact" if fast else "passed",
            f"{too_fast}; reduce solver.dt or their velocities" if fast else passed,
            bodies=bodies,
            concerned=np.isin(np.arange(len(names)), pairs),
        )
        self.pairs, self.names, self.h, self.fast = pairs, names, h, fast

    def within(self, chosen: np.ndarray) -> PathNotFree:
        """Return the failure restricted to pairs with chosen bodies (n,) bool."""
        some = chosen[self.pairs].any(axis=1)
        return PathNotFree(self.pairs[some], self.names, self.h, self.fast) if some.any() else self


def is_checked(iterations: int) -> bool:
    """Return whether the swept path is checked after this iteration of a minimisation."""
    times, rest = divmod(iterations, FIRST_CHECK)
    return rest == 0 and times & (times - 1) == 0


def fast_contact(stepper, h: float | np.ndarray) -> PathNotFree | None:
    """Return the verdict on fast new contacts at the iterate of a substep of h [s], scalar or (n,)."""
    backend, bodies, touching = stepper.backend, stepper.model.bodies, stepper.backend.touch.touching() != 0
    dynamic = bodies.kind == Kind.DYNAMIC
    has_new = touching & dynamic & ~stepper.constrained
    if not has_new.any():
        return None
    sizes = 2.0 * half_length(bodies.mass, bodies.moment)
    sizes[~dynamic | (sizes == 0.0)] = np.inf
    pairs = np.asarray(backend.touch.candidate_pairs(), dtype=int).reshape(-1, 2)
    i, j = pairs[touching[pairs].all(axis=1) & has_new[pairs].any(axis=1)].T
    v = stepper.qd[:, :3]
    turning = backend.readings.vertex_speeds() - np.linalg.norm(v, axis=1)
    length = np.broadcast_to(h, len(v))[i]
    motion = length * (np.linalg.norm(v[i] - v[j], axis=1) + turning[i] + turning[j])
    is_far = motion > FAR * np.minimum(sizes[i], sizes[j])
    return PathNotFree(np.stack([i, j], axis=1)[is_far], bodies.names, h, fast=True) if is_far.any() else None


class IteratePath:
    """Poses of the bodies of one model along the iterates of a substep."""

    def __init__(self, model: Model):
        self._thickness, self._meshes, self._bodies = thinnest_extents(model), model.meshes, model.bodies
        corners = [np.abs(mesh.vertices).max(axis=0, initial=0.0) for mesh in model.meshes] + [np.zeros(3)]
        self._half_sizes = np.array(corners)[model.bodies.mesh] + model.bodies.radius[:, None]
        self._half_sizes[np.isfinite(model.bodies.plane[:, 3])] = np.inf
        self.poses: list[Pending] = []

    def add(self, q: Pending) -> None:
        """Add an iterate (n, 12), which is complete on the host when the path is needed."""
        self.poses.append(q)

    def follows_arc(self, pairs: np.ndarray, q: np.ndarray, qd: np.ndarray, h: float | np.ndarray) -> np.ndarray:
        """Return (k,) bool, pairs of bodies (k, 2) whose iterates are close to the arc from the state to the last iterate.

        q, qd: (n, 12) state; h: length of the substep [s], scalar or (n,)."""
        i, j = pairs.T
        out = i != j
        if not self.poses or not out.any():
            return out & False
        bodies, place = np.unique(pairs, return_inverse=True)
        place = place.reshape(pairs.shape)
        poses = np.stack([pose.wait()[0][bodies] for pose in self.poses])
        begin, end = q[bodies], poses[-1]
        turned = np.broadcast_to(np.reshape(h, (-1, 1)), (len(q), 1))[bodies] * spin(begin, qd[bodies])
        arc = between(begin, end, turned, np.zeros(len(bodies)))
        # the smaller body in the frame of the larger one, in which only relative motion counts
        swapped = self._half_sizes[i].max(axis=1) < self._half_sizes[j].max(axis=1)
        small, large = np.where(swapped, place.T, place.T[::-1])
        on_arc, iterates = (_relative(of, large, small) for of in (arc.samples(np.linspace(0.0, 1.0, SAMPLES)), poses[:-1]))
        for k in np.flatnonzero(out):
            points = self._near_points(bodies[small[k]], bodies[large[k]], on_arc[:, k])
            limit = TUBE * min(self._thickness[i[k]], self._thickness[j[k]])
            apart = (np.linalg.norm((on_arc[:, k] - iterate) @ points, axis=1).max(axis=1).min() for iterate in iterates[:, k])
            out[k] = all(distance <= limit for distance in apart)
        return out

    def _near_points(self, small: int, large: int, arc: np.ndarray) -> np.ndarray:
        """Return columns (1, x) (4, p) of the vertices of all edges of body `small` that the arc (s, 3, 4) takes into the box of
        body `large`; all vertices if there is none."""
        mesh = self._meshes[self._bodies.mesh[small]]
        points = np.vstack([np.ones(len(mesh.vertices)), mesh.vertices.T])
        ends = mesh.vertices[mesh.edges]
        longest_edge = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1).max(initial=0.0)
        box = self._half_sizes[large] + self._bodies.radius[small] + longest_edge
        near = (np.abs(arc @ points) <= box[:, None]).all(axis=1).any(axis=0)
        return points[:, near] if near.any() else points


def _relative(q: np.ndarray, frame: np.ndarray, body: np.ndarray) -> np.ndarray:
    """Return (s, k, 3, 4) positions and maps of bodies (k,) in the frames of others (k,), for states q (s, n, 12)."""
    here = q[:, body].copy()
    here[..., :3] -= q[:, frame, :3]
    columns = np.concatenate([here[..., :3, None], here[..., 3:].reshape(*here.shape[:2], 3, 3)], axis=3)
    return np.linalg.solve(q[:, frame, 3:].reshape(*here.shape[:2], 3, 3), columns)


def contact_began(stepper, smooth: np.ndarray) -> ContactBegan | None:
    """Return the verdict on a smooth scheme of bodies (n,) bool in islands on whose bodies contacts, limits or ropes act."""
    if not smooth.any():
        return None
    backend, articulations = stepper.backend, stepper.articulations
    began = smooth & articulations.containing((backend.touch.touching() != 0) | backend.rows.limited())
    if not began.any():
        return None
    return ContactBegan(smooth & articulations.containing(islands_of(backend, np.flatnonzero(began))))


def of_iterate(stepper, h: float | np.ndarray, smooth: np.ndarray) -> StepFailure | None:
    """Return the verdict on joints that turn too far, fast new contacts, and contacts in a smooth scheme (n,) bool."""
    return stepper.rows.turned(stepper.excluded) or fast_contact(stepper, h) or contact_began(stepper, smooth)


def of_path(stepper, iterates: IteratePath, pairs: np.ndarray, h: float | np.ndarray) -> tuple[PathNotFree | None, bool]:
    """Return the verdict on pairs of bodies (k, 2) with direct arcs that are not proven collision-free, and whether the path
    through the iterates replaces an arc."""
    if not len(pairs):
        return None, False
    indirect = iterates.follows_arc(pairs, stepper.q, stepper.qd, h)
    pairs = pairs[~indirect]
    return PathNotFree(pairs, stepper.model.bodies.names, h) if len(pairs) else None, bool(indirect.any())


def islands_of(backend: Backend, bodies: np.ndarray) -> np.ndarray:
    """Return (n,) bool, all mobile bodies of the islands of some bodies (k,)."""
    islands, mobile, bodies = backend.islands.host, backend.inactive.mobile, bodies.astype(int)
    chosen = np.zeros(backend.islands.count, dtype=bool)
    chosen[islands[bodies[mobile[bodies]]]] = True
    return chosen[islands] & mobile
