"""Faults put into the joints' read-outs and changes while running, one by one: does a test fail? `python tools/mutate_joints.py`.

Each mutation replaces one text in a copy of the package and runs the tests that are to notice it. A mutation that no test
notices *survives*. The score goes to ``tools/results/mutations-joints-cpu-DATE.json``; exit status 1 if any survives.

    python tools/mutate_joints.py [--only TEXT] [--out FILE]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from results_file import write_results

ROOT = Path(__file__).resolve().parent.parent
WRENCHES, RUNNING = "tests/api/test_joint_wrenches.py", "tests/api/test_joint_running.py"
IMPACTS, BROKEN = "tests/joints/test_limit_impacts.py", "tests/api/test_broken_joints.py"
TURNS, LAWS = "tests/joints/test_turns.py", "tests/kernels/test_law_kernels.py"
PLACES, CHANGES = "tests/joints/test_joint_projection.py", "tests/scene/test_scene_changes.py"
LONGEST = 600.0
"""Seconds after which a run of tests counts as failed: the mutation made it endless."""


@dataclass(frozen=True)
class Mutation:
    """One fault.

    Attributes:
        what: in words; file: below ``abd/``; old, new: the text, which occurs once, and what replaces it.
        tests: file of tests; chosen: pytest's expression for those of them that are to fail.
    """

    what: str
    file: str
    old: str
    new: str
    tests: str
    chosen: str


FRAMES, FORCES, VIEW, COORDINATE = (
    f"api/joints/{name}.py" for name in ("joint_frames", "joint_forces", "joint_view", "coordinate_view")
)
READINGS, CONTROL, CHANGE = "joints/coordinates/readings.py", "api/joints/joint_control.py", "joints/rows/change.py"
ANEW = "joints/rows/anew.py"

MUTATIONS = [
    # those that an earlier run had left alive
    Mutation(
        "displacement turned",
        FRAMES,
        "return self._marker(self.joint.child, self.joint.child_frame)[0] - self.position",
        "return self.position - self._marker(self.joint.child, self.joint.child_frame)[0]",
        WRENCHES,
        "own_point",
    ),
    Mutation(
        "relative velocity without the parent's part",
        FRAMES,
        "[1] - self.velocity",
        "[1]",
        WRENCHES,
        "relative_velocity",
    ),
    Mutation(
        "centre of the child for the parent",
        FORCES,
        'body = self.joint.child if on == "child" else self.joint.parent\n        return np.zeros(3)',
        "body = self.joint.child\n        return np.zeros(3)",
        WRENCHES,
        "feel_the_wrench and penalty",
    ),
    Mutation(
        "floating positions drawn normally",
        "joints/coordinates/configurations.py",
        "rng.random(3) - 0.5",
        "rng.standard_normal(3)",
        PLACES,
        "distributions",
    ),
    Mutation(
        "prismatic positions drawn uniformly",
        "joints/coordinates/spaces.py",
        "rng.standard_normal(",
        "rng.random(",
        PLACES,
        "distributions",
    ),
    # wrenches
    Mutation(
        "parent feels the child's linear rows",
        READINGS,
        "linear.parent, linear.Yp, -f)}",
        "linear.parent, linear.Yp, f)}",
        WRENCHES,
        "masks_of_axes and penalty",
    ),
    Mutation(
        "parent feels the child's measured rows",
        READINGS,
        'each[mine] if on == "child" else -each[mine]',
        "each[mine]",
        WRENCHES,
        "feel_the_wrench and exact",
    ),
    Mutation(
        "lever of points without the body's place",
        READINGS,
        "np.where(inner, q[body, :3], 0.0) - self.points[linear.joint]",
        "-self.points[linear.joint]",
        WRENCHES,
        "masks_of_axes and penalty",
    ),
    Mutation(
        "torque not moved to the point",
        FORCES,
        "both[3:] - np.cross(",
        "both[3:] + 0.0 * np.cross(",
        WRENCHES,
        "feel_the_wrench and penalty",
    ),
    Mutation(
        "point D is C's",
        FORCES,
        'if point == "D":\n            return self.position',
        'if point == "D":\n            return self._joint_point',
        WRENCHES,
        "own_point",
    ),
    Mutation(
        "axes of C are D's",
        FORCES,
        'if frame == "C":\n            return self.T_CW',
        'if frame == "C":\n            return self.T_DW',
        RUNNING,
        "axes_of_frames",
    ),
    Mutation(
        "axes transposed",
        FORCES,
        "return axes.T @ force, axes.T @ torque",
        "return axes @ force, axes @ torque",
        WRENCHES,
        "apart",
    ),
    Mutation(
        "locks are not bilateral",
        READINGS,
        "BILATERAL = (Role.CONSTRAINT, Role.LOCK)",
        "BILATERAL = (Role.CONSTRAINT,)",
        WRENCHES,
        "apart",
    ),
    Mutation(
        "upper ends are not unilateral",
        READINGS,
        "UNILATERAL = (Role.GAP, Role.LOWER, Role.UPPER)",
        "UNILATERAL = (Role.GAP, Role.UPPER)",
        WRENCHES,
        "apart",
    ),
    Mutation(
        "Exudyn's force on the child",
        FORCES,
        'self.wrench(on="parent", point="D")',
        'self.wrench(on="child", point="D")',
        RUNNING,
        "sensors_of_a_joint",
    ),
    # rows
    Mutation(
        "rows without rest", FORCES, ")) - row.rest", ")) + 1.0 - row.rest", WRENCHES, "axes_of_the_world and penalty"
    ),
    Mutation(
        "linear rows are called rotary",
        FORCES,
        "RowFlags.ROTARY if row.rotary else RowFlags.LINEAR",
        "RowFlags.LINEAR if row.rotary else RowFlags.ROTARY",
        WRENCHES,
        "axes_of_the_world and penalty",
    ),
    Mutation(
        "locks are not counted",
        FORCES,
        "len(self._bilateral) + len(self._rows_of(Role.LOCK))",
        "len(self._bilateral)",
        RUNNING,
        "rows_by_name",
    ),
    Mutation(
        "gap of an upper end turned",
        FORCES,
        "gap, engaged = float(a.sign[row] * (x - a.bound[row]))",
        "gap, engaged = float(x - a.bound[row])",
        RUNNING,
        "rows_by_name",
    ),
    Mutation(
        "engagement of upper ends positive", FORCES, "int(a.sign[row]) * engaged", "engaged", RUNNING, "rows_by_name"
    ),
    Mutation(
        "lock's residual is its value",
        FORCES,
        "float(x - held), force, 1",
        "float(x + 1.0 - held), force, 1",
        RUNNING,
        "rows_by_name",
    ),
    Mutation(
        "force of the lock is the drive's",
        COORDINATE,
        "return self._force(Role.LOCK)",
        "return self._force(Role.DRIVE)",
        RUNNING,
        "rows_by_name",
    ),
    Mutation(
        "engagement forgets gaps' ends",
        FORCES,
        "ranges[a.name[row]] = int(np.sign(read.row_force[row]))",
        "pass",
        RUNNING,
        "rows_by_name",
    ),
    # frames
    Mutation(
        "other body is the same", FRAMES, "ends[1 - ends.index(body)]", "ends[ends.index(body)]", RUNNING, "bodies_of"
    ),
    Mutation(
        "C seated on the parent's pose",
        ANEW,
        "inverse(body_pose(q, body)) @ rigid_pose(pose)",
        "rigid_pose(pose)",
        RUNNING,
        "seated_anew",
    ),
    Mutation(
        "coordinates of old frames", CONTROL, "sim.joint_coordinates.watch(last)", "pass", RUNNING, "seated_anew"
    ),
    Mutation(
        "twist of G in D",
        FRAMES,
        "log(inverse(behind) @ ahead) / (2.0 * step)",
        "log(inverse(behind) @ ahead) / step",
        RUNNING,
        "twist_of",
    ),
    Mutation(
        "nearest point keeps the angles",
        "joints/types/ellipsoid.py",
        "G[:3, 3] = nearest_point(_radii(joint), T[:3, 3])",
        "G[:3, 3] = T[:3, 3] / np.linalg.norm(T[:3, 3] / _radii(joint))",
        PLACES,
        "nearest_admissible and ellipsoid",
    ),
    Mutation(
        "coordinates of rigid frames",
        READINGS,
        "return values(self.table, q, self.initial if last is None else last)",
        "return values(self.table, rigid_motion(q, q)[0], self.initial if last is None else last)",
        PLACES,
        "never_passed and slider",
    ),
    # changes
    Mutation(
        "range given anew is not on its way",
        ANEW,
        "value - sign * 0.5 * min(gap, zone) if outside else None",
        "None",
        RUNNING,
        "takes_it_back and numpy",
    ),
    Mutation(
        "barrier on its way is never moved",
        CONTROL,
        "if self._returning:",
        "if False:",
        RUNNING,
        "takes_it_back and numpy",
    ),
    Mutation(
        "barrier on its way holds what leaves",
        "joints/rows/system.py",
        "np.where(a.follows[wall], 0.0, speed",
        "np.where(False, 0.0, speed",
        RUNNING,
        "takes_it_back and numpy",
    ),
    Mutation(
        "degrees of a range as radians",
        COORDINATE,
        "None if one is None else self._in_radians(one) for one in (lower, upper)",
        "None if one is None else one for one in (lower, upper)",
        RUNNING,
        "limits_become",
    ),
    Mutation(
        "soft limits stay barriers",
        COORDINATE,
        '"compliant" if compliance > 0.0 else "barrier"',
        '"barrier"',
        RUNNING,
        "limits_become",
    ),
    Mutation(
        "a list of compliances clears the others",
        ANEW,
        "out[: min(count, len(present))] = present[:count]",
        "pass",
        RUNNING,
        "compliance_and and numpy",
    ),
    Mutation(
        "compliance without being compliant",
        ANEW,
        'enforcement="compliant", **rows',
        "**rows",
        RUNNING,
        "compliance_and and numpy",
    ),
    Mutation(
        "checkpoints forget compliances",
        CHANGE,
        '"enforcement", "compliance", "damping",',
        '"enforcement", "damping",',
        RUNNING,
        "compliance_and and numpy",
    ),
    Mutation(
        "checkpoints forget frames",
        CHANGE,
        '"parent_frame", "child_frame", "coordinates")',
        '"coordinates")',
        RUNNING,
        "seated_anew",
    ),
    Mutation(
        "all coordinates in degrees are radians",
        VIEW,
        "one._in_radians(value) for one",
        "value for one",
        RUNNING,
        "all_coordinates",
    ),
    Mutation(
        "coordinates are handed out themselves",
        VIEW,
        "self.simulation.coordinates[self._slice].copy()",
        "self.simulation.coordinates[self._slice]",
        RUNNING,
        "all_coordinates",
    ),
    Mutation(
        "rotary compliance is the linear one",
        VIEW,
        "return self._uniform(rotary=True)",
        "return self._uniform(rotary=False)",
        RUNNING,
        "compliance_and and numpy",
    ),
    # scenes
    Mutation(
        "torques scaled as forces",
        "scene/scaled.py",
        '"kg m^2": 2, "N m": 2',
        '"kg m^2": 2, "N m": 1',
        CHANGES,
        "millimetres",
    ),
    Mutation(
        "couplings are not scaled", "scene/scaled.py", "factor ** (to - k * of)", "factor ** 0", CHANGES, "millimetres"
    ),
    Mutation(
        "planes moved without their offset",
        "scene/transformed.py",
        "body.half_space.offset + float(",
        "body.half_space.offset + 0.0 * float(",
        CHANGES,
        "moves_alike",
    ),
    Mutation(
        "flags of 1 and 0 are refused",
        "scene/schema/values.py",
        "item in (0, 1) for item in items",
        "isinstance(item, bool) for item in items",
        CHANGES,
        "other_programs",
    ),
    Mutation(
        "a static body's mass does not count",
        "scene/compile/joints.py",
        "or one.spec.mass is not None",
        "",
        CHANGES,
        "masses_that",
    ),
    # impacts at ends of ranges, and contact after a joint broke
    Mutation(
        "end of a range: a rotor drags on",
        "step/impacts/rebounds.py",
        "if joints.has_rotors:",
        "if False:",
        IMPACTS,
        "turns_round",
    ),
    Mutation(
        "end of a range: rotors weigh nothing",
        "step/impacts/restitution.py",
        "= one.armature, one.locked",
        "= 0.0, one.locked",
        IMPACTS,
        "weighs_in",
    ),
    Mutation(
        "end of a range: locks do not hold",
        "step/impacts/restitution.py",
        "= one.armature, one.locked",
        "= one.armature, False",
        IMPACTS,
        "locked",
    ),
    Mutation(
        "end of a range: held as it leaves",
        "joints/rows/build.py",
        "on_the_way or bounces",
        "on_the_way",
        IMPACTS,
        "makes_no_difference",
    ),
    Mutation(
        "end of a range: pushed as it leaves",
        "step/impacts/limit_impacts.py",
        "GRANTED = 1e-3",
        "GRANTED = 1.0",
        IMPACTS,
        "makes_no_difference",
    ),
    Mutation(
        "end of a range: the parent feels nothing",
        "step/impacts/limit_impacts.py",
        "(by_parent, parent)",
        "(0.0 * by_parent, parent)",
        IMPACTS,
        "momentum",
    ),
    Mutation(
        "end of a range: bdf2 turns round",
        "step/impacts/rebounds.py",
        'joints.ends if self.settings.integrator == "bdf2" else joints.bouncing',
        "joints.bouncing",
        TURNS,
        "gives_nothing_back and bdf2",
    ),
    # friction that sticks, and what is read at ends
    Mutation(
        "friction expects to stand still",
        "joints/rows/system.py",
        "(last + rate / per_step)[rubbing]",
        "last[rubbing]",
        TURNS,
        "goes_on and numpy",
    ),
    Mutation(
        "friction's expectation forgets the model",
        "joints/rows/laws.py",
        "share = force(y) + np.divide(",
        "share = force(y) + 0.0 * np.divide(",
        LAWS,
        "one_step",
    ),
    Mutation(
        "friction's expectation stays",
        "backends/reference/numpy_joints.py",
        "self.p[friction, slots.AIM] = laws.aimed(",
        "_ = laws.aimed(",
        LAWS,
        "changes_of_efforts",
    ),
    Mutation(
        "a row that slips ends at its edge",
        "joints/rows/laws.py",
        "np.maximum(1.0, end * np.sign(share))",
        "1.0",
        LAWS,
        "one_step",
    ),
    Mutation(
        "broken joint: its bodies do not collide",
        CONTROL,
        "sim.switches.part(found)",
        "None",
        BROKEN,
        "rests and cpu",
    ),
    Mutation(
        "broken joint: other joints do not count",
        "api/switches.py",
        "np.concatenate(kept)",
        "kept[0]",
        BROKEN,
        "what_else",
    ),
]


def misplaced() -> list[Mutation]:
    """Mutations whose text is not in its file once."""
    return [one for one in MUTATIONS if (ROOT / "abd" / one.file).read_text(encoding="utf-8").count(one.old) != 1]


def main() -> int:
    """Run them all, or those whose words contain ``--only``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="part of a mutation's words")
    name = f"mutations-joints-cpu-{date.today().isoformat()}.json"
    parser.add_argument("--out", type=Path, default=ROOT / "tools" / "results" / name)
    given = parser.parse_args()
    if wrong := misplaced():
        raise SystemExit("not once in their files: " + ", ".join(f"'{one.what}'" for one in wrong))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for part in ("abd", "cuda_kernels", "tests", "tools", "scenes"):
            shutil.copytree(ROOT / part, place / part, ignore=shutil.ignore_patterns("__pycache__", "results"))
        shutil.copy(ROOT / "pyproject.toml", place)
        for one in MUTATIONS:
            if given.only in one.what:
                rows.append(tried(one, place))
                print(f"{rows[-1]['verdict']:9s} {rows[-1]['seconds']:6.1f} s  {one.what}", flush=True)
    killed = sum(row["verdict"] == "killed" for row in rows)
    print(f"{killed} of {len(rows)} killed")
    if not given.only:
        write_results(given.out, "cpu", rows, killed=killed, mutations=len(rows))
    return int(killed < len(rows))


def tried(one: Mutation, place: Path) -> dict:
    """What became of one mutation; the copy is as it was afterwards."""
    path = place / "abd" / one.file
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(one.old, one.new), encoding="utf-8")
    start = time.monotonic()
    try:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "", "-p", "no:cacheprovider", one.tests, "-k", one.chosen]
        environment = {**os.environ, "PYTHONPATH": str(place)}
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=LONGEST)
        verdict = {0: "survived", 1: "killed"}.get(done.returncode)
        if verdict is None:
            raise SystemExit(f"'{one.what}': the tests did not run\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    except subprocess.TimeoutExpired:
        verdict = "killed"
    finally:
        path.write_text(text, encoding="utf-8")
    return {**asdict(one), "verdict": verdict, "seconds": round(time.monotonic() - start, 1)}


if __name__ == "__main__":
    sys.exit(main())
