"""Copies of bodies and joints from one table equal thousands of separate tables."""


import h5py
import numpy as np
import pytest

import abd
from abd.api.simulation import Simulation
from abd.io.run import run
from abd.joints.rows.build import build_system
from abd.joints.rows.rows import residual
from abd.model import WORLD

PROXY = {"proxy": True, "mass": 2.0, "inertia": (0.1, 0.2, 0.25)}
ROWS = ("joint", "parent", "child", "Yp", "Yc", "K", "mask", "is_point", "exact")


def chain(links: int, **keys) -> abd.Scene:
    """A chain along x whose first link hangs on the world."""
    scene = abd.Scene("chain")
    link = scene.add_body("link", position=(0.5, 0.2, 0), repeat={"count": (links, 1, 1), "step": (1, 0, 0)}, **PROXY)
    scene.add_hinge("top", abd.WORLD, f"{link}_0_0_0", anchor=(0, 0.2, 0), axis=(0, 1, 0))
    scene.add_hinge(
        "hinge", f"{link}_0_0_0", f"{link}_1_0_0", anchor=(1, 0.2, 0), axis=(0, 1, 0),
        repeat={"count": (links - 1, 1, 1)}, **keys,
    )  # fmt: skip
    return scene


def listed(links: int, **keys) -> abd.Scene:
    scene = abd.Scene("chain")
    for k in range(links):
        scene.add_body(f"link_{k}_0_0", position=(0.5 + k, 0.2, 0), **PROXY)
    scene.add_hinge("top", abd.WORLD, "link_0_0_0", anchor=(0, 0.2, 0), axis=(0, 1, 0))
    for k in range(links - 1):
        anchor = (1 + k, 0.2, 0)
        scene.add_hinge(f"hinge_{k}_0_0", f"link_{k}_0_0", f"link_{k + 1}_0_0", anchor=anchor, axis=(0, 1, 0), **keys)
    return scene


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"enforcement": "exact"},
        {"enforcement": "compliant", "compliance": 1e-6},
        {"range": (-1, 1), "friction": 0.1},
        {"enforcement": "exact", "active": False},
    ],
)
def test_repeated_chain_equals_the_listed_one(keys):
    one, many = chain(6, **keys).compile(), listed(6, **keys).compile()
    assert one.bodies.names == many.bodies.names and [j.name for j in one.joints] == [j.name for j in many.joints]
    for name in ("mass", "moment", "volume", "kind", "body_frame", "kappa", "mesh", "group"):
        assert (getattr(one.bodies, name) == getattr(many.bodies, name)).all()
    assert np.abs(one.bodies.q - many.bodies.q).max() < 1e-15
    for mine, its in zip(one.joints, many.joints, strict=True):
        assert (mine.parent, mine.child, mine.coordinates) == (its.parent, its.child, its.coordinates)
        assert (mine.compliance, mine.damping, mine.length) == (its.compliance, its.damping, its.length)
        assert np.abs(mine.parent_frame - its.parent_frame).max() < 1e-14
        assert np.abs(mine.child_frame - its.child_frame).max() < 1e-14
    a, b = build_system(one), build_system(many)
    for name in ROWS:
        assert np.allclose(getattr(a.linear, name), getattr(b.linear, name), rtol=1e-13, atol=1e-13)
    assert len(a.rows) == len(b.rows) and a.row_laws.name == b.row_laws.name
    assert np.allclose(a.row_laws.mass_stiffness, b.row_laws.mass_stiffness, rtol=1e-13)


def test_a_net_of_copies():
    scene = abd.Scene("net")
    scene.add_body("knot", repeat={"count": (4, 3, 1), "step": (0.5, 0.25, 0)}, **PROXY)
    scene.add_spherical("along", "knot_0_0_0", "knot_1_0_0", anchor=(0.25, 0, 0), repeat={"count": (3, 3, 1)})
    scene.add_spherical("across", "knot_0_0_0", "knot_0_1_0", anchor=(0, 0.125, 0), repeat={"count": (4, 2, 1)})
    scene.add_spherical("held", abd.WORLD, "knot_0_2_0", anchor=(0, 0.5, 0), repeat={"count": (4, 1, 1)})
    model = scene.compile()
    names, joints = model.bodies.names, model.joints
    assert len(joints) == 9 + 8 + 4
    pairs = {joint.name: (joint.parent, joint.child) for joint in joints}
    assert pairs["along_2_1_0"] == (names.find("knot_2_1_0"), names.find("knot_3_1_0"))
    assert pairs["across_3_1_0"] == (names.find("knot_3_1_0"), names.find("knot_3_2_0"))
    assert pairs["held_2_0_0"] == (WORLD, names.find("knot_2_2_0"))
    assert np.allclose(joints[-1].parent_frame[:3, 3], (1.5, 0.5, 0))
    system = build_system(model)
    assert np.abs(residual(system.linear, model.bodies.q)).max() < 1e-15


