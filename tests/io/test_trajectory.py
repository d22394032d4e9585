"""Trajectory files and checkpoints: contents, growth, every bit, and remains after their writer is killed."""

import io
from dataclasses import replace

import h5py
import numpy as np
import pytest
from two_bodies import TRIANGLES, VERTICES, scene

import abd
from abd.io.checkpoint import CheckpointError, create_slots, from_bytes, read_slots, to_bytes, write_slot
from abd.io.datasets import stacked
from abd.io.frame import FrameReader, SolverRow, initial_report
from abd.io.trajectory import Trajectory, TrajectoryError
from abd.io.trajectory_writer import TrajectoryWriter
from abd.joint_model import Joint
from abd.pictures.cast import Recorded

PROFILE = np.arange(10000.0).reshape(5000, 2)
"""Numbers that exceed the size of an attribute in HDF5."""


def simulated(model=None) -> abd.Simulation:
    return abd.Simulation(model or scene().compile(), device="numpy")


def values_of(sim, report):
    """Values of a frame that follows one step after another."""
    row = SolverRow()
    row.add(report)
    return FrameReader(sim).read(report, row, sim.stepper.path).values()


def first_block(sim):
    """The initial state as the first block of a file."""
    report = initial_report(sim.model, sim.host_state(), sim.initial_contacts)
    return [stacked([values_of(sim, report)])]


def write_run(path, steps: int, model=None):
    """A run of some steps with one flush at every third frame; returns the states of all frames."""
    sim = simulated(model)
    states = [sim.host_state()]
    with TrajectoryWriter(path, sim.model, first_block(sim), sim.checkpoint(), frames=steps) as writer:
        for step in range(1, steps + 1):
            writer.append(values_of(sim, sim.step()))
            states.append(sim.host_state())
            if step % 3 == 0 or step == steps:
                writer.flush(sim.checkpoint())
        assert len(writer) == steps + 1
    return sim, states


def test_contents_follow_the_contract(tmp_path):
    sim, states = write_run(tmp_path / "trajectory.h5", 7)
    model = sim.model
    with h5py.File(tmp_path / "trajectory.h5") as file:
        assert file["time"].shape == (8,)
        assert [kind.decode() for kind in file["bodies/kind"]] == ["dynamic", "dynamic", "static"]
        assert file["bodies/name"].asstr()[...].tolist() == list(model.bodies.names)
        assert file["bodies/mesh"][...].tolist() == [0, 0, -1]
        assert file["bodies/plane"][2].tolist() == [0.0, 0.0, 1.0, 0.0]
        assert file["bodies/mass"].shape == file["bodies/group"].shape == (3,)
        assert list(file["meshes"]) == ["0"]
        # The mesh is stored internally in another frame; the file holds what the user gave.
        assert np.abs(model.bodies.body_frame[0] - np.eye(4)).max() > 0.1
        np.testing.assert_allclose(file["meshes/0/vertices"][...], VERTICES, atol=1e-14)
        assert file["meshes/0/triangles"][...].tolist() == TRIANGLES
        assert file["meshes/0/edges"].shape == (6, 2) and file["meshes/0/points"].shape == (0,)
        np.testing.assert_allclose(file["bodies/transform"][0, 1, :3, 3], (4, 0, 2), atol=1e-14)
        assert (file["bodies/transform"][...] == [model.user_transform(state.q) for state in states]).all()
        assert (file["bodies/velocity"][...] == [model.user_velocity(state.qd) for state in states]).all()
        joint = file["joints/elbow|left"]
        assert joint.attrs["name"] == "elbow/left" and joint.attrs["type"] == "spherical"
        assert joint.attrs["uid"] == model.joints[0].uid and joint.attrs["bodies"].tolist() == ["body0", "body1"]
        assert joint["wrench"].shape == (8, 6) and joint["residual"].shape == (8, 2)
        assert joint["coordinates"].shape == joint["rates"].shape == (8, 0)
        np.testing.assert_array_equal(joint["wrench"][-1], np.concatenate(sim.joints["elbow/left"].wrench()))
        assert joint["active"][...].all() and joint.attrs["enforcement"] == "penalty"
        # the joint's frames, in the mesh frames of its bodies, meet in the world
        for k, end in enumerate(("parent", "child")):
            place = file["bodies/transform"][0, k] @ joint.attrs[f"{end}_frame"]
            np.testing.assert_allclose(place[:3, 3], (3.5, 0, 2), atol=1e-14)
        names = "kinetic gravity elastic contact joint external_work friction_work integration"
        assert sorted(file["energy"]) == sorted(names.split())
        assert file["momentum/linear"].shape == file["momentum/angular"].shape == (8, 3)
        assert file["solver/max_joint_residual"].shape == (8, 2)
        names = """newton_iterations linear_iterations line_search_trials min_gap max_orthogonality_error
            tolerance_achieved residual_force converged wall_seconds"""
        assert all(file["solver"][name].shape == (8,) for name in names.split())
        assert file["solver/converged"].dtype == bool
        assert file["solver"].attrs["tolerance"] == model.settings.tolerance
    with Trajectory(tmp_path) as trajectory:
        assert len(trajectory) == 8 and trajectory.joint_names() == ["elbow/left"]
        world = model.meshes[0].vertices @ states[-1].q[1, 3:].reshape(3, 3).T + states[-1].q[1, :3]
        assert np.abs(trajectory.vertices(-1, 1) - world).max() < 1e-14
        assert trajectory.vertices(-1, trajectory.names.index("ground")).shape == (0, 3)
        assert trajectory.checkpoint()["q"].tobytes() == states[-1].q.tobytes()


