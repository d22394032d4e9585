"""Exact joints beside Exudyn and MuJoCo, run live: motion, joint forces, and laws of coordinates."""

import numpy as np
import pytest
import reference_cases as cases
from scipy.spatial.transform import Rotation

import abd


def richardson(coarse, fine):
    """Of two runs of second order, the second with half the step."""
    return [(4.0 * b - a) / 3.0 for a, b in zip(coarse, fine)]


def exudyn_settings(exudyn, steps: int, duration: float):
    """Generalized-alpha in `steps` steps over `duration` [s], Newton to 1e-11, without files and messages."""
    settings = exudyn.SimulationSettings()
    settings.timeIntegration.numberOfSteps = steps
    settings.timeIntegration.endTime = duration
    settings.timeIntegration.verboseMode = 0
    settings.timeIntegration.newton.useModifiedNewton = False
    settings.timeIntegration.newton.relativeTolerance = 1e-11
    settings.timeIntegration.generalizedAlpha.spectralRadius = 0.9
    settings.timeIntegration.generalizedAlpha.computeInitialAccelerations = True
    settings.solutionSettings.writeSolutionToFile = False
    return settings


def exudyn_body(system, items, mass: float, inertia, place, gravity, velocity=(0, 0, 0), turning=(0, 0, 0)) -> tuple[int, int]:
    """Node and body of a body without rotation, with its moments of inertia and its weight."""
    rates = [*velocity, 0.0, *(0.5 * np.array(turning))]
    places = [*place, *items.eulerParameters0]
    node = system.AddNode(items.NodeRigidBodyEP(referenceCoordinates=places, initialVelocities=rates))
    body = system.AddObject(items.ObjectRigidBody(physicsMass=mass, physicsInertia=[*inertia, 0, 0, 0], nodeNumber=node))
    system.AddLoad(items.Gravity(markerNumber=system.AddMarker(items.MarkerBodyMass(bodyNumber=body)), loadVector=gravity))
    return node, body


def exudyn_slider_chain(steps: int, duration: float = 0.25) -> list[np.ndarray]:
    """Centres of mass (5, 3), angles of the last body (3,), forces (5, 3) and moments (5, 3) on the children of the joints."""
    exudyn = pytest.importorskip("exudyn")
    from exudyn import utilities as items

    system = exudyn.SystemContainer().AddSystem()
    previous, nodes, joints = system.AddObject(items.ObjectGround()), [], []
    right = np.pi / 2.0
    turned = [np.eye(3), items.RotationMatrixY(right), items.RotationMatrixZ(right), items.RotationMatrixX(-right), np.eye(3)]
    cross, along = 4.0 * (0.4**2 + 0.1**2) / 12.0, 4.0 * (0.1**2 + 0.1**2) / 12.0
    for i in range(5):
        place = (0.4 * i + 0.2, 0, 0)
        node, body = exudyn_body(system, items, 4, (along, cross, cross), place, [0, -cases.G, 0])
        ends = ((previous, [0.2 if i else 0.0, 0, 0]), (body, [-0.2, 0, 0]))
        markers = [system.AddMarker(items.MarkerBodyRigid(bodyNumber=owner, localPosition=end)) for owner, end in ends]
        frames = {"markerNumbers": markers, "rotationMarker0": turned[i], "rotationMarker1": turned[i]}
        joints.append(system.AddObject((items.PrismaticJointX if i == 2 else items.RevoluteJointZ)(**frames)))
        if i == 2:
            gains = {"stiffness": [500] * 3, "damping": [10] * 3}
            system.AddObject(items.CartesianSpringDamper(markerNumbers=markers, **gains))
        nodes.append(node)
        previous = body
    tip = system.AddMarker(items.MarkerBodyPosition(bodyNumber=previous, localPosition=[0.2, 0, 0]))
    system.AddLoad(items.Force(markerNumber=tip, loadVector=[0, 0, 20]))
    system.Assemble()
    system.SolveDynamic(exudyn_settings(exudyn, steps, duration))
    kind = exudyn.OutputVariableType
    forces, moments = [], []
    for i, joint in enumerate(joints):
        # forces on marker 0, in the axes of the joint on its body
        base = np.eye(3) if i == 0 else system.GetNodeOutput(nodes[i - 1], kind.RotationMatrix).reshape(3, 3)
        forces.append(-base @ turned[i] @ system.GetObjectOutput(joint, kind.ForceLocal))
        # multipliers of the conditions on the axes of marker 1, in the order of Exudyn
        a, b, c = system.GetObjectOutput(joint, kind.TorqueLocal)
        own = system.GetNodeOutput(nodes[i], kind.RotationMatrix).reshape(3, 3) @ turned[i]
        moments.append(own @ ((-a, b, c) if i == 2 else (-b, a, 0.0)))
    positions = np.array([system.GetNodeOutput(node, kind.Position) for node in nodes])
    return [positions, system.GetNodeOutput(nodes[-1], kind.Rotation), np.array(forces), np.array(moments)]


