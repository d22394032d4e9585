"""Read-outs of joints under known loads: reactions, multipliers, frames, residuals, energies, coordinates."""

import numpy as np
import pytest
from on_device import NAME

import abd
from abd.api.simulation import Simulation
from abd.joints.coordinates.readings import initial_readings

pytestmark = pytest.mark.device

FORCE, TORQUE = np.array([30.0, -20.0, 10.0]), np.array([4.0, 5.0, -6.0])
ANCHOR, CENTRE = np.array([0.3, -0.2, 0.1]), np.array([1.0, 0.5, -0.25])
ARM = CENTRE - ANCHOR


def held(kind: str, enforcement: str, steps: int = 3, device: str = "numpy", **keys) -> Simulation:
    """A block of 8 kg, turned against the world and pulled by FORCE and TORQUE, on a joint to the world."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"integrator": "bdf1", "dt": 0.01, "tolerance": 1e-9, "joint_tolerance": 1e-10})
    scene.add_body(
        "block", box=(0.4, 0.3, 0.2), mass=8.0, position=CENTRE, quaternion=(0.8, 0.2, 0.4, -0.4), force=FORCE, torque=TORQUE
    )  # fmt: skip
    if enforcement == "compliant":
        keys.setdefault("compliance", (0.0,))
    scene.add_joint(kind, "joint", "world", "block", anchor=ANCHOR, enforcement=enforcement, **keys)
    return abd.run(scene, steps=steps, device=device)


def test_deflection_of_a_compliant_row_is_compliance_times_load():
    """Six critically damped rows are displaced by compliance times load; the reaction equals the load."""
    compliance = (1e-5, 2e-5, 3e-5, 1e-4, 2e-4, 3e-4)
    sim = held("fixed", "compliant", steps=60, device=NAME, compliance=compliance, critical_damping=True)
    joint = sim.joints["joint"]
    static = np.concatenate([-FORCE, -TORQUE - np.cross(ARM, FORCE)])
    assert np.abs(np.concatenate(joint.wrench()) - static).max() < 2e-3 * np.abs(static).max()
    D = sim.model.joints[0].parent_frame[:3, :3]
    assert np.allclose(joint.T_CD[:3, 3], -np.array(compliance[:3]) * (D.T @ static[:3]), rtol=5e-3, atol=1e-7)
    assert joint.residual[0] == pytest.approx(np.abs(np.array(compliance[:3]) * (D.T @ static[:3])).max(), rel=5e-3)
    assert joint.energy == pytest.approx(0.5 * np.sum(np.array(compliance) * joint.multipliers**2), rel=1e-2)
    assert np.allclose(joint.error_twist[:3], joint.T_GD[:3, :3].T @ joint.T_CD[:3, 3], rtol=1e-2)


def test_frames_and_points_of_a_wrench():
    sim = held("fixed", "exact")
    joint = sim.joints["joint"]
    force, torque = joint.wrench()
    R = sim.bodies["block"].transform[:3, :3]
    in_child = joint.wrench(frame="child")
    assert np.allclose(in_child[0], R.T @ force, atol=1e-6) and np.allclose(in_child[1], R.T @ torque, atol=1e-6)
    assert np.allclose(joint.wrench(frame="parent")[0], force)
    D = sim.model.joints[0].parent_frame[:3, :3]
    assert np.allclose(joint.wrench(frame="joint")[1], D.T @ torque)
    for mine, other in zip(joint.wrench(), joint.wrench(on="parent"), strict=True):
        assert np.allclose(mine, -other, rtol=1e-8)
    # about the centre of mass the reaction is what balances the couple alone
    assert np.abs(joint.wrench(point="center")[1] + TORQUE).max() < 1e-3
    point = np.array([1.0, 2.0, 3.0])
    assert np.allclose(joint.wrench(point=point)[1], torque + np.cross(ANCHOR - point, force), atol=1e-6)
    assert (joint.exudyn_force()[0] == -force).all() and np.allclose(joint.adams_rforce()[1], -torque, rtol=1e-8)


SOFT = {"enforcement": "compliant", "compliance": [1e-3], "critical_damping": True}
ROPES = {
    # name: keys, stretch under the weight [m]
    "penalty": ({}, 2.0 * 9.81 * 0.01**2 / 200.0),
    "rigid": (SOFT | {"compliance": [0.0]}, 0.0),
    "compliant": (SOFT, 2.0 * 9.81 * 1e-3),
}


@pytest.mark.parametrize(("keys", "stretch"), ROPES.values(), ids=ROPES)
def test_rope_is_active_while_taut(keys, stretch):
    """A slack rope has no force; a taut one carries the weight by one unilateral row, and stretches by its compliance."""
    scene = abd.Scene(solver={"integrator": "bdf1", "dt": 0.01, "tolerance": 1e-7})
    scene.add_body("weight", box=(0.1, 0.1, 0.1), mass=2.0, position=(0, 0, -0.95))
    scene.add_rope("rope", "world", "weight", parent_anchor=(0, 0, 0), child_anchor=(0, 0, 0), distance=1.0, **keys)
    sim = Simulation(scene, NAME)
    rope = sim.joints["rope"]
    sim.step()
    assert rope.num_unilateral == 1 and rope.num_engaged == 0 and (rope.wrench()[0] == 0.0).all()
    sim.run(steps=200 if keys else 40)
    assert rope.num_engaged == 1 and np.allclose(rope.wrench()[0], [0, 0, 2.0 * 9.81], rtol=1e-4, atol=1e-6)
    assert rope.residual == (pytest.approx(stretch, rel=1e-4, abs=1e-8), 0.0) and rope.num_bilateral == 0
    (gap,) = rope.gaps.values()
    assert gap.value == pytest.approx(-rope.residual[0], rel=1e-6, abs=1e-8) and gap.engaged == 1
    assert rope.energy == pytest.approx(0.5 * 2.0 * 9.81 * stretch, rel=1e-3, abs=1e-6)
    assert rope.multipliers == pytest.approx([2.0 * 9.81], rel=1e-4)


def test_coordinates_of_a_gimbal_and_their_rates():
    """The rates of a free gimbal are differences of its coordinates; coordinate wrenches times rates are the power."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"integrator": "bdf1", "dt": 0.002, "tolerance": 1e-8})
    scene.add_body("top", box=(0.4, 0.3, 0.2), mass=1.0, angular_velocity=(1.0, 2.0, 3.0))
    scene.add_joint("gimbal", "g", "world", "top", anchor=(0, 0, 0), enforcement="exact")
    sim = Simulation(scene, NAME)
    joint = sim.joints["g"]
    assert joint.coordinate_names == ("roll", "pitch", "yaw")
    for _ in range(40):
        before = joint.coordinates
        sim.step()
    assert np.abs((joint.coordinates - before) / 0.002 - joint.rates).max() < 2e-2
    twist = joint.relative_velocity
    wrenches = [joint.coordinate(name).wrench[1] for name in joint.coordinate_names]
    assert np.allclose(wrenches @ twist[3:], joint.rates, atol=1e-2)
    assert np.abs(twist[:3]).max() < 1e-6 and np.abs(joint.displacement).max() < 1e-8
    assert joint.coordinate(1).name == "pitch" and joint.coordinate("yaw").motion_type == "rotary"
    assert joint.coordinate("yaw").value_deg == np.degrees(joint.coordinate("yaw").value)


