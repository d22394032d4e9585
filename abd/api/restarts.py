"""Start of a simulation, and continuation from another state: checkpoints, resets, poses and velocities that were set."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from abd.api.protocol import RunningSimulation
from abd.api.views import finite
from abd.backends.device.exchange import host_rows
from abd.by_bodies import PerBody
from abd.contact.pair_law import PairParameters
from abd.energies import Work
from abd.io.checkpoint import CheckpointError
from abd.joint_list import JointList
from abd.joints.closure.assembly import Assembly
from abd.joints.closure.coordinate_setter import CoordinateSetter
from abd.joints.rows.change import recount_memory, settings_of
from abd.joints.rows.table import values
from abd.model import WORLD, Kind, Model
from abd.scene.overlaps.starts import free_states
from abd.scene.schema.attributes import KnownAttributes
from abd.scene.schema.values import LARGEST
from abd.state import BodyHistory, State, merged, read_tables, saved_tables, without
from abd.tables import arrays_of

if TYPE_CHECKING:
    from abd.scene.scene import Scene
    from abd.scene.schema.schema import SceneSpec

_log = logging.getLogger(__name__)
BARRIER_CLEARANCE = 1e-6
"""Gap [m or rad] of a coordinate that is set to a range limit with a barrier, which is infinite at zero gap."""

# start ----------------------------------------------------------------------------------------------------------------


def started(scene: Scene | SceneSpec | str | Path) -> tuple[Scene, Model]:
    """Return the scene, and its compiled model with an intersection-free initial state."""
    from abd.scene.scene import Scene, load

    if isinstance(scene, str | Path):
        scene = load(scene)
    if not isinstance(scene, Scene):
        scene = Scene.from_spec(scene)
    return scene, scene.started()


def own(model: Model) -> Model:
    """Return the model with copies of joints, loads, friction and gravity.

    The arrays are read-only; methods of the simulation write to their bases.
    """
    bodies = replace(model.bodies, force=_read_only(model.bodies.force), torque=_read_only(model.bodies.torque))
    settings = replace(model.settings, gravity=_read_only(model.settings.gravity))
    materials = replace(model.materials, mu=_read_only(model.materials.mu))
    joints = JointList.of(model.joints).copy()
    own_parts = {"joints": joints, "couplings": list(model.couplings), "motions": dict(model.motions)}
    return replace(model, bodies=bodies, settings=settings, materials=materials, **own_parts)


def _read_only(values: np.ndarray) -> np.ndarray:
    """Return a read-only view of a copy; the copy is its base."""
    view = np.array(values, dtype=float).view()
    view.flags.writeable = False
    return view


class StateChanges(KnownAttributes):
    """State of a simulation that is set, saved and restored between steps; base of `Simulation`."""

    __slots__ = ()

    def set_coordinates(self, values: Mapping[tuple[str | int, str | int], float]) -> Assembly:
        """Set coordinates of several joints outside of a step, ``{("elbow", "theta"): 0.5}`` [m or rad].

        The freer side of each joint moves with its subtree, and loops are closed; see `JointView.set_coordinate`.

        Raises:
            SceneError: a joint or coordinate is unknown, or bodies would overlap; no body is moved.
        """
        setter = CoordinateSetter(self.model, self.stepper.q, self.coordinates)
        for (joint, coordinate), value in values.items():
            setter.request(joint, coordinate, value)
        result = setter.solve()
        if result.converged and (at_ends := _at_ends(self, result)):
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
        q = separate(self, finite(q, state.q.shape, "q"))
        old, new = (one[:, 3:].reshape(-1, 3, 3) for one in (state.q, q))
        turning = state.qd[:, 3:].reshape(-1, 3, 3) @ np.linalg.inv(old)
        qd = np.concatenate([state.qd[:, :3], (turning @ new).reshape(-1, 9)], axis=1)
        before = self.coordinates
        self._joint_coordinates.values = self.reader.coordinates(q, before if coordinates is None else coordinates)
        counted = self.reader.table.child[self.coordinates != before]
        qd = np.where((q == state.q).all(axis=1, keepdims=True), state.qd, qd)  # without the rounding of the two products
        restart(self, state, q.copy(), qd, counted[counted != WORLD])

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
        restart(self, state, state.q, np.where(dynamic[:, None], given, state.qd))

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
            reset_worlds(self, worlds)
            return
        self.loads.keep(lambda load: False)
        if self._reset_checkpoint is not None:
            self.restore(self._reset_checkpoint)
        else:
            if self._switches.read(self._changes_of_scene["switches"]):
                self._switches.apply()
            restore_changes(self, self._changes_of_scene)
            start = self.model.bodies
            self.stepper.reset(State(q=start.q.copy(), qd=start.qd.copy()))
            self._joint_coordinates.values = self.reader.coordinates(start.q)
        for one in self.sensors.values():
            one.restart()

    def checkpoint(self) -> dict[str, Any]:
        """Return arrays and numbers from which a simulation continues bitwise."""
        state, worlds = self.stepper.state(), self.stepper.worlds
        of_worlds = {"dt": worlds.lengths, "time": state.time, "previous_h": state.previous_h}
        return {
            "q": state.q,
            "qd": state.qd,
            "previous_q": state.previous_q,
            "previous_qd": state.previous_qd,
            "time": worlds.clock,
            "step": state.step,
            "worlds": {name: worlds.world_values(one) for name, one in of_worlds.items()} | {"number": worlds.numbers},
            "tables": saved_tables(state),
            "coordinates": self.coordinates.copy(),
            **changes_of(self),
            "work": asdict(self.stepper.work),
            "energy": self.stepper.energy,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from a checkpoint. It does not contain sensors and function loads; the present ones stay.

        Raises:
            SceneError: bodies overlap there; the state is unchanged. Touching bodies are separated, with a log message.
            CheckpointError: the checkpoint does not match this scene, or contains numbers that are not finite.
        """
        try:
            _check(self, saved)
            _restore(self, saved)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise CheckpointError(f"the checkpoint does not fit this scene, or is damaged ({reason})") from error


