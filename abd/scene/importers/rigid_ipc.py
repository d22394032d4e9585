"""Importer of the JSON scenes of rigid-ipc (Ferguson et al. 2021) and of their `linear_constraints` extension.

The extension is that of the scenes of Affine Body Dynamics (Lan et al. 2022). SI units, y up. This module
reproduces the source of rigid-ipc, including its quirks:

- `position` places the mesh origin, `linear_velocity` moves the centre of mass; angles are in degrees, R = Rz Ry Rx;
- torques are given in "degrees": the torque is the value times pi/180 N m;
- `dimensions` are the extents of the scaled mesh; an extent of 0 counts as 1;
- keys that begin with # are comments, other unknown keys are ignored (a misspelt key leaves the default);
- the convergence criterion and its tolerance, by default a hundredth of the scene's diagonal per second, are not used;
- the barrier's distance is absolute, one coefficient of friction holds for the whole scene, all pairs of primitives count;
- open meshes are sheets of `density` kg/m^2, polylines have `density` kg/m; neither has a thickness in contact;
- `kinematic_poses` are poses of the principal frame at the centre of mass after each step, with rotation vectors in
  radians; after the last pose the body keeps its velocities;
- bodies that are not dynamic do not collide with each other (as in scenes of this package).

In scenes of the extended family angles are radians and `is_dof_fixed` is not honoured. Its pins are

    {"type": "pin_world", "body_name": "base", "body_point": [0, 0, 0]}
    {"type": "pin_joint", "bodyA_name": "link1", "bodyA_point": [10, 0, 0], "bodyB_name": "link2"}

A pinned point keeps its initial position, or coincides with the point of the other body at that position. Points are in
coordinates of the mesh file, before scale and pose. Three pins to the world that are not collinear fix a rigid body (of an affine
body they fix 9 of 12 degrees of freedom, and its rigidity the others): such a body becomes static. Other pins become joints of
type "pin"; their bodies still collide.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from abd.errors import SceneError
from abd.model import steps_in
from abd.rotations import pose
from abd.scene.geometry import mass
from abd.scene.geometry.mass import MassProperties
from abd.scene.geometry.mesh_files import RawMesh
from abd.scene.geometry.meshes import Surface, load_surface, make_surface, split_components
from abd.scene.importers.formats import ImportOptions, unique_names
from abd.scene.importers.rigid_ipc_file import Body, Constraint, File, read_file
from abd.scene.schema.findings import Finding, as_problem, did_you_mean, within
from abd.scene.schema.joint_schema import WORLD_NAME
from abd.scene.schema.values import AXIS_NAMES


def read(path: Path, options: ImportOptions) -> tuple[dict[str, object], list[str]]:
    """Return the tables of the scene with absolute paths of meshes, and notes about changed or ignored content."""
    file, findings, notes = read_file(path)
    return _Importer(path, file, findings, notes).scene()


class _Importer:
    """Reads one file and collects notes and findings."""

    def __init__(self, path: Path, file: File, findings: list[Finding], notes: list[str]):
        self.path, self.file, self.findings, self.notes = path, file, findings, notes
        self.load = cache(load_surface)
        own = path.resolve().parent
        self.folder = next((folder / "meshes" for folder in (own, *own.parents) if (folder / "meshes").is_dir()), own)
        """The nearest folder `meshes` next to the file or one of its parents, else the folder of the file."""
        problem = file.rigid_body_problem
        self.unit = math.pi / 180.0
        """Radians per unit of angle in the file."""
        if problem.model_fields_set & {"linear_constraints", "orthogonality_stiffness"}:
            self.unit = 1.0
            self.notes.append("scene for affine bodies: angles are in radians")

    def scene(self) -> tuple[dict[str, object], list[str]]:
        problem = self.file.rigid_body_problem
        if problem.coefficient_restitution > 0.0:
            self.notes.append("coefficient_restitution is ignored, as in rigid-ipc's 3D barrier problem")
        enabled = [(k, body) for k, body in enumerate(problem.rigid_bodies) if body.enabled]
        names = unique_names([_stem(body) for _, body in enabled])
        bodies = [one for name, (k, body) in zip(names, enabled) for one in self._bodies(name, k, body)]
        joints, findings = apply_pins(problem.linear_constraints, bodies, self.notes)
        # pins to an invalid body are no further problem
        findings = self.findings or list(within(findings, "rigid_body_problem", "linear_constraints"))
        if findings:
            raise SceneError([as_problem(finding, {}, str(self.path)) for finding in findings])
        tables = {
            "name": self.path.stem,
            "gravity": problem.gravity,
            "solver": self._solver(),
            "output": {"frames": self._frames()},
            "material": [{"name": "default", "mu": problem.coefficient_friction}],
            "body": [body.keys for body in bodies],
            "joint": joints,
        }
        return tables, list(dict.fromkeys(self.notes))

    def _solver(self) -> dict[str, object]:
        file, friction, barrier = self.file, self.file.friction_constraints, self.file.distance_barrier_constraint
        solver = file.newton_solver if file.solver == "newton_solver" else file.ipc_solver
        if solver.model_fields_set & {"convergence_criteria", "velocity_conv_tol"}:
            given = f"criterion '{solver.convergence_criteria}' and velocity_conv_tol {solver.velocity_conv_tol:g}"
            self.notes.append(f"{given} are not used: solver.tolerance follows from the bodies; set it for a smaller one")
        if barrier.barrier_type != "ipc":
            self.notes.append(f"barrier '{barrier.barrier_type}' is not supported; the logarithmic barrier is used")
        iterations = int(friction.iterations) if file.rigid_body_problem.coefficient_friction > 0.0 else 0
        if iterations < 0:
            self.notes.append('contact_set = "ipc" is used: friction iterations until convergence (-1) are fewer with it')
        return {
            "dt": file.timestep,
            "d_hat": barrier.initial_barrier_activation_distance,
            "minimum_separation": barrier.minimum_separation_distance,
            "contact_set": "ipc" if iterations < 0 else "minima",
            "eps_v": friction.static_friction_speed_bound,
            "stick": "viscous",
            "friction_iterations": iterations,
            "max_newton": int(solver.max_iterations),
        }

    def _frames(self) -> int:
        """Number of steps."""
        if self.file.max_time >= 0.0:
            return max(1, steps_in(self.file.max_time, self.file.timestep))
        if self.file.max_iterations >= 0.0:
            return max(1, int(self.file.max_iterations))
        self.notes.append("no max_time or max_iterations: 100 steps")
        return 100

    def _bodies(self, name: str, number: int, body: Body) -> list[PlacedBody]:
        """Return the bodies of an entry of `rigid_bodies`; none, with findings, for an unusable mesh."""
        try:
            surface, file = self._surface(name, body)
        except SceneError as error:
            known = {finding.message for finding in self.findings}
            path = ("rigid_body_problem", "rigid_bodies", number, "mesh")
            new = [problem for problem in error.problems if problem.message not in known]
            self.findings += [Finding(path, one.message, one.value, one.remedy) for one in new]
            return []
        scale = _scale(surface, body)
        surface = surface.scaled(scale)
        degrees = np.degrees(self.unit) * np.array(body.rotation)
        start = pose(Rotation.from_euler("xyz", degrees, degrees=True).as_matrix(), body.position)
        bodies = []
        for k, part in enumerate(split_components(surface) if body.split_components else [surface]):
            keys = {"name": f"{name}_{k}" if body.split_components else name}
            keys |= {"kappa": self.file.rigid_body_problem.orthogonality_stiffness, "density": body.density}
            keys |= {"position": body.position, "group": body.group_id} | self._moving(body, part)
            if degrees.any():
                keys["euler"] = {"order": "xyz", "degrees": degrees.tolist()}
            if file is not None and not body.split_components:
                keys |= {"mesh": file, "scale": scale[0] if len(set(scale)) == 1 else scale}
            else:
                indices = {"triangles": part.triangles, "edges": part.codim_edges, "points": part.points}
                keys["surface"] = {"vertices": part.vertices.tolist()} | {key: rows.tolist() for key, rows in indices.items()}
            bodies.append(PlacedBody(keys, start, scale))
        return bodies

    def _surface(self, name: str, body: Body) -> tuple[Surface, str | None]:
        """Unscaled surface of a body, and the absolute path of its mesh file; None for an inline mesh."""
        if body.mesh:
            found = Path(os.path.normpath(self.folder / _slashes(body.mesh)))
            return self.load(found), found.as_posix()
        return make_surface(name, RawMesh.of(body.vertices, body.faces, body.edges)), None

    def _moving(self, body: Body, surface: Surface) -> dict[str, object]:
        """Return kind, velocities, loads and fixed axes of a body, and the mass of an open mesh."""
        fixed = body.is_dof_fixed
        if self.unit == 1.0 and any(fixed):
            self.notes.append("is_dof_fixed is ignored, as in the program of these scenes")
            fixed = (False,) * 6
        if all(fixed) or body.type == "static":
            return {"kind": "static"}
        keys: dict[str, object] = {"kind": body.type, **self._mass_of_open_mesh(surface, body.density)}
        velocity = {
            "velocity": _free(body.linear_velocity, fixed[:3]),
            "angular_velocity": _free(self.unit * np.array(body.angular_velocity), fixed[3:]),
        }
        if body.type == "kinematic":
            return keys | {"motion": velocity | self._motion(body, surface)}
        torque = self.unit * np.array(body.torque)
        if torque.any() and self.unit != 1.0:
            self.notes.append("torques are multiplied by pi/180, as in rigid-ipc")
        keys |= {"force": _free(body.force, fixed[:3]), "torque": _free(torque, fixed[3:])}
        return keys | velocity | {"fix": [name for name, is_fixed in zip(AXIS_NAMES, fixed) if is_fixed]}

    def _mass_of_open_mesh(self, surface: Surface, density: float) -> dict[str, object]:
        matter = _thin_matter(surface, density)
        if matter is None:
            return {}
        kind, unit = ("a sheet", "kg/m^2") if len(surface.triangles) else ("lines", "kg/m")
        self.notes.append(f"mesh '{surface.name}' encloses no volume: its mass is that of {kind} of {density:g} {unit}")
        return {"mass": matter.mass, "center_of_mass": matter.center.tolist(), "inertia": matter.inertia.tolist()}

    def _motion(self, body: Body, surface: Surface) -> dict[str, object]:
        """Motion of a kinematic body in addition to its constant velocities."""
        motion: dict[str, object] = {"frame": "center_of_mass", "until": body.kinematic_max_time}
        if not body.kinematic_poses:
            return motion
        matter = _thin_matter(surface, 1.0) or mass.solid(surface.vertices, surface.triangles, 1.0)
        initial = Rotation.from_euler("xyz", self.unit * np.array(body.rotation)).as_matrix()
        mesh_in_principal = _upstream_axes(initial @ matter.inertia @ initial.T).T @ initial
        motion["after"] = "continue"
        motion["keyframes"] = [
            {
                "time": (k + 1) * self.file.timestep,
                "position": one.position,
                "matrix": (Rotation.from_rotvec(one.rotation).as_matrix() @ mesh_in_principal).tolist(),
            }
            for k, one in enumerate(body.kinematic_poses)
        ]
        return motion


def _scale(surface: Surface, body: Body) -> tuple[float, float, float]:
    """Return the factors along the axes, which may be negative or zero."""
    if body.dimensions is None:
        return tuple(np.broadcast_to(body.scale, 3).tolist())
    extents = np.ptp(surface.vertices, axis=0)
    factors = np.array(body.dimensions) / np.where(extents == 0.0, 1.0, extents)
    # a mesh in a coordinate plane stays in it for any factor
    flat = (surface.vertices == 0.0).all(axis=0)
    return tuple(np.where(flat & (factors <= 0.0), 1.0, factors).tolist())


def _thin_matter(surface: Surface, density: float) -> MassProperties | None:
    """Return mass properties of an open mesh as in rigid-ipc; None for closed meshes and point clouds."""
    elements = surface.triangles if len(surface.triangles) else surface.codim_edges
    return mass.thin(surface.vertices, elements, density) if len(elements) and not surface.closed else None


def _upstream_axes(inertia: np.ndarray) -> np.ndarray:
    """Return the principal axes as columns (3, 3) in rigid-ipc's order: ascending moments of inertia, right-handed.

    Axes of equal moments keep the order of the coordinate axes. The signs of axes that are not coordinate axes are
    those of the eigenvalue solver, as in rigid-ipc.
    """
    scale = np.trace(inertia)
    diagonal = np.diag(np.diag(inertia))
    if np.abs(inertia - diagonal).max() <= 1e-9 * scale:
        order = np.argsort(np.round(np.diag(inertia) / scale, 9), kind="stable")
        axes = np.eye(3)[:, order]
    else:
        axes = np.linalg.eigh(inertia)[1]
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    return axes


def _free(value: np.ndarray | tuple[float, float, float], fixed: tuple[bool, ...]) -> tuple[float, ...]:
    """Return the vector with zero components along fixed axes."""
    return tuple(np.where(fixed, 0.0, value).tolist())


def _slashes(text: str) -> str:
    return text.replace("\\", "/")


def _stem(body: Body) -> str:
    """Return the name of a body: the given one, or else the stem of its mesh."""
    return body.name or Path(_slashes(body.mesh)).stem or "body"


FREE = ("fix", "motion", "velocity", "angular_velocity", "force", "torque")
"""Keys of bodies that are not static."""
ENDS = {"pin_world": ("body_name",), "pin_joint": ("bodyA_name", "bodyB_name")}
"""Keys of the bodies of a constraint, by its type."""


@dataclass(frozen=True)
class PlacedBody:
    """Keys of a body, its pose (4, 4) at t = 0, and the scale (3,) from its mesh file to its mesh frame."""

    keys: dict[str, object]
    pose: np.ndarray
    scale: tuple[float, float, float]

    def world_point(self, point: tuple[float, float, float]) -> np.ndarray:
        """(3,) place at t = 0 of a point in coordinates of the mesh file."""
        return self.pose[:3, :3] @ (np.array(self.scale) * point) + self.pose[:3, 3]


def apply_pins(
    constraints: list[Constraint], bodies: list[PlacedBody], notes: list[str]
) -> tuple[list[dict[str, object]], list[Finding]]:
    """Make bodies static that pins hold; return the pin joints, and findings with paths relative to the constraints."""
    known = {str(body.keys["name"]): body for body in bodies}
    findings: list[Finding] = []
    pins: list[tuple[int, str, str, np.ndarray]] = []
    for k, one in enumerate(constraints):
        if one.type not in ENDS:
            findings.append(Finding((k, "type"), "should be pin_world or pin_joint", one.type))
            continue
        names = [getattr(one, key) for key in ENDS[one.type]]
        wrong = [(key, name) for key, name in zip(ENDS[one.type], names) if name not in known]
        findings += [Finding((k, key), f"there is no body '{name}'", name, did_you_mean(name, known)) for key, name in wrong]
        if not wrong:
            point = one.body_point if one.type == "pin_world" else one.bodyA_point
            pins.append((k, *([WORLD_NAME, *names][-2:]), known[names[0]].world_point(point)))

    for name, body in sorted(known.items()):
        points = [point for _, parent, child, point in pins if (parent, child) == (WORLD_NAME, name)]
        if _hold(points):
            notes.append(f"body '{name}' is static: it has {len(points)} pins to the world that are not collinear")
            for key in FREE:
                body.keys.pop(key, None)
            body.keys["kind"] = "static"
    static = {WORLD_NAME} | {name for name, body in known.items() if body.keys["kind"] == "static"}
    joints = []
    for k, parent, child, point in pins:
        if {parent, child} <= static:
            if parent != WORLD_NAME:
                notes.append(f"the pin between the static bodies '{parent}' and '{child}' is ignored")
            continue
        joint = {"name": f"pin_{k}", "type": "pin", "parent": parent, "child": child, "anchor": point.tolist()}
        joints.append(joint | {"collide": True})
    return joints, findings


def _hold(points: list[np.ndarray]) -> bool:
    """Return whether pins at these points fix a rigid body: three of them are not collinear."""
    if not points:
        return False
    values = np.linalg.svd(np.array(points) - points[0], compute_uv=False)
    return len(values) > 1 and bool(values[1] > 1e-9 * values[0])
