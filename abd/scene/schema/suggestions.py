"""The nearest known word for an unknown key or name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice

OTHER_WORDS = {
    "rotation": "quaternion, matrix, axis_angle or euler",
    "orientation": "quaternion, matrix, axis_angle or euler",
    "pos": "position",
    "translation": "position",
    "linear_velocity": "velocity",
    "omega": "angular_velocity",
    "friction": "mu",
    "coefficient_friction": "mu",
    "timestep": "dt",
    "time_step": "dt",
    "dhat": "d_hat",
    "stiffness": "kappa",
    "youngs_modulus": "kappa",
    "com": "center_of_mass",
    "type": "kind",
    "plane": "half_space",
    "ground": "half_space",
    "size": "box",
    "file": "mesh",
    "body_a": "parent",
    "body_b": "child",
    "pivot": "anchor",
    "base": "parent",
    "predecessor": "parent",
    "successor": "child",
    "limits": "range",
    "limits_deg": "range_deg",
    "lower": "range",
    "upper": "range",
    "motor": "drive",
    "actuator": "drive",
    "torque_limit": "effort",
    "max_force": "break_force",
    "max_torque": "break_torque",
    "zeta": "critical_damping",
    "pitch": "lead",
    "spring": "stiffness",
    "ratio": "factor",
    "steps": "frames",
    "max_iterations": "max_newton",
    "is_dof_fixed": "fix",
    "group_id": "group",
}
"""What other programs call our keys: these are too far apart in spelling to be found by it."""

MOST = 2000
"""Candidates that a word is compared with."""


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """The question "did you mean 'x'?" for the nearest candidate, or an empty string where none is near."""
    return _question(word, tuple(islice(candidates, MOST)))


@lru_cache(maxsize=64)  # the same mistake in thousands of tables is looked for once
def _question(word: str, known: tuple[str, ...]) -> str:
    folded = {candidate.lower(): candidate for candidate in reversed(known)}
    other = OTHER_WORDS.get(word.lower(), "")
    if word.lower() not in folded and other and other.replace(" or ", ", ").split(", ")[0] in known:
        return f"did you mean {other}?"
    near = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return f"did you mean '{folded[near[0]]}'?" if near else ""


def enumerated(words: Iterable[str], last: str = "or") -> str:
    """'a', 'b' or 'c'."""
    quoted = [f"'{word}'" for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"
