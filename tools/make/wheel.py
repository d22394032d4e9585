"""Build a wheel with compiled kernels for processors: `python tools/make/wheel.py [FOLDER]`, by default in `dist`.

The compiled kernels are valid for the architecture of this machine (x86-64-v3 or aarch64) and the installed version of Warp.
With other architectures or versions, the wheel compiles its kernels at their first use.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import warp as wp

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from abd.backends.device.compiling import every_module, load_modules  # noqa: E402
from abd.backends.device.device import Device  # noqa: E402
from cuda_kernels.options import TARGET  # noqa: E402


def compiled_kernels(folder: Path) -> Path:
    """Compile the kernels that are not in Warp's cache, and write an archive of all kernels to a folder."""
    modules = every_module()
    load_modules(Device("cpu").warp, modules, threads=2)
    folder.mkdir(exist_ok=True)
    archive = folder / f"{wp.get_cpu_kernel_cache_key(cpu_compiler_flags=TARGET)}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for module in modules:
            cached = Path(wp.config.kernel_cache_dir) / module.get_module_identifier(block_dim=1)
            for file in sorted(cached.glob("*.o")) + sorted(cached.glob("*.meta")):
                packed.write(file, f"{cached.name}/{file.name}")
    return archive


def main() -> None:
    """Compile the kernels, build the wheel, and remove the compiled kernels from the checkout."""
    archive = compiled_kernels(ROOT / "cuda_kernels" / "compiled")
    print(f"{archive.name}: {archive.stat().st_size / 1e6:.1f} MB", flush=True)
    target = sys.argv[1] if len(sys.argv) > 1 else "dist"
    try:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", target, str(ROOT)]
        subprocess.run(command, check=True)
    finally:
        archive.unlink()
        archive.parent.rmdir()


if __name__ == "__main__":
    main()
