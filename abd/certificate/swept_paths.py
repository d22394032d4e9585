"""Check of the swept paths between frames of a trajectory by continuous collision detection with `ipctk`.

Between two states a body follows an arc: its centre of mass moves on a straight line, its map is
``exp(alpha W) (1 + alpha S) A``. W is the rotation between the polar factors on the branch of the body's velocity.
Within an interval a of alpha, a point deviates from its chord by at most ``a^2 r (|W|^2 (1 + |S|) + 2 |W| |S|) / 8``, r
its distance from the centre. Chords are checked with both bounds as minimum separation; if the check fails, the path is
bisected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.spatial.transform import Rotation

from abd.certificate.world import ipctk

ipctk.set_logger_level(ipctk.LoggerLevel.error)  # it warns of gaps that bisection resolves

DEPTH = 8
"""Largest number of bisections of a path."""
KEPT_GAP = 0.1
"""Fraction of the initial gap that additive CCD keeps; a path with a larger decrease is bisected."""
ADVANCES = 10_000


@dataclass(frozen=True)
class Arcs:
    """Arcs of n bodies: centres (n, 3) and their displacement [m], maps (n, 3, 3), W (n, 3) [rad], S (n, 3, 3)."""

    center: np.ndarray
    start: np.ndarray
    moved: np.ndarray
    A: np.ndarray
    w: np.ndarray
    S: np.ndarray

    @classmethod
    def between(cls, center: np.ndarray, now: np.ndarray, then: np.ndarray, turn: np.ndarray) -> Arcs:
        """Arcs from transforms (n, 4, 4) to others.

        Args:
            center: (n, 3) centres of mass in the mesh frames.
            turn: (n, 3) rotations at the velocities of the start [rad], which determine the numbers of whole turns.
        """
        places = [np.einsum("nij,nj->ni", T[:, :3, :3], center) + T[:, :3, 3] for T in (now, then)]
        A, B = now[:, :3, :3], then[:, :3, :3]
        w = Rotation.from_matrix(_polar(B) @ _polar(A).transpose(0, 2, 1)).as_rotvec()
        angle = np.linalg.norm(w, axis=1)
        # without an angle, whole turns are about the axis of the velocity
        axis = np.where((angle > 1e-9)[:, None], w, turn)
        length = np.linalg.norm(axis, axis=1)
        axis /= np.where(length > 0.0, length, 1.0)[:, None]
        w += 2.0 * np.pi * np.round((np.sum(turn * axis, axis=1) - angle) / (2.0 * np.pi))[:, None] * axis
        S = Rotation.from_rotvec(-w).as_matrix() @ B @ np.linalg.inv(A) - np.eye(3)
        return cls(center, places[0], places[1] - places[0], A, w, S)

    def transforms(self, alpha: float) -> np.ndarray:
        """Return the transforms (n, 4, 4) at alpha."""
        out = np.tile(np.eye(4), (len(self.A), 1, 1))
        out[:, :3, :3] = Rotation.from_rotvec(alpha * self.w).as_matrix() @ (self.A + alpha * self.S @ self.A)
        place = self.start + alpha * self.moved
        out[:, :3, 3] = place - np.einsum("nij,nj->ni", out[:, :3, :3], self.center)
        return out

    def bends(self, radius: np.ndarray) -> np.ndarray:
        """Return (n,) bounds of the second derivative of points up to `radius` (n,) from the centres [m]."""
        turn, strain = np.linalg.norm(self.w, axis=1), np.linalg.norm(self.S, 2, axis=(1, 2))
        return radius * (turn**2 * (1.0 + strain) + 2.0 * turn * strain)


def spin(transform: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """Return (n, 3) angular velocities [rad/s] of transforms with time derivatives, (n, 4, 4) both."""
    W = velocity[:, :3, :3] @ np.linalg.inv(transform[:, :3, :3])
    return 0.5 * np.stack([W[:, 2, 1] - W[:, 1, 2], W[:, 0, 2] - W[:, 2, 0], W[:, 1, 0] - W[:, 0, 1]], 1)


def _polar(A: np.ndarray) -> np.ndarray:
    U, _, Vt = np.linalg.svd(A)
    return U @ Vt


class PathCheck:
    """Check of swept paths of all bodies of a scene."""

    def __init__(self, scene, parts: list, center: np.ndarray):
        self.scene, self.parts, self.center = scene, parts, center
        self.ccd = ipctk.AdditiveCCD(ADVANCES, 1.0 - KEPT_GAP)

    def check(self, now: np.ndarray, then: np.ndarray, turn: np.ndarray) -> list[tuple[tuple[int, ...], str]]:
        """Return bodies whose path is not provably collision-free, with a description; arguments of `Arcs.between`."""
        scene = self.scene
        self.arcs = Arcs.between(self.center, now, then, turn)
        arms = scene.rest - self.center[scene.owner]
        lengths = np.linalg.norm(np.einsum("vij,vj->vi", now[scene.owner, :3, :3], arms), axis=1)
        radius = np.zeros(len(now))
        np.maximum.at(radius, scene.owner, lengths)
        self.bends = self.arcs.bends(radius)
        found = []
        for part in self.parts:
            found += self._bisected(partial(self._surfaces, part), "the path is not collision-free")
        return found + self._bisected(self._half_spaces, "a vertex goes beyond the half-space")

    def _bisected(self, close: Callable, text: str) -> list[tuple[tuple[int, int], str]]:
        """Pairs of bodies that are too close on the chord of a part of the path, after bisections.

        close: (length of the part, positions (v, 3) at its ends) -> pairs of bodies."""

        def search(a: float, b: float, start: np.ndarray, end: np.ndarray, depth: int) -> list:
            pairs = close(b - a, start, end)
            if not pairs or depth == 0:
                return [(pair, f"{text} between {a:.4g} and {b:.4g} of the path") for pair in sorted(pairs)]
            middle = 0.5 * (a + b)
            between = self._at(middle)
            return search(a, middle, start, between, depth - 1) or search(middle, b, between, end, depth - 1)

        return search(0.0, 1.0, self._at(0.0), self._at(1.0), DEPTH)

    def _at(self, alpha: float) -> np.ndarray:
        """Return (v, 3) positions of all vertices at alpha."""
        return self.scene.positions(self.arcs.transforms(alpha))

    def _surfaces(self, part, length: float, start, end) -> set[tuple[int, int]]:
        """Pairs of bodies of a part of a world whose chords over a part of the path are too close."""
        x, y, away = part.place(start), part.place(end), self.bends * (length**2 / 8.0)
        largest, found = 2.0 * float(away[part.owner].max(initial=0.0)), set()
        for kind, ids, least, pairs in part.uncertain(part.close(x, y, largest, self.ccd), x, y, away):
            for k, pair in enumerate(map(tuple, np.sort(pairs, axis=1).tolist())):
                ends = x[ids[k]].ravel(), y[ids[k]].ravel()
                if pair not in found and kind.ccd(*ends, min_distance=least[k], narrow_phase_ccd=self.ccd)[0]:
                    found.add(pair)
        return found

    def _half_spaces(self, length: float, start, end) -> set[tuple[int, int]]:
        """Bodies and half-spaces whose gap is not positive on the chords over a part of the path."""
        found = set()
        for plane, bodies, gaps in self.scene.half_space_gaps(start, end):
            close = ~(gaps > self.bends[bodies] * (length**2 / 8.0))
            found |= {(body, plane) for body in bodies[close].tolist()}
        return found
