"""GLB, OBJ, VTK and rerun files, read by other programs."""

import json
import struct

import h5py
import numpy as np
import pytest
import trimesh
from exported_run import FRAMES, poses, rope_ends

from abd.export.formats import ExportError, export
from abd.export.scenery import Scenery
from abd.export.whole import WholeMesh
from abd.io.trajectory import Trajectory
from abd.rotations import polar


def box_corners(folder, name: str, frame: int) -> np.ndarray:
    """(8, 3) corners of a box in the world, sorted."""
    with Trajectory(folder) as trajectory:
        corners = trajectory.vertices(frame, trajectory.names.index(name))
    return corners[np.lexsort(np.round(corners, 5).T)]


def test_obj_frames_read_back_in_trimesh(folder):
    done = export(folder, "obj")
    files = sorted(done.path.glob("*.obj"))
    assert [file.name for file in files] == [f"frame_{k:05d}.obj" for k in range(FRAMES)]
    read = trimesh.load(files[4], force="mesh", process=False)
    with Trajectory(folder) as trajectory:
        mesh = WholeMesh(Scenery(trajectory), FRAMES)
    assert len(read.faces) == len(mesh.triangles)
    for name in ("box one", "box_one", "wall"):
        expected = box_corners(folder, name, 4)
        distance = np.linalg.norm(read.vertices[:, None] - expected[None], axis=2).min(axis=0)
        assert distance.max() < 1e-6, name
    objects = [line[2:] for line in files[4].read_text().splitlines() if line.startswith("o ")]
    assert objects[1:3] == ["box_one", "box_one_1"] and len(set(objects)) == len(objects)
    assert "t = 0.04 s" in files[4].read_text().splitlines()[0]
    materials = (done.path / "scene.mtl").read_text()
    assert "Kd 1 0 0\nd 0.501961\n" in materials


def test_obj_replaces_its_own_folder_and_no_other(folder, tmp_path):
    target = tmp_path / "frames"
    export(folder, "obj", target)
    (target / "frame_00099.obj").touch()
    export(folder, "obj", target)
    assert not (target / "frame_00099.obj").exists()
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.tex").touch()
    with pytest.raises(ExportError, match="not a folder of an earlier export"):
        export(folder, "obj", other)
    assert [item.name for item in other.iterdir()] == ["thesis.tex"]


def test_vtk_reader_finds_every_step(folder):
    vtk = pytest.importorskip("vtk", reason="needs vtk: pip install vtk")
    from vtk.util.numpy_support import vtk_to_numpy

    done = export(folder, "vtk")
    reader = vtk.vtkHDFReader()
    reader.SetFileName(str(done.path))
    reader.UpdateInformation()
    key = vtk.vtkStreamingDemandDrivenPipeline.TIME_STEPS()
    information = reader.GetOutputInformation(0)
    times = [information.Get(key, k) for k in range(information.Length(key))]
    np.testing.assert_allclose(times, 0.01 * np.arange(FRAMES), atol=1e-12)
    names, _ = poses(folder)
    for frame in (0, 5):
        reader.UpdateTimeStep(times[frame])
        output = reader.GetOutput()
        points = vtk_to_numpy(output.GetPoints().GetData())
        triangles = vtk_to_numpy(output.GetPolys().GetConnectivityArray()).reshape(-1, 3)
        body = vtk_to_numpy(output.GetCellData().GetArray("body"))
        mine = np.unique(triangles[body == names.index("box_one")])
        found = points[mine][np.lexsort(np.round(points[mine], 5).T)]
        np.testing.assert_allclose(found, box_corners(folder, "box_one", frame), atol=1e-6)
        assert vtk_to_numpy(output.GetCellData().GetArray("color"))[body == names.index("box_one")].max(
            axis=0
        ).tolist() == [255, 0, 0]
        speed = vtk_to_numpy(output.GetPointData().GetArray("velocity"))
        with Trajectory(folder) as trajectory:
            rate = trajectory.rows("bodies/velocity", frame, frame + 1)[0, names.index("ball")]
        ball = np.unique(triangles[body == names.index("ball")])
        np.testing.assert_allclose(speed[ball].mean(axis=0), rate[:3, 3], atol=1e-5)


