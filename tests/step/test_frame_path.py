"""States within a frame (`abd.step.frame_path`)."""

import h5py
import numpy as np

import abd
from abd.certificate.certificate import certify
from abd.step.frame_path import FramePath


def test_a_failed_world_stays_at_the_beginning_of_the_frame():
    path, q = FramePath(), np.tile([1.0, 2, 3, 1, 0, 0, 0, 1, 0, 0, 0, 1], (2, 1))
    path.add_end(q + 1.0, q, np.array([0.1, 0.2]))
    path.take_back(np.array([False, True]), q)
    np.testing.assert_array_equal(path.q, [[q[0] + 1.0, q[1]]])
    np.testing.assert_array_equal(path.length, [[0.1, 0.0]])
    assert not path.spin[0][1].any()


class Pose:
    def __init__(self, q):
        self.q = q

    def wait(self):
        return [self.q]


def test_iterates_of_a_body_that_turns_fast_are_no_known_path():
    path, q, h = FramePath(), np.tile([0.0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1], (2, 1)), np.array([0.01, 0.0])
    rates = np.zeros((2, 12))
    rates[:, [4, 6]] = [-300.0, 300.0]
    path.add_iterates([Pose(q + 1.0), Pose(q)], q, 2.0 * rates, h)
    assert len(path.q) == 1 and np.isnan(path.length[0]).all()
    path = FramePath()
    path.add_iterates([Pose(q + 1.0), Pose(q)], q, rates, h)
    np.testing.assert_array_equal(path.q, [[q[0] + 1.0, q[1]]])


def test_worlds_pass_through_the_ends_of_their_own_substeps(tmp_path):
    """Boxes of two worlds hit a wall in one step, at different speeds; that of a third world stays away."""
    scene = abd.Scene(gravity=(0, 0, 0))
    scene.add_body("wall", kind="static", box=(1, 1, 1))
    scene.add_body("box", box=(0.1,) * 3, position=(0.75, 0, 0))
    sim = abd.Simulation(scene.replicate(3), device="cpu")
    for world, speed in enumerate((30.0, 45.0, 1.0)):
        sim.bodies[f"w{world}_box"].linear_velocity = (-speed, 0.0, 0.0)
    sim.run(steps=2, record=tmp_path / "run")
    found = certify(tmp_path / "run")
    assert found.ok and found.paths_checked == 2
    with h5py.File(tmp_path / "run" / "trajectory.h5") as file:
        boxes = [file["bodies/name"].asstr()[...].tolist().index(f"w{world}_box") for world in range(3)]
        length = file["paths/length"][:, boxes]
    assert (length[:, :2].sum(axis=0) > 0.0).all() and (length.sum(axis=0) < 0.02).all()