def our_slider_chain(h: float) -> list[np.ndarray]:
    """The same of ours."""
    simulation = abd.run(cases.slider_chain(h, tolerance=1e-8), steps=round(0.25 / h), device="cpu")
    positions = np.array([cases.position(simulation, f"body{i}") for i in range(5)])
    forces, moments = np.transpose([simulation.joints[f"joint{i}"].wrench() for i in range(5)], (1, 0, 2))
    return [positions, Rotation.from_matrix(simulation.bodies["body4"].rotation).as_euler("XYZ"), forces, moments]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_hinges_and_a_slider_converge_to_exudyn():
    """Extrapolated to h = 0, they differ by 3e-6 m, 1e-5 rad and 3e-5 of the largest force and moment."""
    exact = richardson(exudyn_slider_chain(250), exudyn_slider_chain(500))
    coarse, fine = our_slider_chain(0.005), our_slider_chain(0.0025)
    extrapolated = richardson(coarse, fine)
    scales = (1.0, 1.0, np.abs(exact[2]).max(), np.abs(exact[3]).max())
    bounds = ((2e-4, 3e-6), (2e-4, 1e-5), (2e-4, 3e-5), (1e-3, 3e-5))
    for peer, ours, best, scale, (at_step, bound) in zip(exact, fine, extrapolated, scales, bounds):
        assert np.abs(ours - peer).max() < at_step * scale
        assert np.abs(best - peer).max() < bound * scale


def exudyn_masked_ball(steps: int, duration: float) -> list[np.ndarray]:
    """Displacement, velocity of m0, force, and torque about the parent's centre, of a ball joint that holds x and z."""
    exudyn = pytest.importorskip("exudyn")
    from exudyn import utilities as items

    system = exudyn.SystemContainer().AddSystem()
    markers, nodes = [], []
    for mass, inertia, place, velocity, turning, end in MASKED:
        node, body = exudyn_body(system, items, mass, inertia, place, [0, 0, -cases.G], velocity, turning)
        markers.append(system.AddMarker(items.MarkerBodyPosition(bodyNumber=body, localPosition=end)))
        nodes.append(node)
    joint = system.AddObject(items.SphericalJoint(markerNumbers=markers, constrainedAxes=[1, 0, 1]))
    system.Assemble()
    settings = exudyn_settings(exudyn, steps, duration)
    # its constraint forces ring with the first step unless high frequencies are damped
    settings.timeIntegration.generalizedAlpha.spectralRadius = 0.5
    system.SolveDynamic(settings)
    kind = exudyn.OutputVariableType
    read = [system.GetObjectOutput(joint, one) for one in (kind.Displacement, kind.Velocity, kind.Force)]
    arm = system.GetObjectOutput(joint, kind.Position) - system.GetNodeOutput(nodes[0], kind.Position)
    return [*read, np.cross(arm, read[2])]


MASKED = (
    (2.0, (0.3, 0.4, 0.5), (0.0, 0.0, 0.0), (0.1, 0.2, 0.0), (0.1, -0.05, 0.15), (0.4, 0.0, 0.1)),
    (1.0, (0.2, 0.1, 0.2), (0.7, 0.1, 0.1), (0.1, 0.1, -0.005), (0.05, 0.1, -0.05), (-0.3, -0.1, 0.0)),
)
"""Mass, inertia, place, velocity, angular velocity and the joint's point of two bodies; the points agree along x and z."""


def our_masked_ball(h: float, duration: float) -> list[np.ndarray]:
    scene = abd.Scene(gravity=(0, 0, -cases.G), solver={"dt": h, "integrator": "generalized_alpha", "tolerance": 1e-10})
    for name, (mass, inertia, place, velocity, turning, _) in zip(("m0", "m1"), MASKED, strict=True):
        scene.add_body(
            name, proxy=True, mass=mass, inertia=inertia, position=place, velocity=velocity, angular_velocity=turning
        )  # fmt: skip
    ends = {key: one[5] for key, one in zip(("parent_anchor", "child_anchor"), MASKED, strict=True)}
    scene.add_spherical("ball", "m0", "m1", constrainedAxes=[1, 0, 1], enforcement="exact", **ends)
    simulation = abd.run(scene, steps=round(duration / h), device="cpu")
    ball = simulation.joints["ball"]
    return [ball.displacement, ball.velocity, ball.exudyn_force()[0], ball.wrench(on="parent", point="center")[1]]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ball_with_two_world_axes_equals_exudyn():
    """Displacement, velocity, force and torque agree while both bodies rotate, at h = 1 ms."""
    for peer, ours in zip(exudyn_masked_ball(400, 0.1), our_masked_ball(1e-3, 0.1), strict=True):
        assert np.abs(ours - peer).max() < 1e-6, (ours, peer)


