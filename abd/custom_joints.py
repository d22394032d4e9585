"""`abd.joint_type`: joint types that a user defines in Python, for scenes of the same process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from abd.errors import Problem, SceneError
from abd.joints import ALIASES, TYPES
from abd.joints.custom import CustomType, RowFlags, check_declaration
from abd.joints.custom_rows import RowFunction
from abd.joints.measures import Measure
from abd.joints.numpy_rows import NumpyRows
from abd.joints.wrench_rows import wrench_residual


def joint_type(
    name: str,
    function: Callable[..., Any] | None = None,
    *,
    rows: Mapping[str, RowFlags],
    coordinates: Mapping[str, Measure | RowFlags] | None = None,
    parameters: Mapping[str, float] | None = None,
    jacobian: Callable[..., np.ndarray] | None = None,
    wrenches: np.ndarray | Callable[..., np.ndarray] | None = None,
    project: Callable[..., np.ndarray] | None = None,
    transform: Callable[..., np.ndarray] | None = None,
) -> CustomType:
    """Define a joint type; `Scene.add_joint(name, ..., parameters={...})` uses it.

    Frame C is the child's, D the parent's; ``M = D^T C`` (columns are the axes) and ``r = D^T (o_C - o_D)`` are linear
    in each body's affine state, so M is a rotation up to the bodies' strain. Defining a name again replaces the type
    for scenes that are compiled later.

    Args:
        function: the rows, in one of two forms:
            NumPy: ``f(M (k, 3, 3), r (k, 3), p (k, np)) -> (k, rows)``, on numpy and cpu. It is differentiated by
            complex steps if it takes complex numbers, otherwise by differences.
            Warp: a ``@wp.func`` ``f(row: int, M: wp.mat33d, r: wp.vec3d, p: wp.array(dtype=wp.float64)) ->
            wp.float64``, on every device; differentiated by Warp's adjoint.
        rows: name -> `RowFlags` of constraints and gaps, in the order of the function's rows.
        coordinates: name -> a measure (`abd.joints.axes`), or the flags of a further row of the function.
        parameters: name -> default of the numbers p of a joint.
        jacobian: NumPy: ``(M, r, p) -> (k, rows, 12)``, derivatives by M, row by row, and by r.
        wrenches: instead of a function: (rows, 6), force and moment in C, or ``(T_GD, p) -> (k, rows, 6)``; row k is
            ``wrench_k . log(T_GD^-1 T_CD)``. Needs `project`.
        project: ``(T_CD (k, 4, 4), p (k, np)) -> T_GD (k, 4, 4)``, the nearest admissible poses.
        transform: ``(values (k,), p (np,)) -> T_CD (4, 4)`` at the coordinates; without it joints start where both
            frames coincide, or where the bodies are.

    Raises:
        SceneError: what is wrong with the definition, derivatives that disagree with differences included.
    """
    own, numbers = dict(coordinates or {}), dict(parameters or {})
    if name in ALIASES or (name in TYPES and not isinstance(TYPES[name], CustomType)):
        raise SceneError([Problem(f"{name!r} is a joint type already", remedy="choose another name")])
    check_declaration(name, rows, own, numbers)
    names = [*rows, *(key for key, one in own.items() if not isinstance(one, Measure))]
    p = np.array(list(numbers.values()), dtype=float)
    built = _row_function(name, names, p, function, jacobian, wrenches, project)
    TYPES[name] = CustomType(built, rows, own, numbers, transform, project)
    return TYPES[name]


def _row_function(name, names, p, function, jacobian, wrenches, project) -> RowFunction:
    if (function is None) == (wrenches is None):
        raise SceneError([Problem(f"joint type {name!r}: needs either a function or wrenches")])
    if wrenches is not None:
        if project is None:
            remedy = "give project(T_CD, p) -> T_GD"
            raise SceneError([Problem(f"joint type {name!r}: wrenches need a projection", remedy=remedy)])
        return NumpyRows(name, names, wrench_residual(wrenches, project), p)
    warp = sys.modules.get("warp")
    if warp is None or not isinstance(function, warp.Function):
        return NumpyRows(name, names, function, p, jacobian)
    if jacobian is not None:
        remedy = "leave it out: Warp's adjoint gives it"
        raise SceneError([Problem(f"joint type {name!r}: a Warp function takes no Jacobian", remedy=remedy)])
    from abd.backends.custom_measures import WarpRows

    return WarpRows(name, names, function, p)
