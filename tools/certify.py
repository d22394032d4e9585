"""Independent certificate of a run: `python tools/certify.py RUN [--json] [--every K]`.

Reads trajectory.h5 and nothing else, and uses none of the solver's code: geometry is judged by `ipctk` (the reference
library for contact), by exact predicates and by winding numbers. Checked are, in every K-th frame and in the last one:

- finite values, growing time, no body turned inside out;
- no intersection between surfaces of different bodies, no body inside another's closed surface, every vertex on the
  right side of every half-space;
- every gap positive: distance less the radii of thick surfaces and less the minimum separation;

and in all frames: the step converged, reached the tolerance that was asked for, and reported a positive gap.

The ways between neighbouring frames are checked too (`certified_ways`), where one substep led from the one to the other: the
states between the substeps of a frame are not in the file, so that its way is not known. Their number is said.

Pairs of bodies that may overlap by the scene's own rules are left out: of one group, of different worlds, of materials
that do not meet, of one contact filter, joined by a joint that says so, and pairs without a dynamic body.

Exit status: 0 the certificate holds, 1 it does not, 2 the file cannot be read. For tests: `certify(path)`.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path

import h5py
import ipctk
import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

sys.path.insert(0, str(Path(__file__).resolve().parent))

from certified_ways import WayCheck

_BLOCK = 2_000_000
"""Number of point-triangle or point-box pairs that are looked at in one go."""


@dataclass(frozen=True)
class Violation:
    """One thing that must not be: in which frame, between which bodies."""

    frame: int
    time: float
    kind: str
    bodies: tuple[str, ...]
    detail: str

    def __str__(self) -> str:
        names = f" {' and '.join(self.bodies)}:" if self.bodies else ""
        return f"frame {self.frame} (t = {self.time:.6g} s): {self.kind}:{names} {self.detail}"


@dataclass
class Certificate:
    """What was looked at and what was found; `smallest_gap` [m] is measured here, infinite where nothing came near.

    `ways_unknown`: frames, of those that were looked at, to which more than one substep led.
    """

    path: str
    frames: int = 0
    frames_checked: int = 0
    ways_checked: int = 0
    ways_unknown: int = 0
    bodies: int = 0
    triangles: int = 0
    smallest_gap: float = np.inf
    violations: list[Violation] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the certificate holds."""
        return not self.violations

    def __str__(self) -> str:
        ways = f"{self.ways_checked} ways" + (
            f" ({self.ways_unknown} of substeps unknown)" if self.ways_unknown else ""
        )
        what = (
            f"{self.frames_checked} of {self.frames} frames, {ways}, {self.bodies} bodies, {self.triangles} triangles"
        )
        if self.ok:
            gap = f"{self.smallest_gap:.3e} m" if np.isfinite(self.smallest_gap) else "none within d_hat"
            return f"certified: {self.path}: {what}, smallest gap {gap}"
        shown = [str(violation) for violation in self.violations[:20]]
        more = [f"... and {len(self.violations) - 20} more"] if len(self.violations) > 20 else []
        return "\n".join([f"NOT certified: {self.path}: {what}", *shown, *more])


