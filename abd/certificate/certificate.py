"""Independent certificate of a run: `abd certify RUN`.

It reads trajectory.h5 only and uses no code of the solver: geometry is checked by `ipctk` (the reference library for contact),
exact predicates and winding numbers. Checks in every K-th frame and in the last one:

- finite values, increasing time, positive determinants of body maps;
- no intersection between surfaces of different bodies, no body inside another's closed surface or beyond a half-space;
- every gap positive: distance less the radii of thick surfaces and less the minimum separation;
- the swept path from the frame before (`abd.certificate.swept_paths`) through the states in `/paths`: ends of substeps, and
  iterates of Newton's method along which a path was accepted; the number of unknown paths is reported;

and in all frames: the step converged, reached the requested tolerance, and reported a positive gap.

Pairs of bodies that may overlap by the scene's rules are ignored: of one group, of different worlds, of materials without
contact, of one contact filter, connected by a joint that permits overlap, and pairs without a dynamic body.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

import h5py
import numpy as np

from abd.certificate.exact import BLOCK, winding_numbers
from abd.certificate.scene import Scene
from abd.certificate.swept_paths import PathCheck, spin
from abd.certificate.world import Alike, Part, parts_of


@dataclass(frozen=True)
class Violation:
    """One violation: frame, bodies and description."""

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
    """Result of a certification; `smallest_gap` [m] is measured here, infinite without close pairs.

    `paths_unknown`: number of checked frames that are several steps after the frame before, or whose path was accepted along
    iterates while a body turned by more than half a turn.
    """

    path: str
    frames: int = 0
    frames_checked: int = 0
    paths_checked: int = 0
    paths_unknown: int = 0
    bodies: int = 0
    triangles: int = 0
    smallest_gap: float = np.inf
    violations: list[Violation] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether there are no violations."""
        return not self.violations

    def as_table(self) -> dict:
        """Return the certificate as plain values; `smallest_gap` is None without close pairs."""
        gap = self.smallest_gap if np.isfinite(self.smallest_gap) else None
        return {"ok": self.ok, **asdict(self), "smallest_gap": gap}

    def __str__(self) -> str:
        unknown = f" ({self.paths_unknown} unknown)" if self.paths_unknown else ""
        what = f"{self.frames_checked} of {self.frames} frames, {self.paths_checked} paths{unknown}"
        what += f", {self.bodies} bodies, {self.triangles} triangles"
        if self.ok:
            gap = f"{self.smallest_gap:.3e} m" if np.isfinite(self.smallest_gap) else "none within d_hat"
            return f"certified: {self.path}: {what}, smallest gap {gap}"
        shown = [str(violation) for violation in self.violations[:20]]
        more = [f"... and {len(self.violations) - 20} more"] if len(self.violations) > 20 else []
        return "\n".join([f"NOT certified: {self.path}: {what}", *shown, *more])


def certify(run: str | Path, every: int = 1) -> Certificate:
    """Check the trajectory of a run, a directory or file, with geometric checks in every `every`-th frame.

    Raises:
        OSError: no such file, or not an HDF5 file. KeyError: not a trajectory.
    """
    path = Path(run)
    path = path / "trajectory.h5" if path.is_dir() else path
    with h5py.File(path, "r", locking=False) as file:
        frames = int(file.attrs["frames"])
        scene = Scene(file)
        worlds = [parts_of(scene, int(world)) for world in np.unique(scene.world[scene.owner])]
        found = Certificate(str(run), frames, bodies=len(scene.names), triangles=len(scene.faces))
        time = file["time"][:frames]
        if "worlds" in file:
            own = file["worlds/time"][:frames][:, np.unique(scene.world, return_inverse=True)[1]]
        else:
            own = np.broadcast_to(time[:, None], (frames, len(scene.names)))
        _check_solver(file["solver"], time, scene, found)
        paths = PathCheck(scene, [part for _, parts in worlds for part in parts], file["bodies/center"][...])
        single = np.diff(file["step"][:frames], prepend=0) == 1
        for frame in sorted({*range(0, frames, every), frames - 1} if frames else ()):
            moment = Moment(scene, worlds, file["bodies/transform"][frame], found, frame, float(time[frame]))
            whole = moment.check(file["bodies/velocity"][frame])
            found.frames_checked += 1
            arcs = _arcs(file, frame, own[frame] - own[frame - 1]) if whole and frame and single[frame] else []
            for arc in arcs:
                moment.check_path(paths, *arc)
            if arcs:
                found.paths_checked += 1
            elif frame:
                found.paths_unknown += 1
        if frames == 0:
            found.violations.append(Violation(0, 0.0, "empty", (), "the trajectory has no frame"))
    return found


def _arcs(file: h5py.File, frame: int, h: np.ndarray) -> list[tuple[np.ndarray, ...]]:
    """Return the arcs of a path of one step, h (n,) [s] long, or none if it is not known.

    The path leads from the frame before through the states in `/paths`. An arc has transforms (n, 4, 4) at its start and end, and
    rotations at the velocities of its start (n, 3) [rad]."""
    first, last = file["paths/offset"][frame : frame + 2]
    before, after = file["bodies/transform"][frame - 1 : frame + 1]
    transforms = [before, *file["paths/transform"][first:last], after]
    spins = [spin(before, file["bodies/velocity"][frame - 1]), *file["paths/spin"][first:last]]
    passed = file["paths/length"][first:last]
    turns = [length[:, None] * rate for length, rate in zip([*passed, h - passed.sum(axis=0)], spins, strict=True)]
    return list(zip(transforms, transforms[1:], turns)) if np.isfinite(passed).all() else []


