"""Count launches, reads and records of a GPU, without a GPU: `python tools/gpu_shape.py [SCENE ...] [--steps N]`.

Steps run on the device `emulated`, which executes every branch of CUDA on the processor. The table contains:

    newton                 Newton iterations
    launches               kernel launches outside of records per step: maximum, mean
    reads                  host reads per Newton iteration, including conditions: maximum without, and with, new candidates
    writes                 host writes per step
    recorded, replayed     numbers of recordings and replays
    dropped                records that were discarded, because arrays had grown or launches had changed
    patterns, invalidating new sparsity patterns of the Hessian, and those of them that discarded records
    levels                 levels of the factor, which are launched one after another
    depth                  depth of Warp's tree of bodies on CUDA

A SCENE is a file, the name of a shipped scene, NAME:SIZE of `tools/bench/scenes.py`, or SCENE@FILE to start from a pickled
checkpoint. `boxes:SIDE` analyses only the factor of a cube of SIDE^3 bodies in contact. Exit status: 1 if a value exceeds
its bound (`BOUNDS`), else 0.
"""

from __future__ import annotations

import argparse
import pickle
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import log2
from pathlib import Path

import numpy as np

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS / "bench"), str(TOOLS.parent), str(TOOLS.parent / "tests")]

from block_systems import cube  # noqa: E402

import abd  # noqa: E402
from abd.backends.device.device import EMULATED, Device  # noqa: E402
from abd.backends.linear.cholesky import Cholesky  # noqa: E402
from abd.backends.linear.elimination import Elimination  # noqa: E402
from scenes import scene_of  # noqa: E402

SCENES = ("box_stack", "pile:100", "wrecking_ball", "boxes:10")
WARM_UP = 2
"""Uncounted steps at the start, in which the capacities of arrays grow."""
BOUNDS = {"launches": 500, "reads": 1, "reads_renewed": 5, "invalidating": 0, "levels": 250}
"""Largest accepted values; the bound of the depth depends on the number of bodies."""
GRID = 1 << 10
"""Cells per axis of the Morton curve along which Warp sorts boxes."""
COLUMNS = (
    *("newton", "launches", "launches_mean", "reads", "reads_renewed", "writes", "recorded", "replayed", "dropped"),
    *("patterns", "invalidating", "levels", "depth"),
)


@dataclass
class Counts:
    """Observer of a device that counts (`abd.backends.device.device.Observer`)."""

    device: Device
    kernels: Counter = field(default_factory=Counter)
    transfers: Counter = field(default_factory=Counter)

    @contextmanager
    def launch(self, kernel, count: int, inputs: tuple) -> Iterator[None]:
        """Count the launch of a kernel outside of records."""
        if not self.device.recording:
            self.kernels[f"{kernel.module.name.rpartition('.')[2]}.{kernel.key}"] += 1
        yield

    @contextmanager
    def replay(self) -> Iterator[None]:
        """Do not count replays: `Graphs` counts them."""
        yield

    @contextmanager
    def transfer(self, name: str, array, count: int | None) -> Iterator[None]:
        """Count a read, write or sort of the host."""
        self.transfers[name] += 1
        yield


class Monitor:
    """Counts over the steps and Newton iterations of a simulation.

    Attributes:
        plain, renewed: reads of each Newton iteration without and with new candidates.
        patterns, invalidating: numbers of new sparsity patterns, and of those that discarded records.
    """

    def __init__(self, simulation: abd.Simulation):
        self.backend = simulation.backend
        self.counts = self.backend.device.observer = Counts(self.backend.device)
        self.plain, self.renewed = [], []
        self.patterns = self.invalidating = 0
        for factor in (self.backend.linear.static, self.backend.linear._whole):
            factor.set_elimination = partial(self._count_pattern, factor, factor.set_elimination)
        self._run = self.backend.iteration.run
        self.backend.iteration.run = self._count_iteration

    def totals(self) -> np.ndarray:
        """Return the numbers of launches, writes, recordings, replays and discarded records so far."""
        counts, graphs = self.counts, self.backend.iteration.graphs
        return np.array(
            [counts.kernels.total(), counts.transfers["write"], graphs.recorded, graphs.replayed, graphs.dropped]
        )

    def _count_iteration(self, progress):
        before, builds = self._reads(), self.backend.contacts.candidates.builds
        status = self._run(progress)
        is_renewed = self.backend.contacts.candidates.builds > builds
        (self.renewed if is_renewed else self.plain).append(self._reads() - before)
        return status

    def _reads(self) -> int:
        """Return the number of reads of arrays and conditions so far."""
        return self.counts.transfers["read"] + self.backend.device.conditions_read

    def _count_pattern(self, factor: Cholesky, set_elimination: Callable[[Elimination], None], elimination: Elimination) -> None:
        """Count a new pattern, and whether it discards records; the first pattern allocates the arrays."""
        generation, is_first = self.backend.device.generation, not hasattr(factor, "elimination")
        set_elimination(elimination)
        self.patterns += 1
        self.invalidating += not is_first and self.backend.device.generation != generation


