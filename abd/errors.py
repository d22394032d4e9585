"""Exceptions of the package. The command line prints them without a traceback."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


SHOWN = 100
"""Maximum number of problems that the message of a `SceneError` lists."""


class AbdError(Exception):
    """Base class of errors that the user can fix; `exit_status` is the exit status of `abd`."""

    exit_status = 1


class UsageError(AbdError):
    """A request that cannot be carried out: an invalid scene, option or file, or a missing library or device."""

    exit_status = 2


@dataclass
class Problem:
    """One problem of a scene: location, message, value and remedy."""

    message: str
    key: str = ""
    value: object = None
    file: str = ""
    line: int | None = None
    remedy: str = ""
    level: str = "error"

    def __str__(self) -> str:
        place = self.file + (f":{self.line}" if self.line else "")
        head = f"{place}: " if place else ""
        key = f"{self.key}: " if self.key else ""
        remedy = f" -> {self.remedy}" if self.remedy else ""
        return f"{head}{key}{self.message}{remedy}"


@dataclass
class SceneError(UsageError):
    """A scene that cannot be run, with all its problems at once."""

    problems: list[Problem] = field(default_factory=list)

    @classmethod
    def of(cls, message: str, key: str = "", value: object = None, **keys: Any) -> SceneError:
        """Return the error of a single problem, with the attributes of `Problem`."""
        return cls([Problem(message, key, value, **keys)])

    def __str__(self) -> str:
        lines = [str(problem) for problem in self.problems[:SHOWN]]
        if len(self.problems) > SHOWN:
            lines.append(f"... and {len(self.problems) - SHOWN} more; `abd check SCENE --json` lists all")
        return "\n".join(lines)


class DeviceError(UsageError):
    """The requested device is not available; the message has the reason and the install command."""


class OutOfMemory(DeviceError):
    """An allocation failed; the message has the requested size, the free memory and a remedy."""

    exit_status = 1


class NotDifferentiable(AbdError):
    """A step has no derivative, or none is implemented; the message has the reason and the fix."""


class StepFailure(AbdError):
    """A time step failed.

    Attributes:
        reason: "not_converged", "line_search", "blocked", "not_positive_definite", "linear_solver", "not_finite", "candidates"
            (more than an array can hold), "joints" (exact ones stay open), "limits" (a coordinate is outside its range),
            "limit_step" (no part of a step keeps the joint limits open), "turn" (an angle turns too far to be counted), "passed"
            (the swept path is not proven collision-free), "fast_contact" (bodies collided at high speed), "memory" (an
            allocation failed) or "formula" (one has no value at this time).
        step: index of the frame; time: [s]; bodies: names concerned.
        concerned: (n,) bool, bodies of the failed islands or pairs; None if unknown.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        step: int = 0,
        time: float = 0.0,
        bodies: tuple[str, ...] = (),
        concerned: np.ndarray | None = None,
    ):
        super().__init__(message)
        self.reason, self.step, self.time, self.bodies, self.concerned = reason, step, time, bodies, concerned

    def within(self, chosen: np.ndarray) -> StepFailure:
        """Return the failure restricted to the bodies of a mask (n,) bool."""
        concerned = None if self.concerned is None else self.concerned & chosen
        return StepFailure(self.reason, str(self), self.step, self.time, self.bodies, concerned)
