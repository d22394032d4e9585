"""Mesh files, repair of surfaces, components, closed surfaces with T-junctions, volumes of solids."""

import numpy as np
import pytest

import abd
from abd.errors import SceneError
from abd.scene.geometry import shapes
from abd.scene.geometry.mesh_files import RawMesh
from abd.scene.geometry.meshes import load_surface, make_surface, split_components

BOX = shapes.box((1.0, 2.0, 3.0))


@pytest.mark.parametrize(
    "shape", [shapes.box((1, 2, 3)), shapes.sphere(0.5, 2), shapes.capsule(0.2, 1.0, 16), shapes.cylinder(0.3, 1.0, 9)]
)
def test_shapes_are_closed_and_face_outwards(shape):
    surface = make_surface("shape", RawMesh.of(*shape))
    assert surface.closed and surface.notes == () and len(surface.codim_edges) == 0
    assert len(surface.vertices) - len(surface.edges) + len(surface.triangles) == 2
    a, b, c = np.moveaxis(surface.vertices[surface.triangles], 1, 0)
    assert (np.einsum("ij,ij->i", np.cross(b - a, c - a), a + b + c) > 0).all()


@pytest.mark.parametrize("suffix", ["obj", "stl", "ply", "off", "glb"])
def test_formats_give_the_same_box(tmp_path, suffix):
    trimesh = pytest.importorskip("trimesh")
    path = tmp_path / f"box.{suffix}"
    trimesh.Trimesh(*BOX, process=False).export(path)
    surface = load_surface(path)
    assert surface.closed and surface.name == "box"
    assert (len(surface.vertices), len(surface.triangles), len(surface.edges)) == (8, 12, 18)
    np.testing.assert_allclose(np.ptp(surface.vertices, axis=0), [1, 2, 3], rtol=1e-6)


def test_obj_keeps_polylines_points_and_polygons(tmp_path):
    path = tmp_path / "mixed.obj"
    path.write_text(
        "# comment\nv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvt 0 0\nf 1/1/1 2/1 3 -1\n"
        "v 2 0 0 0.5 0.5 0.5\nv 3 0 0\nl 2 5 6\nl 1 2\nv 9 9 9\np 7\nv 8 8 8\n"
    )
    surface = load_surface(path)
    assert len(surface.triangles) == 2 and not surface.closed
    # the line from 1 to 2 is a side of the quadrilateral
    assert surface.codim_edges.tolist() == [[1, 4], [4, 5]]
    assert surface.points.tolist() == [6]
    assert len(surface.edges) == 5 + 2
    assert surface.edges[-2:].tolist() == surface.codim_edges.tolist()
    assert surface.notes == ("1 unused vertices were removed",)
    path.write_text("v 0 0 0\nv 2 -1 0\nv 0.5 0 0\nv 2 1 0\nf 2 3 4 1\n")
    assert "not convex" in load_surface(path).notes[0]


def test_obj_with_a_byte_order_mark_and_continued_lines(tmp_path):
    path = tmp_path / "marked.obj"
    path.write_text("\ufeffv 0 0 0\nv 1 0 0\nv 0 1 \\\n0\nf 1 2 \\\n3\n", encoding="utf-8")
    surface = load_surface(path)
    assert len(surface.vertices) == 3 and len(surface.triangles) == 1


PLY = (
    "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\nelement face 1\n"
    "property list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n"
)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("empty.obj", "", "no vertices"),
        ("index.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 4\n", "has vertex 3, but there are 3"),
        ("nan.obj", "v 0 0 0\nv 1 nan 0\nv 0 1 0\nf 1 2 3\n", "vertex 1 .* not finite"),
        ("words.obj", "v 0 zero 0\n", "must have three numbers"),
        ("short.obj", "v 0 0\n", "three numbers"),
        ("far.obj", "v 1e160 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", r"vertices beyond 1e\+50"),
        ("line.obj", "v 0 0 0\nv 1 0 0\nf 1 2 x\n", r"line\.obj:3: "),
        ("zero.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 0 1 2\n", "counted from 1"),
        ("flat.obj", "v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n", "no triangle with positive area"),
        ("mesh.txt", "", "its suffix is '.txt'"),
        ("cut.stl", "binary?", "no vertices"),
        ("broken.off", "OFF\n1 2\n", "broken.off"),
        ("cut.ply", PLY[:100], r"not a valid \.ply file"),
        ("short.ply", PLY.replace("vertex 3", "vertex 4000000000"), "fewer than in its header"),
        ("faces.ply", PLY.replace("face 1", "face 9"), "fewer than in its header|not a valid .ply file"),
        ("huge.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 100000000000000000000\n", "huge.obj"),
        ("text.stl", "solid s\nfacet normal 0 0 1\nouter loop\nvertex 1e999 nan x\n", "text.stl"),
        ("bad.glb", "glTF" + "\x02" * 40, "bad.glb"),
        ("index.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 99\n", "index.off"),
    ],
)
def test_unusable_files(tmp_path, name, text, words):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(SceneError, match=words):
        load_surface(path)


