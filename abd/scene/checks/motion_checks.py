"""What must hold in a prescribed motion."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from abd.errors import SceneError
from abd.scene.checks.file_checks import check_file
from abd.scene.checks.orientation_checks import check_orientation
from abd.scene.compile.motion import FORMULA_KEYS, formula_problem
from abd.scene.geometry.pose_file import POSE_FILES, read_poses
from abd.scene.schema.findings import Finding
from abd.scene.schema.formula import FormulaError, formula_of_time
from abd.scene.schema.schema import Formulas, Keyframe, MotionSpec
from abd.scene.schema.suggestions import enumerated

VELOCITY_KEYS = ("velocity", "angular_velocity", "angular_velocity_deg")


def check_motion(motion: MotionSpec) -> Iterator[Finding]:
    """Findings with paths relative to the motion."""
    forms = [key for key in ("keyframes", "file", "formulas") if getattr(motion, key) is not None]
    velocities = [key for key in VELOCITY_KEYS if getattr(motion, key) is not None]
    if not forms and not velocities:
        message = "says nothing about how the body moves"
        yield Finding(
            (), message, remedy="give velocity or angular_velocity, keyframes, file or formulas", is_absence=True
        )
    if len(forms) > 1:
        yield Finding(
            (forms[1],), f"{enumerated(forms, 'and')} are given, but a motion has one form", remedy="keep one"
        )
    if forms and velocities and (forms[0] == "formulas" or motion.after == "hold"):
        message = f"{enumerated(velocities, 'and')} beside {forms[0]} has no effect"
        remedy = (
            "drop it" if forms[0] == "formulas" else "drop it, or set after = 'continue' to go on with it at the end"
        )
        yield Finding((velocities[0],), message, getattr(motion, velocities[0]), remedy)
    if motion.after == "continue" and not {"keyframes", "file"} & set(forms):
        yield Finding(("after",), "'continue' goes with keyframes or file only", motion.after, "drop it")
    if motion.angular_velocity is not None and motion.angular_velocity_deg is not None:
        yield Finding(("angular_velocity_deg",), "angular_velocity is given as well", remedy="keep one of them")
    if motion.keyframes is not None:
        yield from _check_keyframes(motion.keyframes)
    if motion.formulas is not None:
        yield from _check_formulas(motion.formulas)
    if motion.file is not None:
        yield from _check_pose_file(motion.file)


def _check_keyframes(keyframes: list[Keyframe]) -> Iterator[Finding]:
    for index, keyframe in enumerate(keyframes):
        for finding in check_orientation(keyframe):
            finding.path = ("keyframes", index, *finding.path)
            yield finding
    for index, (before, after) in enumerate(pairwise(keyframes), 1):
        if after.time <= before.time:
            message = f"{after.time:g} s does not come after the time before it, {before.time:g} s"
            yield Finding(
                ("keyframes", index, "time"), message, after.time, "put the keyframes in order, each time once"
            )


def _check_formulas(formulas: Formulas) -> Iterator[Finding]:
    for key in FORMULA_KEYS:
        text = getattr(formulas, key)
        try:
            formula_of_time(text)(0.0)
        except FormulaError as error:
            problem = formula_problem(error, key, text)
            yield Finding(("formulas", key), problem.message, text, problem.remedy)


def _check_pose_file(name: str) -> Iterator[Finding]:
    missing = list(check_file(Path(name), POSE_FILES, "file of poses"))
    if missing:
        for finding in missing:
            finding.path = ("file",)
        yield from missing
        return
    try:
        read_poses(name)
    except SceneError as error:
        for problem in error.problems:
            place = f"{Path(name).name}:{problem.line}" if problem.line else Path(name).name
            yield Finding(("file",), f"{place}: {problem.message}", name, problem.remedy)
