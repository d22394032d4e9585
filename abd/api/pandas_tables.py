"""Conversion of results to pandas tables; pandas is imported on the first call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from abd.optional import required

if TYPE_CHECKING:
    import pandas

_XYZ = ("x", "y", "z")


def table_of(columns: Mapping[str, Any], index: np.ndarray | None = None, name: str | None = None) -> pandas.DataFrame:
    """Return a table of columns of equal length.

    Args:
        columns: name -> (k,), or (k, 3) for three columns ``name.x``, ``name.y``, ``name.z``.
        index: (k,) index of the rows with the name `name`; by default numbers from 0.

    Raises:
        MissingLibrary: pandas is not installed.
    """
    pandas = required("pandas", "pandas", "pandas", "a table")
    flat: dict[str, Any] = {}
    for key, values in columns.items():
        array = np.asarray(values)
        if array.ndim == 2:
            flat |= {f"{key}.{axis}": array[:, k] for k, axis in enumerate(_XYZ)}
        else:
            flat[key] = array
    return pandas.DataFrame(flat, index=None if index is None else pandas.Index(index, name=name))


def row_of(report: Any) -> dict[str, float]:
    """Return the numbers of a step report by name: ``energy.kinetic``, ``momentum.linear.x``, ``max_joint_residual.m``."""
    row: dict[str, float] = {}
    for key, value in vars(report).items():
        if key in ("energy", "stages", "rejections"):
            row |= {f"{key}.{name}": float(one) for name, one in value.items()}
        elif key == "momentum":
            row |= {f"{key}.{name}.{axis}": float(one[k]) for name, one in value.items() for k, axis in enumerate(_XYZ)}
        elif key == "max_joint_residual":
            row |= {f"{key}.m": float(value[0]), f"{key}.rad": float(value[1])}
        elif not isinstance(value, tuple | np.ndarray):
            row[key] = value
    return row
