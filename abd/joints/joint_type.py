"""What the module of a joint type has: the functions that every file of a type defines."""

from __future__ import annotations

from typing import Protocol

from abd.joints.measures.linear import Row
from abd.joints.measures.measures import Measure
from abd.joints.pieces.motions import Motion
from abd.model import Joint


class JointType(Protocol):
    """Functions from a `Joint` to what its type makes of it; none of them depends on the state.

    Penalty and exact enforcement use `rows` and `measured`, compliant enforcement `constraints`; both use the gaps of
    `measured` and what `combined` returns. Parameters that make no sense raise `SceneError`.

    Some modules define more:

        combined(joint) -> list[Combined]   rows of several measures: a constraint, or a spring
        transform(joint, values) -> (4, 4)  T_CD at the coordinates (k,), where no product of motions gives it
        project(joint, T) -> (4, 4)         T_GD, where the nearest admissible pose is to be another than that of
                                            `abd.joints.coordinates.transform.project`
        PARAMETERS = {name: default}        numbers that a scene gives under ``parameters``
        FOLLOWS_POSE = True                 `measured` depends on the pose at the start of a step;
        at_pose(joint, T) -> list[Measure]  gives it for the pose T_CD (4, 4)
    """

    UID: int
    """Constitution number of the published penalty, 0 for types without one."""

    def rows(self, joint: Joint) -> list[Row]:
        """Constraint rows that are linear in both states; of many joints at once where frames are (k, 4, 4) and the
        length is (k, 1) (`abd.joints.rows.stacks`)."""

    def measured(self, joint: Joint) -> list[Measure]:
        """The other constraint rows, and the gaps (`unilateral`) that must not become negative."""

    def constraints(self, joint: Joint) -> list[Measure]:
        """All constraints, one measure each [m or rad], in the order of ArtiSynth: x, y, z, rx, ry, rz.

        With the constraint rows of `combined` their number is the rank of their gradients, 6 - freedoms.
        """

    def coordinates(self, joint: Joint) -> list[Measure]:
        """What the joint leaves free [m or rad], in the order of the index."""

    def motions(self, joint: Joint) -> list[Motion] | None:
        """Motions, one for each coordinate, whose product is T_CD; None where it is no such product.

        If the module has no `transform` either, the coordinates do not describe the pose: there are none, or too few.
        """
