"""Disabling and enabling of bodies and of contact pairs while a simulation runs.

A disabled body rests in its pose without forces, contacts and joints. The bodies of a disabled pair pass through each
other. A pair that a contact filter or a joint of the scene excludes can be enabled. Enabled bodies must not overlap. Their
contacts start in balance, as at the start of a scene.

Bodies whose joint broke collide from the next step on, unless a filter or another joint excludes the pair. If they overlap,
they pass through each other until they are separated.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
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


class Switches:
    """Disabled bodies and contact pairs of one simulation.

    Attributes:
        off: (n,) bool, disabled bodies; suspended: names of joints and springs that are inactive because of a disabled body.
        pairs: whether a pair collides, by key, for the pairs that differ from the scene.
        parting: (k,) keys of overlapping pairs that collide as soon as they are separated.
    """

    def __init__(self, model: Model, stepper: Stepper, control: JointControl, coordinates: Coordinates):
        self._model, self._stepper, self._control, self._coordinates = model, stepper, control, coordinates
        n = len(model.bodies)
        self.off = np.zeros(n, dtype=bool)
        self.suspended: set[str] = set()
        self.pairs: dict[int, bool] = {}
        self.parting = np.zeros(0, dtype=np.int64)
        self._warned: set[int] = set()

    @cached_property
    def _scene_pairs(self) -> np.ndarray:
        """(k,) keys of the pairs that do not collide in the scene (up to millions)."""
        return _keys(excluded_pairs(self._model), len(self.off))

    def _excluded(self) -> np.ndarray:
        """Return keys (k,) of the pairs that do not collide now."""
        if not self.pairs:
            return self._scene_pairs
        keys, collide = np.array(list(self.pairs), dtype=np.int64), np.array(list(self.pairs.values()))
        return np.union1d(np.setdiff1d(self._scene_pairs, keys[collide]), keys[~collide])

    def excludes(self, first: int, second: int) -> bool:
        """Whether the pair first < second is excluded from contact."""
        key = first * len(self.off) + second
        return not self.pairs.get(key, not are_among(np.array([key]), self._scene_pairs)[0])

    def present(self, model: Model, parting: np.ndarray | tuple = ()) -> Model:
        """Return the model for overlap tests: disabled bodies have no surface, and the pairs `parting` (k,) collide."""
        if not self.off.any() and not self.pairs and not len(parting):
            return model
        bodies, pairs = model.bodies, bodies_of(np.setdiff1d(self._excluded(), parting), len(self.off))
        mesh, plane = np.where(self.off, -1, bodies.mesh), np.where(self.off[:, None], np.nan, bodies.plane)
        return replace(model, excluded_pairs=pairs, bodies=replace(bodies, mesh=mesh, plane=plane))

    @contextmanager
    def tried(self) -> Iterator[None]:
        """Restore the switches if the block raises an error; `apply` passes them to the backend after it."""
        before = self.off, self.suspended, self.pairs, self.parting
        try:
            yield
        except Exception:
            self.off, self.suspended, self.pairs, self.parting = before
            raise

    # changes --------------------------------------------------------------------------------------------------------

    def set_body(self, body: int, enabled: bool) -> None:
        """Enable or disable a body; see `BodyView.enabled`."""
        if enabled != self.off[body]:
            return
        state = self._stepper.state()
        motion = self._model.motions.get(body)
        if enabled and motion is not None:
            state.q[body] = state.previous_q[body] = affine_state(motion(of_body(state.time, body)))
        with self.tried():
            self.off = self.off.copy()
            self.off[body] = not enabled
            if enabled:
                self._refuse_overlap(state.q, [body])
        self.switch_joints([body])
        state = replace(self._stepper.state(), q=state.q, previous_q=state.previous_q)  # with the rows of the joints
        state.qd[body] = state.previous_qd[body] = 0.0
        state.bodies.history[body] = 0
        state.bodies.forces[body] = 0.0
        self._continue(state, [body] if enabled else [])

    def set_pair(self, first: int, second: int, enabled: bool) -> None:
        """Enable or disable contact of a pair first < second; see `PairView.enabled`."""
        key = first * len(self.off) + second
        with self.tried():
            self.parting = np.setdiff1d(self.parting, key)
            if enabled != self.excludes(first, second):
                return
            self.pairs = {**self.pairs, key: enabled}
            if enabled:
                self._refuse_overlap(self._stepper.q, [first, second])
        self._continue(self._stepper.state(), [first, second] if enabled else [])

    def part(self, joints: list[int]) -> None:
        """Enable contact between the bodies of broken joints, once they are separated."""
        found = JointList.of(self._model.joints)
        ends, holds = found.bodies, ~found.column("collide").astype(bool) & found.column("active").astype(bool)
        free = _keys(ends[joints][(ends[joints] >= 0).all(axis=1)], len(self.off))
        kept = [_keys(self._model.filtered, len(self.off)), _keys(ends[holds & (ends >= 0).all(axis=1)], len(self.off))]
        free = np.setdiff1d(np.intersect1d(free, self._excluded()), np.concatenate(kept))
        can_collide = [not obstacle(self._model, *pair) for pair in bodies_of(free, len(self.off)).tolist()]
        self.parting = np.union1d(self.parting, free[np.array(can_collide, dtype=bool)])

    def set_joint(self, joint: int, active: bool) -> None:
        """Activate or deactivate a joint or spring; a repaired joint that excludes contact of its bodies excludes it again.

        Raises:
            ValueError: the joint is to act on a disabled body.
        """
        one = self._control.joint(joint)
        if active and self._is_disabled(one):
            raise ValueError(f"joint '{one.name}' cannot act on a disabled body: set the body's `enabled` first")
        self.suspended.discard(one.name)
        is_repaired = active and one.name in self._control.broken
        self._control.set_active(joint, active)
        if is_repaired and one.parent >= 0 and not one.collide:
            self.set_pair(min(one.parent, one.child), max(one.parent, one.child), False)

    def before_step(self) -> None:
        """Enable contact of pairs that have separated since their joint broke."""
        if not len(self.parting):
            return
        n = len(self.off)
        moved = np.zeros(n, dtype=bool)
        moved[bodies_of(self.parting, n)] = True
        found = Surveyor(self.present(self._model, self.parting)).survey(self._stepper.q, moved=moved)
        pairs = [(one.first, one.second) for one in found.touching] + [pair[:2] for pair in found.deep]
        overlap = _keys(np.array(pairs, dtype=np.int64).reshape(-1, 2), n)
        if len(found.deep) >= MOST_DEEP:
            overlap = self.parting  # the overlap check stops at MOST_DEEP pairs
        self._warn_of_overlap(np.intersect1d(overlap, self.parting))
        parted = np.setdiff1d(self.parting, overlap)
        if len(parted):
            self.parting = np.intersect1d(self.parting, overlap)
            self.pairs |= dict.fromkeys(parted.tolist(), True)
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

    def _refuse_overlap(self, q: np.ndarray, bodies: list[int]) -> None:
        """Raise `SceneError` if one of `bodies` overlaps or touches another body."""
        moved = np.zeros(len(self.off), dtype=bool)
        moved[bodies] = True
        surveyor = Surveyor(self.present(self._model))
        found = surveyor.survey(q, moved=moved)
        if found.deep:
            raise SceneError(overlap_problems(surveyor, q, found, "when it is enabled"))
        if found.touching:
            pair, names = found.touching[0], self._model.bodies.names
            message = f"'{names[pair.first]}' touches '{names[pair.second]}' when it is enabled"
            raise SceneError.of(message, f"body.{names[pair.first]}", remedy="move the bodies apart")

    def switch_joints(self, bodies: list[int]) -> None:
        """Suspend the active joints of disabled bodies; resume joints of `bodies` whose bodies are both enabled."""
        control, joints = self._control, self._model.joints
        for k in np.flatnonzero(np.isin(JointList.of(joints).bodies, bodies).any(axis=1)).tolist():
            joint = joints[k]
            if joint.active and self._is_disabled(joint):
                self.suspended.add(joint.name)
                control.set_active(k, False)
            elif joint.name in self.suspended and not self._is_disabled(joint):
                self.suspended.discard(joint.name)
                control.set_active(k, True)

    def _is_disabled(self, joint: Joint) -> bool:
        """Whether a body of a joint is disabled."""
        return any(self.off[body] for body in (joint.parent, joint.child) if body != WORLD)

    def _continue(self, state, enabled: list[int]) -> None:
        """Continue from a state with the current switches; contacts of the `enabled` bodies start in balance."""
        self.apply()
        self._stepper.restore(state)
        if enabled:
            self._stepper.start_contacts(enabled)
        self._stepper.sleep.disturb()
        self._coordinates.values = self._coordinates.reader.coordinates(state.q, self._coordinates.values)

    def apply(self) -> None:
        """Pass the disabled bodies and pairs to the backend."""
        stepper = self._stepper
        stepper.off = self.off.copy()
        stepper.exclude(stepper.off)
        stepper.backend.touch.exclude_pairs(bodies_of(self._excluded(), len(self.off)))

    # checkpoints ----------------------------------------------------------------------------------------------------

    def saved(self) -> dict:
        """Return the differences from the scene by names, for a checkpoint."""
        model, n = self._model, len(self.off)
        return {
            "off": _named(model.bodies.names, np.flatnonzero(self.off)),
            "suspended": np.array(sorted(self.suspended), dtype=str),
            "pairs": _named(model.bodies.names, bodies_of(np.array(list(self.pairs), dtype=np.int64), n)),
            "collide": np.array(list(self.pairs.values()), dtype=bool),
            "parting": _named(model.bodies.names, bodies_of(self.parting, n)),
        }

    def read(self, saved: dict) -> bool:
        """Read the switches of a checkpoint before its state; return whether they have to be applied.

        Joints restore their own switches.

        Raises:
            KeyError: a name is unknown.
        """
        model, n = self._model, len(self.off)
        off = np.zeros(n, dtype=bool)
        off[_numbers(model.bodies.names, saved["off"])] = True
        keys = [min(pair) * n + max(pair) for pair in _numbers(model.bodies.names, saved["pairs"]).reshape(-1, 2).tolist()]
        pairs = dict(zip(keys, saved["collide"].tolist(), strict=True))
        self.suspended = set(saved["suspended"].tolist())
        self.parting = _keys(_numbers(model.bodies.names, saved["parting"]).reshape(-1, 2), n)
        self._warned &= set(self.parting.tolist())
        differ = pairs != self.pairs or not np.array_equal(off, self.off)
        self.off, self.pairs = off, pairs
        return differ


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
