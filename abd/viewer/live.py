"""`LiveView`: a running simulation in the browser.

Pictures take at most `PICTURE_FRACTION` of the stepping thread's time, and none are sent without a browser. The stepping thread
applies user actions (pulls, targets of drives) between two steps.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from time import monotonic, perf_counter, thread_time

import numpy as np

from abd.io.frame import STORED as ENERGIES
from abd.io.run import Observer
from abd.joint_list import JointList
from abd.pictures.cast import Moment, moment_of, of_model
from abd.pictures.symbols import force_scale
from abd.scene.schema.schema import CameraSpec
from abd.viewer.panels import DrawingControls, Plots, Tables
from abd.viewer.stage import PANEL, RATE, Stage

PICTURE_FRACTION = 0.02
"""Largest fraction of the stepping thread's time for pictures."""
PULL_PHASE = 0.3
"""Largest product of the pulling spring's frequency with the body's mass and the step; the spring is explicit."""
PULL_FREQUENCY = 12.0
"""Largest frequency of the pulling spring [rad/s]."""
PACES = {"real time": 1.0, "1/4": 0.25, "1/20": 0.05, "as fast as possible": None}
"""Simulated time per wall-clock time."""
LARGEST_DELAY = 0.1
"""Delay [s] after which a run that is slower than its pace does not catch up."""
SLIDERS = 40
"""Largest number of drives with a slider."""
HISTORY = 4000
"""Largest number of energies stored for the plot; beyond it every other one is removed."""
SCALE_WEIGHT = 0.1
"""Weight of a picture in the running mean of the scale of force arrows."""


