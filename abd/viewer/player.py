"""Recorded runs: `Player` in the browser, and `write_page`, a replay in one file without a server or a network.

Frames are read from the file on demand, so that memory does not grow with the length of the run.
"""

from __future__ import annotations

import html
import itertools
import threading
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

import numpy as np

from abd.pictures.cast import Recorded, evenly_spaced
from abd.pictures.symbols import force_scale
from abd.scene.schema.schema import CameraSpec
from abd.viewer.panels import MOST_LISTED, DrawingControls, Plots, Tables
from abd.viewer.stage import PANEL, RATE, Stage

CAMERA_FRAMES = 12
"""Number of frames of a run that determine the camera position."""
PLOT_PERIOD = 0.4
"""Time between two updates of the plots while the run plays [s]."""
SPEEDS = ("0.01", "0.05", "0.1", "0.25", "0.5", "1", "2", "4")
MOST_CLICKABLE = 1000
"""Largest number of bodies that can be clicked while they move."""
LARGEST_REPLAY = 400 * 2**20
"""Largest size of the poses of a replay, which browsers keep in memory; beyond it frames are skipped."""
INSTANCE_BYTES = 40
"""Position, quaternion and scales of one body in one frame."""


class Player:
    """Controls of a recorded run on a `viser.ViserServer`: play, scrub, speed, drawing options, tables and plots."""

    def __init__(self, server, run: Recorded, view: CameraSpec):
        self.server, self.run, self.frame = server, run, 0
        self.stage = _stage(server, run, view, range(len(run)), PANEL)
        self._scale = self.stage.forces
        self._changed, self._closed = threading.Event(), threading.Event()
        self._wanted, self._reached = 0, 0.0
        self._controls(view)
        tabs = server.gui.add_tab_group()
        self.tables = Tables(server, tabs, run.cast)
        self.tables.filter.on_update(lambda _: self._redraw())
        self._energies = run.trajectory.energies()
        shown = tuple(name for name, values in self._energies.items() if np.any(values)) or ("kinetic",)
        self._coordinates = [
            (f"{name}.{label}", g, k, c)
            for g, group in enumerate(run.cast.joints)
            for k, name in enumerate(group.names[:MOST_LISTED])
            for c, label in enumerate(group.coordinates)
        ][:MOST_LISTED]
        self.plots = Plots(server, tabs, shown, [name for name, *_ in self._coordinates])
        if self.plots.chosen is not None:
            self.plots.chosen.on_update(lambda _: self._redraw())
        self._update_clicks()
        self._plotted, self._line = 0.0, ("", None)
        self._draw(0)
        self._thread = threading.Thread(target=self._loop, name="abd-player", daemon=True)
        self._thread.start()

    def _controls(self, view: CameraSpec) -> None:
        gui, last = self.server.gui, max(len(self.run) - 1, 1)
        gui.configure_theme(show_logo=False, show_share_button=False, control_width="large")
        with gui.add_folder(f"{self.run.cast.name}: {len(self.run)} frames, {len(self.run.cast)} bodies"):
            self.play = gui.add_checkbox("play", False)
            self.slider = gui.add_slider("frame", 0, last, 1, 0)
            self.clock = gui.add_markdown("")
            self.speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")
            self.loop = gui.add_checkbox("loop", True)
            self.step = gui.add_button_group("step", ("-10", "-1", "+1", "+10"))
            forces = self._scale is not None
            self.drawn = DrawingControls(gui, self.run.cast, view.follow, forces, visible=forces)
        self.slider.on_update(lambda event: self._seek(int(self.slider.value)) if event.client is not None else None)
        self.play.on_update(lambda _: self._update_clicks())
        self.step.on_click(lambda _: self._seek(self.frame + int(self.step.value)))
        self.drawn.follow.on_update(lambda _: self.stage.follow(self.drawn.follow.value, self.run.moment(self._wanted)))
        self.drawn.on_update(self._redraw)

    def close(self) -> None:
        """Stop the playing thread."""
        self._closed.set()
        self._changed.set()
        self._thread.join()

    def _update_clicks(self) -> None:
        """Enable clicks on bodies; with many, only while the run is paused: sorting them doubles the cost of a picture."""
        is_disabled = self.play.value and len(self.run.cast) > MOST_CLICKABLE
        self.stage.on_click(None if is_disabled else self._choose)
        self._changed.set()

    def _seek(self, frame: int) -> None:
        self._wanted = int(np.clip(frame, 0, len(self.run) - 1))
        self._reached = float(self.run.time[self._wanted])
        self._changed.set()

    def _redraw(self) -> None:
        self._plotted, self.frame = 0.0, -1
        self._changed.set()

    def _choose(self, body: int) -> None:
        self.tables.filter.value = str(self.run.cast.names[body])
        self._redraw()

    def _loop(self) -> None:
        time, before = self.run.time, monotonic()
        while not self._closed.is_set():
            playing = self.play.value and len(time) > 1
            if not playing:
                self._changed.wait()
            self._changed.clear()
            now = monotonic()
            if playing:
                self._reached += (now - before) * float(self.speed.value)
                if self._reached >= time[-1]:
                    # show the last frame before the restart
                    ended = self.frame == len(time) - 1
                    self._reached = float(time[0] if ended and self.loop.value else time[-1])
                    self.play.value = bool(self.loop.value)
                self._wanted = int(np.clip(np.searchsorted(time, self._reached, "right") - 1, 0, len(time) - 1))
            before = now
            if self._wanted != self.frame:
                self._draw(self._wanted)
            if playing:
                self._closed.wait(max(0.0, 1.0 / RATE - (monotonic() - now)))

    def _draw(self, frame: int) -> None:
        self.frame = frame
        self.drawn.apply(self.stage, self._scale)
        moment = self.run.moment(frame)
        self.stage.show(moment)
        if self.slider.value != frame:
            self.slider.value = frame
        self.clock.content = f"t = {moment.time:.4g} s of {self.run.time[-1]:.4g} s"
        self.tables.show(
            moment.transform,
            lambda: self.run.trajectory.row("bodies/velocity", frame),
            lambda g, what: self.run.joint_series(g, what, frame),
            not self.play.value,
        )
        if not self.play.value or monotonic() - self._plotted > PLOT_PERIOD:
            self._plot(moment.time)

    def _plot(self, now: float) -> None:
        """Update the plots; the line of a coordinate is read when it is selected."""
        chosen = self.plots.chosen.value if self.plots.chosen is not None else ""
        if chosen != self._line[0]:
            _, g, k, c = next(one for one in self._coordinates if one[0] == chosen)
            self._line = chosen, self.run.coordinate_series(g, k, c)
        self._plotted = monotonic()
        self.plots.show(self.run.time, self._energies, now, self._line[1])


