"""Compare two results: `python tools/bench/compare.py BEFORE.json AFTER.json [--threshold 1.15]`.

Prints time and Newton iterations of every case that both hold, after over before. A case is slower where its median
grew beyond the threshold and the ranges of its repeats do not overlap; it is looser where it ends above the tolerance,
or failed. Exit status: 0 nothing of this, 1 something, 2 the files cannot be compared.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import geometric_mean

TIME = "ms_solving"
FACTS = ("processor", "cores", "versions")
"""Facts that should be alike for times to be compared."""


def key(row: dict) -> tuple:
    """What a row is about."""
    return row["family"], row["size"], row.get("variant", ""), row["device"], row.get("of", "")


def compared(before: list[dict], after: list[dict], threshold: float) -> list[dict]:
    """One row per case that both hold: ``name, before, after, ratio, newton, verdict``; times in milliseconds."""
    known = {key(row): row for row in before}
    found = []
    for row in after:
        old = known.get(key(row))
        if old is None:
            continue
        family, size, variant, device, of = key(row)
        one = {
            "name": " ".join(filter(None, [family, f"{size:g}", variant, of, device])),
            "verdict": verdict_of(row, old),
        }
        quantity = "ratio" if of else TIME
        if not one["verdict"] and old.get(quantity) and row.get(quantity):
            ratio = row[quantity] / old[quantity]
            one |= {"before": old[quantity], "after": row[quantity], "ratio": ratio}
            if not of:
                one["newton"] = row["newton"] / old["newton"] if old["newton"] else 1.0
            if ratio > threshold and smallest(row, quantity) > largest(old, quantity):
                one["verdict"] = "slower"
            elif ratio < 1.0 / threshold and largest(row, quantity) < smallest(old, quantity):
                one["verdict"] = "faster"
        found.append(one)
    return found


def verdict_of(row: dict, old: dict) -> str:
    """What a row says apart from its time."""
    if row.get("failure"):
        return "fails as before" if old.get("failure") else f"fails: {row['failure']}"
    if row.get("reached") is not None and row["reached"] > row["tolerance"] >= (old.get("reached") or 0.0):
        return f"looser: {row['reached']:.2g} m/s of {row['tolerance']:.2g}"
    return ""


def smallest(row: dict, quantity: str) -> float:
    """Of all repeats."""
    return min(row.get(f"{quantity}_of_repeats", [row[quantity]]))


def largest(row: dict, quantity: str) -> float:
    """Of all repeats."""
    return max(row.get(f"{quantity}_of_repeats", [row[quantity]]))


def text(rows: list[dict]) -> str:
    """The table, and the geometric mean of all ratios of times."""
    width = max((len(row["name"]) for row in rows), default=4)
    lines = [f"{'case':<{width}} {'before':>10} {'after':>10} {'ratio':>7} {'Newton':>7}"]
    for row in rows:
        numbers = " " * 37
        if "ratio" in row:
            newton = f"{row['newton']:7.2f}" if "newton" in row else " " * 7
            numbers = f"{row['before']:10.3g} {row['after']:10.3g} {row['ratio']:7.2f} {newton}"
        lines.append(f"{row['name']:<{width}} {numbers} {row['verdict']}".rstrip())
    ratios = [row["ratio"] for row in rows if "newton" in row]
    if ratios:
        lines.append(f"geometric mean of {len(ratios)} ratios of times {geometric_mean(ratios):.3f}")
    return "\n".join(lines)


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--threshold", type=float, default=1.15)
    options = parser.parse_args()
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in (options.before, options.after))
    rows = compared(before["rows"], after["rows"], options.threshold)
    if not rows:
        print("the files have no case in common", file=sys.stderr)
        return 2
    for name in FACTS:
        one, other = before["facts"].get(name), after["facts"].get(name)
        if one != other:
            print(f"note: {name} differs: {one} and {other}")
    for path, results in ((options.before, before), (options.after, after)):
        print(f"{path}: {results['facts']['date']}, load {results['facts'].get('load_average')}")
    print(text(rows))
    bad = [row for row in rows if row["verdict"].startswith(("slower", "looser", "fails:"))]
    if bad:
        print(f"{len(bad)} of {len(rows)} cases are worse")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
