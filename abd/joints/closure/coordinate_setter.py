"""Setting joint coordinates one by one or several at once, with a word on how each request fared."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from abd.errors import Problem, SceneError
from abd.joints.closure.assembly import Assembly, assemble
from abd.joints.measures.measures import Measure
from abd.joints.types import TYPES
from abd.model import Model


class CoordinateSetter:
    """Collects requests and solves for poses that fulfil them (after ArtiSynth's class of that name).

    Joints are given by index or name, coordinates by index or name. Nothing is simulated: `q` is a new set of poses.

    Attributes:
        q: (n, 12) present states; rigid after the first solution.
        values: (c,) present coordinates of all joints, angles counted over any number of turns.
        requests: (joint index, coordinate name) -> value [m or rad], in the order of the requests.
    """

    def __init__(self, model: Model, q: np.ndarray | None = None, values: np.ndarray | None = None):
        self.model = model
        self.q = np.array(model.bodies.q if q is None else q, dtype=float)
        self.values = values
        self.requests: dict[tuple[int, str], float] = {}
        self._joints = [joint.name for joint in model.joints]
        self._coordinates = [TYPES[joint.type].coordinates(joint) for joint in model.joints]

    def request(self, joint: int | str, coordinate: int | str, value: float) -> None:
        """Ask for a value [m or rad]; `solve` sees to it. A later request for the same coordinate replaces it.

        Raises:
            SceneError: there is no such joint or coordinate, or the value is not finite.
        """
        k, one = self._coordinate(joint, coordinate)
        self.requests[k, one.name] = _finite(value)

    def request_deg(self, joint: int | str, coordinate: int | str, value: float) -> None:
        """`request` with angles in degrees; lengths stay in metres."""
        k, one = self._coordinate(joint, coordinate)
        self.requests[k, one.name] = _finite(np.radians(value) if one.rotary else value)

    def clear_requests(self) -> None:
        """Forget all requests."""
        self.requests.clear()

    def solve(self) -> Assembly:
        """Fulfil all requests at once and forget them. Where the joints cannot be closed, the poses stay as they were.

        Returns:
            the outcome; `Assembly.converged` tells whether it was taken over.
        """
        result = assemble(self.model, self.q, self.requests, self.values)
        if result.converged:
            self.q, self.values = result.q, result.values
        self.clear_requests()
        return result

    def set_coordinate(self, joint: int | str, coordinate: int | str, value: float) -> Assembly:
        """Request one coordinate [m or rad] and solve, with the requests that were pending."""
        self.request(joint, coordinate, value)
        return self.solve()

    def set_coordinate_deg(self, joint: int | str, coordinate: int | str, value: float) -> Assembly:
        """`set_coordinate` with angles in degrees."""
        self.request_deg(joint, coordinate, value)
        return self.solve()

    def set_coordinates(self, values: Mapping[tuple[int | str, int | str], float]) -> Assembly:
        """Request several coordinates, (joint, coordinate) -> value [m or rad], and solve."""
        for (joint, coordinate), value in values.items():
            self.request(joint, coordinate, value)
        return self.solve()

    def set_coordinates_deg(self, values: Mapping[tuple[int | str, int | str], float]) -> Assembly:
        """`set_coordinates` with angles in degrees."""
        for (joint, coordinate), value in values.items():
            self.request_deg(joint, coordinate, value)
        return self.solve()

    def _coordinate(self, joint: int | str, coordinate: int | str) -> tuple[int, Measure]:
        k = _place("joint", joint, self._joints)
        names = [one.name for one in self._coordinates[k]]
        return k, self._coordinates[k][_place(f"coordinate of joint '{self._joints[k]}'", coordinate, names)]


def _finite(value: float) -> float:
    if not np.isfinite(value):
        raise SceneError([Problem("a coordinate must be a finite number", key="value", value=value)])
    return float(value)


def _place(kind: str, given: int | str, known: list[str]) -> int:
    """Place of a name, or the place that is given; `SceneError` where there is none."""
    place = known.index(given) if given in known else -1 if isinstance(given, str) else int(given)
    if 0 <= place < len(known):
        return place
    remedy = "there are " + ", ".join(known[:8]) + (" ..." if len(known) > 8 else "") if known else "it has none"
    raise SceneError([Problem(f"there is no {kind} '{given}'", key=kind.split()[0], value=given, remedy=remedy)])
