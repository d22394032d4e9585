"""Forces, torques and motions set while a simulation runs.

Loads add to the constant loads of the scene and act in a substep as the generalised force at its end. A force at a point
of the body, ``J(X)^T f``, is the force at the centre of mass and the couple ``(x - c) x f``. The current velocities
extrapolate the lever arm to the end of the substep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from numbers import Integral
from typing import Any, Protocol, TypeVar

import numpy as np

from abd.api.views import Vector, finite
from abd.by_bodies import PerBody, of_body
from abd.energies import spin
from abd.model import Model, affine_state
from abd.rotations import polar, pose, rotation_vectors, rotations
from abd.scene.compile.motion import PoseSequence
from abd.step.step import Stepper

JUMP = 0.1
"""Change of a force from one step to the next, over the larger one of the two, that counts as a jump."""


class Body(Protocol):
    """A body that loads act on; `abd.api.body_view.BodyView` implements it."""

    index: int

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...


View = TypeVar("View", bound=Body)
Given = Vector | Callable[[float, View], Vector]
"""A vector, or a function of time [s] and body that returns one."""


class Load:
    """A force or a torque on one body.

    Args:
        steps: number of steps; None for a load that acts until it is removed.

    Attributes:
        body: index; couple: whether it is a torque [N m] instead of a force [N].
        at: (3,) point of application in the mesh frame [m]; None for the centre of mass.
        frame: "world", or "body" for a vector that rotates with the body.
        left: remaining steps; None for a load that acts until it is removed.
    """

    __slots__ = ("_loads", "_view", "at", "body", "couple", "frame", "left", "vector")

    def __init__(
        self, loads: Loads, view: View, given: Given[View], couple: bool, at: Vector | None, frame: str, steps: int | None
    ):
        require_dynamic(view, "loads")
        if frame not in ("world", "body"):
            raise ValueError(f"frame must be 'world' or 'body', not {frame!r}")
        self.body, self.couple, self.frame, self.left = view.index, couple, frame, checked_steps(steps)
        self.at = None if at is None else finite(at, (3,), f"the point on body '{view.name}'")
        self._loads, self._view = loads, view
        self.vector = given if callable(given) else finite(given, (3,), f"the load on body '{view.name}'")

    @property
    def place(self) -> tuple:
        """Body, kind, axes and point of application."""
        return self.body, self.couple, self.frame, None if self.at is None else tuple(self.at)

    @property
    def definition(self) -> dict[str, Any]:
        """Arguments by name, with the remaining steps, without the body."""
        return {"given": self.vector, "couple": self.couple, "at": self.at, "frame": self.frame, "steps": self.left}

    def value(self, time: float) -> np.ndarray:
        """Return the vector (3,) in `frame` at a time [s]."""
        if callable(self.vector):
            return finite(self.vector(time, self._view), (3,), f"the load on body '{self._view.name}'")
        return self.vector

    def remove(self) -> None:
        """Remove the load; a second call has no effect."""
        self._loads.keep(lambda one: one is not self)


class Loads:
    """All loads of a simulation.

    Attributes:
        force, torque: (n, 3) sums of all loads in the current step, including those of the scene [N, N m].
    """

    def __init__(self, model: Model, stepper: Stepper, views: Mapping[str, Body]):
        bodies = model.bodies
        self._model, self._stepper, self._views = model, stepper, views
        self._constant = bodies.force.copy(), bodies.torque.copy()
        self.force, self.torque = bodies.force.base, bodies.torque.base
        self._before = self.force.copy(), self.torque.copy()  # in the last completed frame
        self._entries: list[Load] = []
        self._is_empty = True  # also in the last completed frame

    def add(self, view: Body, *given, **named) -> Load:
        """Add a load to a body; see `Load` for the arguments. It replaces one at the same place if both have no last step."""
        load = Load(self, view, *given, **named)
        if load.left is None:
            self.keep(lambda one: one.left is not None or one.place != load.place)
        self._entries.append(load)
        self._stepper.sleep.disturb([load.body])
        self._is_empty = False
        return load

    def set_constant(self, force: np.ndarray, torque: np.ndarray) -> None:
        """Replace the constant loads of the scene by forces and torques (n, 3) from the next step on."""
        changed = np.logical_or(*((one != old).any(axis=1) for one, old in zip((force, torque), self._constant, strict=True)))
        if changed.any():
            self._constant, self._is_empty = (force.copy(), torque.copy()), False
            self._stepper.sleep.disturb(np.flatnonzero(changed))

    def keep(self, chosen: Callable[[Load], bool]) -> None:
        """Remove all other loads."""
        self._stepper.sleep.disturb([one.body for one in self._entries if not chosen(one)])
        self._entries = [one for one in self._entries if chosen(one)]

    def of_substep(self, time: PerBody, h: float) -> tuple[np.ndarray, np.ndarray] | None:
        """Return forces and torques (n, 3) of a substep, or None if no load changed.

        The integrator restarts for bodies whose load jumps (`abd.step.integrators.Modes.jump`).

        Args:
            time: end of the substep [s], scalar or (n,); h: length of the substep [s].
        """
        if self._is_empty:
            return None
        force, torque = (values.copy() for values in self._constant)
        for one in self._entries:
            self._add_to(force, torque, one, of_body(time, one.body), h)
        self._stepper.sleep.disturb([one.body for one in self._entries if callable(one.vector)])
        jumping, stepper = jumps(self._before[0], force) | jumps(self._before[1], torque), self._stepper
        jumping &= ~stepper.excluded  # excluded bodies have another time
        if jumping.any() and np.any(stepper.previous_h != 0.0):
            stepper.modes.jump(jumping)
        included = ~stepper.excluded[:, None]
        np.copyto(self.force, force, where=included)
        np.copyto(self.torque, torque, where=included)
        return force, torque

    @property
    def loads_are_constant(self) -> bool:
        """Whether the loads depend neither on time nor on the substep length."""
        return all(not callable(one.vector) and one.at is None and one.frame == "world" for one in self._entries)

    def after_step(self) -> None:
        """Count down the remaining steps after a frame and remove expired loads."""
        if self._is_empty:
            return
        self._is_empty = not self._entries
        self._before = self.force.copy(), self.torque.copy()
        for one in self._entries:
            one.left = None if one.left is None else one.left - 1
        self.keep(lambda one: one.left != 0)

    def saved(self) -> dict:
        """Return the vector loads for a checkpoint; function loads cannot be stored."""
        each = [one for one in self._entries if not callable(one.vector)]
        return {str(k): {"body": one._view.name, **deepcopy(one.definition)} for k, one in enumerate(each)}

    def restore(self, saved: dict, force: np.ndarray, torque: np.ndarray) -> None:
        """Restore the vector loads and the sums (n, 3) of a checkpoint; function loads stay."""
        self.keep(lambda one: callable(one.vector))
        self._is_empty = False
        self.force[:], self.torque[:] = force, torque
        self._before = self.force.copy(), self.torque.copy()
        for one in saved.values():
            self.add(self._views[one["body"]], **{key: value for key, value in one.items() if key != "body"})

    def take_functions(self, other: Loads) -> None:
        """Add the function loads of another simulation to the bodies of the same names."""
        for one in other._entries:
            if callable(one.vector) and one._view.name in self._views:
                self.add(self._views[one._view.name], **one.definition)

    def _add_to(self, force: np.ndarray, torque: np.ndarray, one: Load, time: float, h: float) -> None:
        stepper, b = self._stepper, one.body
        vector = one.value(time)
        if one.at is None and one.frame == "world":
            (torque if one.couple else force)[b] += vector
            return
        then = rotations(h * spin(stepper.q[[b]], stepper.qd[[b]]))[0] @ stepper.q[b, 3:].reshape(3, 3)
        frame = self._model.bodies.body_frame[b]
        if one.frame == "body":
            vector = then @ frame[:3, :3] @ vector
        if one.couple:
            torque[b] += vector
            return
        force[b] += vector
        if one.at is not None:
            torque[b] += np.cross(then @ (frame[:3, :3] @ one.at + frame[:3, 3]), vector)


def checked_steps(steps: int | None) -> int | None:
    """Return a number of steps, None for no limit; raise `ValueError` if it is not positive."""
    if steps is not None and (not isinstance(steps, Integral) or steps < 1):
        raise ValueError(f"steps must be a positive number of steps or None, not {steps!r}")
    return steps


def jumps(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return (n,) bool, whether vectors (n, k) change by more than the fraction `JUMP` of the larger norm."""
    sizes = (np.linalg.norm(one, axis=1) for one in (before, after))
    return np.linalg.norm(after - before, axis=1) > JUMP * np.maximum(*sizes)


