"""What a GPU would be given to do, counted without one: `python tools/gpu_shape.py [SCENE ...] [-o FILE] [--steps N]`.

Steps run on the device `emulated`, which takes every branch of CUDA on the processor. Counted are, per scene: kernels launched
one by one per step; what the host reads per Newton iteration, conditions that it decides included, with a renewed candidate
list and without; records made, replayed and thrown away, be it that arrays had to grow; new patterns of contacts, and those that
made records useless; the levels of the factor, which are launched one after another; and how deep Warp's tree over the bodies is
on CUDA. Exit status 1 if a bound (`BOUNDS`) is not kept.

A SCENE is a file, the name of a shipped one, NAME:SIZE of `tools/bench/scenes.py`, `boxes:SIDE` for the pattern of a cube of
boxes that touch six others each, without steps, or SCENE@FILE for steps from a pickled checkpoint on.
"""

from __future__ import annotations

import argparse
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import log2
from pathlib import Path

import numpy as np

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS / "bench"), str(TOOLS.parent), str(TOOLS.parent / "tests")]

from block_systems import cube  # noqa: E402
from results_file import write_results  # noqa: E402

import abd  # noqa: E402
from abd.backends.device.device import EMULATED, Device  # noqa: E402
from abd.backends.linear.cholesky import Cholesky  # noqa: E402
from abd.backends.linear.elimination import Elimination  # noqa: E402
from scenes import scene_of  # noqa: E402

SCENES = ("box_stack", "pile:100", "wrecking_ball", "boxes:10")
SETTLED = 2
"""Steps before any are counted: the first ones find out how much capacity there has to be."""
BOUNDS = {"launches": 500, "reads": 1, "reads_renewed": 6, "outdating": 0, "levels": 250}
"""Most launches per step, reads per Newton iteration, patterns that records do not outlive, and levels; the tree has a bound of
its own (`faults`)."""
GRID = 1 << 10
"""Cells per axis of the curve that Warp sorts boxes along."""


@dataclass
class Counts:
    """An observer of a device that counts (`abd.backends.device.device.Observer`)."""

    device: Device
    launches: int = 0
    reads: int = 0
    writes: int = 0
    sorts: int = 0
    kernels: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def launch(self, kernel, count: int, inputs: tuple) -> Iterator[None]:
        """A kernel; in a record it is none of its own."""
        if not self.device.recording:
            self.launches += 1
            name = f"{kernel.module.name.rpartition('.')[2]}.{kernel.key}"
            self.kernels[name] = self.kernels.get(name, 0) + 1
        yield

    @contextmanager
    def replay(self) -> Iterator[None]:
        """A graph."""
        yield

    @contextmanager
    def transfer(self, name: str, array, count: int | None) -> Iterator[None]:
        """Something that the host takes part in."""
        setattr(self, f"{name}s", getattr(self, f"{name}s") + 1)
        yield


class EnoughError(Exception):
    """As many Newton iterations as were to be counted."""


class Watch:
    """Counts of one simulation's steps, and of its Newton iterations one by one."""

    def __init__(self, simulation: abd.Simulation, most: int):
        self.most = most
        self.simulation, self.backend = simulation, simulation.backend
        self.graphs = self.backend.iteration.graphs
        self.counts = self.backend.device.observer = Counts(self.backend.device)
        self.plain, self.renewed = [], []
        self.patterns = self.outdating = 0
        for factor in (self.backend.linear.static, self.backend.linear._whole):
            factor.set_elimination = partial(self.count_pattern, factor, factor.set_elimination)
        self._run = self.backend.iteration.run
        self.backend.iteration.run = self.iterate

    def iterate(self, progress):
        """A Newton iteration, and what the host read on the way.

        Raises:
            EnoughError: so many were to be counted.
        """
        if self.newton >= self.most:
            raise EnoughError
        before, builds = self.reads, self.backend.contacts.candidates.builds
        status = self._run(progress)
        found = self.renewed if self.backend.contacts.candidates.builds > builds else self.plain
        found.append(self.reads - before)
        return status

    def count_pattern(self, factor: Cholesky, set_elimination: Callable[[Elimination], None], elimination: Elimination) -> None:
        """A new pattern of contacts, and whether it made records useless; the first one makes the arrays of all."""
        generation, first = self.backend.device.generation, not hasattr(factor, "elimination")
        set_elimination(elimination)
        self.patterns += 1
        self.outdating += not first and self.backend.device.generation != generation

    @property
    def newton(self) -> int:
        """Iterations so far."""
        return len(self.plain) + len(self.renewed)

    @property
    def reads(self) -> int:
        """Of arrays, and of conditions."""
        return self.counts.reads + self.backend.device.conditions_read

    @property
    def now(self) -> np.ndarray:
        """Launches, reads, writes, recorded, replayed, dropped so far."""
        c, g = self.counts, self.graphs
        return np.array([c.launches, self.reads, c.writes, g.recorded, g.replayed, g.dropped])


