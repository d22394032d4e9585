"""Contact forces in the API and in files: they balance their loads on both bodies."""

import numpy as np
import pytest
from common_scenes import on_ground
from on_device import NAME

import abd
from abd.io.trajectory import Trajectory

pytestmark = pytest.mark.device

G = 9.81


def scene(mu: float = 0.5) -> abd.Scene:
    return on_ground(mu, dt=0.01, tolerance=1e-7)


def steps(scene: abd.Scene, count: int, device: str = NAME) -> abd.Simulation:
    return abd.run(scene, steps=count, device=device)


def stack() -> abd.Scene:
    """Three boxes of 2 kg, one over the other and a little aside."""
    out = scene()
    for k in range(3):
        out.add_body(f"box {k}", box=(0.2, 0.2, 0.2), position=(0.02 * (-1) ** k, 0.03 * k, 0.1002 + 0.2005 * k), mass=2.0)
    return out


@pytest.mark.parametrize("device", [pytest.param("numpy", marks=pytest.mark.slow), NAME])
def test_patches_are_arrays_and_objects_whose_forces_sum_to_those_of_bodies(device):
    sim = steps(stack(), 60, device)
    patches = sim.contacts().patches()
    assert len(patches) == 3 and patches.count.sum() == len(sim.contacts()) and "3 contact patches" in repr(patches)
    on = {name: np.zeros(6) for name in ("ground", "box 0", "box 1", "box 2")}
    for k, patch in enumerate(patches):
        assert patch.bodies == patches.bodies[k] and (sim.contacts().pair[patch.points] == patches.pair[k]).all()
        assert patch.force == pytest.approx(patches.normal_force[k] + patches.friction[k], abs=1e-12)
        assert patch.sticks and patch.gap == patches.gap[k] == pytest.approx(sim.contacts().gap[patch.points].min())
        for name, sign in zip(patch.bodies, (1.0, -1.0), strict=True):
            arm = patch.center - sim.bodies[name].transform[:3, 3]
            on[name] += sign * np.concatenate([patch.force, patch.torque + np.cross(arm, patch.force)])
    for name in ("box 0", "box 1", "box 2"):
        assert on[name] == pytest.approx(np.concatenate(sim.bodies[name].contact_wrench()), abs=5e-6)
    assert patches[-1].bodies == patches[2].bodies
    with pytest.raises(IndexError, match="patch 3 is out of range"):
        patches[3]
    table = pytest.importorskip("pandas") and patches.to_pandas()
    assert len(table) == 3 and {"first", "second", "force.x", "center.z", "sticks"} <= set(table.columns)


@pytest.mark.parametrize("device", sorted({NAME, "numpy"}))
@pytest.mark.parametrize("floor", ["half-space", "plate"])
def test_friction_of_a_sliding_body_acts_at_its_surface(device, floor):
    """A sliding ball and a sliding box have the friction mu m g against the slip, with the lever arm r on the ball."""
    made = scene(mu=0.3)
    if floor == "plate":
        made = abd.Scene(solver={"dt": 0.01, "tolerance": 1e-7})
        made.add_material("default", mu=0.3)
        made.add_body("ground", box=(6, 6, 0.2), position=(0, 0, -0.1), kind="static")
    made.add_body("ball", sphere={"radius": 0.1}, position=(0, 0, 0.1001), velocity=(2, 0, 0), mass=1.0)
    made.add_body("box", box=(0.2, 0.2, 0.2), position=(0, 1, 0.1001), velocity=(0, 2, 0), mass=1.0)
    sim = steps(made, 5, device)
    force, torque = sim.bodies["ball"].contact_wrench()
    assert force == pytest.approx([-0.3 * G, 0, G], abs=1e-3) and torque == pytest.approx([0, 0.03 * G, 0], abs=2e-4)
    force, _ = sim.bodies["box"].contact_wrench()
    assert force == pytest.approx([0, -0.3 * G, G], abs=1e-3)
    point = sim.contacts("ball")[0]
    assert not point.sticks and point.slip == pytest.approx([2 - 0.3 * G * 0.05 * 3.5, 0, 0], abs=0.15)
    assert point.friction == pytest.approx([-0.3 * G, 0, 0], abs=1e-3) and point.normal_force == pytest.approx(G, abs=1e-3)
    assert point.bodies[1] == "ground" and abs(point.point[2]) < 1e-3 and point.normal == pytest.approx([0, 0, 1])
    ground, _ = sim.bodies["ground"].contact_wrench(about=sim.bodies["ball"].position)
    assert ground == pytest.approx([0.3 * G, 0.3 * G, -2 * G], abs=2e-3)
    contacts = sim.contacts()
    assert (np.linalg.norm(contacts.friction, axis=1) <= 0.3 * contacts.normal_force * (1 + 1e-4)).all()


