"""Prismatic joint of uid 20."""

from __future__ import annotations

from abd.joints.measures.linear import Row, directions
from abd.joints.measures.measures import Measure, MeasureKind, functional, measure
from abd.joints.types.axis_types import AxisType
from abd.model import Joint


class Prismatic(AxisType):
    """Prismatic joint (uid 20): C translates along t, the z axis of both frames, without rotation.

    ``F = (c_j - c_i) x t_i ; (c_i - c_j) x t_j ; n_i - n_j ; b_i - b_j``, ``E = K/2 sum |F_k|^2``.

    For orthonormal triads ``|d x t_i|^2 = r_x^2 + r_y^2`` and ``|d x t_j|^2 = s_x^2 + s_y^2``, with d in axes of D and
    of C. The rows use these components, which equals the published energy up to the strain of the bodies. All rows have
    the weight K; direction rows have an implied length of 1 m, as the uid defines.

        constraints  x y rx ry rz
        coordinates  z                                                                   T_CD = translation (0, 0, z)
    """

    UID, held, directions = 20, "xy", "xyz"

    def rows(self, joint: Joint) -> list[Row]:
        """The direction rows n, b [-]."""
        return directions(joint, "xy")

    def measured(self, joint: Joint) -> list[Measure]:
        """x, y of the displacement in D, then in C [m]."""
        in_child = [
            measure(f"{name}_child", False, MeasureKind.AFFINE, functional(s=axis))
            for name, axis in (("x", (1.0, 0.0, 0.0)), ("y", (0.0, 1.0, 0.0)))
        ]
        return super().measured(joint) + in_child
