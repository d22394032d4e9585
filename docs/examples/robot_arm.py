"""A robot arm with drives pushes 36 boxes over the floor and prints the contact forces on its gripper."""

import abd


def main(rows: int = 6, duration: float = 1.0) -> abd.Simulation:
    """Return the simulation after the push."""
    scene = abd.Scene("push")
    scene.add_material("default", mu=0.4)
    scene.add_body("floor", half_space={})
    grid = {"count": (rows, rows, 1), "step": (0.11, 0.11, 0)}
    scene.add_body("box", box=(0.1, 0.1, 0.1), density=300, position=(0.6, -0.055 * (rows - 1), 0.0501), repeat=grid)
    scene.add_body("upper", box=(0.1, 0.1, 0.5), position=(0, 0, 0.5))
    scene.add_body("lower", box=(0.5, 0.08, 0.08), position=(0.25, 0, 0.25))
    scene.add_body("gripper", box=(0.04, 0.4, 0.2), position=(0.5, 0, 0.12))
    pd = {"mode": "pd", "stiffness": 5000, "damping": 300, "effort": 500}
    swing, level = {"target_deg": "-25*smoothstep(0.2, 1.2, t)"}, {"target_deg": "25*smoothstep(0.2, 1.2, t)"}
    y = (0, 1, 0)
    scene.add_hinge("shoulder", abd.WORLD, "upper", anchor=(0, 0, 0.75), axis=y, enforcement="exact", drive=pd | swing)
    scene.add_hinge("elbow", "upper", "lower", anchor=(0, 0, 0.25), axis=y, enforcement="exact", drive=pd | level)
    scene.add_hinge("wrist", "lower", "gripper", anchor=(0.5, 0, 0.25), axis=y, enforcement="exact", drive=pd)
    sim = abd.run(scene, duration=duration, device="cpu", progress=True)
    for patch in sim.contacts("gripper").patches():
        print(f"{' and '.join(patch.bodies)}: {patch.force.round(2)} N, {'sticks' if patch.sticks else 'slides'}")
    return sim


if __name__ == "__main__":
    main()
