"""Importer of the JSON scenes of rigid-ipc (Ferguson et al. 2021) and of their `linear_constraints` extension.

The extension is that of the scenes of Affine Body Dynamics (Lan et al. 2022). SI units, y up. This module
reproduces the source of rigid-ipc, including its quirks:

- `position` places the mesh origin, `linear_velocity` moves the centre of mass; angles are in degrees, R = Rz Ry Rx;
- torques are given in "degrees": the torque is the value times pi/180 N m;
- `dimensions` are the extents of the scaled mesh; an extent of 0 counts as 1;
- keys that begin with # are comments, other unknown keys are ignored (a misspelt key leaves the default);
- the convergence tolerance is relative to the diagonal of the scene's bounding box unless a flag says otherwise, the
  barrier's distance is absolute, one coefficient of friction holds for the whole scene, all pairs of primitives count;
- open meshes are sheets of `density` kg/m^2, polylines have `density` kg/m; neither has a thickness in contact;
- `kinematic_poses` are poses of the principal frame at the centre of mass after each step, with rotation vectors in
  radians; after the last pose the body keeps its velocities;
- bodies that are not dynamic do not collide with each other (as in scenes of this package).

In scenes of the extended family angles are radians and `is_dof_fixed` is not honoured; see `rigid_ipc_pins`.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
from pydantic import ValidationError
from scipy.spatial.transform import Rotation

from abd.errors import Problem, SceneError
from abd.model import steps_in
from abd.scene.geometry import mass
from abd.scene.geometry.mass import MassProperties
from abd.scene.geometry.mesh_files import RawMesh
from abd.scene.geometry.meshes import Surface, load_surface, make_surface, split_components
from abd.scene.importers.json_table import JsonTable
from abd.scene.importers.rigid_ipc_pins import CONSTRAINT_KEYS, ScaledBody, apply_pins
from abd.scene.schema.findings import schema_findings
from abd.scene.schema.schema import BodySpec, OutputSpec, SceneSpec
from abd.scene.schema.solver_schema import SolverSpec

TOP_KEYS = (
    *("scene_type", "solver", "timestep", "max_time", "max_iterations", "rigid_body_problem", "ipc_solver"),
    *("newton_solver", "distance_barrier_constraint", "friction_constraints"),
)
PROBLEM_KEYS = (
    *("gravity", "coefficient_friction", "coefficient_restitution", "collision_eps", "time_stepper"),
    *("do_intersection_check", "rigid_bodies", "orthogonality_stiffness", "linear_constraints"),
)
SOLVER_KEYS = (
    *("max_iterations", "convergence_criteria", "velocity_conv_tol", "is_velocity_conv_tol_abs", "energy_conv_tol"),
    *("line_search_lower_bound", "linear_solver", "dhat_epsilon", "min_barrier_stiffness_scale"),
)
BARRIER_KEYS = (
    *("initial_barrier_activation_distance", "minimum_separation_distance", "detection_method", "trajectory_type"),
    "barrier_type",
)
FRICTION_KEYS = ("static_friction_speed_bound", "iterations")
BODY_KEYS = (
    *("name", "mesh", "vertices", "edges", "faces", "scale", "dimensions", "rotation", "position", "density"),
    *("linear_velocity", "angular_velocity", "force", "torque", "type", "is_dof_fixed", "oriented", "group_id"),
    *("kinematic_max_time", "kinematic_poses", "split_components", "enabled", "ipc_comparison_enabled"),
)
DOF_NAMES = ("x", "y", "z", "rx", "ry", "rz")


def read_rigid_ipc(path: Path, data: object) -> tuple[SceneSpec, list[str]]:
    """Return the scene of a rigid-ipc JSON file, and notes about changed or ignored content.

    Mesh paths of the returned scene are absolute.

    Args:
        data: content of the file.

    Raises:
        SceneError: all problems at once: invalid values, missing or unusable meshes.
    """
    return _Importer(path).scene(data)


class _Importer:
    """Reads one file and collects notes and problems."""

    def __init__(self, path: Path):
        self.path = path
        self.notes: list[str] = []
        self.problems: list[Problem] = []
        self.load = cache(load_surface)
        self.dt = 0.01
        self.unit = math.pi / 180.0
        """Radians per unit of angle in the file."""

    def scene(self, data: object) -> tuple[SceneSpec, list[str]]:
        if isinstance(data, dict) and "args" in data:
            self.notes.append("saved simulation: the scene is imported, not the state")
            data = data["args"]
        top = JsonTable(data, "", TOP_KEYS, self.notes, self.problems, self.path.name)
        problem = top.table("rigid_body_problem", PROBLEM_KEYS)
        self.dt = top.number("timestep", 0.01)
        if "linear_constraints" in problem or "orthogonality_stiffness" in problem:
            self.unit = 1.0
            self.notes.append("scene for affine bodies: angles are in radians")
        mu = problem.number("coefficient_friction", 0.0)
        if mu < 0.0:
            problem.problem("coefficient_friction", "should not be negative", mu, "0 is no friction")
        if problem.number("coefficient_restitution", -1.0) > 0.0:
            self.notes.append("coefficient_restitution is ignored, as in rigid-ipc's 3D barrier problem")

        tables = [table for table in problem.tables("rigid_bodies", BODY_KEYS) if table.flag("enabled", True)]
        kappa = problem.number("orthogonality_stiffness", 1e9)
        names = _unique_names([_stem(table) for table in tables])
        bodies = [body for name, table in zip(names, tables) for body in self._bodies(name, table, kappa)]
        constraints = problem.tables("linear_constraints", CONSTRAINT_KEYS)
        specs, joints = apply_pins(constraints, bodies, self.notes) if not self.problems else ([], [])
        solver, output = self._solver(top, mu), self._output(top)
        if self.problems:
            raise SceneError(self.problems)
        scene = SceneSpec(
            name=self.path.stem,
            gravity=problem.vector("gravity"),
            solver=solver,
            output=output,
            material=[{"name": "default", "mu": mu}],
            body=specs,
            joint=joints,
        )
        return scene, list(dict.fromkeys(self.notes))

    def _solver(self, top: JsonTable, mu: float) -> SolverSpec | None:
        solver = top.table(top.text("solver", "ipc_solver"), SOLVER_KEYS)
        barrier = top.table("distance_barrier_constraint", BARRIER_KEYS)
        friction = top.table("friction_constraints", FRICTION_KEYS)
        if solver.text("convergence_criteria", "velocity") != "velocity":
            self.notes.append("the velocity criterion of convergence is used; other criteria are not supported")
        if barrier.text("barrier_type", "ipc") != "ipc":
            self.notes.append(f"barrier '{barrier.text('barrier_type')}' is not supported; the logarithmic barrier is used")
        absolute = solver.flag("is_velocity_conv_tol_abs", False)
        iterations = int(friction.number("iterations", 1)) if mu > 0.0 else 0
        if iterations < 0:
            self.notes.append('contact_set = "ipc" is used: friction iterations until convergence (-1) are fewer with it')
        values = {
            "dt": self.dt,
            "d_hat": barrier.number("initial_barrier_activation_distance", 1e-3),
            "minimum_separation": barrier.number("minimum_separation_distance", 0.0),
            "contact_set": "ipc" if iterations < 0 else "minima",
            "eps_v": friction.number("static_friction_speed_bound", 1e-3),
            "stick": "viscous",
            "friction_iterations": iterations,
            "tolerance" if absolute else "tolerance_relative": solver.number("velocity_conv_tol", 1e-2),
            "max_newton": int(solver.number("max_iterations", 3000)),
        }
        return self._validated(SolverSpec, values, top)

    def _output(self, top: JsonTable) -> OutputSpec | None:
        duration, count = top.number("max_time", -1.0), top.number("max_iterations", -1.0)
        if duration >= 0.0 and self.dt > 0.0:
            return OutputSpec(frames=max(1, steps_in(duration, self.dt)))
        if count >= 0.0:
            return OutputSpec(frames=max(1, int(count)))
        self.notes.append("no max_time or max_iterations: 100 steps")
        return OutputSpec(frames=100)

    def _validated(self, model: type, values: dict, table: JsonTable):
        """Return an object of the schema; None, with problems, for invalid values."""
        try:
            return model(**values)
        except ValidationError as error:
            for finding in schema_findings(error, model, values):
                key = ".".join(str(part) for part in finding.path)
                table.problem(key, finding.message, finding.value, finding.remedy)
            return None

    def _bodies(self, name: str, table: JsonTable, kappa: float) -> list[ScaledBody]:
        """Return the bodies of an entry of `rigid_bodies`; none, with problems, for an invalid entry."""
        try:
            surface, file = self._surface(name, table)
        except SceneError as error:
            known = {problem.message for problem in self.problems}
            for problem in error.problems:
                if problem.message not in known:
                    table.problem("mesh", problem.message, problem.value, problem.remedy)
            return []
        scale = self._scale(surface, table)
        surface = surface.scaled(scale)
        split = table.flag("split_components", False)
        bodies = []
        for k, part in enumerate(split_components(surface) if split else [surface]):
            values = {"name": f"{name}_{k}" if split else name, "kappa": kappa}
            values |= self._moving(table, part) | {"density": table.number("density", 1000.0)}
            if file is not None and not split:
                values |= {"mesh": file, "scale": scale[0] if len(set(scale)) == 1 else scale}
            else:
                values["surface"] = _written_out(part)
            spec = self._validated(BodySpec, values, table)
            bodies += [] if spec is None else [ScaledBody(spec, scale)]
        return bodies

    def _surface(self, name: str, table: JsonTable) -> tuple[Surface, str | None]:
        """Unscaled surface of a body, and the absolute path of its mesh file; None for an inline mesh."""
        if table.text("mesh"):
            found = Path(os.path.normpath(self._mesh_folder() / _slashes(table.text("mesh"))))
            return self.load(found.resolve()), found.as_posix()
        try:
            raw = RawMesh(
                np.array(table.raw("vertices", []), dtype=float).reshape(-1, 3),
                np.array(table.raw("faces", []), dtype=np.int64).reshape(-1, 3),
                np.array(table.raw("edges", []), dtype=np.int64).reshape(-1, 2),
            )
        except (ValueError, TypeError) as error:
            raise SceneError.of(f"vertices, faces and edges should be lists of rows: {error}") from None
        return make_surface(name, raw), None

    def _mesh_folder(self) -> Path:
        """Return the nearest folder `meshes` next to the file or one of its parents; by default the folder of the file."""
        own = self.path.resolve().parent
        return next((folder / "meshes" for folder in (own, *own.parents) if (folder / "meshes").is_dir()), own)

    def _scale(self, surface: Surface, table: JsonTable) -> tuple[float, float, float]:
        """Return the factors along the axes, which may be negative or zero."""
        if "dimensions" in table:
            extents = np.ptp(surface.vertices, axis=0)
            factors = np.array(table.vector("dimensions")) / np.where(extents == 0.0, 1.0, extents)
            # a mesh in a coordinate plane stays in it for any factor
            flat = (surface.vertices == 0.0).all(axis=0)
            return tuple(np.where(flat & (factors <= 0.0), 1.0, factors).tolist())
        if isinstance(table.raw("scale"), list):
            return table.vector("scale")
        return (table.number("scale", 1.0),) * 3

    def _moving(self, table: JsonTable, surface: Surface) -> dict:
        """Kind, pose, velocities, loads and fixed axes of a body, and the mass of an open mesh, as schema values."""
        fixed, kind = self._fixed(table), table.text("type", "dynamic")
        if kind not in ("dynamic", "kinematic", "static"):
            table.problem("type", "should be dynamic, kinematic or static", kind)
        kind = "static" if all(fixed) else kind
        degrees = np.degrees(self.unit) * np.array(table.vector("rotation"))
        values = {"kind": kind, "position": table.vector("position"), "group": int(table.number("group_id", -1))}
        if degrees.any():
            values["euler"] = {"order": "xyz", "degrees": degrees.tolist()}
        if kind == "static":
            return values
        values |= self._mass_of_open_mesh(surface, table.number("density", 1000.0))
        velocity = {
            "velocity": _free(table.vector("linear_velocity"), fixed[:3]),
            "angular_velocity": _free(self.unit * np.array(table.vector("angular_velocity")), fixed[3:]),
        }
        if kind == "kinematic":
            return values | {"motion": velocity | self._motion(table, surface)}
        torque = self.unit * np.array(table.vector("torque"))
        if torque.any() and self.unit != 1.0:
            self.notes.append("torques are multiplied by pi/180, as in rigid-ipc")
        values |= {"force": _free(table.vector("force"), fixed[:3]), "torque": _free(torque, fixed[3:])}
        return values | velocity | {"fix": [name for name, is_fixed in zip(DOF_NAMES, fixed) if is_fixed]}

    def _fixed(self, table: JsonTable) -> list[bool]:
        """Six flags."""
        value = table.raw("is_dof_fixed", False)
        flags = [value] * 6 if isinstance(value, bool) else value
        if not isinstance(flags, list) or len(flags) != 6 or not all(isinstance(flag, bool) for flag in flags):
            table.problem("is_dof_fixed", "should be true, false or a list of six of them", value)
            return [False] * 6
        if self.unit == 1.0 and any(flags):
            self.notes.append("is_dof_fixed is ignored, as in the program of these scenes")
            return [False] * 6
        return flags

    def _mass_of_open_mesh(self, surface: Surface, density: float) -> dict:
        matter = _thin_matter(surface, density)
        if matter is None:
            return {}
        kind, unit = ("a sheet", "kg/m^2") if len(surface.triangles) else ("lines", "kg/m")
        self.notes.append(f"mesh '{surface.name}' encloses no volume: its mass is that of {kind} of {density:g} {unit}")
        return {"mass": matter.mass, "center_of_mass": matter.center.tolist(), "inertia": matter.inertia.tolist()}

    def _motion(self, table: JsonTable, surface: Surface) -> dict:
        """Motion of a kinematic body in addition to its constant velocities."""
        motion: dict = {"frame": "center_of_mass"}
        if "kinematic_max_time" in table:
            motion["until"] = table.number("kinematic_max_time", 0.0)
        poses = table.tables("kinematic_poses", ("position", "rotation"))
        if not poses:
            return motion
        matter = _thin_matter(surface, 1.0) or mass.solid(surface.vertices, surface.triangles, 1.0)
        initial = Rotation.from_euler("xyz", self.unit * np.array(table.vector("rotation"))).as_matrix()
        mesh_in_principal = _upstream_axes(initial @ matter.inertia @ initial.T).T @ initial
        motion["after"] = "continue"
        motion["keyframes"] = [
            {
                "time": (k + 1) * self.dt,
                "position": pose.vector("position"),
                "matrix": (Rotation.from_rotvec(pose.vector("rotation")).as_matrix() @ mesh_in_principal).tolist(),
            }
            for k, pose in enumerate(poses)
        ]
        return motion


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


def _free(value: np.ndarray | tuple[float, float, float], fixed: list[bool]) -> tuple[float, ...]:
    """Return the vector with zero components along fixed axes."""
    return tuple(np.where(fixed, 0.0, value).tolist())


def _written_out(surface: Surface) -> dict:
    return {
        "vertices": surface.vertices.tolist(),
        "triangles": surface.triangles.tolist(),
        "edges": surface.codim_edges.tolist(),
        "points": surface.points.tolist(),
    }


def _slashes(text: str) -> str:
    return text.replace("\\", "/")


def _stem(table: JsonTable) -> str:
    """Return the name of a body: the given one, or else the stem of its mesh."""
    return table.text("name") or Path(_slashes(table.text("mesh"))).stem or "body"


def _unique_names(names: list[str]) -> list[str]:
    """The names, all but the first of equal ones with a number behind."""
    taken, unique = set(names), []
    seen: Counter[str] = Counter()
    for name in names:
        candidate, number = name, seen[name]
        while number and candidate in taken:
            candidate, number = f"{name}_{number}", number + 1
        seen[name] = max(number, 1)
        taken.add(candidate)
        unique.append(candidate)
    return unique
