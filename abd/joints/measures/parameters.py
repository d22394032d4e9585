"""Errors in the parameters of joints, by the name of the joint."""

from __future__ import annotations

from abd.errors import Problem, SceneError
from abd.model import Joint


def wrong(joint: Joint, key: str, message: str, remedy: str = "") -> SceneError:
    """The error that says what is wrong with parameter `key` of a joint."""
    problem = Problem(message, key=f"joint {joint.name!r}, {key}", value=joint.parameters.get(key), remedy=remedy)
    return SceneError([problem])


def length_of(joint: Joint, key: str) -> float:
    """A parameter that must be a length above zero [m].

    Raises:
        SceneError: it is not.
    """
    value = float(joint.parameters.get(key, 0.0))
    if not value > 0.0:
        raise wrong(joint, key, "must be above 0", "two points that coincide are a spherical joint")
    return value
