"""Robots of URDF and MJCF files: their motion without contact compared with MuJoCo's, and certified runs with contact.

MuJoCo moves the same compiled model by fourth-order steps of 0.1 ms, without contacts, limits and those actuators that the
import leaves out, with friction and equalities as hard as possible; abd takes steps of 1 ms with exact joints.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

STEP = 1e-3
FINE = 1e-4
EVERY = 10
CERTIFIED = 50
"""Frames of a run that are certified, evenly over its length; between them the solver has proven the swept paths."""
HARD = 0.99999
"""Impedance of MuJoCo's dry friction, limits and equalities, which are soft by default: friction that holds creeps then."""


def import_robot(path: Path, seed: int | None = None, limits: bool = True, **options):
    """A robot's file: what MuJoCo made of it, its scene, and the notes.

    Args:
        seed: of the state it starts in, see `random_state`; None for the file's own.
        limits: whether joints and tendons have their ranges.
    """
    from abd.scene.importers.formats import ImportOptions
    from abd.scene.importers.robots.scene import read_robot
    from abd.scene.scene import Scene
    from abd.scene.schema.schema import SceneSpec

    robot = read_robot(Path(path), ImportOptions(**options))
    if not limits:
        import mujoco

        robot.compiled.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    tables, notes = robot.scene(None if seed is None else random_state(robot.compiled.model, seed))
    return robot, Scene.from_spec(SceneSpec.model_validate(tables), notes)


def random_state(model, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """qpos and qvel: hinges and sliders within 0.3 of the way from their reference to an end of their range, at most 0.5
    rad or 0.1 m away from it, speeds up to 1 rad/s and 0.2 m/s; free bodies and balls turned by up to 0.3 rad."""
    import mujoco

    rng = np.random.default_rng(seed)
    qpos, qvel = model.qpos0.copy(), rng.uniform(-1.0, 1.0, model.nv)
    types = mujoco.mjtJoint
    for number in range(model.njnt):
        at, dof, kind = int(model.jnt_qposadr[number]), int(model.jnt_dofadr[number]), int(model.jnt_type[number])
        if kind in (types.mjJNT_FREE, types.mjJNT_BALL):
            at, dof = (at + 3, dof + 3) if kind == types.mjJNT_FREE else (at, dof)
            quaternion = qpos[at : at + 4].copy()
            mujoco.mju_quatIntegrate(quaternion, rng.uniform(-0.17, 0.17, 3), 1.0)
            qpos[at : at + 4] = quaternion
            continue
        most = 0.5 if kind == types.mjJNT_HINGE else 0.1
        qvel[dof] *= 1.0 if kind == types.mjJNT_HINGE else 0.2
        low, high = -most, most
        if model.jnt_limited[number]:
            low = max(low, 0.3 * float(model.jnt_range[number, 0] - qpos[at]))
            high = min(high, 0.3 * float(model.jnt_range[number, 1] - qpos[at]))
        qpos[at] += rng.uniform(min(low, high), max(low, high))
    return qpos, qvel


def difference(
    path: Path, seconds: float = 1.0, integrator: str = "generalized_alpha", seed: int | None = 1, **options
) -> dict:
    """Largest difference of any coordinate from MuJoCo's, without contact, and which one it is of.

    Args:
        seed: of the state at the start, None for the file's own; options: of the import.
    """
    import mujoco

    import abd

    robot, scene = import_robot(path, seed, limits=False, **options)
    model = robot.compiled.model
    for body in scene.spec.body:
        body.group = 0
    scene.spec.solver.dt, scene.spec.solver.integrator = STEP, integrator
    simulation = abd.Simulation(scene, device="cpu")
    data = _mujoco_without_contact(mujoco, model, robot)
    worst, where, iterations = 0.0, "", 0
    for step in range(1, round(seconds / STEP) + 1):
        iterations += simulation.step().newton_iterations
        for _ in range(round(STEP / FINE)):
            mujoco.mj_step(model, data)
        if step % EVERY == 0:
            for name, value in _apart(mujoco, model, data, robot, simulation).items():
                if value > worst:
                    worst, where = value, name
    steps = round(seconds / STEP)
    return {
        "file": Path(path).name,
        "integrator": integrator,
        "seconds": seconds,
        "difference": worst,
        "of": where,
        "newton_iterations": iterations / steps,
    }


def _mujoco_without_contact(mujoco, model, robot):
    """MuJoCo's state at the scene's start; the model is changed to what the scene has."""
    for k in set(range(model.nu)) - robot.driving:
        model.actuator_gainprm[k] = model.actuator_biasprm[k] = 0.0
    model.opt.timestep = FINE
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    for kind in ("dof", "jnt", "eq"):
        getattr(model, f"{kind}_solimp")[:, :2] = HARD
        getattr(model, f"{kind}_solref")[:] = (4.0 * FINE, 1.0)
    data = mujoco.MjData(model)
    data.qpos[:] = robot.start.qpos
    data.qvel[:] = robot.start.data.qvel
    data.ctrl[:], data.act[:] = robot.start.control, robot.start.activation
    return data


def _apart(mujoco, model, data, robot, simulation) -> dict[str, float]:
    """Difference of every joint's coordinates; of free bodies and balls that of their poses."""
    out = {}
    for number in range(model.njnt):
        at = int(model.jnt_qposadr[number])
        name = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, number) or str(number)
        one = robot.joints.coordinates.get(number)
        if one is not None:
            value = simulation.joints[one.joint].coordinate(one.name).value
            out[name] = abs(value - one.value(float(data.qpos[at])))
            continue
        body = int(model.jnt_bodyid[number])
        link = next(link for link in robot.links if link.root == body)
        transform = simulation.bodies[link.name].transform
        out[name] = float(np.abs(transform[:3, :3] - data.xmat[body].reshape(3, 3)).max())
        if model.jnt_type[number] != mujoco.mjtJoint.mjJNT_BALL:
            out[name] = max(out[name], float(np.abs(transform[:3, 3] - data.xpos[body]).max()))
    return out


def contact_run(path: Path, seconds: float = 2.0, allow_overlaps: bool = False, **options) -> dict:
    """Run a robot's scene as `abd run` does, and certify it."""
    import abd
    from abd.api.simulation import Simulation
    from abd.certificate.certificate import certify
    from abd.io.run import run

    scene = abd.load(path, allow_overlaps=allow_overlaps, **options)
    model = scene.started()
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        steps = round(seconds / model.settings.dt)
        outcome = run(scene, model, Path(folder) / "run", device="cpu", steps=steps, simulate=Simulation)
        certificate = certify(Path(folder) / "run", every=max(1, steps // CERTIFIED))
    report = outcome.report
    return {
        "file": Path(path).name,
        "seconds": seconds,
        "steps": report["steps"],
        "converged": report["converged_steps"],
        "certified": bool(certificate.ok),
        "violations": len(certificate.violations),
        "min_gap": report["min_gap"],
        "max_joint_residual": report["max_joint_residual"],
        "newton_iterations": report["newton_iterations"]["mean"],
        "cpu_seconds": time.process_time() - start,
        "failure": str(outcome.failure) if outcome.failure else "",
    }
