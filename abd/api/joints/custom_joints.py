"""`abd.joint_type`: joint types that a user defines in Python, for scenes of the same process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from abd.errors import Problem, SceneError
from abd.joints.custom.custom import CustomType, RowFlags, check_declaration, check_duality
from abd.joints.custom.numpy_rows import NumpyRows
from abd.joints.custom.wrench_rows import mixed_residual, stacked, wrench_residual
from abd.joints.measures.custom_rows import RowFunction
from abd.joints.measures.measures import Measure
from abd.joints.types import ALIASES, TYPES


def joint_type(
    name: str,
    function: Callable[..., Any] | None = None,
    *,
    rows: Mapping[str, RowFlags],
    coordinates: Mapping[str, Measure | RowFlags] | None = None,
    parameters: Mapping[str, float] | None = None,
    jacobian: Callable[..., np.ndarray] | None = None,
    wrenches: np.ndarray | Callable[..., np.ndarray] | Mapping[str, np.ndarray | Callable[..., np.ndarray]] | None = None,
    project: Callable[..., np.ndarray] | None = None,
    transform: Callable[..., np.ndarray] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    limits: Mapping[str, str] | None = None,
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
        coordinates: name -> a measure (`abd.joints.measures.axes`), or the flags of a further row of the function.
        parameters: name -> default of the numbers p of a joint.
        jacobian: NumPy: ``(M, r, p) -> (k, rows, 12)``, derivatives by M, row by row, and by r.
        wrenches: instead of a function: (rows, 6), force and moment in C, or ``(T_GD, p) -> (k, rows, 6)``; row k is
            ``wrench_k . log(T_GD^-1 T_CD)``. Needs `project`. Or row -> (6,) or ``(T_GD, p) -> (k, 6)`` for some of the
            rows, beside a NumPy function that gives the others in their order. A wrench row without BILATERAL is a gap that
            a projection may leave at 0 where nothing pushes.
        project: ``(T_CD (k, 4, 4), p (k, np)) -> T_GD (k, 4, 4)``, the nearest admissible poses.
        transform: ``(values (k,), p (np,)) -> T_CD (4, 4)`` at the coordinates; without it joints start where both
            frames coincide, or where the bodies are.
        ranges: coordinate -> (lower, upper) [m or rad], for joints that give none; (-inf, inf) of a joint has none.
        limits: coordinate -> row without BILATERAL whose wrench keeps its range (ArtiSynth's limit constraint). The range acts
            along the coordinate's own gradient, which is checked against the wrench; the row is no gap beside it.

    Raises:
        SceneError: what is wrong with the definition, derivatives that disagree with differences included.
    """
    own, numbers = dict(coordinates or {}), dict(parameters or {})
    if name in ALIASES or (name in TYPES and not isinstance(TYPES[name], CustomType)):
        raise SceneError([Problem(f"{name!r} is a joint type already", remedy="choose another name")])
    check_declaration(name, rows, own, numbers, ranges or {}, limits or {})
    names = [*rows, *(key for key, one in own.items() if not isinstance(one, Measure))]
    p = np.array(list(numbers.values()), dtype=float)
    built = _row_function(name, names, p, function, jacobian, wrenches, project)
    by_wrench = [] if wrenches is None else list(wrenches) if isinstance(wrenches, Mapping) else list(rows)
    kind = CustomType(built, rows, own, numbers, transform, project, ranges, limits, by_wrench)
    if by_wrench and limits:
        check_duality(kind, _all_wrenches(wrenches), by_wrench)
    TYPES[name] = kind
    return kind


def _all_wrenches(wrenches) -> Callable:
    """Wrenches in any form as a function ``(T_GD, p) -> (k, rows, 6)``."""
    if isinstance(wrenches, Mapping):
        return stacked(wrenches)
    if callable(wrenches):
        return wrenches
    given = np.asarray(wrenches, dtype=float)
    return lambda G, p: np.broadcast_to(given, (len(G), *given.shape))


def _row_function(name, names, p, function, jacobian, wrenches, project) -> RowFunction:
    mixed = isinstance(wrenches, Mapping)
    if function is None and wrenches is None:
        raise SceneError([Problem(f"joint type {name!r}: needs either a function or wrenches")])
    if function is not None and wrenches is not None and not mixed:
        remedy = "give the wrenches by the names of their rows"
        raise SceneError([Problem(f"joint type {name!r}: needs either a function or wrenches, or both", remedy=remedy)])
    warp = sys.modules.get("warp")
    is_warp = warp is not None and isinstance(function, warp.Function)
    if wrenches is not None:
        if project is None:
            remedy = "give project(T_CD, p) -> T_GD"
            raise SceneError([Problem(f"joint type {name!r}: wrenches need a projection", remedy=remedy)])
        if not mixed:
            return NumpyRows(name, names, wrench_residual(wrenches, project), p)
        _check_mixed(name, names, wrenches, function, is_warp or jacobian is not None)
        given = function if function is not None else lambda M, r, p: np.zeros((len(M), 0))
        return NumpyRows(name, names, mixed_residual(names, given, wrenches, project), p)
    if not is_warp:
        return NumpyRows(name, names, function, p, jacobian)
    if jacobian is not None:
        remedy = "leave it out: Warp's adjoint gives it"
        raise SceneError([Problem(f"joint type {name!r}: a Warp function takes no Jacobian", remedy=remedy)])
    from abd.backends.warp.terms.custom_measures import WarpRows

    return WarpRows(name, names, function, p)


def _check_mixed(name, names, wrenches, function, other: bool) -> None:
    """`SceneError` where rows by wrenches and rows of a function do not make the rows of a type."""
    unknown, left = [row for row in wrenches if row not in names], [row for row in names if row not in wrenches]
    message = ""
    if unknown:
        message = f"has no row {unknown[0]!r}, for which there is a wrench"
    elif left and function is None:
        message = f"needs a wrench, or a function, for row {left[0]!r}"
    elif other:
        message = "takes a NumPy function without a Jacobian beside wrenches"
    if message:
        raise SceneError([Problem(f"joint type {name!r} {message}", remedy=f"its rows are {', '.join(names)}")])