def test_force_of_a_gear_is_reported():
    """A torque T on the first of two equal wheels with q1 = -2 q0 gives a coupling force of -2 T/5."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"integrator": "bdf1", "dt": 0.01, "tolerance": 1e-9})
    for k in range(2):
        scene.add_body(f"wheel{k}", box=(0.4, 0.4, 0.1), mass=1.0, position=(0, 0, k), torque=(0, 0, 0.5 * (1 - k)))
        scene.add_hinge(f"axle{k}", "world", f"wheel{k}", anchor=(0, 0, k), axis=(0, 0, 1), enforcement="exact")
    terms = [{"coordinate": "axle0.theta", "factor": -2.0}]
    scene.add_coupling("gear", "axle1.theta", terms, enforcement="exact")
    sim = abd.run(scene, steps=5, device="numpy")
    gear, rates = sim.couplings["gear"], [sim.joints[f"axle{k}"].rates[0] for k in range(2)]
    assert rates[1] == pytest.approx(-2.0 * rates[0], rel=1e-3) and abs(gear.residual) < 1e-8
    # J a = T + 2 f and J (-2 a) = f, so f = -2 T / 5
    assert gear.force == pytest.approx(-2.0 * 0.5 / 5.0, rel=1e-3)
    torques = [sim.joints[f"axle{k}"].wrench()[1][2] for k in range(2)]
    assert torques == pytest.approx([2.0 * gear.force, gear.force], rel=1e-6)
    assert gear.name == "gear" and len(gear.coupling.terms) == 1


def test_read_outs_of_an_initial_state_equal_an_implicit_euler_step():
    """A spherical joint with K = 100 (m_i + m_j) that is open by 1 mm pulls with K / h^2 times 1 mm."""
    scene = abd.Scene(solver={"dt": 0.02})
    scene.add_body("box", box=(1, 1, 1), mass=2.0)
    scene.add_spherical("j", "world", "box", anchor=(0, 0, 0))
    model = scene.compile()
    q = model.bodies.q.copy()
    q[0, 2] += 1e-3
    read = initial_readings(model, q, model.bodies.qd)
    assert np.allclose(read.wrench[0], [0, 0, -200.0 / 0.02**2 * 1e-3, 0, 0, 0])
    assert read.residual[0].tolist() == [1e-3, 0.0]
    assert read.energy[0] == pytest.approx(0.5 * 200.0 / 0.02**2 * 1e-6)
