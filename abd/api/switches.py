"""Disabling and enabling of bodies and of contact pairs while a simulation runs.

A disabled body rests in its pose without forces, contacts and joints. The bodies of a disabled pair pass through each
other. A pair that a contact filter or a joint of the scene excludes can be enabled. Enabled bodies must not overlap. Their
contacts start in balance, as at the start of a scene.

Bodies whose joint broke collide from the next step on, unless a filter or another joint excludes the pair. If they overlap,
they pass through each other until they are separated.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from abd.api.coordinates import Coordinates
from abd.api.joint_control import JointControl
from abd.by_bodies import of_body
from abd.contact.pair_rows import are_among, bodies_of, distinct
from abd.contact.pair_rows import keys as keys_of
from abd.errors import SceneError
from abd.joint_list import JointList, excluded_pairs
from abd.joint_model import Joint
from abd.model import WORLD, Kind, Model, affine_state
from abd.names import Names
from abd.scene.overlaps.intersections import MOST_DEEP, Surveyor
from abd.scene.overlaps.separation import overlap_problems
from abd.scene.overlaps.starts import free_states
from abd.state import State
from abd.step.step import Stepper

_log = logging.getLogger(__name__)


class PairView:
    """A pair of bodies and its contact switch.

    Attributes:
        bodies: their names.
    """

    __slots__ = ("_model", "_pair", "_switches", "bodies")

    def __init__(self, model: Model, switches: Switches, first: int, second: int):
        names = model.bodies.names
        if first == second:
            raise ValueError(f"a pair must have two different bodies, not '{names[first]}' twice")
        self._model, self._switches, self._pair = model, switches, (min(first, second), max(first, second))
        self.bodies: tuple[str, str] = (names[first], names[second])

    def __repr__(self) -> str:
        return f"<pair '{self.bodies[0]}', '{self.bodies[1]}': {'collides' if self.enabled else 'passes through'}>"

    @property
    def enabled(self) -> bool:
        """Whether the bodies collide while both are enabled; can be set between steps.

        Raises:
            ValueError: the pair can never collide: no dynamic body, one group, different worlds, disabled material pair or no
                surface. SceneError: the bodies overlap; the pair is unchanged.
        """
        return not obstacle(self._model, *self._pair) and not self._switches.excludes(*self._pair)

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        if reason := obstacle(self._model, *self._pair):
            if enabled:
                raise ValueError(f"'{self.bodies[0]}' and '{self.bodies[1]}' cannot collide: {reason}")
            return
        self._switches.set_pair(*self._pair, bool(enabled))


def obstacle(model: Model, first: int, second: int) -> str:
    """Return the reason why two bodies can never collide, or an empty string."""
    bodies, both = model.bodies, [first, second]
    flat = np.isfinite(bodies.plane[both]).all(axis=1)
    group, world, material = bodies.group[both], bodies.world[both], bodies.material[both]
    if not (bodies.kind[both] == Kind.DYNAMIC).any():
        return "neither body is dynamic"
    if ((bodies.mesh[both] < 0) & ~flat).any():
        return "one body has no surface"
    if world[0] != world[1]:
        return "they belong to different worlds"
    if group[0] == group[1] >= 0:
        return f"both belong to group {group[0]}"
    return "" if model.materials.enabled[tuple(material)] else "contact of their materials is disabled ([[material_pair]])"


@dataclass(frozen=True)
class SwitchState:
    """Differences from the scene.

    Attributes:
        off: (n,) bool, disabled bodies; suspended: names of joints and springs that are inactive because of a disabled body.
        pairs: whether a pair collides, by key, for the pairs that differ from the scene.
        parting: (k,) keys of overlapping pairs that collide as soon as they are separated.
    """

    off: np.ndarray
    suspended: frozenset[str] = frozenset()
    pairs: dict[int, bool] = field(default_factory=dict)
    parting: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


class Switches:
    """Disabled bodies and contact pairs of one simulation.

    Attributes:
        now: present differences from the scene.
    """

    def __init__(self, model: Model, stepper: Stepper, control: JointControl, coordinates: Coordinates):
        self._model, self._stepper, self._control, self._coordinates = model, stepper, control, coordinates
        self.now = SwitchState(np.zeros(len(model.bodies), dtype=bool))
        self._warned: set[int] = set()

    @property
    def off(self) -> np.ndarray:
        """(n,) bool, disabled bodies."""
        return self.now.off

    @cached_property
    def _scene_pairs(self) -> np.ndarray:
        """(k,) keys of the pairs that do not collide in the scene (up to millions)."""
        return _keys(excluded_pairs(self._model), len(self.off))

    def _excluded(self, now: SwitchState) -> np.ndarray:
        """Return keys (k,) of the pairs that do not collide."""
        if not now.pairs:
            return self._scene_pairs
        keys, collide = np.array(list(now.pairs), dtype=np.int64), np.array(list(now.pairs.values()))
        return np.union1d(np.setdiff1d(self._scene_pairs, keys[collide]), keys[~collide])

    def excludes(self, first: int, second: int) -> bool:
        """Whether the pair first < second is excluded from contact."""
        key = first * len(self.off) + second
        return not self.now.pairs.get(key, not are_among(np.array([key]), self._scene_pairs)[0])

    def present(self, now: SwitchState | None = None, parting: np.ndarray | tuple = ()) -> Model:
        """Return the model for overlap tests: disabled bodies have no surface, and the pairs `parting` (k,) collide."""
        model, now = self._model, self.now if now is None else now
        if not now.off.any() and not now.pairs and not len(parting):
            return model
        bodies, pairs = model.bodies, bodies_of(np.setdiff1d(self._excluded(now), parting), len(now.off))
        mesh, plane = np.where(now.off, -1, bodies.mesh), np.where(now.off[:, None], np.nan, bodies.plane)
        return replace(model, excluded_pairs=pairs, bodies=replace(bodies, mesh=mesh, plane=plane))

    def separate(self, q: np.ndarray, now: SwitchState | None = None, among: np.ndarray | None = None) -> np.ndarray:
        """Return the states (n, 12) with touching bodies separated; without touching bodies, return `q` itself.

        Args:
            now: switches, by default the present ones; among: (n,) bool, bodies to check, by default all.

        Raises:
            SceneError: bodies overlap.
        """
        model = self.present(now)
        if among is not None:
            mesh, plane = np.where(among, model.bodies.mesh, -1), np.where(among[:, None], model.bodies.plane, np.nan)
            model = replace(model, bodies=replace(model.bodies, mesh=mesh, plane=plane))
        free_q, notes = free_states(model, q, "in the given state")
        for note in notes:
            _log.warning(note)
        return free_q

    # changes --------------------------------------------------------------------------------------------------------

    def set_body(self, body: int, enabled: bool) -> None:
        """Enable or disable a body; see `BodyView.enabled`."""
        if enabled != self.off[body]:
            return
        state, off = self._stepper.state(), self.off.copy()
        off[body] = not enabled
        motion = self._model.motions.get(body)
        if enabled and motion is not None:
            state.q[body] = state.previous_q[body] = affine_state(motion(of_body(state.time, body)))
        self._set(replace(self.now, off=off), state.q, [body] if enabled else [])
        self.switch_joints([body])
        state = replace(self._stepper.state(), q=state.q, previous_q=state.previous_q)  # with the rows of the joints
        state.qd[body] = state.previous_qd[body] = 0.0
        state.bodies.history[body] = 0
        state.bodies.forces[body] = 0.0
        self._continue(state, [body] if enabled else [])

    def set_pair(self, first: int, second: int, enabled: bool) -> None:
        """Enable or disable contact of a pair first < second; see `PairView.enabled`."""
        key, bodies = first * len(self.off) + second, [first, second] if enabled else []
        now = replace(self.now, parting=np.setdiff1d(self.now.parting, key))
        if enabled != self.excludes(first, second):
            self.now = now
            return
        self._set(replace(now, pairs={**now.pairs, key: enabled}), self._stepper.q, bodies)
        self._continue(self._stepper.state(), bodies)

    def _set(self, now: SwitchState, q: np.ndarray, enabled: list[int]) -> None:
        """Set the switches; raise `SceneError` without an effect if an `enabled` body overlaps or touches another one."""
        if enabled:
            surveyor = Surveyor(self.present(now))
            found = surveyor.survey(q, moved=np.isin(np.arange(len(q)), enabled))
            if found.deep:
                raise SceneError(overlap_problems(surveyor, q, found, "when it is enabled"))
            if found.touching:
                pair, names = found.touching[0], self._model.bodies.names
                message = f"'{names[pair.first]}' touches '{names[pair.second]}' when it is enabled"
                raise SceneError.of(message, f"body.{names[pair.first]}", remedy="move the bodies apart")
        self.now = now

    def part(self, joints: list[int]) -> None:
        """Enable contact between the bodies of broken joints, once they are separated."""
        found = JointList.of(self._model.joints)
        ends, holds = found.bodies, ~found.column("collide").astype(bool) & found.column("active").astype(bool)
        free = _keys(ends[joints][(ends[joints] >= 0).all(axis=1)], len(self.off))
        kept = [_keys(self._model.filtered, len(self.off)), _keys(ends[holds & (ends >= 0).all(axis=1)], len(self.off))]
        free = np.setdiff1d(np.intersect1d(free, self._excluded(self.now)), np.concatenate(kept))
        can_collide = [not obstacle(self._model, *pair) for pair in bodies_of(free, len(self.off)).tolist()]
        parting = np.union1d(self.now.parting, free[np.array(can_collide, dtype=bool)])
        self.now = replace(self.now, parting=parting)

    def set_joint(self, joint: int, active: bool) -> None:
        """Activate or deactivate a joint or spring; a repaired joint that excludes contact of its bodies excludes it again.

        Raises:
            ValueError: the joint is to act on a disabled body.
        """
        one = self._model.joints[joint]
        if active and self._is_disabled(one):
            raise ValueError(f"joint '{one.name}' cannot act on a disabled body: set the body's `enabled` first")
        self.now = replace(self.now, suspended=self.now.suspended - {one.name})
        is_repaired = active and one.name in self._control.broken
        self._control.set_active([joint], active)
        if is_repaired and one.parent >= 0 and not one.collide:
            self.set_pair(min(one.parent, one.child), max(one.parent, one.child), False)

    def before_step(self) -> None:
        """Enable contact of pairs that have separated since their joint broke."""
        parting = self.now.parting
        if not len(parting):
            return
        n = len(self.off)
        moved = np.isin(np.arange(n), bodies_of(parting, n))
        found = Surveyor(self.present(parting=parting)).survey(self._stepper.q, moved=moved)
        pairs = [(one.first, one.second) for one in found.touching] + [pair[:2] for pair in found.deep]
        overlap = np.intersect1d(_keys(np.array(pairs, dtype=np.int64).reshape(-1, 2), n), parting)
        if len(found.deep) >= MOST_DEEP:
            overlap = parting  # the overlap check stops at MOST_DEEP pairs
        self._warn_of_overlap(overlap)
        parted = np.setdiff1d(parting, overlap)
        if len(parted):
            self.now = replace(self.now, parting=overlap, pairs=self.now.pairs | dict.fromkeys(parted.tolist(), True))
            self._continue(self._stepper.state(), np.unique(bodies_of(parted, n)).tolist())

    def _warn_of_overlap(self, keys: np.ndarray) -> None:
        names = self._model.bodies.names
        for key in set(keys.tolist()) - self._warned:
            self._warned.add(key)
            first, second = divmod(key, len(self.off))
            _log.warning(
                "'%s' and '%s' overlap after their joint broke: they pass through each other until they are separated",
                names[first], names[second],
            )  # fmt: skip

    def switch_joints(self, bodies: list[int]) -> None:
        """Suspend the active joints of disabled bodies; resume joints of `bodies` whose bodies are both enabled."""
        joints, suspended = self._model.joints, self.now.suspended
        ends = np.flatnonzero(np.isin(JointList.of(joints).bodies, bodies).any(axis=1)).tolist()
        disabled = [k for k in ends if joints[k].active and self._is_disabled(joints[k])]
        resumed = [k for k in ends if joints[k].name in suspended and not self._is_disabled(joints[k])]
        suspended = suspended.union(joints[k].name for k in disabled).difference(joints[k].name for k in resumed)
        self.now = replace(self.now, suspended=suspended)
        self._control.set_active(disabled, active=False)
        self._control.set_active(resumed, active=True)

    def _is_disabled(self, joint: Joint) -> bool:
        """Whether a body of a joint is disabled."""
        return any(self.off[body] for body in (joint.parent, joint.child) if body != WORLD)

    def _continue(self, state: State, enabled: list[int]) -> None:
        """Continue from a state with the current switches; contacts of the `enabled` bodies start in balance."""
        self._apply()
        self._stepper.restore(state)
        if enabled:
            self._stepper.start_contacts(enabled)
        self._stepper.sleep.disturb()
        self._coordinates.values = self._coordinates.reader.coordinates(state.q, self._coordinates.values)

    def _apply(self) -> None:
        """Pass the disabled bodies and pairs to the backend."""
        stepper = self._stepper
        stepper.off = self.off.copy()
        stepper.exclude(stepper.off)
        stepper.backend.touch.exclude_pairs(bodies_of(self._excluded(self.now), len(self.off)))

    # checkpoints ----------------------------------------------------------------------------------------------------

    def saved(self) -> dict:
        """Return the differences from the scene by names, for a checkpoint."""
        now, names, n = self.now, self._model.bodies.names, len(self.off)
        return {
            "off": _named(names, np.flatnonzero(now.off)),
            "suspended": np.array(sorted(now.suspended), dtype=str),
            "pairs": _named(names, bodies_of(np.array(list(now.pairs), dtype=np.int64), n)),
            "collide": np.array(list(now.pairs.values()), dtype=bool),
            "parting": _named(names, bodies_of(now.parting, n)),
        }

    def read(self, saved: dict) -> SwitchState:
        """Return the switches of a checkpoint.

        Raises:
            KeyError: a name is unknown.
        """
        names, off = self._model.bodies.names, np.zeros(len(self.off), dtype=bool)
        off[_numbers(names, saved["off"])] = True
        keys = [min(pair) * len(off) + max(pair) for pair in _numbers(names, saved["pairs"]).reshape(-1, 2).tolist()]
        pairs = dict(zip(keys, saved["collide"].tolist(), strict=True))
        parting = _keys(_numbers(names, saved["parting"]).reshape(-1, 2), len(off))
        return SwitchState(off, frozenset(saved["suspended"].tolist()), pairs, parting)

    def assign(self, now: SwitchState) -> None:
        """Set the switches of a checkpoint before its state; joints restore their own switches."""
        differ = now.pairs != self.now.pairs or not np.array_equal(now.off, self.off)
        self.now = now
        self._warned &= set(now.parting.tolist())
        if differ:
            self._apply()


def _named(names: Sequence[str], numbers: np.ndarray) -> np.ndarray:
    """Return names of the shape of their numbers."""
    return np.array([names[k] for k in numbers.ravel().tolist()], dtype=str).reshape(numbers.shape)


def _numbers(names: Sequence[str], given: np.ndarray) -> np.ndarray:
    """Return numbers of the shape of their names; raise `KeyError` for an unknown name."""
    found = np.array(Names.of(names).numbers(given.ravel().tolist()), dtype=np.int64).reshape(given.shape)
    if (found < 0).any():
        raise KeyError(given[found < 0][0])
    return found


def _keys(pairs: np.ndarray, n: int) -> np.ndarray:
    """Return (k,) sorted keys ``min n + max`` of pairs (m, 2) among n bodies, each once."""
    return distinct(keys_of(np.sort(pairs.astype(np.int64), axis=1), n))