def test_joints_of_all_kinds_of_coordinates(tmp_path):
    """The file has names, kinds and drawing attributes of joints, and one column per coordinate."""
    drawing = {"show": True, "color": (1.0, 0.5, 0.0), "style": "arrow"}
    model = scene().compile()
    ends = model.joints[0].parent_frame, model.joints[0].child_frame
    keys = {"enforcement": "exact", "drawing": drawing, "parameters": {"skew": 0.25, "f": np.sin, "profile": PROFILE}}
    model = replace(model, joints=[Joint("slot", "slotted_hinge", 0, 0, 1, *ends, stiffness_mass=2.0, **keys)])
    write_run(tmp_path / "trajectory.h5", 3, model)
    with h5py.File(tmp_path / "trajectory.h5") as file:
        group = file["joints/slot"]
        assert group.attrs["coordinates"].tolist() == ["x", "theta"]
        assert group.attrs["rotary"].tolist() == [False, True]
        assert group["coordinates"].shape == group["rates"].shape == (4, 2)
        attributes = group["drawing"].attrs
        assert attributes["show"] and attributes["color"].tolist() == [1.0, 0.5, 0.0] and attributes["style"] == "arrow"
        assert dict(group["parameters"].attrs) == {"skew": 0.25}
    with Trajectory(tmp_path) as old:
        np.testing.assert_array_equal(Recorded(old).cast.joints[0].parameters["profile"], PROFILE)
        TrajectoryWriter(tmp_path / "copy.h5", model, old.blocks(4), {}).close()


def test_a_file_of_another_program_is_refused(tmp_path):
    with pytest.raises(TrajectoryError, match=r"none\.h5"):
        Trajectory(tmp_path / "none.h5")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["data"] = 1.0
    with pytest.raises(TrajectoryError, match="not a trajectory"):
        Trajectory(tmp_path / "other.h5")


class RecordedFile(io.BytesIO):
    """Keeps the order of all writes."""

    def __init__(self):
        super().__init__()
        self.log: list[tuple[int, bytes]] = []

    def write(self, data):
        self.log.append((self.tell(), bytes(data)))
        return super().write(data)


def test_every_prefix_of_the_writes_is_readable(tmp_path, monkeypatch):
    """Any prefix of the writes of a killed process has all announced frames and one checkpoint."""
    recorded = RecordedFile()
    opened = h5py.File

    def record(path, mode="r", **options):
        if mode != "r+" or path.suffix == ".part":
            return opened(path, mode, **options)
        recorded.write(path.read_bytes())
        return opened(recorded, "r+")

    monkeypatch.setattr("abd.io.trajectory.h5py.File", record)
    sim = simulated()
    announced, states = [], [sim.model.user_transform(sim.host_state().q)]
    with TrajectoryWriter(tmp_path / "t.h5", sim.model, first_block(sim), sim.checkpoint(), frames=2) as writer:
        for _ in range(3):
            writer.append(values_of(sim, sim.step()))
            states.append(sim.model.user_transform(sim.host_state().q))
            writer.flush(sim.checkpoint())
            announced.append(len(recorded.log))
    monkeypatch.undo()

    content, path = bytearray(), tmp_path / "killed.h5"
    for count, (position, data) in enumerate(recorded.log, start=1):
        content.extend(bytes(max(0, position + len(data) - len(content))))
        content[position : position + len(data)] = data
        path.write_bytes(content)
        with Trajectory(path) as trajectory:
            frames = len(trajectory)
            assert frames >= 1 + sum(count >= end for end in announced)
            trajectory.verify()
            assert (trajectory.series("/bodies/transform") == states[:frames]).all()
            assert np.isfinite(trajectory.series("/joints/elbow|left/wrench")).all()
            # Count and checkpoint reach the disk one after the other; frames that a checkpoint stands on are there.
            step = trajectory.checkpoint()["step"]
            assert abs(step - (frames - 1)) <= 1
            (block,) = trajectory.blocks(step + 1)
            assert (block["/bodies/transform"] == states[: step + 1]).all()
    assert frames == 4


def test_values_of_checkpoints_keep_their_bits_and_types():
    odd = np.array([0x7FF8DEADBEEF0001, 0x8000000000000000, 0x0000000000000001], dtype=np.uint64).view(float)
    arrays = {"odd": odd, "empty": np.empty((0, 3)), "flag": np.array([True]), "fortran": np.asfortranarray(np.eye(3)[:2])}
    scalars = {"third": np.float64(1.0) / 3.0, "gap": float("inf"), "zero": -0.0, "step": 10**30, "word": "Ü", "nothing": None}
    again = from_bytes(to_bytes({"arrays": arrays, "scalars": scalars}))
    assert {name: (value.dtype, value.tobytes()) for name, value in again["arrays"].items()} == {
        name: (value.dtype, value.tobytes()) for name, value in arrays.items()
    }
    assert [(type(value), repr(value)) for value in again["scalars"].values()] == [(type(v), repr(v)) for v in scalars.values()]


@pytest.mark.parametrize("bad", [object(), [1, 2], np.array([None])], ids=["object", "list", "object array"])
def test_unsupported_values_are_refused_by_name(bad):
    with pytest.raises(CheckpointError, match="/inner/bad"):
        to_bytes({"inner": {"bad": bad}})


def test_slots_alternate_and_survive_a_torn_write(tmp_path):
    with h5py.File(tmp_path / "slots.h5", "w") as file:
        create_slots(file)
        with pytest.raises(CheckpointError, match="no complete checkpoint"):
            read_slots(file)
        for step in range(5):
            write_slot(file, to_bytes({"step": step, "data": np.full(1000 - 100 * step, step)}))
            assert read_slots(file)["step"] == step
        newest = file["slot0"]
        newest[60] ^= 1
        assert read_slots(file)["step"] == 3
        file["slot1"][60] ^= 1
        with pytest.raises(CheckpointError):
            read_slots(file)
