"""Bodies slide and fall on triangles as on a half-space, whatever the triangles."""

from __future__ import annotations

import numpy as np
import pytest
from tool import load_tool

import abd

load_tool("results_file")
slide = load_tool("triangulation").slide

pytestmark = pytest.mark.device


@pytest.mark.parametrize("direction", [0.0, 17.0, 45.0])
@pytest.mark.parametrize("cells", [1, 20])
def test_a_slide_over_triangles_is_that_over_a_half_space(cells, direction):
    found, plane = slide(cells, direction, "cpu", 0.3), slide(0, direction, "cpu", 0.3)
    assert found.speed_change < 1e-6 and found.yaw_rate < 1e-6
    assert found.gap == pytest.approx(plane.gap, rel=0.01)


def test_a_cube_that_falls_flat_on_triangles_does_not_spin_on_any_device():
    """The symmetric point of a square's diagonal and corners: the plain sum of pairs leaves a spin there."""
    states = {}
    for device in ("cpu", "numpy"):
        scene = abd.Scene()
        corners = [[x, y, 0.0] for x in (-2.0, 0.0, 2.0) for y in (-2.0, 0.0, 2.0)]
        triangles = [t for k in (0, 1, 3, 4) for t in ([k, k + 3, k + 4], [k, k + 4, k + 1])]
        scene.add_body("floor", surface={"vertices": corners, "triangles": triangles}, kind="static")
        scene.add_body("cube", box=(0.5, 0.5, 0.5), position=(0.1, 0.1, 0.3))
        simulation = abd.Simulation(scene, device=device)
        spin = 0.0
        for _ in range(25):
            simulation.step()
            qd = np.asarray(simulation.bodies["cube"].velocity)[:3, :3]
            spin = max(spin, np.abs(qd - qd.T).max())
        assert spin < 1e-6
        states[device] = np.asarray(simulation.bodies["cube"].transform)
    np.testing.assert_allclose(states["cpu"], states["numpy"], rtol=0, atol=1e-7)
