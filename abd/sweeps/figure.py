"""A figure of a sweep: a column of its table over one or two parameters."""

from __future__ import annotations

from pathlib import Path

from abd.io.report import read_json
from abd.optional import required
from abd.sweeps.parameters import SweepError
from abd.sweeps.sweep import REQUEST, TABLE

MOST_LINES = 8
"""Largest number of values of the second parameter with a line for each."""


def draw_sweep(sweep: str | Path, column: str, suffix: str = "svg", out: str | Path | None = None) -> Path:
    """Draw a column over the first parameter with numbers, one line for each value of the second; return the file, by default
    in the sweep's folder.

    Runs with the same values are averaged. With more than `MOST_LINES` values of the second, colours show the column.
    Raises `SweepError` without such a column, or without a parameter with numbers."""
    pandas = required("pandas", "sweep", "pandas", "a table")
    from matplotlib.figure import Figure

    folder = Path(sweep)
    try:
        table = pandas.read_parquet(folder / TABLE)
    except (OSError, ValueError) as error:
        raise SweepError(f"{folder / TABLE} cannot be read: {' '.join(str(error).split())}") from error
    numbers = [name for name in table.columns if pandas.api.types.is_numeric_dtype(table[name])]
    if column not in numbers:
        raise SweepError(f"column {column!r} has no numbers; columns with numbers are {', '.join(numbers)}")
    given = read_json(folder / REQUEST).get("parameters", {})
    parameters = sorted(given, key=lambda name: name not in numbers)[:2]
    if not parameters or parameters[0] not in numbers:
        raise SweepError(f"none of the parameters {', '.join(given)} has numbers for an axis")
    for name in set(parameters).difference(numbers):
        table[name] = table[name].map(lambda value: str(value.tolist() if hasattr(value, "tolist") else value))
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    means = table.groupby(parameters)[column].mean()
    if len(parameters) == 1:
        axes.plot(means.index, means.values, "o-")
    elif len(lines := means.unstack()) and lines.shape[1] <= MOST_LINES:
        for value, line in lines.items():
            axes.plot(line.index, line.values, "o-", label=f"{value:g}" if parameters[1] in numbers else str(value))
        axes.legend(title=parameters[1])
    else:
        at = means.reset_index()
        points = axes.scatter(at[parameters[0]], at[parameters[1]], c=at[column])
        figure.colorbar(points, label=column)
    axes.set_xlabel(parameters[0])
    axes.set_ylabel(column if len(parameters) == 1 or axes.get_legend() else parameters[1])
    target = (Path(out) if out else folder) / f"{column}.{suffix}"
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target)
    return target
