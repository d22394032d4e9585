"""Read-outs of all joints at once equal those of one joint after another."""

import numpy as np
from fake_simulation import BOX, BOX_TRIANGLES, mesh_of, model_of, pose

from abd.joints.coordinates import coordinates, rates
from abd.joints.readings import JointReader
from abd.joints.rows import compile_rows, residual, wrenches
from abd.model import WORLD, Joint


def frame(rng):
    matrix = np.eye(4)
    matrix[:3, :3] = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    matrix[:3, :3] *= np.linalg.det(matrix[:3, :3])
    matrix[:3, 3] = rng.standard_normal(3)
    return matrix


def test_readings_equal_the_definitions():
    rng = np.random.default_rng(3)
    kinds = [("hinge", 18), ("spherical", 26), ("fixed", 25), ("hinge", 18), ("hinge", 18)]
    ends = [(WORLD, 0), (0, 1), (WORLD, 2), (2, 0), (1, 2)]
    joints = [
        Joint(f"j{k}", kind, uid, *ends[k], frame(rng), frame(rng), stiffness_mass=1.0 + k)
        for k, (kind, uid) in enumerate(kinds)
    ]
    model = model_of([pose(3.0 * k) for k in range(3)], [mesh_of(BOX, BOX_TRIANGLES)], [0] * 3, joints=joints)
    q = model.bodies.q + 0.2 * rng.standard_normal((3, 12))
    qd = rng.standard_normal((3, 12))
    reader, rows = JointReader(model), compile_rows(joints)
    read = reader.read(q, qd, 1e-4)
    expected = wrenches(rows, joints, q, 1e-4)
    assert np.abs(read.wrench - expected).max() <= 1e-13 * np.abs(expected).max()
    size = np.linalg.norm(residual(rows, q), axis=1)
    for k in range(len(joints)):
        for column, kind in enumerate((rows.is_point, ~rows.is_point)):
            assert read.residual[k, column] == size[(rows.joint == k) & kind].max(initial=0.0)
    assert reader.hinges.tolist() == [0, 3, 4]
    for k, angle, rate in zip(reader.hinges, read.angle, read.rate, strict=True):
        assert abs(angle - coordinates(joints[k], q)[0]) < 1e-13
        assert abs(rate - rates(joints[k], q, qd)[0]) < 1e-12


def test_a_scene_without_joints_has_nothing_to_read():
    model = model_of([pose()], [mesh_of(BOX, BOX_TRIANGLES)], [0])
    read = JointReader(model).read(model.bodies.q, model.bodies.qd, 1e-4)
    assert read.residual.shape == (0, 2) and read.wrench.shape == (0, 6) and read.angle.shape == read.rate.shape == (0,)
