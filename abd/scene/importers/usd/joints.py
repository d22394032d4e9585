"""Joints of a stage: their type, frames, limits, drives and breaking loads, and Newton's mimics between them.

The axis X, Y or Z of a joint in USD becomes the z axis of its frame. Angles in a stage are in degrees, angular gains per degree.
If the second body of a joint is the world, parent and child are exchanged, and the coordinates change sign.
"""

from __future__ import annotations

import math

import numpy as np

from abd.rotations import pose
from abd.scene.importers.compound import frame_keys
from abd.scene.importers.usd.bodies import Bodies
from abd.scene.importers.usd.shapes import FROM_Z, rotation_of
from abd.scene.importers.usd.stage import Stage

SINGLE = {"RevoluteJoint": ("hinge", "theta", True), "PrismaticJoint": ("slider", "z", False)}
"""Type, coordinate and whether it is an angle, of joints with one coordinate."""
KINDS = ("FixedJoint", "RevoluteJoint", "PrismaticJoint", "SphericalJoint", "DistanceJoint", "D6Joint")
ENFORCEMENT = "exact"
AXES = {"TransX": "x", "TransY": "y", "TransZ": "z", "RotX": "rx", "RotY": "ry", "RotZ": "rz"}
NO_LIMIT = 1e30


def joints_and_couplings(stage: Stage, bodies: Bodies) -> tuple[list[dict], list[dict]]:
    """Tables of joints, and of couplings."""
    joints = _Joints(stage, bodies)
    for kind in KINDS:
        for one in stage.of(kind):
            joints.add(kind, one)
    return joints.tables, joints.couplings()


