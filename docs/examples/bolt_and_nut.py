"""A nut runs down a bolt without friction: two helical surfaces with 0.2 mm of clearance between them."""

import numpy as np
import trimesh

import abd

PITCH, RADIUS, DEPTH = 0.01, 0.01, 0.002  # of the thread [m]
AROUND, ROWS = 72, 4  # points of a turn, rows of points of a pitch
ANGLE = 2 * np.pi * np.arange(AROUND) / AROUND


def ring(radius: float | np.ndarray, z: float | np.ndarray) -> np.ndarray:
    """Points (AROUND, 3) about the axis."""
    return np.stack(np.broadcast_arrays(radius * np.cos(ANGLE), radius * np.sin(ANGLE), z), axis=-1)


def threaded(turns: int, offset: float, bottom: np.ndarray, top: np.ndarray) -> trimesh.Trimesh:
    """Solid between a thread, whose radius is larger by `offset`, and two rings of points (AROUND, 3), one at each end."""
    row = np.arange((turns + 1) * ROWS + 1)[:, None]
    radius = RADIUS + offset - DEPTH * np.array([0, 0, 1, 1])[row % ROWS]
    points = [*ring(radius, PITCH * (row / ROWS + ANGLE / (2 * np.pi))).reshape(-1, 3), *bottom, *top]
    # a turn around, the row of a point is ROWS higher
    grid = AROUND * row[: turns * ROWS + 1] + np.array([*range(AROUND), AROUND * ROWS])
    edges = [[*grid[k, :-1], *(AROUND * (r + k) for r in range(ROWS, 0, -1))] for k in (0, turns * ROWS)]
    a, b, c, d = grid[:-1, :-1], grid[:-1, 1:], grid[1:, 1:], grid[1:, :-1]
    faces = [np.stack(three, axis=-1).reshape(-1, 3) for three in ((a, b, c), (a, c, d))]
    first = len(points) - 2 * AROUND
    for edge, start, order in zip(edges, (first, first + AROUND), (-1, 1)):
        k, outer = np.array(edge), np.array([start + j if j < AROUND else start for j in range(len(edge))])
        n, outer_n = np.roll(k, -1), np.roll(outer, -1)
        faces += [np.stack(three, axis=-1)[:, ::order] for three in ((k, n, outer), (n, outer_n, outer))]
    k, n = first + np.arange(AROUND), first + np.roll(np.arange(AROUND), -1)
    if not np.allclose(bottom, bottom[0]):
        faces += [np.stack(three, axis=-1) for three in ((n, k, k + AROUND), (n, k + AROUND, n + AROUND))]
    mesh = trimesh.Trimesh(points, np.concatenate(faces))
    mesh.update_faces(mesh.nondegenerate_faces())
    if mesh.volume < 0:
        mesh.invert()
    return mesh


def main(duration: float = 0.8, record: str | None = None) -> abd.Simulation:
    """Return the simulation after the run; `record`: folder of the run."""
    hexagon = 0.017 / np.cos((ANGLE + np.pi / 6) % (np.pi / 3) - np.pi / 6)
    bolt = threaded(6, 0.0, ring(0, 0), ring(0, 7 * PITCH))
    nut = threaded(2, 2e-4, ring(hexagon, 0), ring(hexagon, 3 * PITCH))
    scene = abd.Scene("bolt_and_nut", solver={"dt": 0.005})
    scene.add_material("default", mu=0)
    scene.add_body("bolt", mesh=bolt, kind="static")
    rate = -10.0  # rad/s
    down = (0, 0, rate * PITCH / (2 * np.pi))
    scene.add_body("nut", mesh=nut, density=7800, position=(0, 0, 3 * PITCH), velocity=down, angular_velocity=(0, 0, rate))
    sim = abd.run(scene, duration=duration, device="cpu", progress=True, record=record)
    print(f"height {1e3 * sim.bodies['nut'].position[2]:.2f} mm, {sim.bodies['nut'].angular_velocity[2]:.1f} rad/s")
    return sim


if __name__ == "__main__":
    main()