def count_steps(scene: str, steps: int, verbose: bool) -> dict:
    """Return the counts of steps of a scene; if verbose, print the most frequent kernels."""
    scene, _, checkpoint = scene.partition("@")
    simulation = abd.Simulation(scene_of(scene), device=EMULATED)
    if checkpoint:
        simulation.restore(pickle.loads(Path(checkpoint).read_bytes()))
    else:
        simulation.run(steps=WARM_UP)
    monitor, totals, levels = Monitor(simulation), [], 0
    totals.append(monitor.totals())
    linear, candidates, device = simulation.backend.linear, simulation.backend.contacts.candidates, simulation.backend.device
    for _ in range(steps):
        simulation.step()
        totals.append(monitor.totals())
        levels = max(levels, linear.describe().get("levels", 0))
    if verbose:
        for name, count in monitor.counts.kernels.most_common(20):
            print(f"  {count:6d} {name}")
    launches, writes, recorded, replayed, dropped = np.diff(totals, axis=0).T
    boxes = [device.read(array) for array in candidates.tree_boxes]
    return {
        "scene": scene, "newton": len(monitor.plain) + len(monitor.renewed),
        "launches": launches.max(), "launches_mean": launches.mean(),
        "reads": max(monitor.plain, default=0), "reads_renewed": max(monitor.renewed, default=0), "writes": writes.mean(),
        "recorded": recorded.sum(), "replayed": replayed.sum(), "dropped": dropped.sum(),
        "patterns": monitor.patterns, "invalidating": monitor.invalidating, "levels": levels,
        "depth": tree_depth(*boxes), "depth_bound": 2 * log2(max(simulation.backend.n, 2)),
    }  # fmt: skip


def analyse_cube(side: int) -> dict:
    """Return the levels of the factor of a cube of bodies in contact with their neighbours."""
    elimination = Elimination(side**3, *cube(side).T, in_ranges=False)
    return {"scene": f"boxes:{side}", "levels": len(elimination.levels) - 1}


def tree_depth(lower: np.ndarray, upper: np.ndarray) -> int:
    """Return the depth of the tree that Warp builds over boxes (n, 3) on CUDA.

    Warp sorts the centres by Morton code. It merges neighbours in the order of the highest bit in which their codes
    differ; boxes with equal codes form a chain.
    """
    if len(lower) < 2:
        return len(lower)
    low, high = lower.min(axis=0), upper.max(axis=0)
    centres = (0.5 * (lower.astype(float) + upper) - low) / np.maximum(high - low, 1e-30)
    cells = np.clip(centres * GRID, 0, GRID - 1).astype(np.int64)
    codes = np.zeros(len(cells), dtype=np.int64)
    for bit in range(int(log2(GRID))):
        for axis in range(3):
            codes |= ((cells[:, axis] >> bit) & 1) << (3 * bit + 2 - axis)
    codes = np.sort(codes, kind="stable")
    differences = (codes[1:] ^ codes[:-1]).tolist()
    # Cartesian tree of the differences: a stack of (difference, height) of the subtrees to the left
    stack: list[tuple[int, int]] = []
    for difference in [*differences, 1 << 62]:
        height = 0
        while stack and stack[-1][0] <= difference:
            height = 1 + max(height, stack.pop()[1])
        stack.append((difference, height))
    return stack[-1][1]


def excesses(row: dict) -> list[str]:
    """Return descriptions of the values that exceed their bounds."""
    bounds = BOUNDS | {"depth": row.get("depth_bound", 0)}
    return [f"{name} {row[name]:.0f} > {bound:.0f}" for name, bound in bounds.items() if row.get(name, 0) > bound]


def main() -> int:
    """Print the table of counts; return 1 if a value exceeds its bound, else 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", default=SCENES, metavar="SCENE", help=f"[{' '.join(SCENES)}]")
    parser.add_argument("--steps", type=int, default=5, help="counted steps [5]")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the kernels with the most launches")
    options = parser.parse_args()
    print(" ".join([f"{'scene':<28}", *(f"{name:>13}" for name in COLUMNS)]))
    has_failed = False
    for scene in options.scenes:
        name, _, size = scene.partition(":")
        row = analyse_cube(int(size)) if name == "boxes" else count_steps(scene, options.steps, options.verbose)
        cells = (f"{row[key]:13.0f}" if key in row else f"{'':>13}" for key in COLUMNS)
        print(" ".join([f"{row['scene']:<28}", *cells]), flush=True)
        if found := excesses(row):
            has_failed = True
            print(f"  exceeds bounds: {', '.join(found)}", flush=True)
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
