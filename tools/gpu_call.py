"""Run one call of a lent GPU: `python tools/gpu_call.py PLAN [NAME ...] [--seconds N] [--packages DIR] [--out DIR]`.

The parts of a plan run one after another as processes, each within its own limit and the rest of the call's time; a failure
does not stop the others. Each part prints one line and writes DIR/PART.txt; DIR/call.tgz contains all of them.

    check    basic functions, tests of device code (NAME: folders of `tests`), times of hand-written kernels
    profile  times of steps and kernels: wrecking ball, boxes, worlds, links (NAME: scenes); kernels: one scene, in this process
    numbers  times of steps: piles, worlds, chains of growing size (NAME: scenes); steps: one scene, in this process

A scene is NAME:SIZE of `tools/bench/scenes.py`, a file or a shipped scene; @FILE starts it from a pickled checkpoint.
`--packages` unpacks wheels and archives, for a machine without a connection. `--device emulated` rehearses on the processor.
"""

from __future__ import annotations

import argparse
import os
import pickle
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS / "bench"), str(TOOLS.parent)]
WARM_UP, STEPS, MOST_KERNELS = 3, 4, 40  # steps until capacities suffice, measured steps, kernels in a table
FOLDERS = ("kernels", "backends", "recorded", "step", "contact", "friction", "joints", "reference", "api")
PROFILED = ("wrecking_ball", "pile:10000", "worlds:1024", "chain:100000")
SIZES = ("pile:100", "pile:1000", "pile:10000", "worlds:1024", "worlds:4096", "chain:10000", "chain:100000", "chain:1000000")


def time_steps(source: str, device: str, by_kernel: bool) -> int:
    """Print the times of start and steps of a scene, and if `by_kernel` those of kernels in one more step; return 0."""
    import abd
    from scenes import scene_of

    scene, _, checkpoint = source.partition("@")
    begin = perf_counter()
    simulation = abd.Simulation(scene_of(scene), device=device)
    print(f"start {perf_counter() - begin:.2f} s, {len(simulation.stepper.q)} bodies", flush=True)
    if checkpoint:
        simulation.restore(pickle.loads(Path(checkpoint).read_bytes()))
    simulation.run(steps=WARM_UP)
    times, newton = [], []
    for _ in range(STEPS):
        begin = perf_counter()
        newton.append(simulation.step().newton_iterations)
        times.append(round(1e3 * (perf_counter() - begin), 1))
    print(f"{sum(times) / max(sum(newton), 1):.2f} ms per Newton iteration; steps [ms] {times}; iterations {newton}", flush=True)
    if by_kernel:
        print_kernels(simulation)
    return 0


def print_kernels(simulation) -> None:
    """Print the times of the kernels of a step per Newton iteration, each until the device is idle, without graphs."""
    import warp as wp
    from gpu_shape import Counts

    device, seconds = simulation.backend.device, Counter()

    class Times(Counts):
        @contextmanager
        def launch(self, kernel, count: int, inputs: tuple) -> Iterator[None]:
            self.kernels[kernel.key] += 1
            wp.synchronize_device(device.warp)
            begin = perf_counter()
            yield
            wp.synchronize_device(device.warp)
            seconds[kernel.key] += perf_counter() - begin

    simulation.backend.iteration.graphs.whole = False
    simulation.step()  # loads the kernels that only records have launched
    counts = device.observer = Times(device)
    newton = max(simulation.step().newton_iterations, 1)
    print(f"{counts.kernels.total()} launches, {newton} Newton iterations, transfers {dict(counts.transfers)}")
    for name, spent in seconds.most_common(MOST_KERNELS):
        print(f"{1e3 * spent / newton:9.3f} ms {counts.kernels[name] / newton:8.2f} launches per Newton iteration  {name}")


def parts_of(plan: str, names: list[str], device: str) -> Iterator[tuple[str, float, list[str]]]:
    """Yield name, limit [s] and arguments of Python of every part of a plan."""
    to = "--device", device
    if plan == "check":
        yield "smoke", 180.0, [str(TOOLS / "gpu_smoke.py"), *to]
        options = "-q", "-p", "no:cacheprovider", "--maxfail=60", "-n", str(max((os.cpu_count() or 2) - 2, 1))
        yield "tests", 360.0, ["-m", "pytest", *to, *options, *(f"tests/{name}" for name in names or FOLDERS)]
        yield "raw_kernels", 60.0, [str(TOOLS / "bench" / "raw_kernels.py")]
    else:
        times, scenes = ("kernels", PROFILED) if plan == "profile" else ("steps", SIZES)
        for scene in names or scenes:
            yield scene.partition("@")[0].replace(":", "_"), 60.0, [__file__, times, scene, *to]


def run_part(name: str, limit: float, arguments: list[str], log: Path, variables: dict[str, str]) -> bool:
    """Run a part as a process, print one line, and return whether it passed."""
    begin = perf_counter()
    with log.open("w", encoding="utf-8") as file:
        to = {"stdout": file, "stderr": file, "env": variables, "cwd": TOOLS.parent}
        try:
            result = "FAILED" if subprocess.run([sys.executable, "-u", *arguments], timeout=limit, **to).returncode else "passed"
        except subprocess.TimeoutExpired:
            result = "LIMIT "
    lines = [line for line in log.read_text(encoding="utf-8").splitlines() if line.strip()] or ["no output"]
    line = next((line for line in lines if " ms per Newton iteration;" in line), lines[-1])
    print(f"{result} {name:<15}{perf_counter() - begin:6.1f} s  {line[:200]}", flush=True)
    return result == "passed"


def environment(packages: Path | None, folder: Path) -> dict[str, str]:
    """Return the environment of the parts, with the packages unpacked into a folder."""
    for file in sorted(packages.iterdir()) if packages else ():
        if file.suffix == ".whl" or ".tar" in file.name:
            shutil.unpack_archive(file, folder, "zip" if file.suffix == ".whl" else None)
    # NVRTC of a Python package is not on the search path of the system
    libraries = {str(file.parent) for path in (folder, *sys.path) for file in Path(path).glob("nvidia/*/lib/libnvrtc.so.*")}
    added = {"PYTHONPATH": [str(folder), str(TOOLS.parent)], "LD_LIBRARY_PATH": sorted(libraries)}
    return os.environ | {name: ":".join([*values, os.environ.get(name, "")]).strip(":") for name, values in added.items()}


def main() -> int:
    """Run a plan, or time scenes in this process; return 1 if a part failed, else 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", choices=("check", "profile", "numbers", "steps", "kernels"))
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenes or folders of tests instead of those of the plan")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:N or emulated [cuda]")
    parser.add_argument("--seconds", type=float, default=540.0, help="time of the call [540 s]")
    parser.add_argument("--packages", type=Path, metavar="DIR", help="folder of wheels and archives to unpack")
    parser.add_argument("--out", type=Path, default=Path("runs/gpu-call"), metavar="DIR", help="results [runs/gpu-call]")
    options = parser.parse_args()
    if options.plan in ("steps", "kernels"):
        return time_steps(options.names[0], options.device, options.plan == "kernels")
    end, passed, out = perf_counter() + options.seconds, [], options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    variables = environment(options.packages, out / "packages")
    for name, limit, arguments in parts_of(options.plan, options.names, options.device):
        passed.append(run_part(name, min(limit, end - perf_counter()), arguments, out / f"{name}.txt", variables))
    with tarfile.open(out / "call.tgz", "w:gz") as archive:
        for file in sorted(out.glob("*.txt")):
            archive.add(file, file.name)
    return int(not all(passed))


if __name__ == "__main__":
    sys.exit(main())
