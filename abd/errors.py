"""The exceptions a user can meet. None of them reaches the terminal as a traceback."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


SHOWN = 100
"""Problems of a scene that its message tells one by one."""


class AbdError(Exception):
    """Base class of everything that is the user's to mend; `exit_status` is what `abd` returns."""

    exit_status = 1


@dataclass
class Problem:
    """One thing wrong with a scene: where, what, which value, and what to do."""

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
class SceneError(AbdError):
    """A scene that cannot be run, with all its problems at once."""

    problems: list[Problem] = field(default_factory=list)
    exit_status = 2

    @classmethod
    def of(cls, message: str, key: str = "", value: object = None, **keys: Any) -> SceneError:
        """The error of a single problem, with the attributes of `Problem`."""
        return cls([Problem(message, key, value, **keys)])

    def __str__(self) -> str:
        lines = [str(problem) for problem in self.problems[:SHOWN]]
        if len(self.problems) > SHOWN:
            lines.append(f"... and {len(self.problems) - SHOWN} more; `abd check SCENE --json` tells all")
        return "\n".join(lines)


class DeviceError(AbdError):
    """A device was asked for that is not there, with the reason and the install line."""

    exit_status = 2


class OutOfMemory(DeviceError):
    """An allocation failed: what was asked for, what is free, and what to do."""

    exit_status = 1


class StepFailure(AbdError):
    """A step that did not end well.

    Attributes:
        reason: "not_converged", "line_search", "blocked", "not_positive_definite",
            "linear_solver", "not_finite", "candidates" (more than there is room for), "joints" (exact ones stay open),
            "limits" (a range is left already), "turn" (an angle turns too far to be counted),
            "passed" (bodies would pass one another in the shortest substep) or "memory" (an allocation failed).
        step: index of the frame; time: [s]; bodies: names concerned.
        islands: (n,) bool, bodies of the islands that failed, where others did not; None where that is not known.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        step: int = 0,
        time: float = 0.0,
        bodies: tuple[str, ...] = (),
        islands: np.ndarray | None = None,
    ):
        super().__init__(message)
        self.reason, self.step, self.time, self.bodies, self.islands = reason, step, time, bodies, islands

    @property
    def concerned(self) -> np.ndarray | None:
        """(n,) bool, bodies that the failure concerns; None where that is not known."""
        return self.islands

    def within(self, chosen: np.ndarray) -> StepFailure:
        """The same of some bodies (n,) bool alone."""
        islands = None if self.islands is None else self.islands & chosen
        return StepFailure(self.reason, str(self), self.step, self.time, self.bodies, islands)
