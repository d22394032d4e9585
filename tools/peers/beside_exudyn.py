"""Mechanisms beside Exudyn, run live: `python tools/peers/beside_exudyn.py [--only TEXT] [--energy STEPS | --costs] [-o FILE]`.

Both programs get the same numbers (`peer_mechanisms`) and take the same steps, five of them, each half of the one before:
ours with its default settings and `exact` joints, Exudyn's generalized alpha with its own (spectral radius 0.9). The error
is the largest distance of a point of a body from where the reference has it, at ten times of the run; the reference is
Exudyn's with steps 4 and 8 times finer than the finest, extrapolated, and stands beside how far ours, extrapolated, is from
it. With `--energy`, over as many of the longest steps and relative to the energy that moved: what is lost or gained at their
end (the mean of the last tenth), and the largest change, which comes and goes with the error of the motion. With `--costs`
CPU times alone, without the references that errors need.
Exit status 1 if an error is above 3 times Exudyn's, an order below 1.8, Newton above 3, CPU time above 5 times, or energy
above 1e-3.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

TOOLS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOOLS / "peers"), str(TOOLS), str(TOOLS.parent)]

from peer_mechanisms import Mechanism, mechanisms  # noqa: E402
from peer_programs import distance, extrapolated, initial_energy, run_exudyn, run_ours  # noqa: E402
from results_file import write_results  # noqa: E402

SAMPLES = 10
HALVINGS = 4
BOUNDS = {"ratio": 3.0, "newton": 3.0, "cpu": 5.0, "energy": 1e-3}
LEAST_ORDER = 1.8


def compared(mechanism: Mechanism, device: str, halvings: int, **solver) -> dict:
    """Errors and costs of both at every step."""
    steps = [mechanism.step * 0.5**k for k in range(halvings + 1)]
    finest = [run_exudyn(mechanism, 0.25 * steps[-1] * share, SAMPLES, exactly=True) for share in (1.0, 0.5)]
    reference = extrapolated(*finest)
    ours = [run_ours(mechanism, h, SAMPLES, device, **solver) for h in steps]
    theirs = [run_exudyn(mechanism, h, SAMPLES) for h in steps]
    rows = []
    for h, own, peer in zip(steps, ours, theirs):
        error, peers = (distance(mechanism, run, reference) for run in (own, peer))
        cost = {"newton": own.newton, "exudyn_newton": peer.newton}
        cost |= {"ms": own.milliseconds, "exudyn_ms": peer.milliseconds, "strain": own.strain}
        rows.append({"h": h, "error": error, "exudyn_error": peers, "ratio": error / peers, **cost})
    errors = np.array([[row["error"], row["exudyn_error"]] for row in rows])
    order = np.log2(errors[:-1] / errors[1:])
    return {
        "mechanism": mechanism.name,
        "rows": rows,
        "order": order[:, 0].tolist(),
        "exudyn_order": order[:, 1].tolist(),
        "apart": distance(mechanism, extrapolated(*ours[-2:]), reference),
        "reference_moves": distance(mechanism, finest[1], reference),
    }


def costs(mechanism: Mechanism, device: str, halvings: int, **solver) -> list[tuple[float, float, float]]:
    """Steps [s] and CPU times [ms] of a step of both, one after the other at every step."""
    rows = []
    for h in (mechanism.step * 0.5**k for k in range(halvings + 1)):
        ours, theirs = run_ours(mechanism, h, SAMPLES, device, **solver), run_exudyn(mechanism, h, SAMPLES)
        rows.append((h, ours.milliseconds, theirs.milliseconds))
    return rows


def energy(mechanism: Mechanism, device: str, steps: int, **solver) -> dict:
    """Change of energy [-] since the start at the end of a long run, the largest one on the way, and what it took."""
    long = replace(mechanism, duration=steps * mechanism.step)
    run = run_ours(long, mechanism.step, 1, device, **solver)
    change = (run.energies - initial_energy(mechanism)) / np.max(run.kinetic)
    end = float(np.mean(change[-steps // 10 :]))
    return {"energy": end, "largest": float(np.abs(change).max()), "newton": run.newton, "strain": run.strain}


def told(found: dict) -> str:
    """Lines of a table."""
    lines = []
    for row in found["rows"]:
        lines.append(
            f"| {found['mechanism']} | {row['h']:.3g} | {row['error']:.1e} | {row['exudyn_error']:.1e} "
            f"| {row['ratio']:.2f} | {row['newton']:.2f} ({row['exudyn_newton']:.2f}) "
            f"| {row['ms']:.2f} ({row['exudyn_ms']:.3f}) | {row['strain']:.0e} |"
        )
    orders = ", ".join(f"{one:.2f}" for one in found["order"])
    lines.append(f"  order {orders}; extrapolated apart {found['apart']:.1e}, reference {found['reference_moves']:.1e}")
    return "\n".join(lines)


def missed(found: dict) -> list[str]:
    """Which bounds a mechanism does not hold."""
    rows = found["rows"]
    worst = {
        "ratio": max(row["ratio"] for row in rows),
        "newton": max(row["newton"] for row in rows),
        "cpu": max(row["ms"] / row["exudyn_ms"] for row in rows),
        "energy": abs(found.get("long", {}).get("energy", 0.0)),
    }
    names = [f"{name} {value:.3g} above {BOUNDS[name]:g}" for name, value in worst.items() if value > BOUNDS[name]]
    if min(found["order"]) < LEAST_ORDER:
        names.append(f"order {min(found['order']):.2f} below {LEAST_ORDER:g}")
    return names


def tell_costs(options: argparse.Namespace, **solver) -> int:
    """Print CPU times; 1 if one is above its bound."""
    print("| mechanism | h | CPU ms/step | Exudyn's | ratio |\n|---|---|---|---|---|")
    dear = False
    for mechanism in (one for one in mechanisms() if options.only in one.name):
        for h, ours, theirs in costs(mechanism, options.device, options.halvings, **solver):
            print(f"| {mechanism.name} | {h:.3g} | {ours:.3f} | {theirs:.3f} | {ours / theirs:.2f} |", flush=True)
            dear = dear or ours > BOUNDS["cpu"] * theirs
    return int(dear)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="part of a mechanism's name")
    parser.add_argument("--halvings", type=int, default=HALVINGS)
    parser.add_argument("--energy", type=int, default=0, help="steps of the conservative ones")
    parser.add_argument("--costs", action="store_true", help="CPU times alone")
    parser.add_argument("--radius", type=float, help="solver.spectral_radius")
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    solver = {} if options.radius is None else {"spectral_radius": options.radius}
    if options.costs:
        return tell_costs(options, **solver)
    rows = []
    print("| mechanism | h | error [m] | Exudyn's | ratio | Newton (Exudyn) | CPU ms/step (Exudyn) | strain |")
    print("|---|---|---|---|---|---|---|---|")
    for mechanism in mechanisms():
        if options.only not in mechanism.name:
            continue
        found = compared(mechanism, options.device, options.halvings, **solver)
        print(told(found), flush=True)
        if options.energy and mechanism.conservative:
            found["long"] = energy(mechanism, options.device, options.energy, **solver)
            print("  " + ", ".join(f"{key} {value:.3g}" for key, value in found["long"].items()), flush=True)
        found["missed"] = missed(found)
        print("  missed: " + (", ".join(found["missed"]) or "nothing"), flush=True)
        rows.append(found)
    if not rows:
        print(f"no mechanism has '{options.only}' in its name", file=sys.stderr)
        return 2
    if options.output:
        write_results(options.output, options.device, rows, **solver)
    return int(any(row["missed"] for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