def steps_of(scene: str, steps: int, most: int, verbose: bool) -> dict:
    """Counts of the steps of a scene, the last one cut short after so many Newton iterations in all."""
    scene, _, checkpoint = scene.partition("@")
    simulation = abd.Simulation(scene_of(scene), device=EMULATED)
    if checkpoint:
        simulation.restore(pickle.loads(Path(checkpoint).read_bytes()))
    for _ in range(0 if checkpoint else SETTLED):
        simulation.step()
    watch, rows, levels, enough = Watch(simulation, most), [], 0, False
    linear = simulation.backend.linear
    while len(rows) < steps and not enough:
        before, newton = watch.now, watch.newton
        try:
            simulation.step()
        except EnoughError:
            enough = True
        rows.append(watch.now - before)
        levels = max(levels, linear.describe().get("levels", 0))
        if verbose:
            print(f"  {len(rows)}: {watch.newton - newton} iterations, {rows[-1].tolist()}, {levels} levels", flush=True)
    if verbose:
        for name, count in sorted(watch.counts.kernels.items(), key=lambda one: -one[1])[:20]:
            print(f"  {count:6d} {name}")
    rows = np.array(rows)
    candidates, device = simulation.backend.contacts.candidates, simulation.backend.device
    boxes = [device.read(one) for one in candidates.tree_boxes]
    return {
        "scene": scene, "bodies": simulation.backend.n, "steps": len(rows), "newton": watch.newton,
        "launches": int(rows[:, 0].max()), "launches_mean": float(rows[:, 0].mean()),
        "reads": max(watch.plain, default=0), "reads_renewed": max(watch.renewed, default=0), "renewed": len(watch.renewed),
        "writes": float(rows[:, 2].mean()), "recorded": int(rows[:, 3].sum()), "replayed": int(rows[:, 4].sum()),
        "dropped": int(rows[:, 5].sum()), "patterns": watch.patterns,
        "outdating": watch.outdating, "solver": linear.describe().get("name", ""), "levels": levels,
        "depth": tree_depth(*boxes), "depth_bound": 2 * log2(max(simulation.backend.n, 2)),
    }  # fmt: skip


def pattern_of(side: int) -> dict:
    """The factor of a cube of boxes, as it is for a GPU."""
    n, pairs = side**3, cube(side)
    elimination = Elimination(n, pairs[:, 0], pairs[:, 1], in_ranges=False)
    return {
        "scene": f"boxes:{side}", "bodies": n, "solver": "block Cholesky", "levels": len(elimination.levels) - 1,
    }  # fmt: skip


def tree_depth(lower: np.ndarray, upper: np.ndarray) -> int:
    """Depth of the tree that Warp builds over boxes on CUDA: sorted along a curve through the bounds of all, two neighbours
    are joined sooner the later their codes differ, those with equal codes one after the other."""
    if len(lower) < 2:
        return len(lower)
    low, high = lower.min(axis=0), upper.max(axis=0)
    middle = (0.5 * (lower.astype(float) + upper) - low) / np.maximum(high - low, 1e-30)
    cells = np.clip(middle * GRID, 0, GRID - 1).astype(np.int64)
    code = np.zeros(len(cells), dtype=np.int64)
    for bit in range(int(log2(GRID))):
        for axis in range(3):
            code |= ((cells[:, axis] >> bit) & 1) << (3 * bit + 2 - axis)
    code = np.sort(code, kind="stable")
    apart = (code[1:] ^ code[:-1]).tolist()
    # the root is where neighbours differ most: heights by a stack of what lies left
    stack: list[tuple[int, int]] = []
    for delta in [*apart, 1 << 62]:
        height = 0
        while stack and stack[-1][0] <= delta:
            height = 1 + max(height, stack.pop()[1])
        stack.append((delta, height))
    return stack[-1][1]


def faults(row: dict) -> list[str]:
    """Bounds that a scene does not keep."""
    found = [f"{name} {row[name]:.0f}" for name, most in BOUNDS.items() if row.get(name, 0) > most]
    if row.get("depth", 0) > row.get("depth_bound", 0):
        found.append(f"depth {row['depth']}")
    return found


def main() -> int:
    """Count, print a table, write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", default=SCENES, metavar="SCENE", help=f"[{' '.join(SCENES)}]")
    parser.add_argument("--steps", type=int, default=5, help="steps that are counted [5]")
    parser.add_argument("--iterations", type=int, default=10**9, help="Newton iterations after which a scene is cut short")
    parser.add_argument("-o", "--output", type=Path, help="JSON file")
    parser.add_argument("-v", "--verbose", action="store_true", help="every step, and the kernels launched most often")
    options = parser.parse_args()
    rows, wrong = [], False
    shown = ("newton", "launches", "launches_mean", "reads", "reads_renewed", "writes", "recorded", "replayed", "dropped")
    shown += ("patterns", "outdating")
    shown += ("levels", "depth")
    print(" ".join([f"{'scene':<28}", *(f"{name:>13}" for name in shown)]))
    for scene in options.scenes:
        name, _, size = scene.partition(":")
        row = pattern_of(int(size)) if name == "boxes" else steps_of(scene, options.steps, options.iterations, options.verbose)
        rows.append(row)
        cells = (f"{row[key]:13.0f}" if key in row else f"{'':>13}" for key in shown)
        print(" ".join([f"{row['scene']:<28}", *cells]), flush=True)
        if bad := faults(row):
            wrong = True
            print(f"  beyond its bounds: {', '.join(bad)}", flush=True)
    if options.output:
        write_results(options.output, "cpu", rows, bounds=BOUNDS, steps=options.steps)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
