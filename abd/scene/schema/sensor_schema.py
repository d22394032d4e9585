"""What a scene file may say about sensors; see `abd.api.sensors` for the quantities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from abd.scene.schema.fields import Count, Spec, Vector, entry
from abd.scene.schema.findings import Finding

OF_COORDINATES = ("coordinate", "rate", "coordinate_force")
OF_JOINTS = ("wrench", "force", "residual", "multipliers", "displacement", "relative_velocity")
OF_MARKERS = ("position", "velocity")
OF_BODIES = ("rotation", "angular_velocity")
OF_CONTACTS = ("contact_force", "contact_wrench", "touches")
Quantity = Literal[
    "coordinate", "rate", "coordinate_force", "wrench", "force", "residual", "multipliers", "displacement",
    "relative_velocity", "position", "velocity", "rotation", "angular_velocity", "contact_force", "contact_wrench", "touches",
]  # fmt: skip


class SensorSpec(Spec):
    """A quantity that is recorded from the start: at every frame of the trajectory, as ``/sensors/<name>``.

    Exactly one of joint and body says whose it is.
    """

    name: str = entry(..., "unique name", min_length=1)
    what: Quantity = entry(
        ...,
        "coordinate, rate, coordinate_force of a coordinate; wrench, residual, multipliers, displacement, relative_velocity "
        "of a joint, position and velocity of its point on the parent, force (that on the parent, and its torque); position, "
        "velocity of a body's point, rotation, angular_velocity, contact_force, contact_wrench, touches of a body",
    )
    joint: str | None = entry(None, "name of a joint")
    coordinate: str | None = entry(None, "one of its coordinates; default: the first")
    body: str | None = entry(None, "name of a body")
    point: Vector | None = entry(
        None, "of the body's mesh frame, for position and velocity; default: its origin", unit="m"
    )
    other: str | None = entry(None, "contacts with this body alone")
    every: Count = entry(1, "number of steps from one record to the next", ge=1)

    @property
    def of(self):
        """What `Simulation.add_sensor` takes for it."""
        if self.joint is not None:
            return self.joint if self.coordinate is None else (self.joint, self.coordinate)
        second = self.point if self.other is None else self.other
        return self.body if second is None else (self.body, second)


def check_sensor(spec: SensorSpec) -> Iterator[Finding]:
    """Keys that do not go together."""
    if (spec.joint is None) == (spec.body is None):
        yield Finding(("joint",), "exactly one of joint and body is needed", spec.joint)
        return
    known = OF_COORDINATES + OF_JOINTS + OF_MARKERS if spec.joint else OF_MARKERS + OF_BODIES + OF_CONTACTS
    kind = "joint" if spec.joint else "body"
    if spec.what not in known:
        yield Finding(("what",), f"is no quantity of a {kind}", spec.what, f"there are {', '.join(known)}")
    for key, quantities, owner in (
        ("coordinate", OF_COORDINATES, "joint"),
        ("point", OF_MARKERS, "body"),
        ("other", OF_CONTACTS, "body"),
    ):
        value = getattr(spec, key)
        if value is not None and (spec.what not in quantities or kind != owner):
            yield Finding((key,), f"means nothing for {spec.what} of a {kind}", value, "leave it out")
