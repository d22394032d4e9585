"""Contacts that stick are held by a tangential spring, anchored where sticking began.

Smoothed friction (`abd.potentials.friction`) measures the slip u of a step. What it resists with below `eps` is a viscous
force: a body on a slope creeps, by at most eps_v. Here a contact remembers the stretch of its spring, as in the plasticity
of granular contacts (Cundall and Strack 1979, "A discrete numerical model for granular assemblies"):

    E = mu lambda f0(|e|),    e = eps s + u,        s <- e / max(|e|, eps)   at the end of the step

with s (3,) the *share* of eps by which the spring is stretched, a tangent vector of the world with |s| <= 1. A contact at rest
under a constant load stays where ``mu lambda f1(|s|)`` is the force on it, with u = 0; one that slides has |s| = 1 and the
full force of Coulomb. The energy is the same as that of smoothed friction but for the place where it vanishes, so its
derivatives and bounds are as well. s has no unit: it keeps its force where the step, and with it eps, changes.

Contacts come and go and pass between primitives, as bodies slide, roll and tip. A contact takes the share of the contact
of the same two bodies in the last step that is nearest to it on the first body, turned into its own tangent plane; one whose
bodies did not touch has none. Between steps shares turn with the mean spin of the two bodies about the normal.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

STEEP = 0.5
"""Part of a share that the new tangent plane must contain for the share to keep its size."""


@dataclass(frozen=True)
class Anchors:
    """k contacts of the last step.

    Attributes:
        key: (k,) ``i n + j`` of the bodies i, j of n; kind: (k,) what they resist (`abd.potentials.rolling`).
        point: (k, 3) where on the body i, in rest coordinates [m].
        share: (k, 3) stretch of i against j, of eps [-].
    """

    key: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    kind: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    point: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    share: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))

    def __len__(self) -> int:
        return len(self.key)

    def found(self, key: np.ndarray, kind: np.ndarray, point: np.ndarray, n: np.ndarray) -> np.ndarray:
        """(l, 3) shares of contacts with these keys (l,), kinds (l,), points (l, 3) on their first bodies and normals (l, 3)."""
        out = np.zeros((len(key), 3))
        for row in range(len(key) if len(self) else 0):
            mine = np.flatnonzero((self.key == key[row]) & (self.kind == kind[row]))
            if len(mine):
                nearest = mine[np.argmin(np.sum((self.point[mine] - point[row]) ** 2, axis=1))]
                out[row] = tangential(self.share[nearest], n[row])
        return out

    def saved(self) -> dict[str, np.ndarray]:
        """For a checkpoint."""
        return {
            "stick_key": self.key,
            "stick_kind": self.kind,
            "stick_point": self.point.ravel(),
            "stick_share": self.share.ravel(),
        }

    @classmethod
    def of(cls, saved: dict[str, np.ndarray]) -> Anchors:
        """From a checkpoint; none where it has none."""
        if "stick_key" not in saved:
            return cls()
        return cls(
            saved["stick_key"].copy(),
            saved["stick_kind"].copy(),
            saved["stick_point"].reshape(-1, 3).copy(),
            saved["stick_share"].reshape(-1, 3).copy(),
        )


def tangential(share: np.ndarray, n: np.ndarray) -> np.ndarray:
    """(3,) a share in the plane of the normal n, of the same size unless it is too steep."""
    flat = share - (share @ n) * n
    size, left = np.linalg.norm(share), np.linalg.norm(flat)
    return flat * (size / left) if left > STEEP * size else flat


def kept(stretch: np.ndarray, eps: float, n: np.ndarray, spin: np.ndarray) -> np.ndarray:
    """(l, 3) shares after a step that ended with the stretches e (l, 3) [m], on bodies that have turned by `spin` (l,) [rad]
    about the normals n (l, 3), on the mean."""
    share = stretch / eps
    share = share / np.maximum(np.linalg.norm(share, axis=1), 1.0)[:, None]
    return np.cos(spin)[:, None] * share + np.sin(spin)[:, None] * np.cross(n, share)
