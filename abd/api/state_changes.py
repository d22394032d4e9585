"""Continuation of a simulation from another state: resets, and poses, velocities and coordinates that are set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from abd.api.sensors import Sensor
from abd.api.simulation_base import SimulationBase
from abd.api.views import finite
from abd.backends.device.exchange import host_rows
from abd.joints.closure.assembly import Assembly
from abd.joints.closure.coordinate_setter import CoordinateSetter
from abd.joints.rows.change import recount_memory, settings_of
from abd.joints.rows.table import values
from abd.model import WORLD, Kind
from abd.state import State, merged, without

BARRIER_CLEARANCE = 1e-6
"""Gap [m or rad] of a coordinate that is set to a range limit with a barrier, which is infinite at zero gap."""


class StateChanges(SimulationBase):
    """State of a simulation that is set between steps; base of `Simulation`."""

    sensors: dict[str, Sensor]
    __slots__ = ("sensors",)

    def set_coordinates(self, values: Mapping[tuple[str | int, str | int], float]) -> Assembly:
        """Set coordinates of several joints outside of a step, ``{("elbow", "theta"): 0.5}`` [m or rad].

        The freer side of each joint moves with its subtree, and loops are closed; see `JointView.set_coordinate`.

        Raises:
            SceneError: a joint or coordinate is unknown, or bodies would overlap; no body is moved.
        """
        setter = CoordinateSetter(self.model, self.stepper.q, self.coordinates)
        result = setter.set_coordinates(values)
        if result.converged and (at_ends := self._at_ends(result)):
            result = replace(setter.set_coordinates(at_ends), status=result.status, requested=result.requested)
        if result.converged:
            self.move_to(result.q, result.values)
        return result

    def move_to(self, q: np.ndarray, coordinates: np.ndarray | None = None) -> None:
        """Set the poses of all bodies between steps; linear and angular velocities stay.

        The integrator restarts for the bodies that change and those joined to them. Where joints are open then, or velocities
        violate them, the next step closes them as in an inelastic impact, and logs a warning for open exact joints.

        Args:
            q: (n, 12) states; coordinates: (c,) values near which angles are counted there.

        Raises:
            SceneError: bodies overlap there; no body is moved. Touching bodies are separated, with a log message.
            ValueError: another shape, or a value that is not finite.
        """
        state = self.stepper.state()
        q = self._switches.separate(finite(q, state.q.shape, "q"))
        old, new = (one[:, 3:].reshape(-1, 3, 3) for one in (state.q, q))
        turning = state.qd[:, 3:].reshape(-1, 3, 3) @ np.linalg.inv(old)
        qd = np.concatenate([state.qd[:, :3], (turning @ new).reshape(-1, 9)], axis=1)
        before = self.coordinates
        self._joint_coordinates.values = self.reader.coordinates(q, before if coordinates is None else coordinates)
        counted = self.reader.table.child[self.coordinates != before]
        qd = np.where((q == state.q).all(axis=1, keepdims=True), state.qd, qd)  # without the rounding of the two products
        self._restart(state, q.copy(), qd, counted[counted != WORLD])

    def set_velocities(self, qd: Any) -> None:
        """Set the velocities of the dynamic bodies between steps; static and prescribed bodies keep theirs.

        The integrator restarts, as in the first step, for the bodies that change and those joined to them. The energy balance
        does not include the change of kinetic energy.
        Velocities that violate joints are projected by the next step as in an inelastic impact.

        Args:
            qd: (n, 12) float64 time derivatives of `state.q` [m/s, 1/s], for instance `state.qd` after changes: an array
                of numpy, or of Warp, cupy, torch or jax on the host or on the simulation's device. It is copied through
                the host.

        Raises:
            ValueError: another shape, another type, a value that is not finite, or an array on another device.
        """
        state = self.stepper.state()
        given = host_rows(qd, state.qd.shape, "velocities", self.device)
        dynamic = self.model.bodies.kind == Kind.DYNAMIC
        self._restart(state, state.q, np.where(dynamic[:, None], given, state.qd))

    def reset(self, worlds: int | Iterable[int] | None = None) -> None:
        """Return to the initial state; the following steps are bitwise equal to those of a new simulation.

        Joints, friction and gravity return to the values of the scene, and added loads are removed. Sensors stay and restart.
        A `recompiled` simulation returns to the time of its recompilation.

        With `worlds` (numbers as in `Scene.replicate`, or a mask of all), only these worlds return: their bodies, the history of
        bodies and joints, and their time, which prescribed motions and targets follow. Other worlds continue unchanged.
        `time`, manual changes, broken joints, loads and sensors stay too.

        Raises:
            ValueError: a world is unknown, or the simulation was recompiled.
            SceneError: enabled bodies overlap in the initial state; the simulation is unchanged.
        """
        if worlds is not None:
            self._reset_worlds(worlds)
            return
        self.loads.keep(lambda load: False)
        if self._reset_checkpoint is not None:
            self.restore(self._reset_checkpoint)
        else:
            self._switches.assign(self._switches.read(self._changes_of_scene["switches"]))
            self._restore_changes(self._changes_of_scene)
            start = self.model.bodies
            self.stepper.reset(State(q=start.q.copy(), qd=start.qd.copy()))
            self._joint_coordinates.values = self.reader.coordinates(start.q)
        for one in self.sensors.values():
            one.restart()

    # parts ------------------------------------------------------------------------------------------------------------

    def _at_ends(self, result: Assembly) -> dict[tuple[int | str, int | str], float]:
        """Return coordinates at a range limit with a barrier, with values `BARRIER_CLEARANCE` inside.

        Coordinates that still return into their range continue to do so, unless they are requested.
        """
        out: dict[tuple[int | str, int | str], float] = {}
        found = zip(result.coordinates, result.values.tolist(), self.coordinates.tolist(), result.requested, strict=True)
        for (index, name), value, before, is_requested in found:
            joint = self.model.joints[index]
            one = settings_of(joint, name)
            inside = float(np.clip(value, one.lower + BARRIER_CLEARANCE, one.upper - BARRIER_CLEARANCE))
            has_barrier = joint.active and one.limit == "barrier" and one.upper - one.lower > 4.0 * BARRIER_CLEARANCE
            if has_barrier and inside != value and (is_requested or one.lower < before < one.upper):
                out[index, name] = inside
        return out

    def _reset_worlds(
        self, worlds: int | Iterable[int], start_q: np.ndarray | None = None, start_qd: np.ndarray | None = None
    ) -> None:
        """See `reset`, and `Worlds.reset` for given states (n, 12)."""
        bodies, stepper, system = self.model.bodies, self.stepper, self.backend.system
        if self._reset_checkpoint is not None:
            raise ValueError("single worlds of a recompiled simulation cannot be reset: call reset() for all worlds")
        chosen = np.isin(bodies.world, selected_worlds(worlds, np.unique(bodies.world)))
        now, coordinates = stepper.state(), self.coordinates.copy()
        given = ((start_q, bodies.q, now.q), (start_qd, bodies.qd, now.qd))
        q, qd = (np.where(chosen[:, None], own if one is None else one, last) for one, own, last in given)
        collides = self.backend.touch.may_collide
        if collides and (start_q is not None or self._switches.present() is not self.model):
            q = self._switches.separate(q, among=chosen)
        system.follow_poses(q)
        self._moves.remove(chosen)
        both = merged(system, now, stepper.fresh(q, qd, system.fresh_memory(q, qd, stepper.memory, chosen)), chosen)
        time, previous_h = (np.where(chosen, 0.0, one) for one in (now.time, now.previous_h))
        history = replace(both.bodies, stopped=stepper.stopped & ~chosen)
        stepper.restore(replace(both, time=time, previous_h=previous_h, bodies=history))
        if collides:
            stepper.start_contacts(np.flatnonzero(chosen))
        is_reset, table = self.reader.table.of_bodies(chosen)
        coordinates[is_reset] = values(table, stepper.q, self.reader.initial[is_reset])
        self._joint_coordinates.values = coordinates

    def _restart(self, state: State, q: np.ndarray, qd: np.ndarray, further: np.ndarray | tuple[int, ...] = ()) -> None:
        """Restart the integrator from q, qd (n, 12) for the bodies that differ from a state, `further` ones (indices), and all
        joined to them."""
        stepper, system, articulations = self.stepper, self.backend.system, self.stepper.articulations
        moved = (q != state.q).any(axis=1)
        restarted = moved | (qd != state.qd).any(axis=1)
        restarted[list(further)] = True
        restarted |= articulations.containing(restarted)
        all_restart = restarted[articulations.dynamic].all()
        restarted |= all_restart
        system.follow_poses(q)
        fresh = stepper.fresh(q, qd, recount_memory(system, (self.reader.table, self.coordinates), q, qd), state.time)
        fresh = replace(
            fresh, previous_h=state.previous_h, pairs=without(state.pairs, moved), anchors=without(state.anchors, moved),
            bodies=replace(fresh.bodies, constrained=state.bodies.constrained, stride=state.bodies.stride),
        )  # fmt: skip
        both = merged(system, state, fresh, restarted)
        stepper.restore(replace(both, previous_h=0.0) if all_restart else both)
        if moved.any() and self.backend.touch.may_collide:
            stepper.start_contacts(np.flatnonzero(moved))
        self.control.restart(restarted, bool(moved.any()))


def selected_worlds(worlds: int | Iterable[int], known: np.ndarray) -> np.ndarray:
    """Return the numbers of worlds that are given as numbers or as a mask of the `known` worlds; check that they are known."""
    selected = np.atleast_1d(np.asarray(worlds if np.ndim(worlds) == 0 else list(worlds)))
    if selected.dtype == bool and selected.shape == known.shape:
        return known[selected]
    if len(selected) and selected.dtype.kind not in "iu":
        raise ValueError(f"worlds must be numbers, or a mask of all {len(known)}, not {selected.dtype} {selected.shape}")
    if unknown := sorted(set(selected.tolist()) - set(known.tolist())):
        raise ValueError(f"world {unknown[0]} is unknown; the scene has {len(known)} worlds")
    return selected