# checkpoints ------------------------------------------------------------------------------------------------------------


def changes_of(sim: RunningSimulation) -> dict[str, Any]:
    """Return all changes of a running simulation, by names where they belong to single bodies and joints."""
    return {
        "joints": sim.control.saved() | {"springs": sim._springs.saved()},
        "loads": sim.loads.saved(),
        "force": sim.loads.force.copy(),
        "torque": sim.loads.torque.copy(),
        "moves": sim._moves.saved(),
        "switches": sim._switches.saved(),
        "gravity": sim.gravity,
        "friction": sim.model.materials.mu.copy(),
    }


def restore_changes(sim: RunningSimulation, saved: dict[str, Any]) -> None:
    """Restore what `changes_of` returned, except the switches, before the state."""
    sim._moves.restore(saved["moves"])
    restore_joints(sim, saved["joints"])
    sim.gravity = saved["gravity"]
    if not np.array_equal(saved["friction"], sim.model.materials.mu):
        sim.set_friction(saved["friction"])
    sim.loads.restore(saved["loads"], saved["force"], saved["torque"])


def restore_joints(sim: RunningSimulation, saved: dict[str, Any]) -> None:
    """Restore the joints and springs of a checkpoint."""
    sim.control.restore(saved, sim._springs.restore(saved["springs"]))


def _check(sim: RunningSimulation, saved: dict[str, Any]) -> None:
    """Raise `ValueError` if shapes do not match the scene, or numbers are not finite or out of range."""
    if "tables" not in saved:
        raise ValueError("it was written by another release: run the scene from its start")
    n = len(sim.model.bodies)
    shapes = dict.fromkeys(("q", "qd", "previous_q", "previous_qd"), (n, 12)) | dict.fromkeys(("force", "torque"), (n, 3))
    # the checkpoint defines the number of coordinates, since its joints are restored later
    shapes |= {"coordinates": np.shape(saved["coordinates"])[:1], "gravity": (3,), "friction": sim.model.materials.mu.shape}
    shapes |= dict.fromkeys(("time", "step"), ())
    for name, shape in shapes.items():
        finite(saved[name], shape, name)
    if saved["time"] < 0.0 or saved["step"] < 0:
        raise ValueError(f"time {saved['time']} or step {saved['step']} is negative")
    for table, columns in saved["tables"].items():
        for name, value in columns.items():
            if np.asarray(value).dtype.kind == "f" and not (np.abs(value) <= LARGEST).all():
                raise ValueError(f"{name} of {table} has numbers that are not finite, or beyond {LARGEST:g}")
    for name, value in arrays_of(BodyHistory.none(n)).items():
        if (found := np.shape(saved["tables"]["bodies"][name])) != value.shape:
            raise ValueError(f"{name} of bodies has the shape {found}, not {value.shape}")


