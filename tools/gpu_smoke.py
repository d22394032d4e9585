"""Check the basic functions on a GPU before tests and measurements: `python tools/gpu_smoke.py [--device cuda] [--out DIR]`.

Seven stages run as separate processes with time limits. Each prints one line and writes its output to DIR/STAGE.log. If `start`
fails, the other stages are skipped. Exit status: 1 if a stage failed, else 0. `--device emulated` runs all stages on the
processor.

    start     versions of Warp, driver and device; time for loading all kernels, including those of CuPy if it is installed
    graphs    loops, branches, copies and fills in graphs, replayed ten times
    transfer  reads, writes, scans, sorts and reductions, compared with NumPy
    factor    direct and iterative solutions of linear systems, compared with dense ones
    scenes    five steps of small scenes without graphs, compared with the processor
    replay    the same steps with graphs: bitwise equal to those without
    impact    30 steps of `wrecking_ball`, or of `--impact SCENE@FILE` from a pickled checkpoint: time per step
"""

from __future__ import annotations

import argparse
import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import numpy as np  # noqa: E402
import warp as wp  # noqa: E402

import abd  # noqa: E402
import cuda_kernels  # noqa: E402
from abd.backends.device.device import EMULATED, Device  # noqa: E402
from abd.backends.device.graphs import Graphs  # noqa: E402

SCENES = ("falling_box", "box_stack", "chain", "ragdoll", "gear_train")
STEPS = 5
TOLERANCE = 1e-9
"""Largest difference between the states on two devices [m], whose sums have different orders."""
SIZES = (0, 1, 511, 513, 1_000_000)
IMPACT = "wrecking_ball"


@wp.kernel
def count_down(first: wp.int32, remaining: wp.array(dtype=wp.int32), total: wp.array(dtype=wp.float64)):
    """Decrement the number of remaining passes and increment the total."""
    remaining[0] = remaining[0] - 1
    total[0] = total[0] + wp.float64(1.0)


@wp.kernel
def is_odd(first: wp.int32, remaining: wp.array(dtype=wp.int32), odd: wp.array(dtype=wp.int32)):
    """Compute whether a number is odd."""
    odd[0] = remaining[0] % 2


@wp.kernel
def add_one(first: wp.int32, total: wp.array(dtype=wp.float64)):
    """Add one; the first launch of this kernel is inside a branch."""
    k = wp.tid() + first
    total[k] = total[k] + wp.float64(1.0)


def start(name: str) -> str:
    """Load all kernels and return versions and the loading time."""
    begin = perf_counter()
    device = Device(name)
    from abd.backends.warp import on_warp  # noqa: F401 - defines kernels

    device.load(cuda_kernels)
    raw = "kernels of CuPy loaded" if device.raw else device.why_not_raw
    if device.warp.is_cuda and device.raw is None and importlib.util.find_spec("cupy"):
        raise RuntimeError(f"CuPy is installed, but {raw}")
    text = f"{device.warp.name}, Warp {wp.__version__}, {raw}"
    if device.warp.is_cuda:
        text += f", sm_{device.warp.arch}, CUDA of the driver {wp.get_cuda_driver_version()}"
    return f"{text}; kernels loaded in {perf_counter() - begin:.1f} s"


def graphs(name: str) -> str:
    """Replay a loop with a branch, as in a Newton iteration."""
    device = Device(name)
    records = Graphs(device)
    if not records.whole:
        raise RuntimeError("graphs do not support loops and branches on this device")
    remaining, odd = device.zeros(1, wp.int32), device.zeros(1, wp.int32)
    total, copied, filled = (device.zeros(4, wp.float64) for _ in range(3))
    passes = device.upload([7], wp.int32)

    def branch() -> None:
        device.launch(add_one, 1, filled)
        filled[1:].fill_(1.0)

    def loop_body() -> None:
        device.launch(count_down, 1, remaining, total)
        device.launch(is_odd, 1, remaining, odd)
        device.copy(copied, total)
        device.when(odd, branch)

    def loop() -> None:
        device.copy(remaining, passes)
        device.fill(total)
        device.fill(filled)
        device.repeat(remaining, loop_body)

    for _ in range(10):
        records.run("loop", loop)
        found = [device.read(array).tolist() for array in (total, copied, filled)]
        if found != [[7.0, 0.0, 0.0, 0.0], [7.0, 0.0, 0.0, 0.0], [3.0, 1.0, 1.0, 1.0]]:
            raise RuntimeError(f"total, copied and filled have wrong values: {found}")
    return f"{records.recorded} recorded, {records.replayed} replayed"


