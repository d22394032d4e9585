"""Pin of imported scenes: a point of a body stays where it is, or coincides with a point of another body."""

from __future__ import annotations

from abd.joints.spherical import rows as spherical_rows
from abd.model import Joint

UID = 0


def rows(joint: Joint) -> list:
    """One point row [m], as in a spherical joint."""
    return spherical_rows(joint)
