"""GLB read back by trimesh: animation, losses, and the validator of Khronos if node has it."""

import json
import shutil
import struct
import subprocess

import numpy as np
import pytest
import trimesh
from exported_run import FRAMES, poses, rope_ends

from abd.export.formats import export
from abd.rotations import polar

Y_UP = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])


@pytest.fixture(scope="module")
def done(folder):
    return export(folder, "glb")


@pytest.fixture(scope="module")
def contents(done):
    """List of contents and a reader of accessors."""
    data = done.path.read_bytes()
    magic, version, total = struct.unpack_from("<4sII", data)
    assert (magic, version, total) == (b"glTF", 2, len(data))
    size, kind = struct.unpack_from("<I4s", data, 12)
    assert kind == b"JSON"
    document, binary = json.loads(data[20 : 20 + size]), data[28 + size :]

    def read(number: int) -> np.ndarray:
        entry = document["accessors"][number]
        view = document["bufferViews"][entry["bufferView"]]
        columns = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[entry["type"]]
        kind = {5126: "<f4", 5125: "<u4"}[entry["componentType"]]
        values = np.frombuffer(binary, kind, entry["count"] * columns, view["byteOffset"])
        return values.reshape(-1, columns)

    return document, read


def node_pose(document, read, node: int, frame: int) -> np.ndarray:
    """(4, 4) of a node in a frame."""
    value = {"translation": [0, 0, 0], "rotation": [0, 0, 0, 1], "scale": [1, 1, 1]}
    value |= {key: document["nodes"][node][key] for key in value if key in document["nodes"][node]}
    for channel in document["animations"][0]["channels"]:
        if channel["target"]["node"] == node:
            sampler = document["animations"][0]["samplers"][channel["sampler"]]
            value[channel["target"]["path"]] = read(sampler["output"])[frame]
    x, y, z, w = np.asarray(value["rotation"], dtype=float)
    pose = trimesh.transformations.quaternion_matrix([w, x, y, z])
    pose[:3, :3] *= np.asarray(value["scale"], dtype=float)
    pose[:3, 3] = value["translation"]
    return pose


def test_trimesh_reads_bodies_at_their_initial_poses(done, folder):
    names, expected = poses(folder)
    read = trimesh.load(done.path)
    for body, name in enumerate(names):
        node = "ground" if name == "ground" else name
        found = read.graph.get(node)[0]
        assert np.abs(found - Y_UP @ expected[0, body]).max() < 1e-6, name
    box = read.geometry[read.graph.get("box one")[1]]
    np.testing.assert_allclose(box.extents, [0.3, 0.2, 0.1], rtol=1e-6)
    assert box.volume == pytest.approx(0.006, rel=1e-5)


def told_loss(done) -> float:
    """The strain that the notes say is lost."""
    return float(done.notes[0].split("strain of at most ")[1].split()[0])


def test_animation_holds_every_frame(contents, folder, done):
    document, read = contents
    names, expected = poses(folder)
    by_name = {node.get("name"): k for k, node in enumerate(document["nodes"])}
    times = read(document["animations"][0]["samplers"][0]["input"])[:, 0]
    np.testing.assert_allclose(times, 0.01 * np.arange(FRAMES), rtol=1e-6)
    for body, name in enumerate(names):
        for frame in range(FRAMES):
            error = np.abs(node_pose(document, read, by_name[name], frame) - expected[frame, body]).max()
            assert error < 1e-6 + 1.05 * told_loss(done), name


def test_rope_is_a_scaled_shaft(contents, folder):
    document, read = contents
    number = next(k for k, node in enumerate(document["nodes"]) if node.get("name") == "rope")
    for frame in (0, FRAMES - 1):
        found = node_pose(document, read, number, frame) @ np.array([[0, 0, 0, 1], [0, 0, 1, 1.0]]).T
        np.testing.assert_allclose(found[:3].T, rope_ends(folder)[frame], atol=2e-6)


def test_the_reported_loss_is_the_omitted_shear(done, folder):
    _, expected = poses(folder)
    maps = expected[..., :3, :3].reshape(-1, 3, 3)
    rotation = polar(maps)
    stretch = np.swapaxes(rotation, 1, 2) @ maps
    lost = np.abs(maps - rotation * np.einsum("kii->ki", stretch)[:, None, :]).max()
    assert lost > 1e-12 and told_loss(done) == pytest.approx(lost, rel=0.06)


def test_bodies_at_rest_are_not_animated(contents):
    document, _ = contents
    animated = {document["nodes"][one["target"]["node"]]["name"] for one in document["animations"][0]["channels"]}
    assert "wall" not in animated and "ground" not in animated and "ball" in animated


def test_marker_hangs_on_its_body(contents):
    document, _ = contents
    cylinder = next(node for node in document["nodes"] if node.get("name") == "cylinder")
    assert [document["nodes"][child]["name"] for child in cylinder["children"]] == ["joint pivot"]


def test_colours_are_shared_materials(contents):
    document, _ = contents
    names = {node.get("name"): node for node in document["nodes"]}
    material = document["meshes"][names["box_one"]["mesh"]]["primitives"][0]["material"]
    given = document["materials"][material]
    assert given["pbrMetallicRoughness"]["baseColorFactor"] == pytest.approx([1, 0, 0, 0.5], abs=3e-3)
    assert given["alphaMode"] == "BLEND"


@pytest.mark.slow
def test_khronos_validator_accepts_the_file(done, tmp_path):
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("needs node and npm, by which Khronos publishes its validator")
    install = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "gltf-validator"], cwd=tmp_path, capture_output=True, text=True
    )
    if install.returncode:
        pytest.skip(f"gltf-validator cannot be had from npm: {install.stderr.strip()[:200]}")
    script = (
        "require('gltf-validator').validateBytes(new Uint8Array(require('fs').readFileSync(process.argv[1])))"
        ".then(report => console.log(JSON.stringify(report.issues)))"
    )
    told = subprocess.run(["node", "-e", script, str(done.path)], cwd=tmp_path, capture_output=True, text=True, check=True)
    issues = json.loads(told.stdout)
    assert issues["messages"] == [] and issues["numErrors"] == 0
