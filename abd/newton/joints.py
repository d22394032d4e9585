"""Newton's joints as tables of a scene: types, frames, limits, drives and friction of their degrees of freedom."""

from __future__ import annotations

import numpy as np

from abd.joint_model import Joint
from abd.joints.rows.table import value_at
from abd.joints.types import TYPES
from abd.model import WORLD
from abd.newton.model_values import ModelError, transform_matrix, unique_names
from abd.rotations import COUNTED, inverse
from abd.scene.compile.joint_settings import SAME_VALUE
from abd.scene.geometry.frames import triad

FAR = 1e6
"""Limits and efforts of at least this size mean no limit: Newton's defaults are 1e6 and more."""
SAME = 1e-5
"""Largest sine between parallel axes, in single precision."""


class Joints:
    """The arrays of a model's joints.

    Args:
        body_q: (n, 7) poses of the bodies; joint_q: coordinates near which their angles are counted; names: of the bodies.
        out: receives coordinates, drives, notes, and `single`, the joints of one coordinate.
    """

    def __init__(self, newton, model, body_q, joint_q, names: list[str], enforcement: str, out):
        self.types, self.modes, self.body_q = newton.JointType, newton.JointTargetMode, body_q
        self.model, self.q, self.names, self.enforcement, self.out = model, joint_q, names, enforcement, out
        self.labels = unique_names([str(label) or f"joint_{k}" for k, label in enumerate(model.joint_label)])
        arrays = """type parent child X_p X_c axis dof_dim enabled q_start qd_start limit_lower limit_upper limit_ke limit_kd
            armature friction target_ke target_kd target_mode effort_limit velocity_limit stiffness damping rest_q"""
        for name in arrays.split():
            array = getattr(model, f"joint_{name}", None)
            setattr(self, name, None if array is None else array.numpy())
        start = model.joint_target_q_start
        self.target_start = self.q_start if start is None else start.numpy()

    def table(self, k: int) -> dict | None:
        """Return the table of a joint; None for joints without constraints."""
        types, kind = self.types, int(self.type[k])
        if not self.enabled[k] or kind == types.FREE:
            return None
        parent, child = int(self.parent[k]), int(self.child[k])
        D, C = transform_matrix(self.X_p[k]), transform_matrix(self.X_c[k])
        parent_name = "world" if parent < 0 else self.names[parent]
        table = {"name": self.labels[k], "parent": parent_name, "child": self.names[child]}
        # filters between shapes define the contacts
        table |= {"enforcement": self.enforcement, "collide": True}
        if kind == types.DISTANCE:
            return self._distance(k, table, D, C)
        if kind == types.FIXED:
            return table | {"type": "fixed"} | _frames(D, C, np.eye(3))
        if kind == types.BALL:
            return table | {"type": "spherical"} | _frames(D, C, np.eye(3)) | self._ball(k)
        if kind in (types.REVOLUTE, types.PRISMATIC, types.D6):
            return self._by_axes(k, table, D, C)
        raise ModelError(f"joint '{self.labels[k]}' is of type {types(kind).name}, which SolverABD does not support")

    def _distance(self, k: int, table: dict, D, C) -> dict | None:
        dof = int(self.qd_start[k])
        low, high = float(self.limit_lower[dof]), float(self.limit_upper[dof])
        ends = {"parent_anchor": D[:3, 3].tolist(), "child_anchor": C[:3, 3].tolist()}
        if not 0.0 < high < FAR:
            self.out.notes.append(f"joint '{self.labels[k]}' is ignored: it has no largest distance")
            return None
        if low == high:
            return table | ends | {"type": "distance", "distance": high}
        if low > 0.0:
            self.out.notes.append(f"joint '{self.labels[k]}' is a rope: its smallest distance is ignored")
        return table | ends | {"type": "rope", "distance": high}

    def _by_axes(self, k: int, table: dict, D, C) -> dict:
        """Return the table of a hinge, a slider, or a joint of several axes."""
        linear, angular = (int(count) for count in self.dof_dim[k])
        first, coordinate = int(self.qd_start[k]), int(self.q_start[k])
        axes = self.axis[first : first + linear + angular].astype(float)
        count, target = linear + angular, int(self.target_start[k])
        if count == 0:
            return table | {"type": "fixed"} | _frames(D, C, np.eye(3))
        if count == 1:
            kind, names, constrained = ("hinge", ["theta"], {}) if angular else ("slider", ["z"], {})
            rotation = triad(axes[0] / np.linalg.norm(axes[0]))
            self.out.single.append({"number": k, "name": table["name"], "coordinate": names[0]})
        else:
            kind, (rotation, names) = "general", self._triad(k, axes, linear)
            constrained = {"constrained": [name for name in ("x", "y", "z", "rx", "ry", "rz") if name not in names]}
        table |= {"type": kind, **constrained} | _frames(D, C, rotation)
        starts = self._starts(k, kind, constrained, rotation, dict(zip(names, self.q[coordinate:])))
        tables = {}
        for i, name in enumerate(names):
            values = self._settings(first + i, coordinate + i, starts[name], i >= linear, f"{table['name']}.{name}")
            drive = self._drive(first + i)
            if drive:
                values["drive"] = drive
                self.out.drives.append((table["name"], name, target + i, first + i, drive["mode"] == "pd"))
            self.out.coordinates.append((table["name"], name, coordinate + i, first + i))
            tables |= {name: values} if values else {}
        return table | ({"coordinate": tables} if tables else {})

    def _starts(self, k: int, kind: str, parameters: dict, rotation: np.ndarray, near: dict[str, float]) -> dict[str, float]:
        """Return the coordinates of a joint at the poses of its bodies, angles nearest to `near`."""
        D, C = (
            (np.eye(4) if body < 0 else transform_matrix(self.body_q[body])) @ transform_matrix(X[k])
            for body, X in ((self.parent[k], self.X_p), (self.child[k], self.X_c))
        )
        T = inverse(D) @ C
        T[:3] = rotation.T @ T[:3]
        T[:3, :3] = T[:3, :3] @ rotation
        measures = TYPES[kind].coordinates(Joint("", kind, 0, WORLD, 0, np.eye(4), np.eye(4), parameters=parameters))
        names = [measure.name for measure in measures]
        return dict(zip(names, value_at(measures, T, [near[name] for name in names]).tolist()))

    def _triad(self, k: int, axes: np.ndarray, linear: int) -> tuple[np.ndarray, list[str]]:
        """Return a frame (3, 3) along the axes of several degrees of freedom, and their names in it."""
        unit = axes / np.linalg.norm(axes, axis=1, keepdims=True)
        different: list[np.ndarray] = []
        for one in unit[linear:].tolist() + unit[:linear].tolist():
            if all(abs(np.dot(one, other)) < 1.0 - SAME for other in different):
                different.append(np.array(one))
        if any(abs(a @ b) > SAME for i, a in enumerate(different) for b in different[:i]):
            raise ModelError(f"joint '{self.labels[k]}': its axes must be parallel or perpendicular")
        while len(different) < 3:
            helper = np.cross(different[0], different[1]) if len(different) == 2 else triad(different[0])[:, 0]
            different.append(helper)
        rotation = np.stack(different, axis=1)
        if np.linalg.det(rotation) < 0.0:
            rotation = rotation[:, [0, 2, 1]]
        found = []
        for i, axis in enumerate(unit):
            place = int(np.argmax(np.abs(axis @ rotation)))
            if axis @ rotation[:, place] < 0.0:
                raise ModelError(f"joint '{self.labels[k]}': axis {axis.tolist()} is opposite to another of its axes")
            names = ("rx", "ry", "rz") if i >= linear else ("x", "y", "z")
            found.append(names[place])
        turning = found[linear:]
        if turning != sorted(turning):
            raise ModelError(f"joint '{self.labels[k]}': its three axes of rotation must be right-handed")
        return rotation, found

    def _settings(self, dof: int, coordinate: int, start: float, rotary: bool, name: str) -> dict:
        """Laws of a degree of freedom in addition to its drive."""
        values: dict = self._laws(dof)
        if rotary and abs(start) > COUNTED:
            values["initial"] = start
        low, high = float(self.limit_lower[dof]), float(self.limit_upper[dof])
        low, high = (low if low > -FAR else -np.inf), (high if high < FAR else np.inf)
        inside, stiffness = low - SAME_VALUE <= start <= high + SAME_VALUE, float(self.limit_ke[dof])
        if low == high:
            values |= {"locked": True, "lock_value": low}
        elif low < high and (np.isfinite(low) or np.isfinite(high)):
            if inside:
                values["range"] = (low, high)
            elif stiffness > 0.0:
                values |= {"range": (low, high), "limit": "compliant", "limit_compliance": 1.0 / stiffness}
                values |= {"limit_damping": damping} if (damping := float(self.limit_kd[dof])) > 0.0 else {}
            else:
                self.out.notes.append(f"range of '{name}' is ignored: it starts outside, and limit_ke is 0")
        if "stiffness" in values and self.rest_q is not None:
            values["rest"] = float(self.rest_q[coordinate])
        if 0.0 < self.velocity_limit[dof] < FAR:
            values["velocity_limit"] = float(self.velocity_limit[dof])
        return values

    def _laws(self, dof: int) -> dict[str, float]:
        """Return the positive coefficients of the laws of a degree of freedom."""
        arrays = {key: getattr(self, key) for key in ("armature", "friction", "damping", "stiffness")}
        return {key: float(array[dof]) for key, array in arrays.items() if array is not None and array[dof] > 0.0}

    def _ball(self, k: int) -> dict[str, float]:
        """Return keys of the laws of a ball's rotation, which are those of its first degree of freedom as in `SolverMuJoCo`."""
        dof, rest = int(self.qd_start[k]), int(self.q_start[k])
        laws = self._laws(dof)
        lost = ["drive"] if any(self._drive(dof + i) for i in range(3)) else []
        if "stiffness" in laws and self.rest_q is not None and self.rest_q[rest : rest + 3].any():
            lost.append("rest rotation")
        if lost:
            self.out.notes.append(f"ball joint '{self.labels[k]}': {' and '.join(lost)} ignored: use three axes of a D6 joint")
        return {f"rotary_{key}": value for key, value in laws.items()}

    def _drive(self, dof: int) -> dict:
        """Return the table of a drive with targets from Newton's control; empty without a drive."""
        mode, ke, kd = int(self.target_mode[dof]), float(self.target_ke[dof]), float(self.target_kd[dof])
        if mode in (self.modes.NONE, self.modes.EFFORT) or (ke == 0.0 and kd == 0.0):
            return {}
        if mode == self.modes.VELOCITY or ke == 0.0:
            drive = {"mode": "velocity", "damping": kd} if kd > 0.0 else {}
        else:
            drive = {"mode": "pd", "stiffness": ke, "damping": kd}
        effort = float(self.effort_limit[dof])
        if effort <= 0.0:
            return {}
        return drive | ({"effort": effort} if drive and effort < FAR else {})


def _frames(D: np.ndarray, C: np.ndarray, rotation: np.ndarray) -> dict:
    """Return keys of a joint's frames, both rotated so that its axes are those of `rotation`."""
    return {
        key: {"position": frame[:3, 3].tolist(), "matrix": (frame[:3, :3] @ rotation).tolist()}
        for key, frame in (("parent_frame", D), ("child_frame", C))
    }
