"""Mechanisms of `peer_mechanisms` in this program and in Exudyn: motion at given times, energy, iterations, CPU time."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
from scipy.spatial.transform import Rotation

TOOLS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOOLS / "peers"), str(TOOLS), str(TOOLS.parent)]

from peer_mechanisms import ROWS, WORLD, Mechanism  # noqa: E402

import abd  # noqa: E402
from abd.scene.geometry.frames import triad  # noqa: E402

RECORDED = 40
"""Steps after which what is found, compiled and recorded once is over."""
REPEATS = 3


@dataclass(frozen=True)
class Run:
    """Centres (t, n, 3) and rotations (t, n, 3, 3) at the samples; Newton iterations per step; CPU time [ms] of a step, of
    ours the median of those after `RECORDED`, of Exudyn's the mean of the fastest of `REPEATS` runs; of ours energies and
    kinetic ones of all steps [J], and the largest strain."""

    centres: np.ndarray
    rotations: np.ndarray
    newton: float
    milliseconds: float
    energies: np.ndarray
    kinetic: np.ndarray | float = 0.0
    strain: float = 0.0


def distance(mechanism: Mechanism, one: Run, other: Run) -> float:
    """Largest distance [m] of points of a body half its length from its centre, or of centres, over all samples."""
    size = np.array([body.size for body in mechanism.bodies])
    apart = one.centres - other.centres
    ends = apart[:, :, :, None] + size[None, :, None, None] * (one.rotations - other.rotations)
    return float(max(np.linalg.norm(apart, axis=2).max(), np.linalg.norm(ends, axis=2).max()))


def extrapolated(coarse: Run, fine: Run) -> Run:
    """Of two runs of second order, the second with half the step."""
    parts = ((4.0 * getattr(fine, key) - getattr(coarse, key)) / 3.0 for key in ("centres", "rotations"))
    return Run(*parts, fine.newton, fine.milliseconds, fine.energies)


def our_scene(mechanism: Mechanism, h: float, **solver) -> abd.Scene:
    """With exact joints."""
    scene = abd.Scene(gravity=mechanism.gravity, solver={"dt": h, **solver})
    for k, body in enumerate(mechanism.bodies):
        quaternion = np.roll(Rotation.from_matrix(body.rotation).as_quat(), 1)
        motion = {"velocity": tuple(body.velocity), "angular_velocity": tuple(body.spin), "torque": body.torque}
        place = {"position": tuple(body.position), "quaternion": tuple(quaternion)}
        scene.add_body(f"b{k}", proxy=True, mass=body.mass, inertia=body.inertia, **place, **motion)
    names = {WORLD: abd.WORLD} | {k: f"b{k}" for k in range(len(mechanism.bodies))}
    for k, joint in enumerate(mechanism.joints):
        keys = {"anchor": joint.anchor, "enforcement": "exact"}
        if joint.type != "spherical":
            keys["axis"] = joint.axis
        elif not all(joint.constrained):
            keys |= {"constrained": [x for x, held in zip("xyz", joint.constrained) if held], "frame": "world"}
        scene.add_joint(joint.type, f"j{k}", names[joint.parent], names[joint.child], **keys)
    for k, spring in enumerate(mechanism.springs):
        ends = {"parent_anchor": local(mechanism, spring.parent, spring.ends[0])}
        ends["child_anchor"] = local(mechanism, spring.child, spring.ends[1])
        keys = {"rest_length": spring.rest, "damping": spring.damping}
        scene.add_spring(f"s{k}", names[spring.parent], names[spring.child], stiffness=spring.stiffness, **ends, **keys)
    return scene


def local(mechanism: Mechanism, body: int, point) -> tuple:
    """A point of the world at the start in the axes of a body."""
    if body == WORLD:
        return tuple(point)
    one = mechanism.bodies[body]
    return tuple(one.rotation.T @ (np.asarray(point) - one.position))


def run_ours(mechanism: Mechanism, h: float, samples: int, device: str = "cpu", **solver) -> Run:
    """Steps of h up to the end."""
    scene = our_scene(mechanism, h, **solver)
    simulation = abd.Simulation(scene, device=device)
    last = round(mechanism.duration / h)
    poses, energies, kinetic, newton, strain, cpu = [], [], [], 0, 0.0, []
    for step in range(1, last + 1):
        begin = process_time()
        report = simulation.step()
        cpu.append(process_time() - begin)
        newton += report.newton_iterations
        strain = max(strain, report.max_orthogonality_error)
        kinetic.append(report.energy["kinetic"])
        energies.append(sum(report.energy[name] for name in ("kinetic", "gravity", "elastic", "joint")))
        if step * samples % last == 0:
            poses.append(simulation.model.user_transform(simulation.stepper.q))
    poses = np.array(poses)
    usual = float(np.median(cpu[RECORDED:] or cpu))
    facts = (newton / last, 1e3 * usual, np.array(energies), np.array(kinetic), strain)
    return Run(poses[:, :, :3, 3], poses[:, :, :3, :3], *facts)


def run_exudyn(mechanism: Mechanism, h: float, samples: int, exactly: bool = False) -> Run:
    """The fastest of some runs, one where it is done `exactly`; see `_run_exudyn`."""
    runs = [_run_exudyn(mechanism, h, samples, exactly) for _ in range(1 if exactly else REPEATS)]
    return min(runs, key=lambda run: run.milliseconds)


def _run_exudyn(mechanism: Mechanism, h: float, samples: int, exactly: bool) -> Run:
    """Exudyn's generalized alpha with its defaults (spectral radius 0.9, modified Newton, consistent accelerations, dense
    solver, Euler parameters); `exactly`: full Newton to 1e-9."""
    exudyn, system, sensors = in_exudyn(mechanism, ("Position", "RotationMatrix"))
    settings = exudyn.SimulationSettings()
    time, steps = settings.timeIntegration, round(mechanism.duration / h)
    if exactly:
        time.newton.useModifiedNewton, time.newton.relativeTolerance = False, 1e-9
    cpu, found = solved(system, settings, sensors, mechanism.duration, steps, samples)
    newton = system.sys["dynamicSolver"].it.newtonStepsCount / steps
    n = len(mechanism.bodies)
    centres = np.stack(found[0::2], axis=1)
    rotations = np.stack(found[1::2], axis=1).reshape(samples, n, 3, 3)
    return Run(centres, rotations, newton, 1e3 * cpu / steps, np.zeros(0))


def initial_energy(mechanism: Mechanism) -> float:
    """[J] at the start, as `energies` counts it."""
    bodies = mechanism.bodies
    places, turns = np.array([[body.position for body in bodies]]), np.array([[body.rotation for body in bodies]])
    speeds, spins = np.array([[body.velocity for body in bodies]]), np.array([[b.rotation.T @ b.spin for b in bodies]])
    return float(energies(mechanism, places, turns, speeds, spins)[0][0])


def energies(mechanism: Mechanism, places, turns, speeds, spins) -> tuple[np.ndarray, float]:
    """(t,) energies [J] of bodies at places (t, n, 3), turned by (t, n, 3, 3), with speeds and, in their axes, spins (t, n, 3),
    and the largest kinetic one [J]."""
    mass = np.array([body.mass for body in mechanism.bodies])
    inertia = np.array([body.inertia for body in mechanism.bodies])
    kinetic = 0.5 * (np.sum(mass * np.sum(speeds**2, axis=2), axis=1) + np.sum(inertia * spins**2, axis=(1, 2)))
    energy = kinetic - np.sum(mass[:, None] * places * mechanism.gravity, axis=(1, 2))
    for spring in mechanism.springs:
        ends = [
            point if body == WORLD else places[:, body] + turns[:, body] @ local(mechanism, body, point)
            for body, point in zip((spring.parent, spring.child), spring.ends)
        ]
        length = np.linalg.norm(np.subtract(*ends), axis=-1)
        energy = energy + 0.5 * spring.stiffness * (length - spring.rest) ** 2
    return energy, float(kinetic.max())


def solved(system, settings, sensors: list, duration: float, steps: int, samples: int) -> tuple[float, list[np.ndarray]]:
    """CPU time [s] of a run, and what its sensors say at the last samples."""
    settings.timeIntegration.numberOfSteps, settings.timeIntegration.endTime = steps, duration
    settings.timeIntegration.verboseMode = 0
    settings.solutionSettings.writeSolutionToFile = False
    settings.solutionSettings.sensorsWritePeriod = duration / samples
    begin = process_time()
    system.SolveDynamic(settings, storeSolver=True)
    cpu = process_time() - begin
    return cpu, [np.asarray(system.GetSensorStoredData(sensor))[-samples:, 1:] for sensor in sensors]


def in_exudyn(mechanism: Mechanism, outputs: tuple[str, ...]) -> tuple:
    """The module, an assembled system of it, and its sensors: of every body those of the outputs."""
    import exudyn
    from exudyn import utilities as items

    system = exudyn.SystemContainer().AddSystem()
    ground, numbers, sensors = system.AddObject(items.ObjectGround()), [], []
    for body in mechanism.bodies:
        matter = items.RigidBodyInertia(mass=body.mass, inertiaTensor=np.diag(body.inertia))
        place = {"referencePosition": list(body.position), "referenceRotationMatrix": body.rotation}
        motion = {"initialVelocity": list(body.velocity), "initialAngularVelocity": list(body.spin)}
        number = system.CreateRigidBody(inertia=matter, gravity=list(mechanism.gravity), **place, **motion)
        if any(body.torque):
            system.CreateTorque(bodyNumber=number, loadVector=list(body.torque))
        numbers.append(number)
        for kind in outputs:
            keys = {"storeInternal": True, "writeToFile": False}
            kind = getattr(exudyn.OutputVariableType, kind)
            sensors.append(system.AddSensor(items.SensorBody(bodyNumber=number, outputVariableType=kind, **keys)))

    def marker(body, point):
        place = [float(x) for x in local(mechanism, body, point)]
        owner = ground if body == WORLD else numbers[body]
        return system.AddMarker(items.MarkerBodyRigid(bodyNumber=owner, localPosition=place))

    for joint in mechanism.joints:
        markers = [marker(body, joint.anchor) for body in (joint.parent, joint.child)]
        if joint.type == "spherical":
            system.AddObject(items.SphericalJoint(markerNumbers=markers, constrainedAxes=list(joint.constrained)))
            continue
        axes = triad(np.asarray(joint.axis, dtype=float))
        turned = [axes if k == WORLD else mechanism.bodies[k].rotation.T @ axes for k in (joint.parent, joint.child)]
        frames = {"rotationMarker0": turned[0], "rotationMarker1": turned[1]}
        rows = [int(row) for row in (joint.closing or ROWS[joint.type])]
        system.AddObject(items.GenericJoint(markerNumbers=markers, constrainedAxes=rows, **frames))
    for spring in mechanism.springs:
        markers = [marker(body, point) for body, point in zip((spring.parent, spring.child), spring.ends)]
        gains = {"stiffness": spring.stiffness, "damping": spring.damping, "referenceLength": spring.rest}
        system.AddObject(items.SpringDamper(markerNumbers=markers, **gains))
    system.Assemble()
    return exudyn, system, sensors
