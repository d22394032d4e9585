"""What has to work on a GPU before anything is measured there: `python tools/gpu_smoke.py [--device cuda] [--out DIR]`.

Seven stages, each a process of its own with a time limit, each one line: what was found, or what failed. Tracebacks and
output are kept as DIR/NAME.log. Stops after a failure of `start`, without which nothing else can work; exit status 1 if any
stage failed. `--device emulated` rehearses all of it on the processor.

    start     Warp, driver, device; all kernels are loaded, with the time that takes, and on CUDA those of CuPy, if it is there
    graphs    loops and branches in graphs, with copies, fills and kernels first launched there, replayed ten times
    transfer  reads, writes, scans, sorts and reductions against NumPy, empty arrays included
    factor    direct and iterative solutions against a dense one
    scenes    five steps of small scenes launch by launch, arrays checked, against the processor's
    replay    the same with graphs: the same bits as launch by launch, twice
    impact    the shipped wrecking ball, thirty steps: seconds per step, records and replays; its flight, unless `--impact
              SCENE@FILE` names a pickled checkpoint of a later step
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
NEAR = 1e-9
"""How far states of two devices may be apart [m]: sums have another order."""
SIZES = (0, 1, 511, 513, 1_000_000)
IMPACT = "wrecking_ball"


@wp.kernel
def count_down(first: wp.int32, left: wp.array(dtype=wp.int32), total: wp.array(dtype=wp.float64)):
    """One pass of a loop: one less to go, and the passes are summed up."""
    left[0] = left[0] - 1
    total[0] = total[0] + wp.float64(1.0)


@wp.kernel
def is_odd(first: wp.int32, left: wp.array(dtype=wp.int32), odd: wp.array(dtype=wp.int32)):
    """Whether a number is odd."""
    odd[0] = left[0] % 2


@wp.kernel
def add_one(first: wp.int32, total: wp.array(dtype=wp.float64)):
    """First launched inside of a branch."""
    k = wp.tid() + first
    total[k] = total[k] + wp.float64(1.0)


def start(name: str) -> str:
    """Versions, and the time until all kernels are there."""
    begin = perf_counter()
    device = Device(name)
    from abd.backends.warp import on_warp  # noqa: F401 - its kernels are to be loaded

    device.load(cuda_kernels)
    raw = "kernels of CuPy loaded" if device.raw else device.why_not_raw
    if device.warp.is_cuda and device.raw is None and importlib.util.find_spec("cupy"):
        raise RuntimeError(f"CuPy is installed, but {raw}")
    what = f"{device.warp.name}, Warp {wp.__version__}, {raw}"
    if device.warp.is_cuda:
        what += f", sm_{device.warp.arch}, driver's CUDA {wp.get_cuda_driver_version()}"
    return f"{what}; kernels loaded in {perf_counter() - begin:.1f} s"


def graphs(name: str) -> str:
    """Nested loops and branches as the Newton iteration has them."""
    device = Device(name)
    records = Graphs(device)
    if not records.whole:
        raise RuntimeError("graphs hold no loops and branches here")
    left, odd = device.zeros(1, wp.int32), device.zeros(1, wp.int32)
    total, copied, filled = (device.zeros(4, wp.float64) for _ in range(3))
    wanted = device.upload([7], wp.int32)

    def branch() -> None:
        device.launch(add_one, 1, filled)
        filled[1:].fill_(1.0)

    def turn() -> None:
        device.launch(count_down, 1, left, total)
        device.launch(is_odd, 1, left, odd)
        device.copy(copied, total)
        device.when(odd, branch)

    def body() -> None:
        device.copy(left, wanted)
        device.fill(total)
        device.fill(filled)
        device.repeat(left, turn)

    for _ in range(10):
        records.run("loop", body)
        found = [device.read(array).tolist() for array in (total, copied, filled)]
        if found != [[7.0, 0.0, 0.0, 0.0], [7.0, 0.0, 0.0, 0.0], [3.0, 1.0, 1.0, 1.0]]:
            raise RuntimeError(f"total, copied, filled are {found}")
    return f"{records.recorded} recorded, {records.replayed} replayed"


def transfer(name: str) -> str:
    """Reads, writes, scans, sorts and reductions."""
    from abd.backends.device.scan import Scan
    from abd.backends.warp.islands import Islands
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
            found = islands.reduced(array, operation)
            if size and abs(found[0] - fold(-values)) > 1e-9 * max(1.0, abs(fold(-values))):
                raise RuntimeError(f"a reduction over {size} gives {found[0]} for {fold(-values)}")
    return f"sizes {', '.join(map(str, SIZES))}"


def factor(name: str) -> str:
    """Solutions of block systems: trees, loops, dense fill."""
    from block_systems import System, chain, cube, net, random_tree

    device = Device(name)
    device.load(cuda_kernels)
    worst = 0.0
    for n, pairs in ((40, chain(40)), (60, random_tree(60, 1)), (36, net(6, 6)), (27, cube(3))):
        system = System(device, n, pairs)
        exact = system.dense()
        for wanted in ("direct", "pcg"):
            worst = max(worst, float(np.abs(system.solve(system.solver(wanted)) - exact).max() / np.abs(exact).max()))
    if worst > 1e-8:
        raise RuntimeError(f"a solution is wrong by {worst:.1e} of the largest entry")
    return f"largest error {worst:.1e}"


def _run(scene: str, device: str, whole: bool) -> tuple[list[int], abd.Simulation]:
    """Newton iterations of `STEPS` and the simulation after them, with or without graphs."""
    simulation = abd.Simulation(scene, device=device)
    iteration = simulation.backend.iteration
    if iteration is not None:
        iteration.graphs.whole = iteration.graphs.whole and whole
    return [simulation.step().newton_iterations for _ in range(STEPS)], simulation


def scenes(name: str) -> str:
    """Against the processor, launch by launch."""
    wp.config.launch_array_access_mode = wp.config.LaunchArrayAccessMode.STRICT
    said = []
    for scene in SCENES:
        there, one = _run(scene, name, whole=False)
        here, other = _run(scene, "cpu", whole=False)
        apart = float(np.abs(one.stepper.q - other.stepper.q).max())
        if apart > NEAR or abs(sum(there) - sum(here)) > 1:
            raise RuntimeError(f"{scene}: {apart:.1e} m apart, Newton iterations {there}, on the processor {here}")
        said.append(f"{scene} {apart:.0e}")
    return f"apart [m]: {', '.join(said)}"


def replay(name: str) -> str:
    """The same bits from graphs as launch by launch."""
    for scene in SCENES:
        _, single = _run(scene, name, whole=False)
        for _ in range(2):
            _, graphed = _run(scene, name, whole=True)
            np.testing.assert_array_equal(graphed.stepper.q, single.stepper.q, err_msg=scene)
    return f"{len(SCENES)} scenes, twice, {STEPS} steps"


def impact(name: str, of: str) -> str:
    """Seconds per step of a larger scene."""
    scene, _, checkpoint = of.partition("@")
    simulation = abd.Simulation(scene, device=name)
    if checkpoint:
        simulation.restore(pickle.loads(Path(checkpoint).read_bytes()))
    simulation.step()
    begin, steps = perf_counter(), 2 if name == EMULATED else 30
    newton = sum(simulation.step().newton_iterations for _ in range(steps))
    seconds = (perf_counter() - begin) / steps
    found = simulation.backend.iteration.graphs
    counts = f"{found.recorded} recorded, {found.replayed} replayed"
    return f"{1e3 * seconds:.1f} ms per step, {newton / steps:.1f} Newton iterations, {counts}"


STAGES = {stage.__name__: stage for stage in (start, graphs, transfer, factor, scenes, replay, impact)}
LIMITS = {"start": 180, "graphs": 60, "transfer": 60, "factor": 60, "scenes": 120, "replay": 120, "impact": 120}
"""Seconds."""


def run_stage(stage: str, device: str, impact_of: str, out: Path) -> bool:
    """Run a stage as a process; one line says what came of it."""
    begin, log = perf_counter(), out / f"{stage}.log"
    command = [sys.executable, __file__, "--stage", stage, "--device", device, "--impact", impact_of]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMITS[stage], check=False)
        text, ok = done.stdout + done.stderr, done.returncode == 0
    except subprocess.TimeoutExpired as slow:
        text, ok = f"{slow.stdout or ''}{slow.stderr or ''}\nnot done after {LIMITS[stage]} s", False
    log.write_text(text, encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip()]
    print(
        f"{'ok    ' if ok else 'FAILED'} {stage:<9}{perf_counter() - begin:6.1f} s  {lines[-1] if lines else ''}",
        flush=True,
    )
    return ok


def main() -> int:
    """Run all stages, or one of them in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="cuda, cuda:N or emulated [cuda]")
    parser.add_argument("--out", type=Path, default=Path("runs/gpu-smoke"), help="folder of the logs [runs/gpu-smoke]")
    parser.add_argument("--impact", default=IMPACT, metavar="SCENE[@FILE]", help=f"[{IMPACT}]")
    parser.add_argument("--stage", choices=STAGES, help="run this one here")
    options = parser.parse_args()
    if options.stage:
        print(impact(options.device, options.impact) if options.stage == "impact" else STAGES[options.stage](options.device))
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    failed = []
    for stage in STAGES:
        if not run_stage(stage, options.device, options.impact, options.out):
            failed.append(stage)
            if stage == "start":
                print(f"stopped: without it nothing else can work; see {options.out / stage}.log")
                break
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