@pytest.mark.parametrize("device", [NAME, "numpy"])
def test_initial_and_assigned_states_have_normal_forces(device):
    made = scene()
    made.add_body("box", box=(0.2, 0.2, 0.2), position=(0, 0, 0.1001), mass=2.0)
    sim = abd.Simulation(made, device=device)
    force = sim.bodies["box"].contact_force
    assert force.dtype == float and not force.any()
    sim.run(steps=20)
    assert sim.bodies["box"].contact_force[2] == pytest.approx(2.0 * G, rel=1e-6)
    assert len(sim.contacts()) and np.abs(sim.contacts("box").friction).max() < 1e-9
    sim.bodies["box"].position = (0, 0, 1)
    assert sim.contacts().on_bodies.dtype == float
    assert not len(sim.contacts()) and not len(sim.contacts().patches()) and not sim.bodies["box"].contact_force.any()


def test_reading_contacts_does_not_change_the_run():
    read, left = (abd.Simulation(stack(), device=NAME) for _ in range(2))
    for _ in range(10):
        read.step()
        left.step()
        assert len(read.contacts())
    np.testing.assert_array_equal(read.stepper.q, left.stepper.q)


def test_contact_forces_of_a_gripper_balance_its_fingers():
    """Contact carries the weight of a box between two jaws; the exact joint of a jaw carries the rest."""
    made = abd.Scene(solver={"dt": 0.01, "tolerance": 1e-8, "integrator": "bdf1"})
    made.add_material("default", mu=0.8)
    made.add_body("box", box=(0.1, 0.1, 0.1), mass=0.5)
    for name, side in (("left", -1), ("right", 1)):
        made.add_body(name, box=(0.02, 0.08, 0.08), position=(side * 0.0602, 0, 0), mass=0.2, force=(-side * 20.0, 0, 0))
        made.add_joint("slider", f"rail {name}", "world", name, anchor=(0, 0, 0), axis=(1, 0, 0), enforcement="exact")
    sim = steps(made, 60)
    assert sim.bodies["box"].contact_force == pytest.approx([0, 0, 0.5 * G], abs=1e-4)
    for name, side in (("left", -1), ("right", 1)):
        jaw = sim.bodies[name]
        contact, _ = jaw.contact_wrench()
        held, _ = sim.joints[f"rail {name}"].wrench(point="center")
        assert contact + held == pytest.approx([side * 20.0, 0, 0.2 * G], abs=1e-4)


def test_sensors_and_trajectories_have_equal_contacts(tmp_path):
    made = stack()
    made.spec.output.contacts = True
    sim = abd.Simulation(made, device=NAME)
    force = sim.add_sensor("force", "contact_force", "box 1")
    below = sim.add_sensor("below", "contact_wrench", ("box 1", "box 0"))
    count = sim.add_sensor("points", "touches", "box 2")
    kept = [sim.contacts()]
    sim.run(steps=6, record=tmp_path / "run", on_step=lambda _: kept.append(sim.contacts()))
    assert force.values.shape == (7, 3) and below.columns[3:] == ("tx", "ty", "tz") and count.values[-1] == [4.0]
    assert force.values[-1] == pytest.approx(sim.bodies["box 1"].contact_force)
    assert below.values[-1][2] > force.values[-1][2] > 0
    with Trajectory(tmp_path / "run") as trajectory:
        assert trajectory.has_contacts and len(trajectory) == 7
        for frame, found in enumerate(kept):
            stored = trajectory.contacts(frame)
            for name in ("pair", "point", "normal", "gap", "force"):
                np.testing.assert_array_equal(stored[name], getattr(found, name))
        assert [len(trajectory.contacts(frame)["gap"]) for frame in range(7)] == [len(one) for one in kept]


@pytest.mark.parametrize("contact_set", ["minima", "ipc"])
def test_contact_points_of_kernels_equal_the_definition(contact_set):
    """Points on faces, crossing edges, corners, round bodies and the ground are equal."""
    scene = on_ground(contact_set=contact_set)
    scene.add_body("low", box=(0.4, 0.1, 0.1), position=(0, 0, 0.0502))
    turned = {"axis": (0, 0, 1), "degrees": 70}
    scene.add_body("across", box=(0.4, 0.1, 0.1), position=(0, 0, 0.1504), axis_angle=turned)
    scene.add_body("ball", sphere={"radius": 0.05}, position=(0, 0, 0.2506))
    edge = {"axis": (0, 1, 0), "degrees": 45}
    scene.add_body("rail", box=(0.1, 0.4, 0.1), position=(2, 0, 0.0709), axis_angle=edge, kind="static")
    scene.add_body("bridge", box=(0.5, 0.1, 0.1), position=(2, 0, 0.1918))
    sim, definition = abd.run(scene, steps=4, device=NAME), abd.Simulation(scene, device="numpy")
    definition.restore(sim.checkpoint())
    found, expected = sim.contacts(), definition.contacts()
    assert len(found) == len(expected) > 9
    order = [np.lexsort(np.round(np.column_stack([one.point, one.pair]), 9).T) for one in (found, expected)]
    for name, tolerance in {"pair": 0, "point": 1e-9, "gap": 1e-12, "force": 1e-8 * np.abs(expected.force).max()}.items():
        one, two = (getattr(values, name)[rows] for values, rows in zip((found, expected), order, strict=True))
        np.testing.assert_allclose(one, two, rtol=0, atol=tolerance, err_msg=name)
    np.testing.assert_allclose(found.on_bodies, expected.on_bodies, rtol=0, atol=1e-8 * np.abs(expected.on_bodies).max())