class LiveView(Observer):
    """Shows a running simulation on a `viser.ViserServer`, with a pace, pause, single steps and pulling of bodies."""

    def __init__(self, server, view: CameraSpec):
        self.server, self.view, self._has_browser = server, view, False
        self._actions: deque[Callable[[], None]] = deque()
        self._due, self._paid, self._steps_left = 0.0, 0.0, 0
        self._history: list[tuple[float, ...]] = []
        self._pull: _Pull | None = None
        self._scale: float | None = None
        self._now = ""
        self._anchor: tuple[float, float, float] | None = None

    # run ------------------------------------------------------------------------------------------------------------

    def begin(self, sim, first: int, last: int) -> None:
        self.sim = sim
        self.cast, _ = of_model(sim.model)
        self._joints = JointList.of(sim.model.joints)
        # CPU time of the thread; on a GPU the thread sleeps during the step
        self._clock = perf_counter if sim.device.startswith("cuda") else thread_time
        self.stage = Stage(self.server, self.cast, self.view, [self._moment()], PANEL)
        self._controls(last)
        self._show()
        self._paid = 0.0  # the first picture loads libraries, so that its cost does not count
        if not self.server.get_clients():
            print("waiting for a browser", file=sys.stderr, flush=True)

    def waits(self) -> bool:
        """Whether the next step must wait: for the first browser, for the pace, or during a pause."""
        self._has_browser = self._has_browser or bool(self.server.get_clients())
        if not self._has_browser:
            return True
        self._act()
        if self._steps_left > 0:
            self._steps_left -= 1
            return False
        if not self.pause.value:
            return self._is_early()
        self._anchor = None
        if monotonic() >= self._due:
            self._show()
        return True

    def _is_early(self) -> bool:
        """Whether the simulated time is ahead of the wall clock at the selected pace."""
        pace = PACES[self.pace.value]
        if pace is None:
            self._anchor = None
            return False
        now, time = monotonic(), self.sim.time
        if self._anchor is not None and self._anchor[2] == pace:
            ahead = (time - self._anchor[1]) / pace - (now - self._anchor[0])
            if ahead >= -LARGEST_DELAY:
                return ahead > 0.0
        self._anchor = (now, time, pace)
        return False

    def step(self, report, tally) -> None:
        self._history.append((report.time, *(report.energy[name] for name in ENERGIES)))
        if len(self._history) > HISTORY:
            self._history = self._history[::2]
        self._now = f"step {report.step}, t = {report.time:.4g} s, {report.newton_iterations} Newton iterations"
        self._act()
        due = self.pause.value or (monotonic() >= self._due and self._clock() >= self._paid)
        if due and self.server.get_clients():
            self._show()

    def end(self, outcome) -> None:
        self._now = f"the run has ended: t = {self.sim.time:.4g} s"
        self._show()

    def close(self) -> None:
        self._release()

    # picture --------------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        """Send the present state, and schedule the next picture."""
        began = thread_time()
        moment, self.clock.content = self._moment(), self._now
        if self.drawn.forces.value:
            moment = self._with_contacts(moment)
        self.drawn.apply(self.stage, self._scale)
        self.stage.pull = self._pull.ends(moment.transform) if self._pull is not None else None
        self.stage.show(moment)
        self.tables.show(
            moment.transform, lambda: self.sim.model.user_velocity(self.sim.stepper.qd), self._joint_values
        )
        if len(self._history) > 1:
            rows = np.array(self._history)
            self.plots.show(rows[:, 0], dict(zip(ENERGIES, rows[:, 1:].T)), rows[-1, 0])
        self._due, self._paid = monotonic() + 1.0 / RATE, self._clock() + (thread_time() - began) / PICTURE_FRACTION

    def _moment(self) -> Moment:
        return moment_of(self.sim.model, self.cast, self.sim.time, self.sim.stepper.q)

    def _with_contacts(self, moment: Moment) -> Moment:
        """Present state with contacts; the scale of their arrows follows the forces slowly, so that impacts are
        visible.
        """
        now = self.sim.contacts()
        moment = replace(moment, contacts=now)
        scale = force_scale(self.cast, [moment])
        if scale is not None:
            self._scale = scale if self._scale is None else self._scale * (scale / self._scale) ** SCALE_WEIGHT
        return moment

    def _joint_values(self, group: int, what: str) -> np.ndarray:
        read, first = self.sim.joint_readings(), self._joints.starts[group]
        count = len(self.cast.joints[group].child)
        at = read.reader.starts if what in ("coordinates", "rates") else range(len(self._joints) + 1)
        return getattr(read, what)[at[first] : at[first + count]].reshape(count, -1)

    # controls -------------------------------------------------------------------------------------------------------

    def _controls(self, last: int) -> None:
        gui = self.server.gui
        gui.configure_theme(show_logo=False, show_share_button=False, control_width="large")
        with gui.add_folder(f"{self.cast.name}: {len(self.cast)} bodies, {last} steps"):
            self.pause = gui.add_checkbox("pause", False)
            self.one = gui.add_button("one step")
            self.pace = gui.add_dropdown("speed", tuple(PACES), initial_value="real time")
            self.clock = gui.add_markdown("")
            hint = "read for every picture; no cost while it is off"
            self.drawn = DrawingControls(gui, self.cast, "", False, hint=hint)
            gui.add_markdown("Drag a body with the mouse and shift to pull it by a spring.")
            self.strength = gui.add_slider("strength of the spring", 0.1, 10.0, 0.1, 1.0)
        tabs = gui.add_tab_group()
        self.tables = Tables(self.server, tabs, self.cast)
        self.plots = Plots(self.server, tabs, ENERGIES, [])
        self._drives(tabs)
        self.one.on_click(lambda _: self._actions.append(self._one_step))
        self.drawn.follow.on_update(
            lambda _: self._actions.append(lambda: self.stage.follow(self.drawn.follow.value, self._moment()))
        )
        self.stage.on_click(self._choose)
        for k, (handle, members) in self.stage.batches.items():
            if (self.cast.kind[members] == "dynamic").any():
                self._make_draggable(k, handle)

    def _make_draggable(self, shape: int, handle) -> None:
        async def dragged(event) -> None:
            body = self.stage.body_at(shape, event)
            start, end = np.array(event.start_position), np.array(event.end_position)
            act = {"start": lambda: self._grab(body, start, end), "update": lambda: self._move_target(end)}
            self._actions.append(act.get(event.phase, self._release))

        handle.on_drag("left", modifier="shift")(dragged)

    def _drives(self, tabs) -> None:
        """Add a slider for the target of each drive."""
        every = ((joint.name, one) for joint in self._joints for one in joint.coordinates)
        driven = list(islice((pair for pair in every if pair[1].drive and pair[1].drive.mode != "brake"), SLIDERS))
        if driven:
            with tabs.add_tab("Drives"):
                for joint, settings in driven:
                    self._slider(joint, settings)

    def _slider(self, joint: str, settings) -> None:
        coordinate = self.sim.joints[joint].coordinate(settings.name)
        rotary, mode = coordinate.motion_type == "rotary", settings.drive.mode
        low, high, unit = _bounds(settings, rotary)
        factor = np.degrees(1.0) if rotary and mode != "force" else 1.0
        now = float(np.clip(factor * settings.drive.target(self.sim.time), low, high))
        name, hint = f"{joint}.{settings.name} [{unit}]", f"{mode} drive; moving the slider overrides the scene"
        slider = self.server.gui.add_slider(name, low, high, (high - low) / 200.0, now, hint=hint)

        aim = coordinate.set_rate if mode == "velocity" else coordinate.set_target
        slider.on_update(lambda _: self._actions.append(lambda: aim(float(slider.value) / factor)))

    # user actions ---------------------------------------------------------------------------------------------------

    def _act(self) -> None:
        """Apply the actions since the last step."""
        while self._actions:
            self._actions.popleft()()

    def _one_step(self) -> None:
        self.pause.value = True
        self._steps_left += 1

    def _choose(self, body: int) -> None:
        self.tables.filter.value = str(self.cast.names[body])

    def _grab(self, body: int, point: np.ndarray, target: np.ndarray) -> None:
        self._release()
        if self.cast.kind[body] == "dynamic":
            self._pull = _Pull(self.sim, body, point, target, float(self.strength.value))

    def _move_target(self, target: np.ndarray) -> None:
        if self._pull is not None:
            self._pull.target = target

    def _release(self) -> None:
        if self._pull is not None:
            self._pull.load.remove()
            self._pull = None


