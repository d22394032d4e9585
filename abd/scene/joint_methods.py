"""The part of `Scene` that adds joints and couplings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from abd.errors import SceneError
from abd.model import WORLD
from abd.scene.checks.coordinate_checks import check_coupling
from abd.scene.checks.joint_checks import check_joint
from abd.scene.schema.findings import Finding, as_problem, located
from abd.scene.schema.joint_schema import WORLD_NAME, CouplingSpec, JointFrames, JointSpec
from abd.scene.schema.schema import SceneSpec
from abd.scene.schema.sensor_schema import SensorSpec, check_sensor
from abd.scene.schema.tables import pose_keys, table

if TYPE_CHECKING:
    from abd.scene.schema.keys import CouplingKeys, DistanceKeys, JointKeys, SpringKeys, Table

FRAMES = tuple(key for key in JointFrames.model_fields if key.endswith("frame"))


class JointMethods:
    """Methods that add joints and couplings to `spec`; their keyword arguments are the keys of the scene file.

    A joint's place is one of

        anchor, axis, x_axis                              in the world at t = 0
        parent_anchor, child_anchor, parent_axis, ...     in the mesh frames of the bodies
        world_frame [, child_world_frame]                 D [and C] in the world at t = 0
        parent_frame [, child_frame]                      D [and C] in the mesh frames

    where a frame is a (4, 4) matrix or a table such as ``{"position": (0, 0, 1), "quaternion": (1, 0, 0, 0)}``. Parents
    may be `abd.WORLD`. All methods return the name.
    """

    __slots__ = ()
    spec: SceneSpec
    _taken: dict[str, set[str]]

    def add_joint(self, type: str, name: str, parent: str | int, child: str, **keys: Unpack[JointKeys]) -> str:
        """Add a joint of any type (`abd schema` lists them)."""
        parent = WORLD_NAME if parent == WORLD else parent
        frames = {key: keys[key] for key in FRAMES if np.shape(np.asarray(keys.get(key), dtype=object)) == (4, 4)}
        keys.update({key: pose_keys(f"joint.{name}.{key}", frame) for key, frame in frames.items()})
        joint = table(
            JointSpec, f"joint.{name}", {"name": name, "type": type, "parent": parent, "child": child, **keys}
        )
        self._add("joint", joint, check_joint(joint))
        return name

    def add_sensor(self, name: str, what: str, joint: str | None = None, body: str | None = None, **keys: Any) -> str:
        """Record a quantity of a joint or a body from the start (`abd.api.sensors`); `Simulation.add_sensor` takes functions."""
        sensor = table(SensorSpec, f"sensor.{name}", {"name": name, "what": what, "joint": joint, "body": body, **keys})
        self._add("sensor", sensor, check_sensor(sensor))
        return name

    def add_hinge(self, name: str, parent: str | int, child: str, **keys: Unpack[JointKeys]) -> str:
        """Turns about an axis: coordinate theta."""
        return self.add_joint("hinge", name, parent, child, **keys)

    def add_spherical(self, name: str, parent: str | int, child: str, **keys: Unpack[JointKeys]) -> str:
        """Turns about a point."""
        return self.add_joint("spherical", name, parent, child, **keys)

    def add_fixed(self, name: str, parent: str | int, child: str, **keys: Unpack[JointKeys]) -> str:
        """Welds two bodies."""
        return self.add_joint("fixed", name, parent, child, **keys)

    def add_slider(self, name: str, parent: str | int, child: str, **keys: Unpack[JointKeys]) -> str:
        """Slides along an axis: coordinate z."""
        return self.add_joint("slider", name, parent, child, **keys)

    def add_cylindrical(self, name: str, parent: str | int, child: str, **keys: Unpack[JointKeys]) -> str:
        """Slides along an axis and turns about it: coordinates z, theta."""
        return self.add_joint("cylindrical", name, parent, child, **keys)

    def add_universal(self, name: str, parent: str | int, child: str, **keys: Unpack[JointKeys]) -> str:
        """Turns about z of the parent, then about y of the child: coordinates roll, pitch."""
        return self.add_joint("universal", name, parent, child, **keys)

    def add_distance(
        self, name: str, parent: str | int, child: str, distance: float, **keys: Unpack[DistanceKeys]
    ) -> str:
        """A rod without mass between ``parent_anchor`` and ``child_anchor`` [m]."""
        return self.add_joint("distance", name, parent, child, distance=distance, **keys)

    def add_rope(self, name: str, parent: str | int, child: str, distance: float, **keys: Unpack[DistanceKeys]) -> str:
        """A rope without mass that lets ``parent_anchor`` and ``child_anchor`` no farther apart than this [m]."""
        return self.add_joint("rope", name, parent, child, distance=distance, **keys)

    def add_spring(
        self, name: str, parent: str | int, child: str, stiffness: float | None = None, **keys: Unpack[SpringKeys]
    ) -> str:
        """A spring [N/m] between ``parent_anchor`` and ``child_anchor``, with ``rest_length`` and ``damping``; or a force that
        depends on how far they are apart and how fast that changes: ``force_formula="-400 * max(0, gap) - 5 * speed**3"``, or
        ``force_function`` by name (`abd.coupling_function`), of ``length``, ``gap = length - rest_length`` [m],
        ``speed = d length / dt`` [m/s] and t. Positive forces push apart."""
        return self.add_joint("spring", name, parent, child, stiffness=stiffness, **keys)

    def add_coupling(
        self, name: str, coordinate: str, terms: Sequence[Table] = (), **keys: Unpack[CouplingKeys]
    ) -> str:
        """The relation ``q0 = scale (f1(q1) + ...)``: coordinates are named "joint.theta", or by the joint if it has only
        one; a term is ``{"coordinate": ..., "factor": 2}``, or has a polynomial or a table. Or, with ``formula``
        ("a * sin(b)") or ``function`` and ``variables`` ({"a": "wheel.theta", ...}), ``q0 = scale f(q1, q2, ...)``."""
        fields = {"name": name, "coordinate": coordinate, "terms": list(terms), **keys}
        coupling = table(CouplingSpec, f"coupling.{name}", fields)
        self._add("coupling", coupling, check_coupling(coupling))
        return name

    def add_gear(self, name: str, first: str, second: str, ratio: float, **keys: Unpack[CouplingKeys]) -> str:
        """``q_second = ratio q_first``; wheels that touch from outside have a negative ratio."""
        return self.add_coupling(name, second, [{"coordinate": first, "factor": ratio}], **keys)

    def add_rack(self, name: str, rack: str, pinion: str, radius: float, **keys: Unpack[CouplingKeys]) -> str:
        """``q_rack = radius q_pinion``, radius in m/rad."""
        return self.add_coupling(name, rack, [{"coordinate": pinion, "factor": radius}], **keys)

    def add_mimic(
        self,
        name: str,
        follower: str,
        leader: str,
        multiplier: float = 1.0,
        offset: float = 0.0,
        **keys: Unpack[CouplingKeys],
    ) -> str:
        """``q_follower = multiplier q_leader + offset``."""
        terms = [{"coordinate": leader, "polynomial": (offset, multiplier)}]
        return self.add_coupling(name, follower, terms, **keys)

    def _add(self, key: str, item: Any, findings: Iterable[Finding] = ()) -> None:
        """Append an item to one of the scene's lists; `SceneError` if it is invalid or its name is taken."""
        items = getattr(self.spec, key)
        findings = list(findings)
        if self._is_taken(key, item.name):
            message = f"there is already a {key} '{item.name}'"
            findings.append(Finding(("name",), message, item.name, "give a unique name"))
        if findings:
            raise SceneError([located(as_problem(finding, {}), f"{key}.{item.name}") for finding in findings])
        items.append(item)
        self._taken[key].add(item.name)

    def _is_taken(self, key: str, name: str) -> bool:
        """Return whether an item of a list has this name. `check` finds names that the user has changed since."""
        items = getattr(self.spec, key)
        if len(self._taken.get(key, ())) != len(items) or not items:
            self._taken[key] = {item.name for item in items}
        return name in self._taken[key] and any(item.name == name for item in items)
