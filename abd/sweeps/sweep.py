"""Run a scene with many parameters on Dask workers and collect the results in one table.

The folder of a sweep contains `sweep.json`, `table.parquet`, and for each run a folder with the files of `abd run` and its row.
A run with a row is finished; the same sweep in the same folder skips it if its compiled scene is the same.
"""

from __future__ import annotations

import inspect
import json
import logging
import os
import pickle
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial, reduce
from operator import getitem
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from abd.errors import AbdError, SceneError
from abd.io.directory import replacing
from abd.io.fingerprint import model_digest
from abd.io.progress import clock_time
from abd.io.report import finite, read_json
from abd.optional import required
from abd.sweeps.parameters import SweepError, Values, as_override, points

if TYPE_CHECKING:
    import pandas

    from abd.scene.scene import Scene

REQUEST, TABLE, ROW = "sweep.json", "table.parquet", "row.json"
FIGURES = {
    "steps": ("steps",), "converged_steps": ("converged_steps",), "simulated_seconds": ("simulated_seconds",),
    "wall_seconds": ("wall_seconds",), "newton_mean": ("newton_iterations", "mean"), "newton_max": ("newton_iterations", "max"),
    "min_gap": ("min_gap",), "joint_residual_m": ("max_joint_residual", 0), "joint_residual_rad": ("max_joint_residual", 1),
    "rejected_paths": ("rejected_paths",), "energy_final": ("energy", "final"), "energy_drift": ("energy_drift",),
    "tolerance_worst": ("tolerance", "worst"),
}  # fmt: skip
"""Columns of the table and their keys in report.json."""


@dataclass(frozen=True)
class Job:
    """A run of a sweep for a worker.

    scene, overrides, measure: see `sweep`; point: parameters of the run; folder: of the run."""

    scene: Scene | str | Path | Callable[..., Scene]
    point: dict[str, Any]
    overrides: tuple[str, ...]
    duration: float | None
    steps: int | None
    device: str
    folder: Path
    measure: Callable[[Path], Mapping[str, Any]] | None

    @property
    def texts(self) -> list[str]:
        """All overrides of the scene."""
        return [*self.overrides, *(as_override(key, value) for key, value in self.point.items() if key != "repeat")]

    @property
    def command(self) -> str:
        """Command that repeats the run; empty for a scene from Python."""
        if not isinstance(self.scene, (str, Path)):
            return ""
        words = ["abd", "run", str(self.scene)]
        for text in self.texts:
            words += ["-o", text]
        words += ["--duration", repr(self.duration)] if self.duration is not None else []
        words += ["--steps", str(self.steps)] if self.steps is not None else []
        words += ["--device", self.device] if self.device != "auto" else []
        return shlex.join(words)

    @property
    def row(self) -> dict[str, Any]:
        """Row of the table before the run."""
        return {"run": self.folder.name, **self.point, "status": "done", "failure": "", "command": self.command}


