"""Random joints of every type, for tests of their kinematics."""

import numpy as np

from abd.joint_model import Joint
from abd.joints.coordinates.configurations import forms
from abd.joints.types import TYPES
from abd.rotations import pose, quaternion_matrix

BODY = {"proxy": True, "mass": 1.0, "density": 1.0, "center_of_mass": (0.0, 0.0, 0.0), "inertia": (0.1, 0.1, 0.1)}
"""Keys of a body without a surface."""
RADII = np.array([0.7, 0.9, 1.3])
PROFILE = ((-1.0, 0.5), (0.0, 0.0), (1.0, 0.0), (2.0, 1.0))
SYMMETRIC = np.diag([4.0, 5.0, 6.0, 0.4, 0.5, 0.6]) + 0.3 * np.eye(6)[[1, 0, 2, 4, 3, 5]] * 0.2
PARAMETERS = {
    "skewed_universal": {"skew": 0.4},
    "ellipsoid": {"radii": RADII, "alpha": 0.3},
    "ellipsoid3": {"radii": RADII},
    "screw": {"lead": 0.05},
    "general": {"constrained": ("x", "z", "ry")},
    "distance": {"distance": 0.6},
    "rope": {"distance": 0.6},
    "segmented_planar_connector": {"segments": PROFILE},
    "bushing": {"stiffness": SYMMETRIC, "damping": 2.0},
    "spring": {"stiffness": 10.0, "rest_length": 0.2},
    "damper": {"linear_damping": 2.0, "rotary_damping": 0.3},
}
"""Required parameters by type."""


def frame(rng: np.random.Generator) -> np.ndarray:
    """Return a random rigid pose (4, 4)."""
    return pose(quaternion_matrix(rng.standard_normal(4)), rng.standard_normal(3))


def joint_of(kind: str, rng: np.random.Generator, ends: tuple[int, int] = (0, 1), name: str = "", **keys) -> Joint:
    """Create a joint of a type between two bodies with random frames."""
    return Joint(name or kind, kind, 0, *ends, frame(rng), frame(rng), parameters=PARAMETERS.get(kind, {}), **keys)


CASES = [(kind, form) for kind in TYPES for form in forms(joint_of(kind, np.random.default_rng(0)))]
"""All pairs of a type and a form of its configuration."""