def require_dynamic(view: Body, what: str) -> None:
    """Raise `ValueError` if a body is not dynamic."""
    if view.kind != "dynamic":
        remedy = "; use move_to" if view.kind == "kinematic" else ""
        raise ValueError(f"{what} need a dynamic body; body '{view.name}' is {view.kind}{remedy}")


MOVE = {
    "times": (2,), "positions": (2, 3), "rotations": (2, 3, 3), "turns": (1, 3), "end_velocity": (3,), "end_spin": (3,),
}  # fmt: skip
"""Fields of a move with their shapes."""


class Moves:
    """Moves of one simulation between two poses; they replace the scene's motions of their bodies."""

    def __init__(self, model: Model, stepper: Stepper):
        self._model, self._stepper, self._of_scene = model, stepper, dict(model.motions)

    def add(self, body: int, last: np.ndarray, duration: float) -> None:
        """Move a kinematic body from its current pose to the internal pose `last` (4, 4) within `duration` [s]."""
        stepper = self._stepper
        begin = float(of_body(stepper.time, body))
        q, qd = stepper.q[body], stepper.qd[body]
        poses = np.stack([pose(polar(q[3:].reshape(1, 3, 3))[0], q[:3]), last])
        at, R, rest = poses[:, :3, 3], poses[:, :3, :3], np.zeros(3)
        turns = rotation_vectors(R[1:] @ R[:1].transpose(0, 2, 1))
        move = PoseSequence(np.array([begin, begin + duration]), at, R, turns, rest, rest)
        self._model.motions[body] = move
        ahead = (affine_state(move(begin + 1e-3 * duration)) - affine_state(poses[0])) / (1e-3 * duration)
        if jumps(qd[None], ahead[None])[0]:
            stepper.modes.jump([body], constraints=True)
        stepper.sleep.disturb()

    def remove(self, bodies: np.ndarray) -> None:
        """Restore the scene's motions of the bodies of a mask (n,)."""
        self._model.motions.update({body: own for body, own in self._of_scene.items() if bodies[body]})

    def saved(self) -> dict:
        """Return the moves by body name."""
        names, motions = self._model.bodies.names, self._model.motions
        return {names[body]: deepcopy(vars(motions[body])) for body, own in self._of_scene.items() if motions[body] is not own}

    def restore(self, saved: dict) -> None:
        """Replace all moves by those of a checkpoint; unknown bodies are ignored."""
        names = self._model.bodies.names
        for body, motion in self._of_scene.items():
            if move := saved.get(names[body]):
                motion = PoseSequence(**{key: finite(move[key], shape, f"{key} of a move") for key, shape in MOVE.items()})
            self._model.motions[body] = motion
