"""Conversion of results to pandas tables; pandas is imported on the first call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from abd.optional import required

if TYPE_CHECKING:
    import pandas

XYZ = ("x", "y", "z")


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
            flat |= {f"{key}.{axis}": array[:, k] for k, axis in enumerate(XYZ)}
        else:
            flat[key] = array
    return pandas.DataFrame(flat, index=None if index is None else pandas.Index(index, name=name))
