"""A row of dominoes falls after a push on the first one."""

import abd


def main(count: int = 30, duration: float = 2.0, record: str | None = None) -> list[str]:
    """Return the names of the dominoes that fell; `record`: folder of the run."""
    scene = abd.Scene("dominoes")
    scene.add_material("default", mu=0.4)
    scene.add_body("floor", half_space={})
    row = {"count": (count, 1, 1), "step": (0.04, 0, 0)}
    scene.add_body("domino", box=(0.01, 0.04, 0.08), position=(0, 0, 0.0401), density=700, repeat=row)

    sim = abd.Simulation(scene, device="cpu")
    sim.bodies["domino_0_0_0"].apply_force((0.15, 0, 0), at=(0, 0, 0.035), steps=15)
    sim.run(duration=duration, progress=True, record=record)

    fallen = [body.name for body in sim.bodies.values() if body.kind == "dynamic" and body.position[2] < 0.035]
    print(f"{len(fallen)} of {count} dominoes have fallen after {sim.time:.2f} s")
    return fallen


if __name__ == "__main__":
    main()
