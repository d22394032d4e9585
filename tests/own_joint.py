"""A joint type of one's own, as the documentation shows it."""

EXAMPLE = """
import numpy as np
import abd
from abd import RowFlags


def bowl(M, r, p):
    \"\"\"Height of the bead above a paraboloid, and its place along x.\"\"\"
    height = r[:, 2] - (r[:, 0] ** 2 + r[:, 1] ** 2) / (2 * p[:, 0])
    return np.stack([height, r[:, 0]], axis=1)


abd.joint_type(
    "bowl",
    bowl,
    rows={"height": RowFlags.LINEAR},  # without BILATERAL: a gap
    coordinates={"x": RowFlags.LINEAR},
    parameters={"radius": 1.0},
)
scene = abd.Scene(solver={"dt": 0.01})
scene.add_body("bead", sphere={"radius": 0.03}, mass=0.1, position=(0.3, 0, 0.2))
own = {"parent_anchor": (0, 0, 0), "child_anchor": (0, 0, 0), "parameters": {"radius": 0.5}}
scene.add_joint("bowl", "bowl", abd.WORLD, "bead", coordinate={"x": {"damping": 0.4}}, **own)
simulation = abd.Simulation(scene, device="cpu")
simulation.run(steps=100)
joint = simulation.joints["bowl"]
print(joint.coordinates, joint.engagement, joint.wrench())
"""
