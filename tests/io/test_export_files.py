"""OBJ, VTK and rerun files, read by other programs."""

import h5py
import numpy as np
import pytest
import trimesh
from exported_run import FRAMES, poses

from abd.export import obj
from abd.export.formats import ExportError, export
from abd.export.scenery import Scenery
from abd.export.whole import WholeMesh
from abd.io.trajectory import Trajectory


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


def test_vertices_beyond_the_precision_are_refused():
    with pytest.raises(ExportError, match="not finite"):
        obj.vertex_lines(np.array([[np.nan, 0.0, 0.0]]), 6)
    assert obj.vertex_lines(np.zeros((0, 3)), 6) == b""


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
        poses = scenery.poses(3, 4)[0]
        radius = np.linalg.norm(coarse.mapped(poses)[slice(*coarse.vertex_starts[ball : ball + 2])] - poses[ball, :3, 3], axis=1)
        np.testing.assert_allclose(radius, 0.1, rtol=1e-4)
