"""A joint type defined by the user: a bead in a bowl, z >= (x^2 + y^2) / (2 radius)."""

import numpy as np

import abd


def bowl(M: np.ndarray, r: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the height of the bead above a paraboloid, which must not become negative, and its position along x."""
    height = r[:, 2] - (r[:, 0] ** 2 + r[:, 1] ** 2) / (2 * p[:, 0])
    return np.stack([height, r[:, 0]], axis=1)


def main(steps: int = 100) -> abd.Simulation:
    """Return the simulation after some swings."""
    rows, coordinates = {"height": abd.RowFlags.LINEAR}, {"x": abd.RowFlags.LINEAR}  # without BILATERAL: a gap
    abd.joint_type("bead_in_bowl", bowl, rows=rows, coordinates=coordinates, parameters={"radius": 1.0})
    scene = abd.Scene()
    scene.add_body("bead", sphere={"radius": 0.03}, mass=0.1, position=(0.3, 0, 0.2))
    middle, damping = (0, 0, 0), {"x": {"damping": 0.4}}
    place = abd.JointKeys(parent_anchor=middle, child_anchor=middle, parameters={"radius": 0.5}, coordinate=damping)
    scene.add_joint("bead_in_bowl", "bowl", abd.WORLD, "bead", **place)
    sim = abd.run(scene, steps=steps, device="cpu")
    print(sim.joints["bowl"].coordinates, sim.joints["bowl"].engagement, sim.joints["bowl"].wrench())
    return sim


if __name__ == "__main__":
    main()
