"""`abd.joint_type`: user-defined joint types for scenes of the same process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from abd.errors import SceneError
from abd.joints.custom.custom import CustomType, RowFlags, check_declaration, check_duality
from abd.joints.custom.numpy_rows import NumpyRows, mixed_residual, stacked, wrench_residual, wrench_slopes
from abd.joints.measures.measures import Measure, RowFunction
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

    C is the child frame and D the parent frame. ``M = D^T C`` (columns are the axes) and ``r = D^T (o_C - o_D)`` are linear
    in each body's affine state, so M is a rotation up to the bodies' strain. A second definition of a name replaces the
    type for scenes that are compiled later.

    Args:
        function: rows of the type, in one of two forms:
            NumPy: ``f(M (k, 3, 3), r (k, 3), p (k, np)) -> (k, rows)``, on numpy and cpu. Derivatives are complex-step
            derivatives if the function accepts complex numbers, otherwise finite differences.
            Warp: a ``@wp.func`` ``f(row: int, M: wp.mat33d, r: wp.vec3d, p: wp.array(dtype=wp.float64)) ->
            wp.float64``, on every device; Warp's adjoint differentiates it.
        rows: name -> `RowFlags` of constraints and gaps, in the order of the function's rows.
        coordinates: name -> a measure (`abd.joints.measures.axes`), or the flags of a further row of the function.
        parameters: name -> default value of the parameters p of a joint.
        jacobian: NumPy: ``(M, r, p) -> (k, rows, 12)``, derivatives by M, row by row, and by r.
        wrenches: instead of a function: (rows, 6), force and moment in C, or ``(T_GD, p) -> (k, rows, 6)``. Row k is
            ``wrench_k . log(T_GD^-1 T_CD)``; `project` is required. Or row -> (6,) or ``(T_GD, p) -> (k, 6)`` for some
            rows; a NumPy function then defines the other rows in their order. A wrench row without BILATERAL is a gap;
            the projection may return 0 for it while it is not engaged.
        project: ``(T_CD (k, 4, 4), p (k, np)) -> T_GD (k, 4, 4)``, the nearest admissible poses.
        transform: ``(values (k,), p (np,)) -> T_CD (4, 4)`` at the coordinates. Without it, joints start with coincident
            frames or at the poses of the bodies.
        ranges: coordinate -> (lower, upper) [m or rad], default ranges; a joint removes a range by (-inf, inf).
        limits: coordinate -> row without BILATERAL whose wrench limits the range (ArtiSynth's limit constraint). The range
            acts along the gradient of the coordinate, which is checked against the wrench. The row is not a gap then.

    Raises:
        SceneError: the definition is invalid, or derivatives disagree with finite differences.
    """
    own, numbers = dict(coordinates or {}), dict(parameters or {})
    if name in ALIASES or (name in TYPES and not isinstance(TYPES[name], CustomType)):
        raise SceneError.of(f"joint type {name!r} already exists", remedy="choose another name")
    check_declaration(name, rows, own, numbers, ranges or {}, limits or {})
    names = [*rows, *(key for key, one in own.items() if not isinstance(one, Measure))]
    p = np.array(list(numbers.values()), dtype=float)
    by_wrench = [] if wrenches is None else list(wrenches) if isinstance(wrenches, Mapping) else list(rows)
    gaps = [row for row in by_wrench if row in rows and RowFlags.BILATERAL not in rows[row]]
    built = _row_function(name, names, p, function, jacobian, wrenches, project, by_wrench, gaps)
    kind = CustomType(built, rows, own, numbers, transform, project, ranges, limits, by_wrench)
    if by_wrench and limits:
        check_duality(kind, _all_wrenches(wrenches), by_wrench)
    TYPES[name] = kind
    return kind


def _all_wrenches(wrenches) -> Callable:
    """Convert wrenches of any form to a function ``(T_GD, p) -> (k, rows, 6)``."""
    if isinstance(wrenches, Mapping):
        return stacked(wrenches)
    if callable(wrenches):
        return wrenches
    given = np.asarray(wrenches, dtype=float)
    return lambda G, p: np.broadcast_to(given, (len(G), *given.shape))


def _row_function(name, names, p, function, jacobian, wrenches, project, by_wrench, gaps) -> RowFunction:
    mixed = isinstance(wrenches, Mapping)
    if function is None and wrenches is None:
        raise SceneError.of(f"joint type {name!r} needs a function or wrenches")
    if function is not None and wrenches is not None and not mixed:
        message = f"joint type {name!r}: a function cannot be combined with wrenches of all rows"
        raise SceneError.of(message, remedy="pass a mapping from row names to wrenches")
    warp = sys.modules.get("warp")
    is_warp = warp is not None and isinstance(function, warp.Function)
    if wrenches is not None:
        if project is None:
            raise SceneError.of(f"joint type {name!r}: wrenches need a projection", remedy="pass project(T_CD, p) -> T_GD")
        all_wrenches = _all_wrenches(wrenches)
        if mixed:
            _check_mixed(name, names, wrenches, function, is_warp or jacobian is not None)
            given = function if function is not None else lambda M, r, p: np.zeros((len(M), 0))
            residual = mixed_residual(names, given, wrenches, project)
        else:
            residual = wrench_residual(all_wrenches, project)
        places = [by_wrench.index(row) for row in gaps]
        slopes = wrench_slopes(lambda G, p: all_wrenches(G, p)[:, places], project)
        return NumpyRows(name, names, residual, p, kinked=([names.index(row) for row in gaps], slopes))
    if not is_warp:
        return NumpyRows(name, names, function, p, jacobian)
    if jacobian is not None:
        message = f"joint type {name!r}: a Warp function cannot have a Jacobian"
        raise SceneError.of(message, remedy="remove it: Warp's adjoint computes it")
    from abd.backends.warp.terms.custom_measures import WarpRows

    return WarpRows(name, names, function, p)


def _check_mixed(name, names, wrenches, function, other: bool) -> None:
    """Raise `SceneError` if wrench rows and function rows do not form the rows of a type."""
    unknown, missing = [row for row in wrenches if row not in names], [row for row in names if row not in wrenches]
    message = ""
    if unknown:
        message = f"has no row {unknown[0]!r} for a wrench"
    elif missing and function is None:
        message = f"needs a wrench or a function for row {missing[0]!r}"
    elif other:
        message = "can combine wrenches only with a NumPy function without a Jacobian"
    if message:
        raise SceneError.of(f"joint type {name!r} {message}", remedy=f"its rows are {', '.join(names)}")
