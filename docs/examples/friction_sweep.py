"""Acceleration of a block on a slope by its coefficient of friction: a sweep with a pandas table."""

import math
from pathlib import Path

import pandas

import abd
from abd.io.trajectory import Trajectory

SLOPE = math.radians(20.0)


def block(mu: float) -> abd.Scene:
    """Return a scene of a block on a slope, whose normal is z."""
    scene = abd.Scene(gravity=(9.81 * math.sin(SLOPE), 0, -9.81 * math.cos(SLOPE)))
    scene.add_material("default", mu=mu)
    scene.add_body("slope", half_space={})
    scene.add_body("block", box=(0.2, 0.2, 0.1), position=(0, 0, 0.0501))
    return scene


def acceleration(folder: Path) -> dict[str, float]:
    """Return the mean acceleration of a run [m/s^2]."""
    with Trajectory(folder) as run:
        return {"measured": run.row("bodies/velocity", -1)[1, 0, 3] / run.time[-1]}


def main(
    coefficients: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5), duration: float = 0.5, out: str = "runs/friction"
) -> pandas.DataFrame:
    """Return a table with one row per coefficient: the acceleration in the simulation and by Coulomb's law [m/s^2]."""
    table = abd.sweep(block, {"mu": coefficients}, out=out, duration=duration, device="cpu", measure=acceleration)
    table["coulomb"] = [max(0.0, 9.81 * (math.sin(SLOPE) - mu * math.cos(SLOPE))) for mu in coefficients]
    table = table.set_index("mu")[["measured", "coulomb"]]
    print(table.round(4))
    return table


if __name__ == "__main__":
    main()