SQUARE = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
FLIPPED = np.where(np.isin(np.arange(12), (2, 5, 7))[:, None], BOX[1][:, ::-1], BOX[1])
SLIVER = [[0, 2, 1], [0, 4, 3], [4, 1, 3], [0, 3, 2], [1, 2, 3], [0, 1, 4]]
"""Vertex 4 splits the edge 0-1 on one side only; a triangle without area closes the gap."""
SURFACES = {
    # name: mesh, whether it is closed, vertices, triangles, words of the notes
    "unwelded box": (RawMesh.of(BOX[0][BOX[1]].reshape(-1, 3), np.arange(36)), True, 36, 12, ()),
    "open box": (RawMesh.of(BOX[0], BOX[1][1:]), False, 8, 11, ()),
    "repeated triangle, one without area": (
        RawMesh.of(BOX[0], [*BOX[1].tolist(), BOX[1][0][[1, 2, 0]].tolist(), [0, 1, 1]]),
        *(True, 8, 12, ("1 repeated", "1 triangles without area")),
    ),
    "sliver": (RawMesh.of([[0, 0, 0], [2, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]], SLIVER), True, 5, 5, None),
    "sheet with two sides": (RawMesh.of(SQUARE, [[0, 1, 2], [0, 2, 3], [2, 1, 0], [3, 2, 0]]), False, 4, 2, None),
    "mixed orientation": (RawMesh.of(BOX[0], FLIPPED), True, 8, 12, ("was reversed",)),
}


@pytest.mark.parametrize("name", SURFACES)
def test_surfaces_are_repaired_and_noted(name):
    mesh, closed, vertices, triangles, notes = SURFACES[name]
    surface = make_surface("mesh", mesh)
    assert (surface.closed, len(surface.vertices), len(surface.triangles)) == (closed, vertices, triangles)
    assert notes is None or all(words in note for words, note in zip(notes, surface.notes, strict=True))


def test_components_in_order_of_first_vertex():
    vertices = np.concatenate([BOX[0], BOX[0] + [5, 0, 0], [[9.0, 9, 9], [9, 9, 8], [7, 7, 7]]])
    triangles = np.concatenate([BOX[1] + 8, BOX[1]])
    parts = split_components(make_surface("all", RawMesh.of(vertices, triangles, [[16, 17]], [18])))
    assert [part.name for part in parts] == ["all_0", "all_1", "all_2", "all_3"]
    assert [part.closed for part in parts] == [True, True, False, False]
    np.testing.assert_allclose(parts[1].vertices.mean(axis=0), [5, 0, 0])
    assert len(split_components(make_surface("soup", SURFACES["unwelded box"][0]))) == 1
    assert make_surface("cloud", RawMesh.of(SQUARE)).points.tolist() == [0, 1, 2, 3], "vertices alone are points"
    assert parts[2].codim_edges.tolist() == [[0, 1]] and parts[3].points.tolist() == [0]


CUBE = shapes.box((1.0, 1.0, 1.0))
FLAT_BOX = {
    "vertices": [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 0], [1, 0, 0], [1, 1, 0], [0.5, 0.5, 0]],
    "triangles": [[0, 2, 1], [0, 3, 2], [4, 5, 7], [5, 6, 7], [6, 3, 7], [3, 4, 7]],
}


def soup(vertices, triangles):
    return vertices[triangles].reshape(-1, 3), np.arange(3 * len(triangles)).reshape(-1, 3)


def jittered(size):
    vertices, triangles = soup(*CUBE)
    return vertices + np.random.default_rng(0).uniform(-size, size, vertices.shape), triangles


def signed_zeros():
    vertices, triangles = soup(CUBE[0] + 0.5, CUBE[1])
    return np.where((vertices == 0.0) & (np.arange(len(vertices))[:, None] % 2 == 0), -0.0, vertices), triangles


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


