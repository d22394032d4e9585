"""Render the films of `docs/gallery.md`: `python tools/make/gallery.py [NAME ...]`, into `docs/gallery`.

Scenes run by `abd run`, examples by their function `main`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILM = ["--size", "320x200", "--fps", "10"]
FILMS = {
    "peg": [],
    "robot_arm": [],
    "four_bar": [],
    "gears": [],
    "masonry_arch": [],
    "ragdoll": ["--speed", "0.6"],
    "rope_bridge": [],
    "wrecking_ball": [],
    "dominoes": ["--speed", "0.6", "--camera", "azimuth_deg=-70, elevation_deg=15, zoom=1.3"],
    "bolt_and_nut": ["--speed", "0.2", "--camera", "elevation_deg=25"],
    "mesh_in_memory": ["--camera", "elevation_deg=50"],
}
"""Further arguments of `abd render` by name of the scene or example."""


def record(name: str, run: Path) -> None:
    """Run a scene or an example and record it in a folder."""
    if (ROOT / "scenes" / f"{name}.toml").is_file():
        run_abd("run", name, "--out", str(run), "--quiet")
        return
    sys.path.insert(0, str(ROOT / "docs" / "examples"))
    import_module(name).main(record=str(run))


def run_abd(*arguments: str) -> None:
    """Run the command `abd` with arguments."""
    subprocess.run([sys.executable, "-m", "abd.cli", *arguments], check=True)


def main(names: list[str]) -> None:
    """Render the named films, or all of them."""
    for name in names or FILMS:
        with tempfile.TemporaryDirectory() as folder:
            record(name, Path(folder) / name)
            film = ROOT / "docs" / "gallery" / f"{name}.gif"
            film.parent.mkdir(exist_ok=True)
            run_abd("render", str(Path(folder) / name), "--out", str(film), "--quiet", *FILM, *FILMS[name])


if __name__ == "__main__":
    main(sys.argv[1:])
