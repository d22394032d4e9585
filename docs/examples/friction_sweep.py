"""How far a block slides on a slope, by its coefficient of friction: a sweep into a pandas table."""

import math

import pandas

import abd

SLOPE = math.radians(20.0)


def main(coefficients: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5), duration: float = 0.5) -> pandas.DataFrame:
    """One row per coefficient: acceleration as simulated and as Coulomb has it [m/s^2]."""
    rows = []
    for mu in coefficients:
        scene = abd.Scene(gravity=(9.81 * math.sin(SLOPE), 0, -9.81 * math.cos(SLOPE)))
        scene.add_material("default", mu=mu)
        scene.add_body("slope", half_space={})
        scene.add_body("block", box=(0.2, 0.2, 0.1), position=(0, 0, 0.0501))
        sim = abd.run(scene, duration=duration, device="cpu")
        coulomb = max(0.0, 9.81 * (math.sin(SLOPE) - mu * math.cos(SLOPE)))
        rows.append({"mu": mu, "measured": sim.bodies["block"].linear_velocity[0] / duration, "coulomb": coulomb})
    table = pandas.DataFrame(rows).set_index("mu")
    print(table.round(4))
    return table


if __name__ == "__main__":
    main()
