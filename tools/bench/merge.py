"""Gather what `tools/gpu_check.sh` measured: `python tools/bench/merge.py FOLDER --out RESULTS.json`.

FOLDER holds, for every part that was begun, NAME.part (exit status and seconds), NAME.txt and NAME.log (its output), and
where it measures NAME.json: contact, contact-warp, chains and profile by `run.py`, peer by `peer_libuipc.py`, raw by
`raw_kernels.py`.
Writes one JSON file, and beside it a table of the same name in Markdown: what should hold and does or does not, what was
not measured, and all rows.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "peers"), str(HERE.parent.parent)]

from peer_libuipc import COLUMNS as PEER_COLUMNS  # noqa: E402
from raw_kernels import COLUMNS as RAW_COLUMNS  # noqa: E402
from run import text  # noqa: E402

from abd.commands import profile  # noqa: E402
from abd.commands.bench import table  # noqa: E402

CHECKS = {
    "smoke": "what has to work at all",
    "tests": "tests on the device",
    "memcheck": "compute-sanitizer memcheck",
    "initcheck": "compute-sanitizer initcheck",
}
MEASURED = {
    "contact": "scenes with contact",
    "contact-warp": "scenes with contact without hand-written kernels",
    "chains": "chains",
    "peer": "libuipc beside",
    "profile": "profiles",
    "raw": "hand-written kernels",
}
NOT_THERE, NO_TIME = 127, 124
AT_LEAST, AT_MOST = "at least", "at most"


def merged(folder: Path) -> dict:
    """``{"facts", "doctor", "checks", "missing", "goals"}`` and the rows of every part that has any.

    A check is "passed", "FAILED" or left out; `missing` says what was not measured, and why.
    """
    contents = {part: content for part in MEASURED if (content := _json(folder / f"{part}.json"))}
    rows = {part: content["rows"] for part, content in contents.items()}
    checks, missing = {}, []
    for part, what in CHECKS.items():
        ended = _json(folder / f"{part}.part")
        if not ended or ended["status"] in (NOT_THERE, NO_TIME):
            missing.append(f"{what} ({_why(folder, part)})")
        else:
            checks[part] = "passed" if ended["status"] == 0 else "FAILED"
    for part, what in MEASURED.items():
        if part in contents:
            missing += _gaps(contents[part], part)
        else:
            missing.append(f"{what} ({_why(folder, part)})")
    facts = next((content["facts"] for content in contents.values()), {})
    facts = {name: value for name, value in facts.items() if name != "asked"}
    seconds = {part: ended["seconds"] for part in (*CHECKS, *MEASURED) if (ended := _json(folder / f"{part}.part"))}
    doctor = folder / "doctor.txt"
    return {
        "facts": facts | {"seconds": seconds},
        "doctor": doctor.read_text(encoding="utf-8").splitlines() if doctor.is_file() else [],
        "checks": checks,
        "missing": missing,
        "goals": goals(rows),
        **rows,
    }


def _json(path: Path) -> dict | None:
    """Content of a file; None where there is none, or half of one."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _why(folder: Path, part: str) -> str:
    """Why a part has nothing to show, from its exit status and the last line that it said."""
    ended = _json(folder / f"{part}.part")
    if not ended:
        return "left out"
    if ended["status"] == NO_TIME:
        return f"not done after {ended['seconds']} s"
    said = (folder / f"{part}.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return said[-1] if said else f"exit status {ended['status']}"


def _gaps(content: dict, part: str) -> Iterator[str]:
    """Cases of a part that were asked for and have no row with a time."""
    timed, failures = set(), {}
    for row in content["rows"]:
        case = row["scene"] if part == "peer" else f"{row.get('family')} {row.get('size', 0):g}"
        if row.get("ms") is not None:
            timed.add((case, row.get("program")))
        if row.get("failure"):
            failures[case, row.get("program")] = row["failure"]
    begun = {case for case, _ in (*timed, *failures)}
    yield from (
        f"{case} in {part} (no time was left)" for case in content["facts"].get("asked", ()) if case not in begun
    )
    for key, failure in failures.items():
        if key not in timed:
            yield f"{' '.join(filter(None, key))} in {part} ({failure})"


def goals(rows: dict[str, list[dict]]) -> list[dict]:
    """What should hold: ``{"goal", "value", "holds"}``, None for both where it was not measured."""

    def one(part: str, name: str, **about) -> float | None:
        found = (row for row in rows.get(part, ()) if all(row.get(key) == value for key, value in about.items()))
        return next((row[name] for row in found if row.get(name) is not None and not row.get("failure")), None)

    def worst(of: Callable[[dict], float]) -> float | None:
        found = [
            row["profile"]["timeline"] for row in rows.get("profile", ()) if (row.get("profile") or {}).get("timeline")
        ]
        return max(map(of, found), default=None)

    def reads(timeline: dict) -> float:
        return (timeline["reads"] - 1.0) / max(timeline["newton"], 1e-9)

    peer = [row["scene"] for row in rows.get("peer", ()) if row["scene"].startswith("wrecking_ball")]
    above = one("peer", "over_abd", scene=peer[0], program="libuipc converged") if peer else None
    limits = (
        ("wrecking ball, libuipc over ours at 1e-3 m/s", above, AT_LEAST, 10.0),
        ("wrecking ball, ms per step", one("contact", "ms", family="wrecking_ball"), AT_MOST, 10.0),
        ("100,000 boxes in contact, ms per step", one("contact", "ms", family="pile", size=1e5), AT_MOST, 100.0),
        ("1,000,000 links, ms per Newton iteration", one("chains", "ms_per_newton", size=1e6), AT_MOST, 50.0),
        ("launches per step outside of graphs", worst(itemgetter("launches")), AT_MOST, 500.0),
        ("part of a step in which nothing runs on the device", worst(itemgetter("waiting")), AT_MOST, 0.05),
        ("reads per Newton iteration, beside one per step", worst(reads), AT_MOST, 1.0),
    )
    return [
        {
            "goal": f"{goal}, {side} {limit:g}",
            "value": value,
            "holds": None if value is None else (value >= limit if side == AT_LEAST else value <= limit),
        }
        for goal, value, side, limit in limits
    ]


def markdown(result: dict) -> str:
    """The tables."""
    facts = result["facts"]
    lines = [f"# {facts.get('device', '')}, {facts.get('date', '')}", "", "| goal | measured | |", "|---|---|---|"]
    lines += [f"| {CHECKS[part]} | | {verdict} |" for part, verdict in result["checks"].items()]
    for goal in result["goals"]:
        measured = "" if goal["value"] is None else f"{goal['value']:.3g}"
        lines.append(f"| {goal['goal']} | {measured} | {VERDICTS[goal['holds']]} |")
    lines.append("")
    if result["missing"]:
        lines += ["Not measured:", "", *(f"- {what}" for what in result["missing"]), ""]
    blocks = [text(result[part]) for part in ("contact", "contact-warp", "chains") if part in result]
    if "peer" in result:
        blocks.append(table(result["peer"], PEER_COLUMNS))
    if "raw" in result:
        blocks.append(table(result["raw"], RAW_COLUMNS))
    for row in result.get("profile", []):
        if "profile" in row:
            blocks.append(f"{row['scene']}\n{profile.text(row['profile'])}")
    for block in blocks:
        lines += ["```", block, "```", ""]
    return "\n".join(lines)


VERDICTS = {True: "holds", False: "MISSED", None: "not measured"}


def main() -> int:
    """Exit status: 0 all was measured and the checks passed, 1 not so."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="", help="what the device is called")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    result = merged(options.folder)
    if options.device:
        result["facts"]["device"] = options.device
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    said = markdown(result)
    options.out.with_suffix(".md").write_text(said, encoding="utf-8")
    print(said)
    return 1 if result["missing"] or "FAILED" in result["checks"].values() else 0


if __name__ == "__main__":
    raise SystemExit(main())