def _restore(sim: RunningSimulation, saved: dict[str, Any]) -> None:
    arrays = {name: np.asarray(saved[name]) for name in ("q", "qd", "previous_q", "previous_qd")}
    energy, times = None if saved["energy"] is None else float(saved["energy"]), _times(sim, saved)
    with sim._switches.tried():
        switched = sim._switches.read(saved["switches"])
        free_q = separate(sim, arrays["q"])
    if switched:
        sim._switches.apply()
    if free_q is not arrays["q"]:
        arrays["previous_q"] = arrays["previous_q"] + (free_q - arrays["q"])
        arrays["q"], energy = free_q, None
    restore_changes(sim, saved)
    sim.stepper.worlds.clock, sim.stepper.worlds.lengths = float(saved["time"]), times.pop("dt")
    sim.stepper.restore(State(step=int(saved["step"]), **read_tables(saved["tables"]), **arrays, **times))
    sim._joint_coordinates.values = np.asarray(saved["coordinates"]).copy()
    sim.stepper.work = Work(**{name: float(work) for name, work in saved["work"].items()})
    sim.stepper.energy = energy


def _times(sim: RunningSimulation, saved: dict[str, Any]) -> dict[str, PerBody]:
    """Return time steps, times and previous substep lengths [s] by body; new worlds get the scene's step and the saved clock."""
    worlds, clock = sim.stepper.worlds, float(saved["time"])
    out = {"dt": worlds.world_values(worlds.lengths), "time": np.full(len(worlds.numbers), clock)}
    known = saved["worlds"]
    out["previous_h"] = np.full(len(worlds.numbers), float(np.max(known["previous_h"])))
    _, mine, theirs = np.intersect1d(worlds.numbers, known["number"], return_indices=True)
    for name, times in out.items():
        times[mine] = np.asarray(known[name])[theirs]
        if not ((times >= 0.0) & (times <= LARGEST)).all() or (name == "dt" and not times.all()):
            raise ValueError(f"{name} of the worlds must be {'positive' if name == 'dt' else 'not negative'}, not {times} s")
    return {name: worlds.of_bodies(times) for name, times in out.items()}


# given states and resets of worlds --------------------------------------------------------------------------------------


def _at_ends(sim: RunningSimulation, result: Assembly) -> dict[tuple[int | str, int | str], float]:
    """Return coordinates at a range limit with a barrier, with values `BARRIER_CLEARANCE` inside.

    Coordinates that still return into their range continue to do so, unless they are requested.
    """
    out: dict[tuple[int | str, int | str], float] = {}
    found = zip(result.coordinates, result.values.tolist(), sim.coordinates.tolist(), result.requested, strict=True)
    for (index, name), value, before, is_requested in found:
        joint = sim.model.joints[index]
        one = settings_of(joint, name)
        inside = float(np.clip(value, one.lower + BARRIER_CLEARANCE, one.upper - BARRIER_CLEARANCE))
        has_barrier = joint.active and one.limit == "barrier" and one.upper - one.lower > 4.0 * BARRIER_CLEARANCE
        if has_barrier and inside != value and (is_requested or one.lower < before < one.upper):
            out[index, name] = inside
    return out


