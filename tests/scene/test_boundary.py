"""Meshes of files: what is closed although its edges do not match, where it is open, and which parts count twice."""

import numpy as np
import pytest

import abd
from abd.errors import SceneError
from abd.scene.geometry import shapes

CUBE = shapes.box((1.0, 1.0, 1.0))


def soup(vertices, triangles):
    return vertices[triangles].reshape(-1, 3), np.arange(3 * len(triangles)).reshape(-1, 3)


def jittered(size):
    vertices, triangles = soup(*CUBE)
    return vertices + np.random.default_rng(0).uniform(-size, size, vertices.shape), triangles


def rounded():
    vertices, triangles = soup(*CUBE)
    return (vertices + np.array([0.1, 0.7, 0.3])).astype(np.float32).astype(float), triangles


def with_t_junctions():
    """One of the triangles is cut in two from the middle of a side, which its neighbour keeps whole."""
    vertices, triangles = CUBE
    a, b, c = triangles[0]
    new = len(vertices)
    parts = [[a, new, c], [new, b, c]]
    return np.concatenate([vertices, 0.5 * (vertices[[a]] + vertices[[b]])]), np.concatenate([triangles[1:], parts])


def with_part(move, size, turned=False):
    vertices, triangles = CUBE
    inner = triangles[:, ::-1] if turned else triangles
    return np.concatenate([vertices, size * vertices + move]), np.concatenate([triangles, inner + len(vertices)])


CASES = {
    # name: mesh, volume, words of a note
    "welded": (CUBE, 1.0, ""),
    "unwelded": (soup(*CUBE), 1.0, ""),
    "jitter of CAD": (jittered(1e-9), 1.0, "open edges"),
    "single precision": (rounded(), 1.0, ""),
    "T-junctions": (with_t_junctions(), 1.0, "3 open edges"),
    "cavity": (with_part((0, 0, 0), 0.5, turned=True), 0.875, ""),
    "inner shell that faces outwards": (with_part((0, 0, 0), 0.5), 1.125, "counts twice"),
    "overlapping parts": (with_part((0.5, 0.5, 0.5), 1.0), 2.0, "counts twice"),
    "parts apart": (with_part((3, 0, 0), 1.0), 2.0, ""),
    "parts that share an edge": (with_part((1, 1, 0), 1.0), 2.0, ""),
}


@pytest.mark.parametrize("size, move", [(1.0, 0.0), (1e-3, 0.0), (1e3, 0.0), (1.0, 1e4)])
@pytest.mark.parametrize("name", CASES)
def test_the_volume_is_that_of_the_solid(name, size, move):
    (vertices, triangles), volume, words = CASES[name]
    scene = abd.Scene()
    scene.add_body("body", mesh=(size * vertices + move, triangles), density=1.0)
    model = scene.compile()
    assert model.bodies.mass[0] == pytest.approx(volume * size**3, rel=1e-6)
    assert not words or any(words in note for note in model.notes)
    assert words == "counts twice" or not any("counts twice" in note for note in model.notes)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_an_open_surface_is_refused_with_the_place_of_its_edges(size):
    vertices, triangles = CUBE
    scene = abd.Scene()
    scene.add_body("body", mesh=(size * vertices, triangles[1:]))
    with pytest.raises(SceneError, match=r"3 open edges, one of them at \("):
        scene.compile()
