"""The compile gate builds device code without a GPU, and says no where the code is wrong."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tool import TOOLS

RAW = TOOLS.parent / "cuda_kernels" / "raw"
KERNEL = re.compile(r"\b__global__\b")
BROKEN = """
import warp as wp


@wp.func_native("return nowhere;")
def broken(x: wp.float64) -> wp.float64: ...


@wp.kernel
def use(values: wp.array(dtype=wp.float64)):
    values[wp.tid()] = broken(values[wp.tid()])
"""


def gate(*arguments: str, folder: Path) -> subprocess.CompletedProcess:
    """The tool as CI runs it; modules are also found in `folder`."""
    return subprocess.run(
        [sys.executable, str(TOOLS / "compile_kernels.py"), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(folder)},
        check=False,
    )


def test_a_module_compiles_for_an_architecture_that_is_not_here(tmp_path):
    done = gate("cuda_kernels.parallel.sums", "cuda_kernels.contact.distance", "--arch", "90", "--jobs", "1", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    compiled, functions = (line.split() for line in done.stdout.splitlines()[1:3])
    assert compiled[:2] == ["cuda_kernels.parallel.sums", "sm_90"] and int(compiled[3]) > 1000
    assert functions[3:] == ["functions", "only"]
    assert done.stdout.splitlines()[-1].startswith("2 Warp modules and 0 raw sources for sm_90: 1 builds, 0 failed")


def test_a_broken_kernel_is_refused_with_the_compilers_words(tmp_path):
    (tmp_path / "broken_kernels.py").write_text(BROKEN)
    done = gate("broken_kernels", "--arch", "80", "--jobs", "1", folder=tmp_path)
    assert done.returncode == 1
    assert "FAILED" in done.stdout and "1 failed" in done.stdout
    assert 'identifier "nowhere" is undefined' in done.stderr


@pytest.mark.parametrize(("factor", "status"), [("2.0", 0), ("nothing", 1)])
def test_raw_sources_go_through_nvrtc(tmp_path, factor, status):
    source = tmp_path / "scale.cu"
    source.write_text(f'extern "C" __global__ void scale(double* x) {{ x[threadIdx.x] *= {factor}; }}')
    done = gate(str(source), "--arch", "80", folder=tmp_path)
    assert done.returncode == status
    assert ('identifier "nothing" is undefined' in done.stderr) == bool(status)


def test_raw_kernels_compile_and_spill_nothing():
    """The hand-written kernels, for both architectures; a spilled register would cost them what they were written for."""
    done = gate(*map(str, sorted(RAW.glob("*.cu"))), folder=TOOLS)
    assert done.returncode == 0, done.stderr
    kernels = [line for line in done.stdout.splitlines() if line.startswith("  ")]
    assert len(kernels) == 2 * sum(len(KERNEL.findall(path.read_text())) for path in RAW.glob("*.cu")) > 0
    assert all(line.endswith(" 0 bytes spilled") for line in kernels), done.stdout