def reset_worlds(
    sim: RunningSimulation, worlds: int | Iterable[int], start_q: np.ndarray | None = None, start_qd: np.ndarray | None = None
) -> None:
    """See `Simulation.reset`, and `Worlds.reset` for given states (n, 12)."""
    bodies, stepper = sim.model.bodies, sim.stepper
    if sim._reset_checkpoint is not None:
        raise ValueError("single worlds of a recompiled simulation cannot be reset: call reset() for all worlds")
    chosen = np.isin(bodies.world, selected_worlds(worlds, np.unique(bodies.world)))
    now, coordinates, kept = stepper.state(), sim.coordinates, (stepper.work, stepper.initial_contacts)
    start_q, start_qd = (own if one is None else one for own, one in ((bodies.q, start_q), (bodies.qd, start_qd)))
    q, qd = (np.where(chosen[:, None], first, last) for first, last in ((start_q, now.q), (start_qd, now.qd)))
    collides = sim.backend.touch.may_collide
    if collides and (start_q is not bodies.q or sim._switches.present(sim.model) is not sim.model):
        q = separate(sim, q, chosen)
    stepper.joints.follow_poses(q)
    fresh = stepper.fresh(q, qd, stepper.joints.fresh_memory(q, qd, stepper.memory, chosen))
    sim._moves.remove(chosen)
    both = merged(stepper.joints, now, fresh, chosen)
    time, previous_h = (np.where(chosen, 0.0, one) for one in (now.time, now.previous_h))
    both = replace(both, time=time, previous_h=previous_h)
    stepper.stop(stepper.stopped & ~chosen)
    stepper.restore(replace(both, bodies=replace(both.bodies, stopped=stepper.stopped)))
    if collides:
        stepper.start_contacts(np.flatnonzero(chosen))
    stepper.work, stepper.initial_contacts = kept
    is_reset, table = sim.reader.table.of_bodies(chosen)
    coordinates = coordinates.copy()
    coordinates[is_reset] = values(table, stepper.q, sim.reader.initial[is_reset])
    sim._joint_coordinates.values = coordinates


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


def separate(sim: RunningSimulation, q: np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
    """Return the states (n, 12) with touching bodies separated; without touching bodies, return `q` itself.

    Args:
        among: (n,) bool, bodies to check; by default all.

    Raises:
        SceneError: bodies overlap.
    """
    model = sim._switches.present(sim.model)
    if among is not None:
        mesh, plane = np.where(among, model.bodies.mesh, -1), np.where(among[:, None], model.bodies.plane, np.nan)
        model = replace(model, bodies=replace(model.bodies, mesh=mesh, plane=plane))
    free_q, notes = free_states(model, q, "in the given state")
    for note in notes:
        _log.warning(note)
    return free_q


def restart(
    sim: RunningSimulation, state: State, q: np.ndarray, qd: np.ndarray, further: np.ndarray | tuple[int, ...] = ()
) -> None:
    """Restart the integrator from q, qd (n, 12) for the bodies that change, `further` ones (indices), and all joined to them."""
    stepper, system, articulations = sim.stepper, sim.stepper.joints, sim.stepper.articulations
    moved = (q != state.q).any(axis=1)
    restarted = moved | (qd != state.qd).any(axis=1)
    restarted[list(further)] = True
    restarted |= articulations.containing(restarted)
    all_restart = restarted[articulations.dynamic].all()
    restarted |= all_restart
    system.follow_poses(q)
    fresh = stepper.fresh(q, qd, recount_memory(system, (sim.reader.table, sim.coordinates), q, qd), state.time)
    fresh = replace(
        fresh, previous_h=state.previous_h, pairs=without(state.pairs, moved), anchors=without(state.anchors, moved),
        bodies=replace(fresh.bodies, constrained=state.bodies.constrained, stride=state.bodies.stride),
    )  # fmt: skip
    both = merged(system, state, fresh, restarted)
    stepper.restore(replace(both, previous_h=0.0) if all_restart else both)
    if moved.any() and sim.backend.touch.may_collide:
        stepper.start_contacts(np.flatnonzero(moved))
    sim.control.restart(restarted, bool(moved.any()))


def without_contacts(q: np.ndarray, qd: np.ndarray) -> State:
    """Return a state (n, 12) with an empty list of contact pairs, so that contacts are not searched."""
    return State(q=q.copy(), qd=qd.copy(), pairs=PairParameters())
