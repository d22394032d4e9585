"""Numbers and plots: tables of bodies and joints, energies and a coordinate over time."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from time import monotonic

import numpy as np

from abd.colors import PALETTE
from abd.pictures.cast import Cast, evenly_spaced
from abd.rotations import axial

ROWS = 25
"""Largest number of rows of a table; the filter applies to all."""
PERIOD = 0.25
"""Time between two updates of a table [s]."""
POINTS = 800
"""Largest number of points of a plotted line."""
COLORS = [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in np.round(255.0 * PALETTE).astype(int)]
MOST_LISTED = 300
"""Largest number of bodies in a dropdown list; for more, the user types a name."""


class DrawingControls:
    """Controls of what is drawn: joints, contact forces, names and frames of bodies, and the followed body."""

    def __init__(self, gui, cast: Cast, follow: str, forces: bool, **look):
        bodies, followed = [str(name) for name in np.array(cast.names, dtype=object)[~cast.is_plane]], follow or "nothing"
        self.joints = gui.add_checkbox("joints, ropes, springs", True, visible=bool(cast.joints))
        self.forces = gui.add_checkbox("contact forces", forces, **look)
        self.names = gui.add_checkbox("names", False, visible=len(bodies) <= MOST_LISTED)
        self.axes = gui.add_checkbox("axes", False, hint="x red, y green, z blue, of the mesh frames")
        if len(bodies) <= MOST_LISTED:
            self.follow = gui.add_dropdown("follow", ("nothing", *bodies), initial_value=followed)
        else:
            self.follow = gui.add_text("follow", followed, hint="name of a body, or nothing")

    def apply(self, stage, scale: float | None) -> None:
        """Set what a `Stage` draws; scale: length of arrows per force [m/N]."""
        stage.joints, stage.forces = self.joints.value, scale if self.forces.value else None
        stage.names, stage.axes = self.names.value, self.axes.value

    def on_update(self, redraw: Callable[[], None]) -> None:
        """Call a function after every change except that of the followed body."""
        for one in (self.joints, self.forces, self.names, self.axes):
            one.on_update(lambda _: redraw())


class Tables:
    """Live tables of bodies and of joints, in a tab group."""

    def __init__(self, server, tabs, cast: Cast):
        self.server, self.cast = server, cast
        self._names = [str(name) for name in cast.names]
        self._joints = [(g, k, str(name)) for g, group in enumerate(cast.joints) for k, name in enumerate(group.names)]
        with tabs.add_tab("Bodies"):
            self.filter = server.gui.add_text("show", "", hint="part of a name; click on a body to select it")
            self._bodies = server.gui.add_html("")
        self._joint_table = None
        if self._joints:
            with tabs.add_tab("Joints"):
                self.joint_filter = server.gui.add_text("show", "", hint="part of a name")
                self._joint_table = server.gui.add_html("")
        self._last = -np.inf

    def show(
        self,
        transform: np.ndarray,
        velocity: Callable[[], np.ndarray],
        joint: Callable[[int, str], np.ndarray],
        now: bool = False,
    ) -> None:
        """Update the tables to a state, at most once per `PERIOD`.

        Args:
            transform: (n, 4, 4) poses; velocity: function that returns their time derivatives, called on demand.
            joint: function that returns values (k, c) of a group: "coordinates", "rates", "wrench", "residual".
        """
        if monotonic() - self._last < PERIOD and not now:
            return
        self._last = monotonic()
        self._bodies.content = self._body_rows(transform, velocity())
        if self._joint_table is not None:
            self._joint_table.content = self._joint_rows(joint)

    def _body_rows(self, transform: np.ndarray, velocity: np.ndarray) -> str:
        wanted, rows = self.filter.value.strip().lower(), []
        found = [k for k, name in enumerate(self._names) if name.lower() == wanted]
        if not found:
            found = [k for k in np.flatnonzero(~self.cast.is_plane) if wanted in self._names[k].lower()]
        for k in found[:ROWS]:
            x, v = transform[k, :3, 3], velocity[k, :3, 3]
            w = axial((velocity[k, :3, :3] @ np.linalg.inv(transform[k, :3, :3]))[None])[0]
            rows.append([self._names[k], _format_vector(x), _format_vector(v), _format_vector(w)])
        return _table(["body", "position [m]", "velocity [m/s]", "angular velocity [rad/s]"], rows, len(found))

    def _joint_rows(self, joint: Callable[[int, str], np.ndarray]) -> str:
        wanted = self.joint_filter.value.strip().lower()
        found = [one for one in self._joints if wanted in one[2].lower()]
        rows = []
        for g, k, name in found[:ROWS]:
            group, q, rates = self.cast.joints[g], joint(g, "coordinates")[k], joint(g, "rates")[k]
            values = [
                f"{label} {np.degrees(x):.4g}°, {np.degrees(r):.3g}°/s" if rotary else f"{label} {x:.5g} m, {r:.3g} m/s"
                for label, rotary, x, r in zip(group.coordinates, group.rotary, q, rates)
            ]
            wrench = joint(g, "wrench")[k]
            sizes = [f"{np.linalg.norm(part):.4g}" for part in (wrench[:3], wrench[3:])]
            rows.append([name, "<br>".join(values) or "-", *sizes])
        return _table(["joint", "coordinates", "force [N]", "torque [N m]"], rows, len(found))


class Plots:
    """Energies over time, and one of the coordinates "joint.coordinate" that `chosen` selects; None without coordinates."""

    def __init__(self, server, tabs, energies: tuple[str, ...], coordinates: list[str]):
        self.energies, self.chosen, self._coordinate = energies, None, None
        with tabs.add_tab("Plots"):
            self._energy = _plot(server.gui, "energy [J]", energies)
            if coordinates:
                self.chosen = server.gui.add_dropdown("coordinate", coordinates)
                self._coordinate = _plot(server.gui, "[m or rad]", ("value",))

    def show(
        self, time: np.ndarray, energies: dict[str, np.ndarray], now: float, coordinate: np.ndarray | None = None
    ) -> None:
        """Draw lines over time (T,), gravity from its first value, and a mark at the present on the first line of each plot."""
        if len(time) < 2:
            return
        kept = evenly_spaced(range(len(time)), POINTS)
        at = int(np.argmin(np.abs(time[kept] - now)))
        lines = [
            np.asarray(energies[name] - (energies[name][0] if name == "gravity" else 0.0))[kept]
            for name in self.energies
        ]
        self._energy.data = (time[kept], *lines, _single_point(lines[0], at))
        if self._coordinate is not None and coordinate is not None:
            line = np.asarray(coordinate, dtype=float)[kept]
            self._coordinate.data = (time[kept], line, _single_point(line, at))


def _plot(gui, title: str, names: tuple[str, ...]):
    """Plot of lines over time with a mark at the present."""
    hidden = {"show": False}
    lines = [
        {"label": name.replace("_", " "), "stroke": COLORS[k % len(COLORS)], "width": 1.5, "points": hidden}
        for k, name in enumerate(names)
    ]
    shown = {"show": True, "size": 8, "fill": "#111111"}
    # no automatic range, because most values are NaN
    mark = {"label": "now", "stroke": "#111111", "width": 0, "points": shown, "auto": False}
    data, axes = (np.arange(2.0), *np.zeros((len(names) + 1, 2))), ({"label": "t [s]"}, *lines, mark)
    return gui.add_uplot(data, axes, title=title, scales={"x": {"time": False}}, aspect=1.35)


def _single_point(line: np.ndarray, at: int) -> np.ndarray:
    """The line with only one point."""
    out = np.full(len(line), np.nan)
    out[at] = line[at]
    return out


def _format_vector(vector: np.ndarray) -> str:
    return " ".join(f"{x:.3f}" if abs(x) < 1000.0 else f"{x:.3g}" for x in vector)


def _table(head: list[str], rows: list[list[str]], found: int) -> str:
    cells = "".join(f"<th style='text-align:left;padding:1px 6px'>{one}</th>" for one in head)
    lines = "".join(
        "<tr>" + "".join(
            f"<td style='padding:1px 6px;white-space:nowrap'>{escape(cell).replace('&lt;br&gt;', '<br>')}</td>" for cell in row
        ) + "</tr>"
        for row in rows
    )  # fmt: skip
    more = f"<div style='padding:4px 6px'>{found - len(rows)} more</div>" if found > len(rows) else ""
    style = "font-size:11px;border-collapse:collapse;font-variant-numeric:tabular-nums"
    return (
        f"<div style='overflow-x:auto'><table class='abd' style='{style}'><tr>{cells}</tr>{lines}</table>{more}</div>"
    )
