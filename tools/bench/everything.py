"""All benchmarks of the processor in one command: `python tools/bench/everything.py [--quick] [--out FOLDER]`.

Runs all families in all sizes, the jointed ones beside MuJoCo and Exudyn, and draws the figures: into FOLDER, by default
`tools/results`, go `scaling-cpu-DATE.json` and `peers-cpu-DATE.json` with their tables (.txt) and figures (.png). Takes
less than 20 minutes on two cores, a few with `--quick`; nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from datetime import date
from pathlib import Path
from time import perf_counter

HERE = Path(__file__).resolve().parent
REPEATS = 3
BUDGET = 900
LIMIT = 60
"""Seconds: of all repeats, and of one case."""


def main() -> int:
    """Exit status: 0 all done, 1 something failed; its row or the messages say why."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE.parent / "results")
    parser.add_argument("--quick", action="store_true", help="small sizes, few steps")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    scaling, peers = (options.out / f"{name}-cpu-{date.today()}.json" for name in ("scaling", "peers"))
    quick = ["--quick"] if options.quick else []
    repeats = [] if options.quick else ["--repeats", str(REPEATS), "--budget", str(BUDGET)]
    begin, failed = perf_counter(), False
    for script, arguments, table in (
        ("run.py", ["--out", str(scaling), "--limit", str(LIMIT), *repeats, *quick], scaling.with_suffix(".txt")),
        ("peers.py", ["--out", str(peers), *quick], peers.with_suffix(".txt")),
        ("plot.py", [str(scaling)], None),
    ):
        print(f"{script} {' '.join(arguments)}", file=sys.stderr)
        done = subprocess.run(
            [sys.executable, "-W", "ignore", str(HERE / script), *arguments], stdout=subprocess.PIPE, text=True
        )
        print(done.stdout, end="")
        if table is not None:
            table.write_text(done.stdout, encoding="utf-8")
        failed |= done.returncode != 0
    print(f"{perf_counter() - begin:.0f} s in all", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
