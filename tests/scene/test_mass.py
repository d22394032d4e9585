"""Mass properties against closed forms and trimesh; principal frames at ties."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from abd.scene.geometry import mass, shapes
from abd.scene.geometry.frames import principal_frame


def of_box(extents, total):
    return total * np.diag(np.square(extents)) / 12.0


BOX, BOX_TRIANGLES = shapes.box((1.0, 2.0, 3.0))
HALF, HALF_TRIANGLES = shapes.box((1.0, 1.0, 1.0))
CORNER = np.eye(4, 3, -1)
CORNER_TRIANGLES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
PLATE, PLATE_TRIANGLES = np.array([[0.0, 0, 0], [2, 0, 0], [2, 1, 0], [0, 1, 0]]), np.array([[0, 1, 2], [0, 2, 3]])
ROD, EDGE = np.array([[0.0, 0, 0], [3, 0, 0]]), np.array([[0, 1]])
POLYGON = 6.0 * 0.3**2 * np.sin(np.pi / 6)
"""Area of a regular polygon of 12 sides."""
POLAR = POLYGON * 0.3**2 / 6 * (2 + np.cos(np.pi / 6))
ROD_MASS, BALL_MASS = 30 * np.pi, 4 * np.pi * 0.5**3
CLOSED_FORMS = {
    # name: body, mass, volume, centre, S about it; of the corner int x^2 = 1/10 and int x y = 1/20 about the origin
    "box": (mass.solid(BOX + np.array([5, -7, 100]), BOX_TRIANGLES, 500.0), 3000, 6, (5, -7, 100), of_box((1, 2, 3), 3000)),
    "corner": (mass.solid(CORNER, CORNER_TRIANGLES, 6.0), 1, 1 / 6, (0.25,) * 3, 1 / 20 + np.eye(3) / 20 - 1 / 16),
    "polygon": (
        mass.solid(*shapes.cylinder(0.3, 2.0, 12), 1000.0), 2000 * POLYGON, 2 * POLYGON, (0, 0, 0),
        1000 * np.diag([POLAR, POLAR, POLYGON * 2**3 / 12]),
    ),
    "shell": (mass.thick(PLATE, PLATE_TRIANGLES, 1000.0, 0.01), 20, 0.02, (1, 0.5, 0), of_box((2, 1, 0.01), 20)),
    "sheet": (mass.thin(PLATE, PLATE_TRIANGLES, 10.0), 20, None, (1, 0.5, 0), of_box((2, 1, 0), 20)),
    "rod": (mass.thick(ROD, EDGE, 1000.0, 0.1), ROD_MASS, 0.03 * np.pi, (1.5, 0, 0), ROD_MASS * np.diag([0.75, 0.0025, 0.0025])),
    "line": (mass.thin(ROD, EDGE, 2.0), 6, None, (1.5, 0, 0), np.diag([4.5, 0, 0])),
    "two halves": (mass.united([mass.solid(HALF + np.array([x, 0, 0]), HALF_TRIANGLES, 10.0) for x in (-0.5, 0.5)]),
        20, 2, (0, 0, 0), of_box((2, 1, 1), 20)),
    "balls": (
        mass.thick(np.array([[-1.0, 0, 0], [1, 0, 0]]), np.array([[0], [1]]), 3.0, 0.5),
        2 * BALL_MASS, 2 * BALL_MASS / 3, (0, 0, 0),
        2 * BALL_MASS * np.diag([1.05, 0.05, 0.05]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_mass_properties_are_those_of_the_closed_form(name):
    body, total, volume, center, second_moment = CLOSED_FORMS[name]
    assert body.mass == pytest.approx(total, rel=1e-13) and body.notes == ()
    assert volume is None or body.volume == pytest.approx(volume, rel=1e-13)
    np.testing.assert_allclose(body.center, center, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(body.second_moment, second_moment, atol=1e-12 * max(1.0, total))
    np.testing.assert_allclose(body.inertia, np.trace(second_moment) * np.eye(3) - second_moment, atol=1e-12 * max(1.0, total))


def test_agrees_with_trimesh_on_an_irregular_body():
    trimesh = pytest.importorskip("trimesh")
    mesh = trimesh.convex.convex_hull(np.random.default_rng(3).normal(size=(60, 3)) * [1, 2, 3] + [4, 5, 6])
    mesh.density = 7.0
    body = mass.solid(mesh.vertices, mesh.faces, 7.0)
    assert body.mass == pytest.approx(mesh.mass, rel=1e-12)
    np.testing.assert_allclose(body.center, mesh.center_mass, rtol=1e-12)
    np.testing.assert_allclose(body.inertia, mesh.moment_inertia, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_principal_frame_of_a_general_tensor(seed):
    rotation = Rotation.random(random_state=seed).as_matrix()
    moments = np.array([0.5, 1.0, 2.0])
    axes, found = principal_frame(rotation @ np.diag(moments) @ rotation.T)
    assert np.linalg.det(axes) == pytest.approx(1.0)
    np.testing.assert_allclose(axes.T @ axes, np.eye(3), atol=1e-13)
    np.testing.assert_allclose(axes @ np.diag(found) @ axes.T, rotation @ np.diag(moments) @ rotation.T, atol=1e-12)
    # no other choice of principal axes turns the mesh axes less: at most 62.8 degrees for the cube group
    assert np.trace(axes) > 1.0 + 2.0 * np.cos(np.radians(62.9)) - 1e-9


def test_principal_frame_keeps_axes_that_are_principal_already():
    for moments in ([1.0, 1.0, 1.0], [3.0, 1.0, 2.0], [1.0, 2.0, 2.0], [0.0, 1.0, 2.0], [0.0, 0.0, 1.0]):
        axes, found = principal_frame(np.diag(moments))
        assert (axes == np.eye(3)).all()
        np.testing.assert_allclose(found, moments)