def _check_solver(solver, time: np.ndarray, scene: Scene, found: Certificate) -> None:
    """Check the reports of the solver in all frames: converged, tolerance reached, gap positive; time increases."""
    frames = len(time)
    converged, achieved, gap = (solver[name][:frames] for name in ("converged", "tolerance_achieved", "min_gap"))

    def report(bad: np.ndarray, kind: str, detail) -> None:
        for frame in np.flatnonzero(bad):
            found.violations.append(Violation(int(frame), float(time[frame]), kind, (), detail(frame)))

    report(~converged, "not converged", lambda frame: "the solver reports that this step did not converge")
    requested = f"{scene.tolerance:.3e} m/s were requested"
    report(~(achieved <= scene.tolerance), "tolerance", lambda frame: f"{achieved[frame]:.3e} m/s reached, {requested}")
    report(~(gap > 0.0), "reported gap", lambda frame: f"the solver reports a gap of {gap[frame]:.3e} m")
    report(~(np.diff(time, prepend=-np.inf) > 0.0), "time", lambda frame: "time does not increase")


@dataclass
class Moment:
    """All bodies in one frame."""

    scene: Scene
    worlds: list[tuple[Alike, list[Part]]]
    transform: np.ndarray
    found: Certificate
    frame: int
    time: float

    def check(self, velocity: np.ndarray) -> bool:
        """Check a frame; geometry is skipped if numbers are not finite. Returns whether there was no violation."""
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

    def check_path(self, paths: PathCheck, *arc: np.ndarray) -> None:
        """Check an arc of the path to this frame (`_arcs`)."""
        if all(np.isfinite(one).all() for one in arc):
            for bodies, detail in paths.check(*arc):
                self._report("path", detail, *bodies)

    def _report(self, kind: str, detail: str, *bodies: int) -> None:
        names = tuple(self.scene.names[body] for body in bodies)
        self.found.violations.append(Violation(self.frame, self.time, kind, names, detail))

    def _surfaces(self, positions: np.ndarray) -> set[tuple[int, int]]:
        """Check intersections and gaps; returns intersecting pairs."""
        crossing: set[tuple[int, int]] = set()
        for whole, parts in self.worlds:
            for pair in whole.intersections(whole.place(positions)):
                self._report("intersection", "the surfaces cross", *pair)
                crossing.add(pair)
            for part in parts:
                gap, pair = part.smallest_gap(part.place(positions))
                self.found.smallest_gap = min(self.found.smallest_gap, gap)
                if pair is not None and pair not in crossing:
                    self._report("gap", f"the gap is {gap:.3e} m", *pair)
        return crossing

    def _half_spaces(self, positions: np.ndarray) -> None:
        for plane, bodies, gaps in self.scene.half_space_gaps(positions):
            self.found.smallest_gap = min([self.found.smallest_gap, *gaps[gaps < self.scene.d_hat].tolist()])
            for k in np.flatnonzero(~(gaps > 0.0)):
                self._report("half-space", f"a vertex lies {-gaps[k]:.3e} m beyond the half-space", bodies[k], plane)

    def _containment(self, positions: np.ndarray, crossing: set[tuple[int, int]]) -> None:
        """Check a vertex of every component of every body against every closed surface whose box contains it."""
        scene = self.scene
        closed = [k for k, body in enumerate(scene.bodies_in_order) if scene.surfaces[scene.mesh[body]].closed]
        if not closed:
            return
        low = np.minimum.reduceat(positions, scene.start)[closed]
        high = np.maximum.reduceat(positions, scene.start)[closed]
        points, owners = positions[scene.probes], scene.owner[scene.probes]
        holders = scene.bodies_in_order[closed]
        size = max(1, BLOCK // len(points))
        for begin in range(0, len(holders), size):
            part = slice(begin, begin + size)
            inside = (points[:, None] > low[None, part]) & (points[:, None] < high[None, part])
            point, holder = np.nonzero(inside.all(axis=2))
            holder = holders[part][holder]
            allowed = scene.may_touch(owners[point], holder)
            self._winding(points, owners, point[allowed], holder[allowed], crossing)

    def _winding(self, points, owners, point, holder, crossing) -> None:
        for body in np.unique(holder):
            candidates = point[holder == body]
            surface = self.scene.surfaces[self.scene.mesh[body]]
            matrix = self.transform[body]
            local = np.linalg.solve(matrix[:3, :3], (points[candidates] - matrix[:3, 3]).T).T
            number = winding_numbers(local, surface.vertices[surface.triangles])
            for k in np.flatnonzero(np.abs(number) > 0.5):
                pair = (int(owners[candidates[k]]), int(body))
                if tuple(sorted(pair)) not in crossing:
                    self._report("containment", "the first lies inside the second", *pair)
