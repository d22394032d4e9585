"""Sensors in scene files; see `abd.api.sensors` for the quantities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from abd.scene.schema.fields import Count, Spec, Vector, entry, without_effect
from abd.scene.schema.findings import Finding

OF_COORDINATES = ("coordinate", "rate", "coordinate_force")
OF_JOINTS = ("wrench", "force", "residual", "multipliers", "displacement", "relative_velocity")
OF_MARKERS = ("position", "velocity")
OF_BODIES = ("rotation", "angular_velocity")
OF_CONTACTS = ("contact_force", "contact_wrench", "touches")
Quantity = Literal[OF_COORDINATES + OF_JOINTS + OF_MARKERS + OF_BODIES + OF_CONTACTS]  # type: ignore[valid-type]


class SensorSpec(Spec):
    """A quantity of a joint or of a body that is recorded at every frame of the trajectory, as ``/sensors/<name>``.

    Exactly one of joint and body is given.
    """

    name: str = entry(..., "unique name", min_length=1)
    what: Quantity = entry(
        ...,
        "quantity of a coordinate: coordinate, rate, coordinate_force; of a joint: wrench, residual, multipliers, displacement, "
        "relative_velocity, force (force and torque on the parent), position and velocity of its point on the parent; of a "
        "body: position and velocity of a point, rotation, angular_velocity, contact_force, contact_wrench, touches",
    )
    joint: str | None = entry(None, "name of a joint")
    coordinate: str | None = entry(None, "coordinate of the joint; default: the first")
    body: str | None = entry(None, "name of a body")
    point: Vector | None = entry(
        None, "point in the body's mesh frame, for position and velocity; default: the origin", unit="m"
    )
    other: str | None = entry(None, "name of a body: only contacts with this body count")
    every: Count = entry(1, "number of steps between two values", ge=1)

    @property
    def definition(self) -> tuple:
        """The arguments `name`, `what` and `of` of `Simulation.add_sensor`."""
        first = self.body if self.joint is None else self.joint
        second = next((one for one in (self.coordinate, self.point, self.other) if one is not None), None)
        return self.name, self.what, first if second is None else (first, second)


def check_sensor(spec: SensorSpec) -> Iterator[Finding]:
    """Yield findings about keys that exclude each other."""
    if (spec.joint is None) == (spec.body is None):
        yield Finding(("joint",), "exactly one of joint and body must be given", spec.joint)
        return
    known = OF_COORDINATES + OF_JOINTS + OF_MARKERS if spec.joint else OF_MARKERS + OF_BODIES + OF_CONTACTS
    kind = "joint" if spec.joint else "body"
    if spec.what not in known:
        yield Finding(("what",), f"is not a quantity of a {kind}", spec.what, f"use one of {', '.join(known)}")
    for key, quantities, owner in (
        ("coordinate", OF_COORDINATES, "joint"),
        ("point", OF_MARKERS, "body"),
        ("other", OF_CONTACTS, "body"),
    ):
        if spec.what not in quantities or kind != owner:
            yield from without_effect(spec, (key,), f"on {spec.what} of a {kind}")