class _Pull:
    """Spring ``f = k (x_target - x) - c v`` between a point of a body and a target in the world, with k = m w^2 and c = m w.

    It is explicit, which is stable for w h well below 2."""

    def __init__(self, sim, body: int, point: np.ndarray, target: np.ndarray, strength: float):
        view = sim.bodies[sim.model.bodies.names[body]]
        self.body, self.target = body, target
        self.local = np.linalg.inv(view.transform) @ np.append(point, 1.0)
        w = min(PULL_FREQUENCY * np.sqrt(strength), PULL_PHASE / sim.model.settings.dt)
        self.stiffness, self.damping = view.mass * w * w, view.mass * w
        self.load = view.apply_force(self._force, at=self.local[:3])

    def _force(self, time: float, view) -> np.ndarray:
        place, speed = (view.transform @ self.local)[:3], (view.velocity @ self.local)[:3]
        return self.stiffness * (self.target - place) - self.damping * speed

    def ends(self, transform: np.ndarray) -> np.ndarray:
        """(2, 3) the point and the target."""
        return np.stack([(transform[self.body] @ self.local)[:3], self.target])


def _bounds(settings, rotary: bool) -> tuple[float, float, str]:
    """Lower and upper value of a slider, and its unit."""
    mode = settings.drive.mode
    if mode == "force":
        most = settings.drive.effort if np.isfinite(settings.drive.effort) else 100.0
        return -most, most, "N m" if rotary else "N"
    if mode == "velocity":
        most = settings.velocity_limit if np.isfinite(settings.velocity_limit) else (4.0 * np.pi if rotary else 2.0)
        return (-np.degrees(most), np.degrees(most), "deg/s") if rotary else (-most, most, "m/s")
    far = np.pi if rotary else 1.0
    low = settings.lower if np.isfinite(settings.lower) else min(settings.initial, settings.upper) - far
    high = settings.upper if np.isfinite(settings.upper) else max(settings.initial, low) + far
    return (np.degrees(low), np.degrees(high), "deg") if rotary else (low, high, "m")
