"""Draw cost against size: `python tools/bench/plot.py RESULTS.json [--out FOLDER]`.

`cost.png`, log-log against the number of bodies: milliseconds per Newton iteration with fitted exponents, microseconds
per contact, linear iterations, memory, and the tolerance that was reached; `kappa.png`: Newton iterations per step
against the stiffness.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np

FITTED = 100
"""Bodies from which on an exponent is fitted: below, launches cost more than what they do."""
KAPPA = "kappa [Pa]"
Lines = dict[str, list[dict]]


def lines_of(rows: list[dict]) -> Lines:
    """Rows with times by family, variant and device, in order of size; only those with two sizes or more."""
    found = defaultdict(list)
    devices = {row["device"] for row in rows}
    for row in rows:
        if row.get("ms_per_newton") is not None:
            name = " ".join(filter(None, [row["family"], row["variant"], row["device"] if len(devices) > 1 else ""]))
            found[name].append(row)
    return {name: sorted(line, key=lambda row: row["size"]) for name, line in found.items() if len(line) > 1}


def exponent(sizes, values) -> float | None:
    """Slope of a straight line through the logarithms, of sizes from `FITTED` on; None with fewer than two."""
    sizes, values = np.asarray(sizes, dtype=float), np.asarray(values, dtype=float)
    kept = (sizes >= FITTED) & (values > 0)
    if kept.sum() < 2:
        return None
    return float(np.polyfit(np.log(sizes[kept]), np.log(values[kept]), 1)[0])


def styles_of(lines: Lines) -> dict[str, dict]:
    """Colour, marker and dashes of every line, the same in all panels."""
    return {
        name: {"color": f"C{k % 10}", "marker": "osv^DPX"[k // 2 % 7], "linestyle": "-" if k < 10 else "--"}
        for k, name in enumerate(lines)
    }


def draw_panel(axes, lines: Lines, styles: dict[str, dict], x: str, y: str, fitted: bool) -> None:
    """One quantity of all lines against another; exponents in a legend where they are fitted."""
    for name, line in lines.items():
        points = [(row[x], row[y]) for row in line if row.get(y)]
        if not points:
            continue
        across, up = zip(*points)
        slope = exponent(across, up) if fitted else None
        label = "_" if slope is None else f"{name}: n^{slope:.2f}"
        axes.plot(across, up, markersize=4, linewidth=1.2, label=label, **styles[name])
    axes.grid(True, which="major", linewidth=0.4, alpha=0.6)
    if fitted and axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7)


def log_scales(axes) -> None:
    """Both axes logarithmic, with plain numbers at 1, 2 and 5."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100.0 * low else (1.0,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def draw_cost(lines: Lines, target: Path, about: str) -> None:
    """The figure of cost against size."""
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    jointed = {name: line for name, line in lines.items() if line[0]["joints"]}
    touching = {name: line for name, line in lines.items() if name not in jointed}
    per_newton = "ms per Newton iteration"
    panels = (
        ("jointed scenes", jointed, "ms_per_newton", per_newton),
        ("scenes with contact", touching, "ms_per_newton", per_newton),
        ("cost of a contact", touching, "us_per_contact", "us per contact and Newton iteration"),
        ("linear iterations", lines, "linear_per_newton", "per Newton iteration"),
        ("memory of the process", lines, "memory", "peak [MiB]"),
        ("tolerance reached", lines, "reached", "vertex speed in the last Newton step [m/s]"),
    )
    styles = styles_of(lines)
    figure, grid = plt.subplots(2, 3, figsize=(16.5, 8.5), layout="constrained")
    for axes, (title, drawn, quantity, label) in zip(grid.flat, panels):
        draw_panel(axes, drawn, styles, "bodies", quantity, quantity == "ms_per_newton")
        axes.set(title=title, xlabel="bodies", ylabel=label)
        if axes.lines:
            log_scales(axes)
        else:
            axes.text(0.5, 0.5, "none", ha="center", va="center", transform=axes.transAxes)
    handles = [Line2D([], [], label=name, **style) for name, style in styles.items()]
    figure.legend(handles=handles, loc="outside right upper", fontsize=8)
    figure.suptitle(f"{about}\nn^e: exponent fitted from {FITTED} bodies on", fontsize=9)
    figure.savefig(target, dpi=130)
    plt.close(figure)


def draw_kappa(lines: Lines, target: Path, about: str) -> None:
    """The figure of iterations against stiffness."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
    for (name, line), style in zip(lines.items(), styles_of(lines).values()):
        newton = [row["newton"] for row in line]
        label = f"{name}: {max(newton) / min(newton):.2f}x"
        axes.plot([row["size"] for row in line], newton, label=label, **style)
    axes.grid(True, linewidth=0.4, alpha=0.6)
    axes.legend(fontsize=8, title="largest over smallest", title_fontsize=8)
    axes.set(xlabel=KAPPA, xscale="log", ylim=(0.0, None), ylabel="Newton iterations per step, mean")
    figure.suptitle(about, fontsize=9)
    figure.savefig(target, dpi=130)
    plt.close(figure)


def main() -> int:
    """Draw what the file has rows for, and print the names of the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--out", type=Path, help="folder [that of the results]")
    options = parser.parse_args()
    results = json.loads(options.results.read_text(encoding="utf-8"))
    facts, rows = results["facts"], results["rows"]
    for row in rows:
        if row.get("newton"):
            row["linear_per_newton"] = row["linear"] / row["newton"]
        if row.get("contacts") and row.get("ms_per_newton"):
            row["us_per_contact"] = 1e3 * row["ms_per_newton"] / row["contacts"]
    about = f"{facts['device']}, {facts['cores']} cores of {facts['processor']}, {facts['date']}"
    folder = options.out or options.results.parent
    folder.mkdir(parents=True, exist_ok=True)
    lines = lines_of(rows)
    by_kappa = {name: line for name, line in lines.items() if line[0]["unit"] == KAPPA}
    by_size = {name: line for name, line in lines.items() if name not in by_kappa}
    for name, drawn, draw in (("cost", by_size, draw_cost), ("kappa", by_kappa, draw_kappa)):
        if drawn:
            target = folder / f"{options.results.stem}-{name}.png"
            draw(drawn, target, about)
            print(target)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