def sweep(
    scene: Scene | str | Path | Callable[..., Scene],
    parameters: Mapping[str, Values],
    *,
    out: str | Path,
    duration: float | None = None,
    steps: int | None = None,
    device: str = "auto",
    overrides: Sequence[str] = (),
    measure: Callable[[Path], Mapping[str, Any]] | None = None,
    sample: int | None = None,
    method: str = "lhs",
    seed: int = 0,
    repeat: int = 1,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: bool = False,
) -> pandas.DataFrame:
    """Run a scene with all combinations of parameters; finished runs in `out` are skipped if the sweep is the same.

    Args:
        scene: a scene, the path or name of one, whose keys the parameters replace (``"material.default.mu"``); or a function
            ``f(**point)`` that returns an `abd.Scene`. It also gets ``repeat`` if it has this parameter.
        parameters: values by key, or an `abd.sweeps.parameters.Range`, which is sampled.
        out: folder of the sweep; the workers of a scheduler need access to it under the same path.
        duration: simulated time [s], or `steps`, by default the scene's; device: of all runs.
        overrides: ``key=value`` for all runs.
        measure: function of a run's folder that returns further columns; a run fails with it. It is called on the worker, and in
            this process for finished runs.
        sample, method, seed, repeat: see `abd.sweeps.parameters.points`.
        workers: number of processes with one thread each, by default one per processor; scheduler: address of a Dask
            scheduler, whose workers are used instead.
        progress: report finished runs on standard error.

    Returns:
        one row per run: ``run``, the parameters, ``status`` ("done" or "failed"), ``failure``, ``command``, figures of
        report.json, last, mean and largest value of each sensor, and what `measure` returns. Also in ``table.parquet``.

    Raises:
        SweepError: invalid parameters, or a folder with another sweep or with runs of other scenes.
        MissingLibrary: Dask, pandas or pyarrow is not installed.
    """
    packages = {"distributed": "dask[distributed]", "pyarrow": "pyarrow", "pandas": "pandas"}
    *_, pandas = [required(name, "sweep", package, "a sweep") for name, package in packages.items()]
    out = Path(out).absolute()
    jobs = [
        Job(scene, point, tuple(overrides), duration, steps, device, out / f"run-{k:04d}", measure)
        for k, point in enumerate(points(parameters, sample, method, seed, repeat), start=1)
    ]
    _claim(out, jobs)
    rows = {job.folder: row for job in jobs if (row := _finished(job)) is not None}
    waiting = [job for job in jobs if job.folder not in rows]
    if waiting:
        done, begin = len(rows), perf_counter()
        if progress and done:
            print(f"{done} of {len(jobs)} runs are already done", file=sys.stderr)
        with _client(min(workers or os.cpu_count() or 1, len(waiting)), scheduler) as client:
            for job, row in _run_all(client, waiting):
                rows[job.folder] = row
                if progress:
                    _print_progress(row, [*rows.values()], len(jobs), (perf_counter() - begin) / (len(rows) - done))
    table = pandas.DataFrame([finite(dict(rows[job.folder])) for job in jobs])
    table.to_parquet(out / TABLE, index=False)
    return table


def run_job(pickled: bytes) -> dict[str, Any]:
    """Run one `Job` and write its row, which marks it as finished; return the row with the columns of `measure`."""
    os.environ.setdefault("ABD_THREADS", "1")
    job: Job = pickle.loads(pickled)
    row, digest = job.row, ""
    try:
        from abd.api.simulation import Simulation

        scene = _scene(job)
        digest = _digest(scene)
        Simulation(scene, device=job.device).run(job.duration, job.steps, record=job.folder, overwrite=True)
    except AbdError as error:
        row |= {"status": "failed", "failure": str(error)}
    except Exception as error:  # of the caller's function
        row |= {"status": "failed", "failure": f"{type(error).__name__}: {error}"}
    report = job.folder / "report.json"
    if report.exists():
        found = read_json(report)
        row |= {column: reduce(getitem, keys, found) for column, keys in FIGURES.items()} | _sensors(job.folder)
    job.folder.mkdir(parents=True, exist_ok=True)
    with replacing(job.folder / ROW) as part:
        part.write_text(json.dumps(finite(row | {"digest": digest})), encoding="utf-8")
    return _measured(job, row)