def with_part(move, size, turned=False, to=CUBE):
    """The cube in another place and size as a further part of a mesh."""
    vertices, triangles = CUBE
    part = triangles[:, ::-1] if turned else triangles
    return np.concatenate([to[0], size * vertices + move]), np.concatenate([to[1], part + len(to[0])])


def reverse(mesh, which=np.s_[:]):
    """A mesh with the orientation of these triangles reversed."""
    triangles = mesh[1].copy()
    triangles[which] = triangles[which][:, ::-1]
    return mesh[0], triangles


SOLIDS = {
    # name: mesh, volume, words of a note
    "welded": (CUBE, 1.0, ""),
    "unwelded": (soup(*CUBE), 1.0, ""),
    "jitter of CAD": (jittered(1e-9), 1.0, "open edges"),
    "signed zeros": (signed_zeros(), 1.0, ""),
    "single precision": (rounded(), 1.0, ""),
    "T-junctions": (with_t_junctions(), 1.0, "3 open edges"),
    "cavity": (with_part((0, 0, 0), 0.5, turned=True), 0.875, ""),
    "solid within a cavity": (with_part((0, 0, 0), 0.3, to=with_part((0, 0, 0), 0.6, turned=True)), 0.811, ""),
    "same part twice": (with_part((0, 0, 0), 1.0), 1.0, "repeated"),
    "nearly the same part": (with_part((0, 0, 1e-9), 1.0), 2.0, "counts twice"),
    "inner shell that faces outwards": (with_part((0, 0, 0), 0.5), 1.125, "counts twice"),
    "overlapping parts": (with_part((0.5, 0.5, 0.5), 1.0), 2.0, "counts twice"),
    "parts apart": (with_part((3, 0, 0), 1.0), 2.0, ""),
    "inverted": ((CUBE[0], CUBE[1][:, ::-1]), 1.0, "12 triangles was reversed: they faced inwards"),
    "inverted part apart": (with_part((3, 0, 0), 0.5, turned=True), 1.125, "12 triangles was reversed: they faced inwards"),
    "inverted parts apart": (reverse(with_part((3, 0, 0), 1.0)), 2.0, "24 triangles was reversed"),
    "inverted part with a cavity": (with_part((3, 0, 0), 1.0, to=reverse(with_part((0, 0, 0), 0.5, turned=True))), 1.875, "24 "),
    "inverted part, cavity with the right side": (
        with_part((0, 0, 0), 0.5, turned=True, to=with_part((0, 0, 0), 0.8, turned=True, to=reverse(CUBE))), 0.613, "24 "
    ),
    "one triangle of a part apart reversed": (reverse(with_part((3, 0, 0), 0.5), [12]), 1.125, "1 triangles was reversed"),
    "most triangles of a part apart reversed": (reverse(with_part((3, 0, 0), 0.5), np.arange(13, 24)), 1.125, "faced inwards"),
    "parts that share an edge": (with_part((1, 1, 0), 1.0), 2.0, ""),
}


@pytest.mark.parametrize("size, move", [(1.0, 0.0), (1e-3, 0.0), (1e3, 0.0), (1.0, 1e4)])
@pytest.mark.parametrize("name", SOLIDS)
def test_the_volume_is_that_of_the_solid(name, size, move):
    (vertices, triangles), volume, words = SOLIDS[name]
    scene = abd.Scene()
    scene.add_body("body", mesh=(size * vertices + move, triangles), density=1.0)
    model = scene.compile()
    assert model.bodies.mass[0] == pytest.approx(volume * size**3, rel=1e-6)
    assert not words or any(words in note for note in model.notes)
    assert words == "counts twice" or not any("counts twice" in note for note in model.notes)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_open_surface_is_refused_with_its_open_edges(size):
    vertices, triangles = CUBE
    scene = abd.Scene()
    scene.add_body("body", mesh=(size * vertices, triangles[1:]))
    with pytest.raises(SceneError, match=r"3 open edges, one of them at \("):
        scene.compile()


def test_closed_surface_without_volume_is_refused():
    scene = abd.Scene()
    scene.add_body("sheet", mesh=(FLAT_BOX["vertices"], FLAT_BOX["triangles"]))
    with pytest.raises(SceneError, match="the closed surface encloses no volume"):
        scene.compile()