def test_copies_with_different_anchors_are_compiled_separately():
    scene = abd.Scene("bar")
    scene.add_body("bar", **PROXY)
    scene.add_body("weight", position=(0, 0, -1), repeat={"count": (3, 1, 1), "step": (0.5, 0, 0)}, **PROXY)
    scene.add_spherical("hook", "bar", "weight_0_0_0", anchor=(0, 0, -0.5), repeat={"count": (3, 1, 1)})
    joints = scene.compile().joints
    assert [joint.name for joint in joints] == ["hook_0_0_0", "hook_1_0_0", "hook_2_0_0"]
    points = np.array([[joint.parent_frame[:3, 3], joint.child_frame[:3, 3]] for joint in joints])
    assert np.allclose(points[:, 0], [(0, 0, -0.5), (0.5, 0, -0.5), (1, 0, -0.5)]) and np.ptp(points[:, 1]) < 1.0
    kinematic = {"kind": "kinematic", "motion": {"velocity": (0, 0, 1)}, **PROXY}
    scene.add_body("driver", position=(0, 0, 1), repeat={"count": (2, 1, 1), "step": (0.5, 0, 0)}, **kinematic)
    scene.add_spherical("lift", "driver_0_0_0", "weight_0_0_0", anchor=(0, 0, 0), repeat={"count": (2, 1, 1)})
    model = scene.compile()
    assert len(model.motions) == 2 and len(model.joints) == 5
    assert model.joints[4].parent == model.bodies.names.find("driver_1_0_0")


def test_copies_survive_a_file(tmp_path):
    scene = chain(4)
    scene.save(tmp_path / "chain.toml")
    text = (tmp_path / "chain.toml").read_text()
    assert "repeat = { count = [3, 1, 1] }" in text and abd.load(tmp_path / "chain.toml") == scene
    assert len(text.splitlines()) < 40


def test_a_run_of_copies(tmp_path, device):
    scene = chain(5)
    model = scene.compile()
    outcome = run(scene, model, tmp_path / "run", device=device, steps=3, simulate=Simulation)
    assert outcome.report["converged_steps"] == 3
    sim, other = abd.Simulation(model, device=device), abd.Simulation(listed(5), device=device)
    for _ in range(3):
        sim.step()
        other.step()
    assert np.abs(sim.stepper.q - other.stepper.q).max() < 1e-10
    assert list(sim.joints) == list(other.joints) and sim.joints["hinge_2_0_0"].name == "hinge_2_0_0"
    with h5py.File(tmp_path / "run" / "trajectory.h5") as file:
        assert list(file["joints"]) == ["hinge", "top"]
        hinge = file["joints/hinge"]
        assert hinge["wrench"].shape == (4, 4, 6) and hinge["coordinates"].shape == (4, 4, 1)
        assert hinge["bodies"][...].tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]
        assert hinge.attrs["count"].tolist() == [4, 1, 1]
        for k in range(4):
            view = sim.joints[f"hinge_{k}_0_0"]
            assert np.allclose(hinge["coordinates"][3, k], view.coordinates, atol=1e-12)
            assert np.allclose(hinge["wrench"][3, k], np.concatenate(view.wrench()), rtol=1e-9)
    sim.joints["hinge_2_0_0"].active = False
    sim.step()
    assert [name for name, joint in sim.joints.items() if not joint.active] == ["hinge_2_0_0"]
    run(scene, model, tmp_path / "run", device=device, steps=5, resume=True, simulate=Simulation)
    with h5py.File(tmp_path / "run" / "trajectory.h5") as file:
        assert file["joints/hinge/wrench"].shape == (6, 4, 6)