class Scene:
    """The constant part of a trajectory: bodies, rules, and meshes put together.

    Attributes:
        names, dynamic, group, world, material, radius: (n,) of the bodies; plane: (n, 4).
        rest: (v, 3) vertices of all bodies in their mesh frames, dynamic bodies first; owner: (v,) their bodies.
        edges, faces: (e, 2), (f, 3) into `rest`.
        start: first vertex of every body that has any, in order; bodies_in_order: those bodies.
    """

    def __init__(self, file):
        bodies = file["bodies"]
        self.names = [name.decode() for name in bodies["name"][...]]
        self.dynamic = np.array([kind == b"dynamic" for kind in bodies["kind"][...]], dtype=bool)
        self.group, self.world, self.material, self.radius, self.plane, self.mesh = (
            bodies[name][...] for name in ("group", "world", "material", "radius", "plane", "mesh")
        )
        self.enabled = file["materials/enabled"][...]
        self.tolerance, self.d_hat, self.minimum_separation = (
            float(file["solver"].attrs[name]) for name in ("tolerance", "d_hat", "minimum_separation")
        )
        index = {name: k for k, name in enumerate(self.names)}
        joints = [joint for joint in file["joints"].values() if not joint.attrs["collide"]]
        copies = [joint["bodies"][...] for joint in joints if "bodies" in joint]
        single = [[index.get(name, -1) for name in joint.attrs["bodies"]] for joint in joints if "bodies" not in joint]
        apart = np.concatenate([np.array(single, dtype=np.int64).reshape(-1, 2), *copies, bodies["filtered"][...]])
        pairs = np.sort(apart[apart.min(axis=1) >= 0], axis=1)
        self.joined_pairs = np.unique(pairs, axis=0)
        self.joined = self.joined_pairs @ [len(self.names), 1]
        self.surfaces = [Surface(file["meshes"][str(k)]) for k in range(len(file["meshes"]))]

        order = np.argsort(~self.dynamic, kind="stable")
        self.bodies_in_order = order[self.mesh[order] >= 0]
        parts = [self.surfaces[self.mesh[body]] for body in self.bodies_in_order]
        counts = np.array([len(part.vertices) for part in parts], dtype=int)
        self.start = np.concatenate([[0], np.cumsum(counts)])[:-1]
        self.owner = np.repeat(self.bodies_in_order, counts)
        self.rest = np.concatenate([np.empty((0, 3)), *(part.vertices for part in parts)])
        shifted = list(zip(parts, self.start, strict=True))
        self.edges = np.concatenate([np.empty((0, 2), int), *(part.edges + start for part, start in shifted)])
        self.faces = np.concatenate([np.empty((0, 3), int), *(part.triangles + start for part, start in shifted)])
        probes = [part.probes + start for part, start in shifted]
        self.probes = np.concatenate([np.empty(0, int), *probes])
        """One vertex of every connected component of every body."""

    def may_touch(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """(k,) bool: whether the rules forbid these pairs of bodies to overlap."""
        keys = np.minimum(first, second) * len(self.names) + np.maximum(first, second)
        allowed = (first != second) & (self.dynamic[first] | self.dynamic[second])
        allowed &= self.world[first] == self.world[second]
        allowed &= (self.group[first] != self.group[second]) | (self.group[first] < 0)
        return allowed & self.enabled[self.material[first], self.material[second]] & ~np.isin(keys, self.joined)

    def positions(self, transform: np.ndarray) -> np.ndarray:
        """(v, 3) world positions for transforms (n, 4, 4)."""
        matrices = transform[self.owner]
        return np.einsum("vij,vj->vi", matrices[:, :3, :3], self.rest) + matrices[:, :3, 3]


class Surface:
    """One mesh: vertices (v, 3), triangles with an area (f, 3), edges (e, 2), whether it is closed."""

    def __init__(self, group):
        self.vertices = group["vertices"][...]
        triangles = group["triangles"][...].astype(int)
        self.edges = group["edges"][...].astype(int)
        welded, same = np.unique(self.vertices, axis=0, return_inverse=True)
        same = same.reshape(-1)
        corners = same[triangles]
        sides = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
        sides = sides[sides[:, 0] != sides[:, 1]]
        count = len(welded)
        # Closed: every directed edge occurs as often as its reverse, so that winding numbers are whole.
        forward, backward = np.sort(sides @ [count, 1]), np.sort(sides @ [1, count])
        self.closed = len(sides) > 0 and np.array_equal(forward, backward)
        links = np.concatenate([sides, same[self.edges]])
        graph = coo_matrix((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(count, count))
        component = connected_components(graph, directed=False)[1][same]
        self.probes = np.unique(component, return_index=True)[1]
        a, b, c = (self.vertices[triangles[:, k]] for k in range(3))
        self.triangles = triangles[np.any(np.cross(b - a, c - a) != 0.0, axis=1)]


class World:
    """Bodies of one world as one collision mesh of ipctk, built once.

    Args:
        bodies: (n,) bool, those that are taken; alike: (n,) bool, those of them that are not compared with each other.
    """

    def __init__(self, scene: Scene, bodies: np.ndarray, alike: np.ndarray):
        self.scene = scene
        mine = bodies[scene.owner]
        number = np.cumsum(mine) - 1
        self.vertices = np.flatnonzero(mine)
        self.owner = scene.owner[mine]
        edges = number[scene.edges[mine[scene.edges[:, 0]]]] if len(scene.edges) else scene.edges
        faces = number[scene.faces[mine[scene.faces[:, 0]]]] if len(scene.faces) else scene.faces
        self.edges, self.faces = (np.asfortranarray(items, dtype=np.int32) for items in (edges, faces))
        # Vertices of equal labels are never compared: bodies of one group, or two bodies joined by a joint.
        count = len(scene.names)
        labels = [np.where(scene.group >= 0, count + scene.group, np.arange(count))]
        labels.append(np.where(alike, count, np.arange(count)))
        for first, second in matchings(scene.joined_pairs):
            labels.append(np.arange(count))
            labels[-1][second] = first
        self.filter = ipctk.make_static_obstacle_filter(int(scene.dynamic[self.owner].sum()))
        for label in labels:
            self.filter = self.filter & ipctk.make_vertex_patches_filter(label[self.owner].astype(np.int32))
        self.mesh = ipctk.CollisionMesh(np.asfortranarray(scene.rest[mine]), self.edges, self.faces)
        self.mesh.can_collide = self.filter
        self.xi = scene.radius[bodies].max(initial=0.0) * 2.0 + scene.minimum_separation
        # All exempt pairs are in the filter and distances are bare: ipctk's own minimum is the smallest gap.
        self.plain = self.xi == 0.0 and scene.enabled.all()

    def intersections(self, positions: np.ndarray) -> list[tuple[int, int]]:
        """Pairs of bodies whose surfaces cross, each once."""
        if not ipctk.has_intersections(self.mesh, positions):
            return []
        # Some pair crosses: find out which. The same search as has_intersections, box margin included.
        margin = 1e-6 * np.linalg.norm(np.ptp(positions, axis=0))
        search = ipctk.LBVH()
        search.can_vertices_collide = self.filter
        search.build(positions, self.edges, self.faces, margin)
        candidates = search.detect_edge_face_candidates()
        pairs = np.array([(item.edge_id, item.face_id) for item in candidates], dtype=int).reshape(-1, 2)
        first, second = self.owner[self.edges[pairs[:, 0], 0]], self.owner[self.faces[pairs[:, 1], 0]]
        allowed = self.scene.may_touch(first, second)
        found: set[tuple[int, int]] = set()
        for (edge, face), a, b in zip(pairs[allowed], first[allowed], second[allowed], strict=True):
            key = (int(min(a, b)), int(max(a, b)))
            if key not in found:
                points = (*positions[self.edges[edge]], *positions[self.faces[face]])
                if ipctk.is_edge_intersecting_triangle(*points) and segment_meets_triangle(*points):
                    found.add(key)
        return sorted(found)

    def smallest_gap(self, positions: np.ndarray) -> tuple[float, tuple[int, int] | None]:
        """Smallest distance less radii and minimum separation [m] among pairs within d_hat; the pair if <= 0."""
        reach = self.scene.d_hat + self.xi
        collisions = ipctk.NormalCollisions()
        collisions.build(self.mesh, positions, reach)
        if len(collisions) == 0:
            return np.inf, None
        if self.plain:
            distance = float(np.sqrt(collisions.compute_minimum_distance(self.mesh, positions)))
            if distance > 0.0:
                return distance, None
        # No wrapper of a collision may outlive the collection: ipctk does not keep it alive.
        count = range(len(collisions))
        ids = np.array([collisions[k].vertex_ids(self.edges, self.faces) for k in count])
        squared = np.array([collisions[k].compute_distance(positions, self.edges, self.faces) for k in count])
        first = self.owner[ids[:, 0]]
        # Vertex-vertex, edge-vertex, face-vertex and edge-edge stencils begin with the first primitive, and their last
        # vertex belongs to the second one or, for a vertex against an edge or a face, to that edge or face.
        last = ids[np.arange(len(ids)), (ids >= 0).sum(axis=1) - 1]
        second = self.owner[last]
        xi = self.scene.radius[first] + self.scene.radius[second] + self.scene.minimum_separation
        gaps = np.where(self.scene.may_touch(first, second), np.sqrt(squared) - xi, np.inf)
        k = int(np.argmin(gaps))
        gap = float(gaps[k])
        return gap, (int(min(first[k], second[k])), int(max(first[k], second[k]))) if gap <= 0.0 else None


def parts_of(scene: Scene, world: int) -> list[World]:
    """The bodies of a world in parts by their radii: ipctk compares all of a part within the largest range. The first are the
    bare bodies; every further one has those of up to twice the radius of its thinnest, compared among themselves and with all
    that are thinner."""
    mine = (scene.world == world) & np.isin(np.arange(len(scene.world)), scene.owner)
    left, parts = mine.copy(), []
    while left.any():
        least = scene.radius[left].min()
        part = left & (scene.radius <= 2.0 * least)
        thinner = mine & ~left
        parts.append(World(scene, thinner | part, thinner))
        left &= ~part
    return parts


def certify(run: str | Path, every: int = 1) -> Certificate:
    """Check a run's trajectory.

    Args:
        run: directory of a run, or a trajectory file.
        every: look at the geometry of every so many frames.

    Raises:
        OSError: no such file, or no HDF5. KeyError: not a trajectory.
    """
    path = Path(run)
    path = path / "trajectory.h5" if path.is_dir() else path
    with h5py.File(path, "r", locking=False) as file:
        frames = int(file.attrs["frames"])
        scene = Scene(file)
        worlds = [one for world in np.unique(scene.world[scene.owner]) for one in parts_of(scene, int(world))]
        found = Certificate(str(run), frames, bodies=len(scene.names), triangles=len(scene.faces))
        time = file["time"][:frames]
        _check_solver(file["solver"], time, scene, found)
        ways = WayCheck(scene, worlds, file["bodies/center"][...]) if "center" in file["bodies"] else None
        single = file["solver/substeps"][:frames] == 1
        for frame in sorted({*range(0, frames, every), frames - 1} if frames else ()):
            moment = Moment(scene, worlds, file["bodies/transform"][frame], found, frame, float(time[frame]))
            whole = moment.check(file["bodies/velocity"][frame])
            found.frames_checked += 1
            if whole and frame and ways is not None and single[frame]:
                moment.check_way(
                    ways, file["bodies/transform"][frame - 1], file["bodies/velocity"][frame - 1], time[frame - 1]
                )
                found.ways_checked += 1
            elif frame:
                found.ways_unknown += 1
        if frames == 0:
            found.violations.append(Violation(0, 0.0, "empty", (), "the trajectory has no frame"))
    return found


def _check_solver(solver, time: np.ndarray, scene: Scene, found: Certificate) -> None:
    """What the solver says about every frame: converged, tolerance reached, gap positive; time must grow."""
    frames = len(time)
    converged, achieved, gap = (solver[name][:frames] for name in ("converged", "tolerance_achieved", "min_gap"))

    def report(bad: np.ndarray, kind: str, detail) -> None:
        for frame in np.flatnonzero(bad):
            found.violations.append(Violation(int(frame), float(time[frame]), kind, (), detail(frame)))

    report(~converged, "not converged", lambda frame: "the solver says that this step did not converge")
    asked = f"{scene.tolerance:.3e} m/s were asked for"
    report(~(achieved <= scene.tolerance), "tolerance", lambda frame: f"{achieved[frame]:.3e} m/s reached, {asked}")
    report(~(gap > 0.0), "reported gap", lambda frame: f"the solver reports a gap of {gap[frame]:.3e} m")
    report(~(np.diff(time, prepend=-np.inf) > 0.0), "time", lambda frame: "time does not grow")


@dataclass
class Moment:
    """All bodies in one frame."""

    scene: Scene
    worlds: list[World]
    transform: np.ndarray
    found: Certificate
    frame: int
    time: float

    def check(self, velocity: np.ndarray) -> bool:
        """All checks of a frame; geometry is skipped where numbers are not finite. Returns whether none of it was wrong."""
        before = len(self.found.violations)
        finite = np.isfinite(self.transform).all(axis=(1, 2)) & np.isfinite(velocity).all(axis=(1, 2))
        for body in np.flatnonzero(~finite):
            self._report("not finite", "transform or velocity holds NaN or infinity", body)
        if not finite.all():
            return False
        for body in np.flatnonzero(np.linalg.det(self.transform[:, :3, :3]) <= 0.0):
            self._report("inside out", "the transform's determinant is not positive", body)
        positions = self.scene.positions(self.transform)
        crossing = self._surfaces(positions)
        self._half_spaces(positions)
        self._containment(positions, crossing)
        return len(self.found.violations) == before

    def check_way(self, ways: WayCheck, before: np.ndarray, velocity: np.ndarray, time: float) -> None:
        """The ways from the frame before, where the bodies had these transforms and velocities (n, 4, 4)."""
        if np.isfinite(before).all() and np.isfinite(velocity).all():
            for bodies, detail in ways.check(before, self.transform, velocity, self.time - time):
                self._report("way", detail, *bodies)

    def _report(self, kind: str, detail: str, *bodies: int) -> None:
        names = tuple(self.scene.names[body] for body in bodies)
        self.found.violations.append(Violation(self.frame, self.time, kind, names, detail))

    def _surfaces(self, positions: np.ndarray) -> set[tuple[int, int]]:
        """Intersections and gaps; returns the pairs that cross."""
        crossing: set[tuple[int, int]] = set()
        for world in self.worlds:
            mine = np.asfortranarray(positions[world.vertices])
            for pair in world.intersections(mine):
                self._report("intersection", "the surfaces cross", *pair)
                crossing.add(pair)
            gap, pair = world.smallest_gap(mine)
            self.found.smallest_gap = min(self.found.smallest_gap, gap)
            if pair is not None and pair not in crossing:
                self._report("gap", f"the gap is {gap:.3e} m", *pair)
        return crossing

    def _half_spaces(self, positions: np.ndarray) -> None:
        scene = self.scene
        for plane in np.flatnonzero(np.isfinite(scene.plane[:, 3])) if len(scene.start) else ():
            normal, offset = scene.plane[plane, :3], scene.plane[plane, 3]
            height = np.minimum.reduceat(positions @ normal - offset, scene.start)
            bodies = scene.bodies_in_order
            gap = height - scene.radius[bodies] - scene.radius[plane] - scene.minimum_separation
            relevant = scene.may_touch(np.full(len(bodies), plane), bodies)
            self.found.smallest_gap = min(self.found.smallest_gap, _near(gap[relevant], scene.d_hat))
            for k in np.flatnonzero(relevant & ~(gap > 0.0)):
                detail = f"a vertex lies {-gap[k]:.3e} m beyond the half-space"
                self._report("half-space", detail, bodies[k], plane)

    def _containment(self, positions: np.ndarray, crossing: set[tuple[int, int]]) -> None:
        """A vertex of every component of every body, against every closed surface around whose box it lies."""
        scene = self.scene
        closed = [k for k, body in enumerate(scene.bodies_in_order) if scene.surfaces[scene.mesh[body]].closed]
        if not closed:
            return
        low = np.minimum.reduceat(positions, scene.start)[closed]
        high = np.maximum.reduceat(positions, scene.start)[closed]
        points, owners = positions[scene.probes], scene.owner[scene.probes]
        holders = scene.bodies_in_order[closed]
        size = max(1, _BLOCK // len(points))
        for begin in range(0, len(holders), size):
            part = slice(begin, begin + size)
            inside = (points[:, None] > low[None, part]) & (points[:, None] < high[None, part])
            point, holder = np.nonzero(inside.all(axis=2))
            holder = holders[part][holder]
            allowed = scene.may_touch(owners[point], holder)
            self._winding(points, owners, point[allowed], holder[allowed], crossing)

    def _winding(self, points, owners, point, holder, crossing) -> None:
        for body in np.unique(holder):
            mine = point[holder == body]
            surface = self.scene.surfaces[self.scene.mesh[body]]
            matrix = self.transform[body]
            local = np.linalg.solve(matrix[:3, :3], (points[mine] - matrix[:3, 3]).T).T
            number = winding_numbers(local, surface.vertices[surface.triangles])
            for k in np.flatnonzero(np.abs(number) > 0.5):
                pair = (int(owners[mine[k]]), int(body))
                if tuple(sorted(pair)) not in crossing:
                    self._report("containment", "the first lies inside the second", *pair)


def matchings(pairs: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs (k, 2) distributed over sets in which no body occurs twice; each set as firsts and seconds."""
    sets: list[list[tuple[int, int]]] = []
    members: list[set[int]] = []
    for first, second in pairs.tolist():
        free = [k for k, bodies in enumerate(members) if first not in bodies and second not in bodies]
        if not free:
            free = [len(sets)]
            sets.append([])
            members.append(set())
        sets[free[0]].append((first, second))
        members[free[0]].update((first, second))
    return [tuple(np.array(found).T) for found in sets]


def _near(gaps: np.ndarray, reach: float) -> float:
    """Smallest of the gaps if within reach, else infinity."""
    smallest = float(gaps.min(initial=np.inf))
    return smallest if smallest < reach else np.inf


def winding_numbers(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """(k,) winding numbers of a surface with corners (f, 3, 3) around points (k, 3), by solid angles.

    van Oosterom and Strackee, The solid angle of a plane triangle, 1983.
    """
    total = np.zeros(len(points))
    size = max(1, _BLOCK // max(1, len(points)))
    for begin in range(0, len(corners), size):
        a, b, c = np.moveaxis(corners[None, begin : begin + size] - points[:, None, None], 2, 0)
        la, lb, lc = (np.linalg.norm(side, axis=2) for side in (a, b, c))
        volume = np.einsum("kfi,kfi->kf", a, np.cross(b, c))
        ab, bc, ca = (np.einsum("kfi,kfi->kf", *two) for two in ((a, b), (b, c), (c, a)))
        total += np.arctan2(volume, la * lb * lc + ab * lc + bc * la + ca * lb).sum(axis=1)
    return total / (2.0 * np.pi)


def segment_meets_triangle(e0, e1, t0, t1, t2) -> bool:
    """Exact test by rational arithmetic, to clear slivers of rounding; a segment in the triangle's plane counts."""
    e0, e1, t0, t1, t2 = ([Fraction(float(x)) for x in point] for point in (e0, e1, t0, t1, t2))
    below, above = _orientation(t0, t1, t2, e0), _orientation(t0, t1, t2, e1)
    if below == above == 0:
        return True
    if below * above > 0:
        return False
    turns = [_orientation(e0, e1, a, b) for a, b in ((t0, t1), (t1, t2), (t2, t0))]
    return min(turns) >= 0 or max(turns) <= 0


def _orientation(a, b, c, d) -> int:
    """Sign of the volume of a tetrahedron."""
    u, v, w = ([y - x for x, y in zip(a, point, strict=True)] for point in (b, c, d))
    volume = (
        u[0] * (v[1] * w[2] - v[2] * w[1]) - u[1] * (v[0] * w[2] - v[2] * w[0]) + u[2] * (v[0] * w[1] - v[1] * w[0])
    )
    return (volume > 0) - (volume < 0)


def main(argv: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="certify.py", description=__doc__.splitlines()[0])
    parser.add_argument("run", metavar="RUN", help="directory of a run, or a trajectory file")
    parser.add_argument("--json", action="store_true", help="print the certificate as JSON")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="look at every K-th frame only [1]")
    arguments = parser.parse_args(argv)
    try:
        found = certify(arguments.run, max(1, arguments.every))
    except (OSError, KeyError) as error:
        print(f"cannot read {arguments.run}: {error}", file=sys.stderr)
        return 2
    if arguments.json:
        values = {"ok": found.ok, **asdict(found)}
        values["smallest_gap"] = found.smallest_gap if np.isfinite(found.smallest_gap) else None
        print(json.dumps(values))
    else:
        print(found)
    return 0 if found.ok else 1


if __name__ == "__main__":
    sys.exit(main())
