"""Setter of joint coordinates, one or several at once, with the status of each request."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from abd.errors import SceneError
from abd.joints.closure.assembly import Assembly, assemble
from abd.joints.types import TYPES
from abd.model import Model


class CoordinateSetter:
    """Collects requests for coordinates and solves for poses (like ArtiSynth's class of that name).

    Joints and coordinates are given by index or name. Nothing is simulated: `q` is a new set of poses.

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
        """Request a value [m or rad] for the next `solve`; replaces an earlier request for the coordinate.

        Raises:
            SceneError: there is no such joint or coordinate, or the value is not finite.
        """
        k = _index_of("joint", joint, self._joints)
        names = [one.name for one in self._coordinates[k]]
        name = names[_index_of(f"coordinate of joint '{self._joints[k]}'", coordinate, names)]
        if not np.isfinite(value):
            raise SceneError.of("a coordinate must be a finite number", "value", value)
        self.requests[k, name] = float(value)

    def clear_requests(self) -> None:
        """Remove all requests."""
        self.requests.clear()

    def solve(self) -> Assembly:
        """Solve for all requests and remove them. If the joints cannot be closed, the poses do not change.

        Returns:
            the result; `Assembly.converged` is True if the poses were updated.
        """
        result = assemble(self.model, self.q, self.requests, self.values)
        if result.converged:
            self.q, self.values = result.q, result.values
        self.clear_requests()
        return result

    def set_coordinate(self, joint: int | str, coordinate: int | str, value: float) -> Assembly:
        """Request one coordinate [m or rad] and solve, including pending requests."""
        return self.set_coordinates({(joint, coordinate): value})

    def set_coordinates(self, values: Mapping[tuple[int | str, int | str], float]) -> Assembly:
        """Request several coordinates, (joint, coordinate) -> value [m or rad], and solve."""
        for (joint, coordinate), value in values.items():
            self.request(joint, coordinate, value)
        return self.solve()


def _index_of(kind: str, given: int | str, known: list[str]) -> int:
    """Index of a name, or a given index; raises `SceneError` if it does not exist."""
    index = known.index(given) if given in known else -1 if isinstance(given, str) else int(given)
    if 0 <= index < len(known):
        return index
    remedy = "there are " + ", ".join(known[:8]) + (" ..." if len(known) > 8 else "") if known else "it has none"
    raise SceneError.of(f"there is no {kind} '{given}'", kind.split()[0], given, remedy=remedy)
