"""Gather what `tools/gpu_check.sh` measured: `python tools/bench/merge.py FOLDER --tests N --out RESULTS.json`.

FOLDER holds what was done of: rows.json (`run.py`), peer.json (`peer_libuipc.py`), profile.json (`abd bench --profile
--json`). Writes one JSON file, with a table of the same name in Markdown beside it that says what was not measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

from peer_libuipc import COLUMNS as PEER_COLUMNS  # noqa: E402
from run import text  # noqa: E402

from abd import profile  # noqa: E402
from abd.bench import table  # noqa: E402

PARTS = {"rows": "benchmarks", "peer": "the comparison with libuipc", "profile": "the profile"}


def merged(folder: Path, tests: int) -> dict:
    """All parts that are there; `missing` names the others, `tests` is the exit status of the tests, -1 if there are none."""
    found, missing = {}, []
    for part, what in PARTS.items():
        file = folder / f"{part}.json"
        try:
            found[part] = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            missing.append(what)
    if tests < 0:
        missing.append("tests on the device")
    facts = next((part["facts"] for part in found.values()), {})
    rows = {part: content["rows"] for part, content in found.items()}
    return {"facts": facts, "tests": tests, "missing": missing, **rows}


def markdown(result: dict) -> str:
    """The tables."""
    facts = result["facts"]
    lines = [f"# {facts.get('device', '')}, {facts.get('date', '')}", ""]
    if result["tests"] >= 0:
        lines += [f"Tests on the device: {'passed' if result['tests'] == 0 else 'FAILED'}.", ""]
    if result["missing"]:
        lines += [f"Not measured: {', '.join(result['missing'])}.", ""]
    blocks = []
    if "rows" in result:
        blocks.append(text(result["rows"]))
    if "peer" in result:
        blocks.append(table(result["peer"], PEER_COLUMNS))
    for row in result.get("profile", []):
        if "profile" in row:
            blocks.append(f"{row['scene']}\n{profile.text(row['profile'])}")
    for block in blocks:
        lines += ["```", block, "```", ""]
    return "\n".join(lines)


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tests", type=int, default=-1, help="exit status of the tests [there were none]")
    parser.add_argument("--device", default="", help="what the device is called")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    result = merged(options.folder, options.tests)
    if options.device:
        result["facts"]["device"] = options.device
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    said = markdown(result)
    options.out.with_suffix(".md").write_text(said, encoding="utf-8")
    print(said)
    return 0 if result["tests"] <= 0 and not result["missing"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
