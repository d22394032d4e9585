"""Mass properties against closed forms and trimesh; principal frames at ties."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from abd.errors import SceneError
from abd.scene.geometry import mass, shapes
from abd.scene.geometry.frames import principal_frame


def box_moment(extents, total):
    """Diagonal of S of a box."""
    return total * np.array(extents) ** 2 / 12.0


def test_box_off_the_origin():
    vertices, triangles = shapes.box((1.0, 2.0, 3.0))
    body = mass.solid(vertices + np.array([5.0, -7.0, 100.0]), triangles, 500.0)
    assert body.volume == pytest.approx(6.0, rel=1e-13)
    assert body.mass == pytest.approx(3000.0, rel=1e-13)
    np.testing.assert_allclose(body.center, [5.0, -7.0, 100.0], rtol=1e-14)
    np.testing.assert_allclose(body.second_moment, np.diag(box_moment((1, 2, 3), 3000.0)), atol=1e-10)
    np.testing.assert_allclose(np.diag(body.inertia), 250.0 * np.array([13.0, 10.0, 5.0]), rtol=1e-12)
    assert body.notes == ()


def test_inside_out_surface_is_turned_with_a_note():
    vertices, triangles = shapes.box((1.0, 2.0, 3.0))
    right, wrong = (mass.solid(vertices, t, 1.0) for t in (triangles, triangles[:, ::-1]))
    assert wrong.volume == pytest.approx(right.volume)
    np.testing.assert_allclose(wrong.second_moment, right.second_moment, atol=1e-14)
    assert "inwards" in wrong.notes[0]


def test_corner_tetrahedron():
    vertices = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    triangles = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    body = mass.solid(vertices, triangles, 6.0)
    assert body.mass == pytest.approx(1.0)
    np.testing.assert_allclose(body.center, [0.25, 0.25, 0.25])
    # about the origin: integral x^2 = 1/10, integral x y = 1/20 per unit mass
    expected = np.full((3, 3), 1 / 20) + np.eye(3) / 20 - 1 / 16
    np.testing.assert_allclose(body.second_moment, expected, atol=1e-15)


def test_sphere_converges_with_order_two():
    errors = []
    for subdivisions in (2, 3, 4):
        body = mass.solid(*shapes.sphere(0.5, subdivisions), 1.0)
        exact = 4 / 3 * np.pi * 0.5**3
        errors.append([1.0 - body.volume / exact, 1.0 - body.second_moment[0, 0] / (exact * 0.25 / 5)])
    ratios = np.array(errors)[:-1] / np.array(errors)[1:]
    np.testing.assert_allclose(ratios, 4.0, rtol=0.05)


def test_cylinder_of_a_regular_polygon():
    sides, radius, length = 12, 0.3, 2.0
    body = mass.solid(*shapes.cylinder(radius, length, sides), 1000.0)
    area = sides / 2 * radius**2 * np.sin(2 * np.pi / sides)
    polar = area * radius**2 / 6 * (2 + np.cos(2 * np.pi / sides))
    expected = 1000.0 * np.diag([length * polar / 2, length * polar / 2, area * length**3 / 12])
    assert body.volume == pytest.approx(area * length)
    np.testing.assert_allclose(body.second_moment, expected, atol=1e-10)


def test_agrees_with_trimesh_on_an_irregular_body():
    trimesh = pytest.importorskip("trimesh")
    mesh = trimesh.convex.convex_hull(np.random.default_rng(3).normal(size=(60, 3)) * [1, 2, 3] + [4, 5, 6])
    mesh.density = 7.0
    body = mass.solid(mesh.vertices, mesh.faces, 7.0)
    assert body.mass == pytest.approx(mesh.mass, rel=1e-12)
    np.testing.assert_allclose(body.center, mesh.center_mass, rtol=1e-12)
    np.testing.assert_allclose(body.inertia, mesh.moment_inertia, rtol=1e-10, atol=1e-10)


def test_flat_closed_surface_is_refused():
    vertices, triangles = shapes.box((1.0, 1.0, 1.0))
    with pytest.raises(SceneError, match="no volume"):
        mass.solid(vertices * [1.0, 1.0, 0.0], triangles, 1.0)


def test_plate_as_a_shell_is_a_thin_box():
    vertices = np.array([[0.0, 0, 0], [2, 0, 0], [2, 1, 0], [0, 1, 0]])
    triangles = np.array([[0, 1, 2], [0, 2, 3]])
    body = mass.shell(vertices, triangles, 1000.0, 0.01)
    assert body.mass == pytest.approx(20.0)
    assert body.volume == pytest.approx(0.02)
    np.testing.assert_allclose(body.center, [1.0, 0.5, 0.0])
    np.testing.assert_allclose(body.second_moment, np.diag(box_moment((2, 1, 0.01), 20.0)), atol=1e-12)


def test_sheet_has_no_thickness():
    vertices = np.array([[0.0, 0, 0], [2, 0, 0], [2, 1, 0], [0, 1, 0]])
    body = mass.sheet(vertices, np.array([[0, 1, 2], [0, 2, 3]]), 10.0)
    np.testing.assert_allclose(body.second_moment, np.diag(box_moment((2, 1, 0), 20.0)), atol=1e-12)


def test_rod_is_a_round_cylinder():
    ends = np.array([[0.0, 0, 0], [3.0, 0, 0]])
    body = mass.rods(ends, np.array([[0, 1]]), 1000.0, 0.1)
    total = 1000.0 * 3.0 * np.pi * 0.01
    assert body.mass == pytest.approx(total)
    assert body.volume == pytest.approx(total / 1000.0)
    np.testing.assert_allclose(body.second_moment, total * np.diag([9 / 12, 0.01 / 4, 0.01 / 4]), atol=1e-12)
    thin = mass.lines(ends, np.array([[0, 1]]), 2.0)
    np.testing.assert_allclose(thin.second_moment, np.diag([6 * 9 / 12, 0, 0]), atol=1e-12)


def test_two_balls():
    centers = np.array([[-1.0, 0, 0], [1.0, 0, 0]])
    body = mass.balls(centers, np.array([0, 1]), 3.0, 0.5)
    each = 4 * np.pi * 0.5**3
    np.testing.assert_allclose(body.second_moment, 2 * each * np.diag([1.05, 0.05, 0.05]), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "key"),
    [
        (lambda v, e: mass.shell(v, np.array([[0, 1, 2]]), 1.0, 0.0), "thickness"),
        (lambda v, e: mass.rods(v, e, 1.0, 0.0), "radius"),
        (lambda v, e: mass.balls(v, np.array([0]), 1.0, 0.0), "radius"),
    ],
)
def test_missing_thickness_is_named(call, key):
    with pytest.raises(SceneError) as error:
        call(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), np.array([[0, 1]]))
    assert error.value.problems[0].key == key
    assert error.value.problems[0].remedy


def test_union_of_two_halves_is_the_whole():
    whole = mass.solid(*shapes.box((2.0, 1.0, 1.0)), 10.0)
    vertices, triangles = shapes.box((1.0, 1.0, 1.0))
    halves = [mass.solid(vertices + np.array([x, 0, 0]), triangles, 10.0) for x in (-0.5, 0.5)]
    union = mass.united(halves)
    assert union.mass == pytest.approx(whole.mass)
    assert union.volume == pytest.approx(whole.volume)
    np.testing.assert_allclose(union.center, whole.center, atol=1e-15)
    np.testing.assert_allclose(union.second_moment, whole.second_moment, atol=1e-13)


def test_explicit_inertia_round_trip():
    inertia = np.array([[3.0, 0.2, 0.0], [0.2, 4.0, -0.1], [0.0, -0.1, 5.0]])
    body = mass.explicit(2.0, np.array([1.0, 2, 3]), inertia, 0.5)
    np.testing.assert_allclose(body.inertia, inertia, atol=1e-14)
    np.testing.assert_allclose(mass.explicit(1.0, np.zeros(3), (1.0, 1.0, 2.0), 1.0).second_moment, np.diag([1, 1, 0]))


def test_impossible_inertia_names_the_moments():
    with pytest.raises(SceneError, match="principal moments 1, 1, 3: none may exceed the sum") as error:
        mass.explicit(1.0, np.zeros(3), (1.0, 1.0, 3.0), 1.0)
    assert "centre of mass" in error.value.problems[0].remedy
    with pytest.raises(SceneError, match="not symmetric"):
        mass.explicit(1.0, np.zeros(3), np.array([[1.0, 0.5, 0], [0, 1, 0], [0, 0, 1]]), 1.0)


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
