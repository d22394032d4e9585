"""Times of the stages and kernels of a step, and the measured limits of the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter

from abd.api.simulation import Simulation

SHOWN = 25
"""Kernels in the printed table, the longest."""


def ceilings_of(simulation: Simulation) -> dict | None:
    """Copy bandwidth [bytes/s] and float64 operations per second, measured now; None on `numpy`, which has no kernels."""
    if simulation.device == "numpy":
        return None
    from abd.backends.device.watching.ceilings import measure_ceilings

    found = measure_ceilings(simulation.backend.device)
    return {"copy_bytes_per_second": found.copy, "flops_per_second": found.flops}


def device_memory(simulation: Simulation) -> float | None:
    """Most that was allocated at a time on a CUDA device so far [MiB]; None on the processor, and where there is no pool."""
    if not simulation.device.startswith("cuda"):
        return None
    import warp as wp

    device = wp.get_device(simulation.device)
    return round(wp.get_mempool_used_mem_high(device) / 2**20, 1) if wp.is_mempool_enabled(device) else None


def profile(simulation: Simulation, steps: int, ceilings: Mapping | None) -> dict:
    """Advance twice by `steps` steps and return what ran, per step.

    ``{"steps", "ms", "stages", "kernels", "ceilings", "factorization", "timeline"}``. A kernel has ``name, calls, items, ms,
    bytes, flops``; `flops` is None where operations are not counted. ``"factorization"`` has ``ms, flops`` where there are
    factors. Milliseconds of the step include the watching, those of stages too; those of kernels do not. ``"timeline"`` is
    of the first steps, in which graphs stay whole (`timeline_of`). What needs kernels is None on `numpy`.
    """
    stages: dict[str, float] = {}
    kernels: list[dict] = []
    timeline = timeline_of(simulation, steps) if ceilings else None
    begin = perf_counter()
    if ceilings is None:
        _advance(simulation, steps, stages)
    else:
        from abd.backends.device.watching.launches import Launches

        launches = Launches(simulation.backend.device)
        with launches:
            _advance(simulation, steps, stages)
        kernels = [
            {
                "name": work.name,
                "calls": work.calls / steps,
                "items": work.items / steps,
                "ms": 1e3 * work.seconds / steps,
                "bytes": work.bytes / steps,
                "flops": None if work.flops is None else work.flops / steps,
            }
            for work in launches.works()
        ]
    milliseconds = 1e3 * (perf_counter() - begin) / steps
    return {
        "steps": steps,
        "ms": milliseconds,
        "stages": {name: 1e3 * seconds / steps for name, seconds in stages.items()},
        "kernels": kernels,
        "factorization": _factorization(simulation, kernels) if kernels else None,
        "ceilings": dict(ceilings) if ceilings else None,
        "timeline": timeline,
    }


def timeline_of(simulation: Simulation, steps: int) -> dict:
    """Advance by `steps` steps and return how the device spent them.

    ``ms, busy_ms, launches, replays, reads, newton`` per step, launches those outside of graphs; ``waiting``, the part of
    the time in which nothing ran on the device; ``reads_per_newton``; ``device_MiB``, the peak so far, None on the processor.
    """
    from abd.backends.device.watching.timeline import Timeline

    watch, newton, begin = Timeline(simulation.backend.device), 0, perf_counter()
    with watch:
        for _ in range(steps):
            newton += simulation.step().newton_iterations
    busy = watch.busy
    seconds = perf_counter() - begin
    # the total of a scan is read as well
    reads = watch.transfers.get("read", 0)
    return {
        "ms": 1e3 * seconds / steps,
        "busy_ms": 1e3 * busy / steps,
        "waiting": max(0.0, 1.0 - busy / seconds),
        "launches": watch.launches / steps,
        "replays": watch.replays / steps,
        "reads": reads / steps,
        "newton": newton / steps,
        "reads_per_newton": reads / max(newton, 1),
        "device_MiB": device_memory(simulation),
    }


def _factorization(simulation: Simulation, kernels: Sequence[Mapping]) -> dict | None:
    """Time and operations per step of all kernels that factor, with the pattern of the last solve."""
    from abd.backends.device.watching.operations import FACTORING, factor_operations

    facts = simulation.backend.linear.describe()
    at_work = [kernel for kernel in kernels if kernel["name"].rpartition(".")[2] in FACTORING]
    if not facts:
        return None
    # a factorisation is one launch over ranges, or one of its kind per level
    per_launch = {"factor_ranges": 1.0, "gather_level": 1.0 / max(facts["levels"], 1)}
    calls = max((kernel["calls"] * per_launch.get(kernel["name"].rpartition(".")[2], 0.0) for kernel in at_work), default=0.0)
    if not calls:
        return None
    flops = calls * factor_operations(facts["products"], facts["factor_blocks"])
    return {"ms": sum(kernel["ms"] for kernel in at_work), "flops": flops, "calls": calls, **facts}


def _advance(simulation: Simulation, steps: int, stages: dict[str, float]) -> None:
    for _ in range(steps):
        for name, seconds in simulation.step().stages.items():
            stages[name] = stages.get(name, 0.0) + seconds


def text(profile: Mapping, shown: int = SHOWN) -> str:
    """The tables of stages and kernels."""
    staged = sum(profile["stages"].values())
    rest = profile["ms"] - staged
    lines = [f"  stages, ms per step, watched, {profile['steps']} steps"]
    lines += [f"    {name:<14}{ms:9.3f}" for name, ms in profile["stages"].items()]
    lines += [f"    {'rest':<14}{rest:9.3f}", f"    {'all':<14}{profile['ms']:9.3f}"]
    if profile["ceilings"]:
        lines += _kernel_lines(profile["kernels"], profile["ms"], profile["ceilings"], shown)
        lines.append(_bandwidth_line(profile["kernels"], profile["ceilings"]))
    if profile.get("timeline"):
        lines += _timeline_lines(profile["timeline"])
    if profile.get("factorization"):
        found, peak = profile["factorization"], profile["ceilings"]["flops_per_second"]
        rate = found["flops"] / (1e-3 * found["ms"])
        lines.append(
            f"  {found['name']}: {found['products']} products of blocks, {found['factor_blocks']} blocks, "
            f"{found['calls']:.1f} times in {found['ms']:.3g} ms: {1e-9 * rate:.3g} Gflop/s, {rate / peak:.1%} of peak"
        )
    return "\n".join(lines)


def _bandwidth_line(kernels: Sequence[Mapping], ceilings: Mapping) -> str:
    """All kernels together against the copy ceiling."""
    moved, seconds = bandwidth(kernels)
    rate = moved / seconds if seconds else 0.0
    return f"  all kernels: {1e-9 * rate:.3g} GB/s, {rate / ceilings['copy_bytes_per_second']:.1%} of copy"


def bandwidth(kernels: Sequence[Mapping]) -> tuple[float, float]:
    """Bytes and seconds per step of all kernels."""
    own = [kernel for kernel in kernels if not kernel["name"].startswith("host: ")]
    return sum(kernel["bytes"] for kernel in own), 1e-3 * sum(kernel["ms"] for kernel in own)


def _timeline_lines(found: Mapping) -> list[str]:
    memory = "" if found["device_MiB"] is None else f"; at most {found['device_MiB']:.0f} MiB on the device"
    return [
        f"  graphs whole: {found['ms']:.3g} ms per step, nothing runs in {found['waiting']:.1%} of it; "
        f"{found['launches']:.0f} launches outside of {found['replays']:.1f} replays, {found['newton']:.2f} Newton "
        f"iterations, {found['reads']:.1f} reads, {found['reads_per_newton']:.2f} per iteration{memory}"
    ]


def _kernel_lines(kernels: Sequence[Mapping], step: float, ceilings: Mapping, shown: int) -> list[str]:
    copy, flops = ceilings["copy_bytes_per_second"], ceilings["flops_per_second"]
    launched = sum(kernel["ms"] for kernel in kernels)
    lines = [
        f"  kernels per step; ceilings measured now: copy {1e-9 * copy:.3g} GB/s, float64 {1e-9 * flops:.3g} Gflop/s",
        "  bytes: every array among a kernel's arguments once; operations: where a kernel's count is known",
        f"    {'':<34}{'calls':>8}{'items':>10}{'ms':>9}{'MB':>9}{'GB/s':>8}{'of copy':>8}{'Gflop/s':>9}{'of peak':>8}",
    ]
    for kernel in kernels[:shown]:
        seconds = 1e-3 * kernel["ms"]
        rate = kernel["bytes"] / seconds if seconds else 0.0
        line = (
            f"    {kernel['name']:<34}{kernel['calls']:8.1f}{kernel['items']:10.0f}{kernel['ms']:9.3f}"
            f"{1e-6 * kernel['bytes']:9.3f}{1e-9 * rate:8.2f}{rate / copy:8.1%}"
        )
        if kernel["flops"] is not None and seconds:
            line += f"{1e-9 * kernel['flops'] / seconds:9.2f}{kernel['flops'] / seconds / flops:8.1%}"
        lines.append(line)
    if len(kernels) > shown:
        left = kernels[shown:]
        lines.append(
            f"    {f'{len(left)} more':<34}{sum(kernel['calls'] for kernel in left):8.1f}"
            f"{sum(kernel['items'] for kernel in left):10.0f}{sum(kernel['ms'] for kernel in left):9.3f}"
        )
    lines.append(f"    {'outside of these':<34}{'':18}{step - launched:9.3f}")
    return lines