def test_vtk_file_names_its_bodies(folder):
    with h5py.File(export(folder, "vtk").path) as file:
        assert file["names"].asstr()[...].tolist()[:9] == [*poses(folder)[0], "rope"]


def test_rerun_recording_holds_the_maps(folder):
    pytest.importorskip("rerun", reason="needs rerun-sdk: pip install 'abd-solver[rerun]'")
    done = export(folder, "rrd")
    assert done.path.read_bytes()[:3] == b"RRF"
    recording = recording_of(done.path)
    names, pose = poses(folder)
    paths = {path for path in recording if "world/" in path}
    assert any(path.endswith("world/ball") for path in paths)
    ball = next(rows for path, rows in recording.items() if path.endswith("world/ball"))
    at = names.index("ball")
    np.testing.assert_allclose(ball["translations"].reshape(-1, 3), pose[:, at, :3, 3], atol=1e-6)
    maps = ball["mat3x3"].reshape(-1, 3, 3).swapaxes(1, 2)
    np.testing.assert_allclose(maps, pose[:, at, :3, :3], atol=1e-6)
    assert any("energy/kinetic" in path for path in recording)


def recording_of(path) -> dict[str, dict[str, np.ndarray]]:
    """Instance poses of every entity, in the order of the frames."""
    from rerun.chunk import RrdReader

    found: dict[str, dict[str, list]] = {}
    for chunk in RrdReader(path).stream():
        batch = chunk.to_record_batch()
        rows = found.setdefault(str(chunk.entity_path), {})
        for name in batch.schema.names:
            if name.startswith("InstancePoses3D:"):
                flat = batch.column(name)
                while hasattr(flat, "flatten") and "list" in str(flat.type):
                    flat = flat.flatten()
                rows.setdefault(name.split(":")[1], []).append(np.asarray(flat))
    return {path: {key: np.concatenate(parts) for key, parts in rows.items()} for path, rows in found.items()}


def test_one_mesh_of_few_triangles_where_balls_are_many(folder):
    with Trajectory(folder) as trajectory:
        scenery = Scenery(trajectory)
        fine, coarse = WholeMesh(scenery, 1), WholeMesh(scenery, 10**9)
        ball = scenery.names.index("ball")
        assert np.diff(fine.vertex_starts)[ball] == 642 and np.diff(coarse.vertex_starts)[ball] == 12
        poses = next(scenery.by_frames())[1][3]
        radius = np.linalg.norm(coarse.mapped(poses)[slice(*coarse.vertex_starts[ball : ball + 2])] - poses[ball, :3, 3], axis=1)
        np.testing.assert_allclose(radius, 0.1, rtol=1e-4)


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
    for frame in (0, FRAMES - 1):
        ends = node_pose(document, read, by_name["rope"], frame) @ np.array([[0, 0, 0, 1], [0, 0, 1, 1.0]]).T
        np.testing.assert_allclose(ends[:3].T, rope_ends(folder)[frame], atol=2e-6, err_msg="a rope is a scaled shaft")
    animated = {document["nodes"][one["target"]["node"]]["name"] for one in document["animations"][0]["channels"]}
    assert "ball" in animated and not {"wall", "ground"} & animated, "bodies at rest are not animated"


def test_the_reported_loss_is_the_omitted_shear(done, folder):
    _, expected = poses(folder)
    maps = expected[..., :3, :3].reshape(-1, 3, 3)
    rotation = polar(maps)
    stretch = np.swapaxes(rotation, 1, 2) @ maps
    lost = np.abs(maps - rotation * np.einsum("kii->ki", stretch)[:, None, :]).max()
    assert lost > 1e-12 and told_loss(done) == pytest.approx(lost, rel=0.06)


def test_markers_hang_on_their_bodies_and_colours_are_materials(contents):
    document, _ = contents
    nodes = {node.get("name"): node for node in document["nodes"]}
    assert [document["nodes"][child]["name"] for child in nodes["cylinder"]["children"]] == ["joint pivot"]
    material = document["materials"][document["meshes"][nodes["box_one"]["mesh"]]["primitives"][0]["material"]]
    assert material["pbrMetallicRoughness"]["baseColorFactor"] == pytest.approx([1, 0, 0, 0.5], abs=3e-3)
    assert material["alphaMode"] == "BLEND"