def _measured(job: Job, row: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a run with the columns of `measure`, or its failure."""
    if job.measure is None or row["status"] == "failed":
        return row
    try:
        return row | dict(job.measure(job.folder))
    except Exception as error:  # of the caller's function
        return row | {"status": "failed", "failure": f"{type(error).__name__}: {error}"}


def _digest(scene: Scene) -> str:
    """Digest of a compiled scene and its sensors, and its number of frames."""
    model = scene.compile()
    return f"{model_digest(model, [one.definition for one in scene.spec.sensor])} {model.settings.frames}"


def _scene(job: Job) -> Scene:
    from abd.scene.scene import Scene, load

    if callable(job.scene):
        accepted = inspect.signature(job.scene).parameters
        takes_all = "repeat" in accepted or any(one.kind is one.VAR_KEYWORD for one in accepted.values())
        scene = job.scene(**{key: value for key, value in job.point.items() if takes_all or key != "repeat"})
        return scene.override(job.overrides) if job.overrides else scene
    return job.scene.override(job.texts) if isinstance(job.scene, Scene) else load(job.scene, job.texts)


def _sensors(folder: Path) -> dict[str, float]:
    """Last, mean and largest value of every sensor, component by component."""
    from abd.io.trajectory import Trajectory

    found = {}
    with Trajectory(folder) as trajectory:
        for name, values in trajectory.sensors().items():
            for k, column in enumerate(values.T):
                title = name if values.shape[1] == 1 else f"{name}.{k}"
                found |= {f"{title}.last": column[-1], f"{title}.mean": column.mean(), f"{title}.max": column.max()}
    return found


def _claim(out: Path, jobs: Sequence[Job]) -> None:
    """Write the request of the sweep; `SweepError` if the folder has another, `SceneError` if no point gives a valid scene."""
    from abd.scene.scene import load

    source = jobs[0].scene
    scene = load(source) if isinstance(source, (str, Path)) else source
    if not callable(scene):
        _check_points(scene, jobs)
    name = getattr(source, "__qualname__", type(source).__qualname__) if callable(source) else scene.name
    request = {
        "scene": name, "points": [job.point for job in jobs],
        "overrides": jobs[0].overrides, "duration": jobs[0].duration, "steps": jobs[0].steps, "device": jobs[0].device,
        "parameters": [key for key in jobs[0].point if key != "repeat"],
    }  # fmt: skip
    written, path = json.dumps(request, indent=1), out / REQUEST
    if path.exists() and path.read_bytes() != written.encode():
        raise SweepError(
            f"{out} contains another sweep, of another scene, point or option: choose another folder, or remove it"
        )
    out.mkdir(parents=True, exist_ok=True)
    path.write_text(written, encoding="utf-8")


def _check_points(scene: Scene, jobs: Sequence[Job]) -> None:
    """Raise the problem of the first point if no point gives a valid scene."""
    problems: list[SceneError] = []
    for job in jobs:
        try:
            scene.override(job.texts)
            return
        except SceneError as error:
            problems.append(error)
    raise problems[0]


def _finished(job: Job) -> dict[str, Any] | None:
    """Return the row of a finished run with new columns of `measure`, else None; `SweepError` if it had another scene."""
    path = job.folder / ROW
    row = read_json(path) if path.exists() else {}
    if row.get("status") != "done":
        return None
    if row.pop("digest", "") != _digest(_scene(job)):
        raise SweepError(f"{job.folder} is a run of another scene: choose another folder for the sweep, or remove it")
    return _measured(job, row)


@contextmanager
def _client(workers: int, scheduler: str | None) -> Iterator[Any]:
    """Return a client of the scheduler at an address, or of a local cluster of single-threaded processes."""
    from distributed import Client, SubprocessCluster

    if scheduler is not None:
        try:
            client = Client(scheduler, timeout=5)
        except (OSError, ValueError):
            raise SweepError(f"no Dask scheduler answers at {scheduler}: start `dask scheduler` and `dask worker`") from None
        with client:
            yield client
        return
    # these processes do not import the caller's script again
    os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "critical")
    cluster = SubprocessCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL,
        worker_kwargs={"memory_limit": 0},
    )  # fmt: skip
    try:
        yield Client(cluster)
    finally:
        with suppress(Exception):  # Ctrl-C ends the workers too
            cluster.close()


def _run_all(client: Any, jobs: Sequence[Job]) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Yield jobs and rows in the order of completion; a job whose worker ends, or cannot run it, has failed."""
    from distributed import KilledWorker, as_completed

    futures = {client.submit(run_job, _pickled(job), pure=False): job for job in jobs}
    for future in as_completed(list(futures)):
        job, error = futures[future], future.exception()
        if error is None:
            yield job, future.result()
        elif isinstance(error, KilledWorker):
            ended = "the process of the run ended several times: it crashed, or memory was not sufficient"
            # the result of a finished run is lost with its process if another run ends that
            yield job, _finished(job) or job.row | {"status": "failed", "failure": ended}
        else:
            yield job, job.row | {"status": "failed", "failure": f"{type(error).__name__}: {error}"}


def _pickled(job: Job) -> bytes:
    """Return a job with functions pickled by value, so that workers do not need their modules."""
    import cloudpickle

    functions = [one.func if isinstance(one, partial) else one for one in (job.scene, job.measure) if callable(one)]
    names = {getattr(one, "__module__", None) for one in functions}
    modules = [sys.modules[name] for name in names if name in sys.modules and name != "__main__"]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        return cloudpickle.dumps(job)
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def _print_progress(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], total: int, seconds_per_run: float) -> None:
    """Print a finished run, the number of failed ones among the `rows` of ended runs, and the remaining time."""
    count = sum(one["status"] == "failed" for one in rows)
    failed = f"  {count} failed" if count else ""
    left = clock_time(seconds_per_run * (total - len(rows)))
    print(f"run {len(rows)}/{total}  {row['run']} {row['status']}{failed}  left {left}", file=sys.stderr)