class _Joints:
    def __init__(self, stage: Stage, bodies: Bodies):
        self.stage, self.bodies = stage, bodies
        self.tables: list[dict] = []
        self._names: set[str] = set()
        self._single: dict[str, tuple[str, str, bool, float]] = {}
        """Path -> name, coordinate, whether it is an angle, sign, of joints with one coordinate."""

    def add(self, kind: str, one) -> None:
        """One joint."""
        stage, path = self.stage, str(one.primPath)
        if not one.jointEnabled:
            stage.notes.append(f"disabled joint {path} is ignored")
            return
        ends = self._ends(one, path)
        if ends is None:
            return
        parent, child, D, C, sign = ends
        self.sign, self.path = sign, path
        name = stage.free_name(path, self._names)
        table = {"name": name, "parent": parent, "child": child, "enforcement": ENFORCEMENT}
        table |= {"collide": True} if one.collisionEnabled else {}
        for key, value, unit in (
            ("break_force", one.breakForce, stage.mass * stage.length),
            ("break_torque", one.breakTorque, stage.mass * stage.length**2),
        ):
            if np.isfinite(value) and value < NO_LIMIT:
                table[key] = float(value) * unit
        axis = str(getattr(one, "axis", "Z")).rsplit(".", 1)[-1]
        makers = {"SphericalJoint": self._spherical, "DistanceJoint": self._distance, "D6Joint": self._d6}
        keys = self._single_axis(*SINGLE[kind], one) if kind in SINGLE else makers.get(kind, lambda _: {"type": "fixed"})(one)
        if keys is None:
            return
        turned = np.eye(4)
        turned[:3, :3] = FROM_Z.get(axis, np.eye(3))
        if keys["type"] in ("distance", "rope"):
            table |= {"parent_anchor": D[:3, 3].tolist(), "child_anchor": C[:3, 3].tolist()}
        else:
            table |= {"parent_frame": frame_keys(D @ turned), "child_frame": frame_keys(C @ turned)}
        self.tables.append(table | keys)
        if kind in SINGLE:
            self._single[path] = (name, *SINGLE[kind][1:], sign)

    def _ends(self, one, path: str):
        """Return parent, child, their frames, and -1 for a reversed joint."""
        stage, bodies = self.stage, self.bodies
        frames, names = [], []
        for key, body, target, position, rotation in (
            ("physics:body0", one.body0, one.rel0, one.localPose0Position, one.localPose0Orientation),
            ("physics:body1", one.body1, one.rel1, one.localPose1Position, one.localPose1Orientation),
        ):
            targets = stage.prim(path).GetRelationship(key).GetTargets()
            if len(targets) > 1:
                stage.problem(f"{key} has {len(targets)} targets", path, ", ".join(map(str, targets)), "keep one")
                return None
            place = pose(rotation_of(rotation), stage.finite(position, path, "a frame of the joint") * stage.length)
            if str(body) in bodies.prototypes:
                stage.notes.append(f"joint {path} is ignored: it connects the prototype {body} of a point instancer")
                return None
            known = bodies.by_path.get(str(body))
            if known is None:  # the parser reports the frame in a static collider, or else in the world
                known = bodies.by_path.get(str(target)) or bodies.of_collider.get(str(body))
                place = stage.placed(stage.to_world(body)) @ place if stage.prim(body) else place
                place = np.linalg.inv(known.pose) @ place if known is not None else place
            if known is None and str(target) and not stage.prim(target):
                stage.problem(f"there is no body {target}", path, str(target), "correct the relationship")
                return None
            names.append(known)
            frames.append(place)
        if names[0] is None and names[1] is None:
            stage.notes.append(f"joint {path} is ignored: it connects no rigid body")
            return None
        if names[0] is names[1]:
            stage.problem("connects a body to itself", path, names[0].path, "correct the relationship")
            return None
        movable = [body is not None and body.dynamic for body in names]
        if not any(movable):
            stage.notes.append(f"joint {path} is ignored: it connects no dynamic body")
            return None
        order = (0, 1) if movable[1] else (1, 0)
        parent, child = (names[k] for k in order)
        parent_name = "world" if parent is None else parent.name
        return parent_name, child.name, frames[order[0]], frames[order[1]], 1.0 if order == (0, 1) else -1.0

    # types --------------------------------------------------------------------------------------------------------------

    def _single_axis(self, kind: str, name: str, rotary: bool, one) -> dict:
        """Return the keys of a joint with one coordinate; keys that the joint itself lacks are in the table of the coordinate."""
        keys = self._range(one.limit, rotary) | self._drive(one.drive, rotary)
        keys |= self._newton(one, bool(keys.keys() & {"range", "range_deg"}), rotary)
        shared = keys.keys() <= {"range", "range_deg", "locked", "drive"}
        return {"type": kind} | (keys if shared else {"coordinate": {name: keys}})

    def _spherical(self, one) -> dict:
        keys, limit = {"type": "spherical"}, one.limit
        angles = [float(angle) for angle in (limit.lower, limit.upper) if 0.0 <= angle < 180.0]
        if len(angles) == 2:
            keys["max_tilt_deg"] = max(min(angles), 1e-6)
        if len(set(angles)) > 1:
            self.stage.notes.append(
                f"joint {self.path}: its cone is {limit.lower:g} by {limit.upper:g} degrees; it is round here, of {min(angles):g}"
            )
        elif len(angles) == 1:
            self.stage.notes.append(
                f"joint {self.path}: its limit of {angles[0]:g} degrees is ignored, since the other angle of its cone is free"
            )
        return keys

    def _distance(self, one) -> dict | None:
        low, high = float(one.limit.lower) * self.stage.length, float(one.limit.upper) * self.stage.length
        low = low if one.minEnabled and low > 0.0 else 0.0
        if not one.maxEnabled or not 0.0 < high < NO_LIMIT:
            self.stage.notes.append(f"joint {self.path} is ignored: it has no largest distance")
            return None
        if low == high:
            return {"type": "distance", "distance": high}
        if low > 0.0:
            self.stage.notes.append(f"joint {self.path} is a rope: its smallest distance {low:g} m is ignored")
        return {"type": "rope", "distance": high}

    def _d6(self, one) -> dict | None:
        limits = {str(pair.first).rsplit(".", 1)[-1]: pair.second for pair in one.jointLimits}
        drives = {str(pair.first).rsplit(".", 1)[-1]: pair.second for pair in one.jointDrives}
        locked = {name for name, limit in limits.items() if limit.enabled and float(limit.lower) > float(limit.upper)}
        held = [axis for name, axis in AXES.items() if name in locked]
        free = {name: axis for name, axis in AXES.items() if axis not in held}
        for name in (set(limits) | set(drives)) - set(AXES):
            self.stage.notes.append(f"joint {self.path}: its {name} is ignored")
        if len(held) == 6:
            return {"type": "fixed"}
        if not held and not limits and not drives:
            self.stage.notes.append(f"joint {self.path} is ignored: it has no constraint")
            return None
        coordinates = {}
        for name, axis in free.items():
            rotary = name.startswith("Rot")
            keys = self._range(limits[name], rotary) if name in limits else {}
            keys |= self._drive(drives[name], rotary) if name in drives else {}
            if keys:
                coordinates[axis] = keys
        if self.sign < 0.0 and not _is_reversible(held, coordinates):
            message = "body1 must be a dynamic body: the free axes of the joint turn with body0"
            self.stage.problem(message, self.path, None, "exchange body0 and body1, and correct the limits")
            return None
        return {"type": "general", "constrained": held} | ({"coordinate": coordinates} if coordinates else {})

    # settings of a coordinate ------------------------------------------------------------------------------------------

    def _range(self, limit, rotary: bool) -> dict:
        """Return the keys of a range; none without one. The parser reports a range with one finite bound as disabled."""
        unit = 1.0 if rotary else self.stage.length
        ends = [float(end) * unit if abs(float(end)) < NO_LIMIT else math.copysign(math.inf, end) for end in
                (limit.lower, limit.upper)]  # fmt: skip
        if any(math.isnan(end) for end in ends) or ends[0] > ends[1]:
            self.stage.problem("the lower limit must not exceed the upper limit", self.path, ends, "correct the limits")
            return {}
        if ends[0] == ends[1]:
            return {"locked": True, f"lock_value{'_deg' if rotary else ''}": self.sign * ends[0]}
        if self.sign < 0.0:
            ends = [-ends[1], -ends[0]]
        if not any(math.isfinite(end) for end in ends):
            return {}
        return {"range_deg" if rotary else "range": ends}

    def _drive(self, drive, rotary: bool) -> dict:
        """Return the keys of a drive; none without effect."""
        stage = self.stage
        if not drive.enabled or (drive.stiffness == 0.0 and drive.damping == 0.0):
            return {}
        if drive.acceleration:
            stage.notes.append(f"joint {self.path}: an acceleration drive is ignored; only force drives are supported")
            return {}
        unit = stage.mass * (stage.length**2 * 180.0 / math.pi if rotary else 1.0)
        length = 1.0 if rotary else stage.length
        target, rate = (self.sign * float(value) * length for value in (drive.targetPosition, drive.targetVelocity))
        end = "_deg" if rotary else ""
        keys = {"mode": "pd", "stiffness": float(drive.stiffness) * unit, "damping": float(drive.damping) * unit}
        keys |= {f"target{end}": target} | ({f"rate{end}": rate} if rate else {})
        if drive.stiffness == 0.0:
            keys = {"mode": "velocity", "damping": keys["damping"], f"target{end}": rate}
        if np.isfinite(drive.forceLimit) and drive.forceLimit < NO_LIMIT:
            effort = float(drive.forceLimit) * stage.mass * stage.length ** (2 if rotary else 1)
            if effort <= 0.0:
                if effort < 0.0:
                    stage.notes.append(f"joint {self.path}: its drive is ignored: its largest force must not be negative")
                return {}
            keys["effort"] = effort
        return {"drive": keys}

    def _newton(self, one, limited: bool, rotary: bool) -> dict:
        """Keys of Newton's attributes of a joint with one coordinate."""
        stage, prim, L, M = self.stage, self.stage.prim(one.primPath), self.stage.length, self.stage.mass
        effort, gain = M * (L**2 if rotary else L), M * (L**2 * 180.0 / math.pi if rotary else 1.0)
        found = {}
        for key, attribute, unit in (
            ("armature", "armature", M * L**2 if rotary else M),
            ("friction", "friction", effort),
            ("damping", "damping", gain),
        ):
            value = stage.newton_number(prim, attribute)
            if value is not None:
                found[key] = value * unit
        limit = stage.newton_number(prim, "velocityLimit")
        if limit is not None and limit < NO_LIMIT:
            found["velocity_limit_deg" if rotary else "velocity_limit"] = limit * (1.0 if rotary else L)
        stiffness, damping = (stage.newton_number(prim, attribute) for attribute in ("limitStiffness", "limitDamping"))
        if stiffness is not None and limited:
            found |= {"limit": "compliant", "limit_compliance": 1.0 / (stiffness * gain)}
            found |= {} if damping is None else {"limit_damping": damping * gain}
        return found

    def couplings(self) -> list[dict]:
        """Newton's mimics: ``q = coef0 + coef1 q_leader``, angles in degrees."""
        stage, out = self.stage, []
        for path, (name, coordinate, rotary, sign) in self._single.items():
            prim = stage.prim(path)
            relation = prim.GetRelationship("newton:mimicJoint")
            targets = [str(target) for target in relation.GetTargets()] if relation else []
            stage.consumed.update(
                ("newton:mimicJoint", "newton:mimicEnabled", "newton:mimicCoef0", "newton:mimicCoef1")
            )
            if not targets or stage.newton(prim, "mimicEnabled", True) is False:
                continue
            if targets[0] not in self._single:
                stage.notes.append(f"joint {path}: the mimic of {targets[0]} is ignored: it is not a hinge or slider")
                continue
            leader, leading, leader_rotary, leader_sign = self._single[targets[0]]
            offset, factor = (float(stage.newton(prim, f"mimicCoef{k}", float(k))) for k in (0, 1))
            units = [math.radians(1.0) if angle else stage.length for angle in (rotary, leader_rotary)]
            terms = [sign * offset * units[0], sign * leader_sign * factor * units[0] / units[1]]
            out.append(
                {
                    "name": f"{name}_follows_{leader}",
                    "coordinate": f"{name}.{coordinate}",
                    "terms": [{"coordinate": f"{leader}.{leading}", "polynomial": terms}],
                    "enforcement": ENFORCEMENT,
                }
            )
        return out


def _is_reversible(held: list[str], settings: dict[str, dict]) -> bool:
    """Return whether a joint of six axes is the same with exchanged bodies and coordinates of the other sign.

    A single rotation is, and so are three free ones. The translations must then be all held or all free, except
    along the axis of a single rotation.
    """
    turning = [axis for axis in ("rx", "ry", "rz") if axis not in held]
    slides = [axis for axis in ("x", "y", "z") if turning != [f"r{axis}"]]
    single = len(turning) == 1 or (len(turning) == 3 and not settings.keys() & set(turning))
    rigid = all(axis in held for axis in slides)
    return not turning or (single and (rigid or not (set(slides) & {*held, *settings})))
