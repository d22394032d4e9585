"""What every joint type defines."""

from __future__ import annotations

from abd.errors import Problem, SceneError
from abd.joints.measures.combined import Combined
from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure
from abd.joints.measures.motions import Motion
from abd.model import Joint


class JointType:
    """Functions from a `Joint` to what its type makes of it; none of them depends on the state.

    Penalty and exact enforcement use `rows` and `measured`, compliant enforcement `constraints`; both use the gaps of
    `measured` and what `combined` returns. Parameters that make no sense raise `SceneError`.

    Some types define more:

        transform(joint, values) -> (4, 4)  T_CD at the coordinates (k,), where no product of motions gives it
        project(joint, T) -> (4, 4)         T_GD, where the nearest admissible pose is to be another than that of
                                            `abd.joints.coordinates.transform.project`
        PARAMETERS = {name: default}        numbers that a scene gives under ``parameters``
        at_pose(joint, T) -> list[Measure]  `measured` for the pose T_CD (4, 4), where `FOLLOWS_POSE`
    """

    UID: int = 0
    """Constitution number of the published penalty, 0 for types without one."""
    FOLLOWS_POSE: bool = False
    """Whether `measured` depends on the pose at the start of a step."""

    def rows(self, joint: Joint) -> list[Row]:
        """Constraint rows that are linear in both states; of many joints at once where frames are (k, 4, 4) and the
        length is (k, 1) (`abd.joints.rows.batches`)."""
        return []

    def measured(self, joint: Joint) -> list[Measure]:
        """The other constraint rows, and the gaps (`unilateral`) that must not become negative."""
        return []

    def combined(self, joint: Joint) -> list[Combined]:
        """Rows of several measures: constraints, springs, friction, rotors and forces."""
        return []

    def constraints(self, joint: Joint) -> list[Measure]:
        """All constraints, one measure each [m or rad], in the order of ArtiSynth: x, y, z, rx, ry, rz.

        With the constraint rows of `combined` their number is the rank of their gradients, 6 - freedoms.
        """
        return [one for one in self.measured(joint) if not one.unilateral]

    def coordinates(self, joint: Joint) -> list[Measure]:
        """What the joint leaves free [m or rad], in the order of the index."""
        return []

    def motions(self, joint: Joint) -> list[Motion] | None:
        """Motions, one for each coordinate, whose product is T_CD; None where it is no such product.

        If the type has no `transform` either, the coordinates do not describe the pose: there are none, or too few.
        """
        return None


def wrong(joint: Joint, key: str, message: str, remedy: str = "") -> SceneError:
    """The error that says what is wrong with parameter `key` of a joint."""
    problem = Problem(message, key=f"joint {joint.name!r}, {key}", value=joint.parameters.get(key), remedy=remedy)
    return SceneError([problem])
