"""Contacts of points with half-spaces."""

import numpy as np

from abd.potentials.contact import Contacts, Stencil

D_HAT = 1e-2
"""Activation [m]."""


def half_space_contacts(seed: int, count: int) -> tuple[Contacts, np.ndarray]:
    """Create contacts of points slightly above inclined half-spaces; return them and positions (m, 4, 3)."""
    rng = np.random.default_rng(seed)
    normals = rng.normal(size=(count, 3))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    offsets = rng.normal(size=count)
    height = rng.uniform(0.1, 0.9, size=count) * D_HAT + 1e-3
    tangential = np.cross(normals, rng.normal(size=(count, 3)))
    points = (offsets + height)[:, None] * normals + tangential
    ones = np.ones(count)
    contacts = Contacts(
        stencil=np.full(count, Stencil.POINT_PLANE), first=np.zeros(count, int), second=np.ones(count, int),
        rest=np.repeat(rng.normal(size=(count, 1, 3)), 4, axis=1), plane=np.column_stack([normals, offsets]),
        xi=1e-3 * ones, stiffness=ones, mu=0.5 * ones, flipped=np.zeros(count, bool),
    )
    return contacts, np.repeat(points[:, None], 4, axis=1)
