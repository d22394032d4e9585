"""Load kernel modules on a device, compile missing ones, and report the progress on standard error."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter

import warp as wp

import cuda_kernels
from cuda_kernels.options import OPTIONS as OPTIONS
from cuda_kernels.options import TARGET

PATIENCE = 2.0
"""Time [s] after which the progress is shown: loading that takes longer includes compilation."""
_LINE_SECONDS = 10.0
"""Time [s] between two lines if standard error is not a terminal."""
_shown = True


@contextmanager
def without_progress():
    """Suppress the progress report within the context."""
    global _shown
    before, _shown = _shown, False
    try:
        yield
    finally:
        _shown = before


def load_modules(device: wp.Device, modules: Sequence[wp.Module], threads: int, block: int | None = None) -> int:
    """Load Warp modules on a device in parallel, the longest first; returns the number of modules with kernels.

    Args:
        block: threads of a block on CUDA, by default Warp's.
    """
    _unpack_compiled()
    modules = sorted((one for one in modules if one.kernels), key=_source_length, reverse=True)
    if not modules:
        return 0
    progress = _Progress(len(modules))
    with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
        work = {pool.submit(wp.force_load, device, [module], block_dim=block, max_workers=0): module for module in modules}
        try:
            for done in _completed(work, progress):
                done.result()
                progress.done(work[done].name)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
        finally:
            progress.close()
    return len(modules)


def every_module() -> list[wp.Module]:
    """Import and return all Warp modules of the physics kernels and of pictures."""
    packages = (cuda_kernels, importlib.import_module("abd.pictures.kernels"))
    names = [
        info.name
        for package in packages
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not info.ispkg
    ]
    for name in names:
        importlib.import_module(name)
    return [wp.get_module(name) for name in names]


@functools.cache
def _unpack_compiled() -> None:
    """Copy precompiled kernels of the package (`tools/make/wheel.py`) to Warp's cache, unless they exist there.

    The name of the archive identifies Warp's version and the CPU; Warp's hashes identify the source.
    """
    name = f"{wp.get_cpu_kernel_cache_key(cpu_compiler_flags=TARGET)}.zip"
    archive = Path(cuda_kernels.__file__).parent / "compiled" / name
    if not archive.exists():
        return
    cache = Path(wp.config.kernel_cache_dir)
    with zipfile.ZipFile(archive) as compiled, tempfile.TemporaryDirectory(dir=cache) as aside:
        folders = sorted({Path(file).parent.name for file in compiled.namelist()})
        missing = [folder for folder in folders if not (cache / folder).exists()]
        compiled.extractall(aside, [file for file in compiled.namelist() if Path(file).parent.name in missing])
        for folder in missing:
            with suppress(OSError):  # another process was faster
                (Path(aside) / folder).rename(cache / folder)


def _source_length(module: wp.Module) -> int:
    return sum(len(kernel.adj.source) for kernel in module.kernels.values())


def _completed(work, progress: _Progress):
    """Yield completed work; shows the progress after `PATIENCE`."""
    try:
        yield from as_completed(work, timeout=PATIENCE)
        return
    except NotYet:
        progress.open()
    yield from as_completed([one for one in work if work[one].name not in progress.names])


class _Progress:
    """Progress report of compiled modules: one updated line on a terminal, otherwise a line every few seconds."""

    def __init__(self, total: int):
        self.total, self.names = total, set()
        self.started = perf_counter()
        self.is_open = False
        self.is_terminal = sys.stderr.isatty()

    def open(self) -> None:
        """Start to report."""
        self.is_open = _shown
        self.reported = perf_counter() - _LINE_SECONDS
        self._show("")

    def done(self, name: str) -> None:
        """Report a completed module."""
        self.names.add(name)
        self._show(name.rpartition("kernels.")[2])

    def close(self) -> None:
        """End the line."""
        if self.is_open and len(self.names) == self.total:
            seconds = perf_counter() - self.started
            self._write(f"compiled the kernels in {seconds:.0f} s; from now on they are loaded from the cache", "\n")

    def _show(self, name: str) -> None:
        now = perf_counter()
        if self.is_open and (self.is_terminal or now - self.reported >= _LINE_SECONDS):
            self.reported = now
            text = f"compiling kernels for this machine, once: {len(self.names)} of {self.total}  {name}"
            self._write(text.rstrip(), "" if self.is_terminal else "\n")

    def _write(self, text: str, end: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}{end}" if self.is_terminal else text + end)
        sys.stderr.flush()