def transfer(name: str) -> str:
    """Compare reads, writes, scans, sorts and reductions with NumPy."""
    from abd.backends.device.scan import Scan
    from abd.backends.islands import Islands
    from cuda_kernels.parallel import sums

    device, rng = Device(name), np.random.default_rng(0)
    device.load(cuda_kernels)
    for size in SIZES:
        values = rng.normal(size=size)
        array = device.upload(values, wp.float64)
        for count in (None, 0, size // 2, size):
            np.testing.assert_array_equal(device.read(array, count), values[:count])
        device.write(array, -values)
        np.testing.assert_array_equal(device.read(array), -values)
        counts = rng.integers(0, 5, size + 1).astype(np.int32)
        offsets, expected = device.zeros(size + 1, wp.int32), np.concatenate([[0], np.cumsum(counts[:size])])
        scan = Scan(device)
        scan.reserve(max(size, 1))
        scan.run(device.upload(counts, wp.int32), offsets, device.upload([size], wp.int32), 0, size)
        np.testing.assert_array_equal(device.read(offsets, size + 1), expected)
        keys = rng.integers(0, 100, 2 * size).astype(np.int32)
        order = device.upload(np.arange(2 * size), wp.int32)
        device.sort_pairs(device.upload(keys, wp.int32), order, size)
        np.testing.assert_array_equal(device.read(order, size), np.argsort(keys[:size], kind="stable"))
        islands = Islands(device, size)
        for operation, fold in ((sums.SUM, np.sum), (sums.MIN, np.min), (sums.MAX, np.max)):
            found = device.read(islands.reduce(array, operation, islands.each))
            if size and abs(found[0] - fold(-values)) > 1e-9 * max(1.0, abs(fold(-values))):
                raise RuntimeError(f"a reduction over {size} entries returned {found[0]} instead of {fold(-values)}")
    return f"sizes {', '.join(map(str, SIZES))}"


def factor(name: str) -> str:
    """Compare solutions of block systems with and without loops with dense ones."""
    from block_systems import System, chain, cube, net, random_tree

    device = Device(name)
    device.load(cuda_kernels)
    largest = 0.0
    for n, pairs in ((40, chain(40)), (60, random_tree(60, 1)), (36, net(6, 6)), (27, cube(3))):
        system = System(device, n, pairs)
        exact = system.dense()
        for solver in ("direct", "pcg"):
            error = np.abs(system.solve(system.solver(solver)) - exact).max() / np.abs(exact).max()
            largest = max(largest, float(error))
    if largest > 1e-8:
        raise RuntimeError(f"the relative error of a solution, {largest:.1e}, exceeds 1e-8")
    return f"largest error {largest:.1e}"


def _run(scene: str, device: str, use_graphs: bool) -> tuple[list[int], abd.Simulation]:
    """Advance a scene by `STEPS` steps; return the Newton iterations of each step and the simulation."""
    simulation = abd.Simulation(scene, device=device)
    iteration = simulation.backend.iteration
    if iteration is not None:
        iteration.graphs.whole = iteration.graphs.whole and use_graphs
    return [simulation.step().newton_iterations for _ in range(STEPS)], simulation


def scenes(name: str) -> str:
    """Compare steps without graphs with those of the processor."""
    wp.config.launch_array_access_mode = wp.config.LaunchArrayAccessMode.STRICT
    differences = []
    for scene in SCENES:
        found, simulation = _run(scene, name, use_graphs=False)
        expected, reference = _run(scene, "cpu", use_graphs=False)
        difference = float(np.abs(simulation.stepper.q - reference.stepper.q).max())
        if difference > TOLERANCE or abs(sum(found) - sum(expected)) > 1:
            raise RuntimeError(f"{scene}: differs by {difference:.1e} m; Newton iterations {found}, on the processor {expected}")
        differences.append(f"{scene} {difference:.0e}")
    return f"differences [m]: {', '.join(differences)}"


def replay(name: str) -> str:
    """Check that steps with graphs are bitwise equal to steps without."""
    for scene in SCENES:
        _, direct = _run(scene, name, use_graphs=False)
        for _ in range(2):
            _, replayed = _run(scene, name, use_graphs=True)
            np.testing.assert_array_equal(replayed.stepper.q, direct.stepper.q, err_msg=scene)
    return f"{len(SCENES)} scenes, twice, {STEPS} steps"


def impact(name: str, source: str) -> str:
    """Return the time per step of a larger scene; `source` is SCENE or SCENE@FILE."""
    scene, _, checkpoint = source.partition("@")
    simulation = abd.Simulation(scene, device=name)
    if checkpoint:
        simulation.restore(pickle.loads(Path(checkpoint).read_bytes()))
    simulation.step()
    begin, steps = perf_counter(), 2 if name == EMULATED else 30
    newton = sum(simulation.step().newton_iterations for _ in range(steps))
    milliseconds = 1e3 * (perf_counter() - begin) / steps
    records = simulation.backend.iteration.graphs
    counts = f"{records.recorded} recorded, {records.replayed} replayed"
    return f"{milliseconds:.1f} ms per step, {newton / steps:.1f} Newton iterations per step, {counts}"


STAGES = {
    "start": (start, 180), "graphs": (graphs, 60), "transfer": (transfer, 60), "factor": (factor, 60), "scenes": (scenes, 120),
    "replay": (replay, 120), "impact": (impact, 120),
}  # fmt: skip
"""Functions and time limits [s] by name."""


def run_stage(stage: str, device: str, source: str, folder: Path) -> bool:
    """Run a stage as a process, write its log, print one line, and return whether it passed."""
    begin, limit = perf_counter(), STAGES[stage][1]
    command = [sys.executable, __file__, "--stage", stage, "--device", device, "--impact", source]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
        text, has_passed = done.stdout + done.stderr, done.returncode == 0
    except subprocess.TimeoutExpired as error:
        text, has_passed = f"{error.stdout or ''}{error.stderr or ''}\nexceeded the limit of {limit} s", False
    (folder / f"{stage}.log").write_text(text, encoding="utf-8")
    result = (text.strip() or "no output").splitlines()[-1]
    print(f"{'passed' if has_passed else 'FAILED'} {stage:<9}{perf_counter() - begin:6.1f} s  {result}", flush=True)
    return has_passed


def main() -> int:
    """Run all stages, or one stage in this process; return 1 if a stage failed, else 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="cuda, cuda:N or emulated [cuda]")
    parser.add_argument("--out", type=Path, default=Path("runs/gpu-smoke"), help="folder of the logs [runs/gpu-smoke]")
    parser.add_argument("--impact", default=IMPACT, metavar="SCENE[@FILE]", help=f"scene of the last stage [{IMPACT}]")
    parser.add_argument("--stage", choices=STAGES, help="run only this stage, in this process")
    options = parser.parse_args()
    if options.stage:
        arguments = (options.device, options.impact) if options.stage == "impact" else (options.device,)
        print(STAGES[options.stage][0](*arguments))
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    has_failed = False
    for stage in STAGES:
        if not run_stage(stage, options.device, options.impact, options.out):
            has_failed = True
            if stage == "start":
                print(f"stopped: the other stages need the device; see {options.out / stage}.log")
                break
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