ARM = """
<mujoco>
  <compiler inertiafromgeom="false" angle="radian"/>
  <option timestep="5e-4" integrator="RK4" gravity="0 0 -9.81"><flag contact="disable"/></option>
  <worldbody>
    <body>
      <joint name="base" type="hinge" axis="0 0 1" damping="0.3"/>
      <inertial pos="0.3 0 0" mass="2" diaginertia="0.02 0.08 0.08"/>
      <body pos="0.6 0 0">
        <joint type="hinge" axis="0 1 0" stiffness="12" springref="0.4" armature="0.15"/>
        <inertial pos="0.2 0 0" mass="1.5" diaginertia="0.01 0.04 0.04"/>
        <body pos="0.4 0 0">
          <joint type="slide" axis="1 0 0" stiffness="300" damping="4"/>
          <inertial pos="0.1 0.05 0" mass="1" diaginertia="0.01 0.015 0.02"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="base"/></actuator>
</mujoco>
"""


def mujoco_arm(duration: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Coordinates (3,), rates (3,), forces (3, 3) and torques (3, 3) on the bodies at their joints' points."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    data.ctrl[:] = 2.5
    for _ in range(round(duration / model.opt.timestep)):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    mujoco.mj_rnePostConstraint(model, data)
    torque, force = data.cfrc_int[1:, :3], data.cfrc_int[1:, 3:]
    arm = data.subtree_com[model.body_rootid[1:]] - data.xpos[1:]
    return data.qpos.copy(), data.qvel.copy(), force.copy(), torque + np.cross(arm, force)


def arm(h: float) -> abd.Scene:
    """A turning base with a motor, an elbow with a spring and a rotor, and a slide with a spring and damping."""
    scene = cases.empty(h, gravity=(0, 0, -cases.G), tolerance=1e-7)
    cases.link(scene, "base", 2.0, (0.02, 0.08, 0.08), (0.3, 0, 0))
    cases.link(scene, "upper", 1.5, (0.01, 0.04, 0.04), (0.8, 0, 0))
    cases.link(scene, "hand", 1.0, (0.01, 0.015, 0.02), (1.1, 0.05, 0))
    motor = {"theta": {"damping": 0.3, "drive": {"mode": "force", "target": 2.5}}}
    elbow = {"theta": {"stiffness": 12.0, "rest": 0.4, "armature": 0.15}}
    slide = {"z": {"stiffness": 300.0, "damping": 4.0}}
    for kind, name, parent, child, x, axis, settings in (
        ("hinge", "turn", abd.WORLD, "base", 0.0, (0, 0, 1), motor),
        ("hinge", "elbow", "base", "upper", 0.6, (0, 1, 0), elbow),
        ("slider", "slide", "upper", "hand", 1.0, (1, 0, 0), slide),
    ):
        scene.add_joint(kind, name, parent, child, anchor=(x, 0, 0), axis=axis, coordinate=settings, enforcement="exact")
    return scene


def our_arm(h: float, duration: float) -> list[np.ndarray]:
    """What `mujoco_arm` returns, of ours; forces and torques count all that a joint does, as there."""
    simulation = abd.run(arm(h), steps=round(duration / h), device="cpu")
    joints = [simulation.joints[name] for name in ("turn", "elbow", "slide")]
    wrenches = np.array([joint.wrench() for joint in joints])
    coordinates = np.array([joint.coordinates[0] for joint in joints])
    rates = np.array([joint.rates[0] for joint in joints])
    return [coordinates, rates, wrenches[:, 0], wrenches[:, 1]]


def test_an_arm_with_springs_rotor_and_motor_converges_to_mujoco():
    """Angles, slide, rates, forces and torques converge with second order after 0.4 s."""
    duration = 0.4
    peer = mujoco_arm(duration)
    coarse, fine = our_arm(0.005, duration), our_arm(0.0025, duration)
    best = richardson(coarse, fine)
    for known, first, second, extrapolated in zip(peer, coarse, fine, best):
        scale = np.abs(known).max()
        errors = [np.abs(one - known).max() / scale for one in (first, second, extrapolated)]
        assert errors[1] < 2e-3 and errors[2] < 2e-4
        assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.3)