def write_page(server, run: Recorded, view: CameraSpec, path: Path, fps: float = 30.0) -> int:
    """Write a replay of at most `fps` frames per second of the run, within the memory limit; returns its number of frames.

    server: a dedicated `viser.ViserServer`."""
    time, most = run.time, max(2, LARGEST_REPLAY // (INSTANCE_BYTES * max(len(run.cast), 1)))
    frames = evenly_spaced(range(len(time)), min(max(1, round(float(time[-1] - time[0]) * fps)) + 1, most))
    stage = _stage(server, run, view, frames)
    stage.show(run.moment(int(frames[0])))
    recording = server.get_scene_serializer()
    for before, frame in itertools.pairwise(frames):
        recording.insert_sleep(float(time[frame] - time[before]))
        stage.show(run.moment(int(frame)))
    # show the last frame for a moment before the replay restarts
    recording.insert_sleep(0.5 if len(frames) > 1 else 0.0)
    title = f"<title>{html.escape(run.cast.name or 'abd')}</title>"
    path.write_text(recording.as_html().replace("<title>Viser</title>", title), encoding="utf-8")
    return len(frames)


def _stage(server, run: Recorded, view: CameraSpec, frames: Sequence[int], covered: float = 0.0) -> Stage:
    """Stage for frames of a run, with contact forces."""
    moments = run.moments(evenly_spaced(frames, CAMERA_FRAMES))
    stage = Stage(server, run.cast, view, moments, covered)
    stage.forces = force_scale(run.cast, moments)
    return stage
