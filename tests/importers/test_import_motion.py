"""Imported robots move as MuJoCo moves them, and run to the same bits from the TOML file that they are converted to.

MuJoCo moves the same compiled model by fourth-order steps of 0.1 ms, without contacts, limits and those actuators that the
import ignores, with friction and equalities as hard as possible; abd takes steps of 1 ms with exact joints.
"""

from pathlib import Path

import numpy as np
import pytest
from robot_samples import SAMPLES, write_sample
from tool import fixture

import abd
from abd.api.simulation import Simulation
from abd.certificate.certificate import certify
from abd.cli import main
from abd.io.run import run
from abd.scene.importers.formats import ImportOptions
from abd.scene.scene import Scene
from abd.scene.schema.schema import SceneSpec

mujoco = pytest.importorskip("mujoco")
from abd.scene.importers.robots.scene import read_robot  # noqa: E402

ROBOTS = {
    # file: seed of the start; the balls of the cube have friction and hold their weight
    "urdf/Acrobot.urdf": 1,
    "urdf/Acrobot_with_limits.urdf": 1,
    "urdf/planar_slider.urdf": 1,
    "mjcf/slider_crank.xml": 1,
    "mjcf/humanoid.xml": 1,
    "mjcf/cube_3x3x3.xml": None,
}
SECONDS = 0.1
STEP = 1e-3
FINE = 1e-4
HARD = 0.99999
"""Impedance of MuJoCo's dry friction, limits and equalities, which are soft by default: friction that holds creeps then."""


def random_state(model, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """qpos and qvel: hinges and sliders within 0.3 of the way from their reference to an end of their range, at most 0.5
    rad or 0.1 m away from it, speeds up to 1 rad/s and 0.2 m/s; free bodies and balls turned by up to 0.3 rad."""
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


def largest_difference(path: Path, seconds: float, seed: int | None = 1, **options) -> tuple[float, str]:
    """Largest difference of any coordinate from MuJoCo's, without contact and limits, and the name of its joint.

    Args:
        seed: of the state at the start, None for the file's own; options: of the import.
    """
    robot = read_robot(Path(path), ImportOptions(**options))
    model = robot.compiled.model
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    tables, notes = robot.scene(None if seed is None else random_state(model, seed))
    scene = Scene.from_spec(SceneSpec.model_validate(tables), notes)
    for body in scene.spec.body:
        body.group = 0
    scene.spec.solver.dt = STEP
    simulation, data, worst = abd.Simulation(scene, device="cpu"), without_contact(model, robot), (0.0, "")
    for step in range(1, round(seconds / STEP) + 1):
        simulation.step()
        for _ in range(round(STEP / FINE)):
            mujoco.mj_step(model, data)
        if step % 10 == 0:
            worst = max(worst, *((value, name) for name, value in differences(model, data, robot, simulation).items()))
    return worst


def without_contact(model, robot):
    """MuJoCo's state at the scene's start; the model is changed to what the scene has."""
    for k in set(range(model.nactuator)) - robot.driving:
        model.actuator_gainprm[k] = model.actuator_biasprm[k] = 0.0
    model.opt.timestep = FINE
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    for kind in ("dof", "jnt", "eq"):
        getattr(model, f"{kind}_solimp")[:, :2] = HARD
        getattr(model, f"{kind}_solref")[:] = (4.0 * FINE, 1.0)
    data = mujoco.MjData(model)
    data.qpos[:] = robot.data.qpos
    data.qvel[:] = robot.data.qvel
    data.ctrl[:], data.act[:] = robot.data.ctrl, robot.data.act
    return data


def differences(model, data, robot, simulation) -> dict[str, float]:
    """Difference of every joint's coordinates; of free bodies and balls that of their poses."""
    out = {}
    for number in range(model.njnt):
        at = int(model.jnt_qposadr[number])
        name = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, number) or str(number)
        one = robot.joints.coordinates.get(number)
        if one is not None:
            value = simulation.joints[one.joint].coordinate(one.name).value
            out[name] = abs(value - one.sign * float(data.qpos[at]))
            continue
        body = int(model.jnt_bodyid[number])
        link = next(link for link in robot.links if link.root == body)
        transform = simulation.bodies[link.name].transform
        out[name] = float(np.abs(transform[:3, :3] - data.xmat[body].reshape(3, 3)).max())
        if model.jnt_type[number] != mujoco.mjtJoint.mjJNT_BALL:
            out[name] = max(out[name], float(np.abs(transform[:3, 3] - data.xpos[body]).max()))
    return out


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_move_as_in_mujoco(name, tmp_path):
    _, _, seed, keyframe = SAMPLES[name]
    difference, joint = largest_difference(write_sample(name, tmp_path), SECONDS, seed=seed, keyframe=keyframe)
    # MuJoCo integrates activations to first order; a quarter of the others at half the time step
    assert difference < (3e-4 if name == "actuated" else 2e-4), joint
    assert joint, "nothing moved"


@pytest.mark.parametrize("name", [name for name in ROBOTS if "cube" not in name])
def test_robots_move_as_in_mujoco(name):
    difference, joint = largest_difference(fixture(name), SECONDS, seed=ROBOTS[name])
    # dampers act with the rate at the end of the first step; a quarter at half the time step
    assert difference < 2e-4, joint


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [*((name, {}) for name in ROBOTS), ("urdf/atlas.urdf", {"allow_overlaps": True, "missing_meshes": "boxes"})],
)
def test_robots_run_two_seconds_with_contact(name, options, tmp_path):
    """As in `abd run`; 50 frames are certified, since the solver has proven the swept paths between them."""
    scene = abd.load(fixture(name), **options)
    model = scene.started()
    steps = round(2.0 / model.settings.dt)
    outcome = run(scene, model, tmp_path / "run", device="cpu", steps=steps, simulate=Simulation)
    assert outcome.failure is None and outcome.report["converged_steps"] == outcome.report["steps"] == steps
    assert certify(tmp_path / "run", every=max(1, steps // 50)).ok
    assert "atlas" not in name or outcome.report["newton_iterations"]["mean"] < 8.0


@pytest.mark.parametrize("name", [*SAMPLES, "contacts"])
def test_converted_scene_runs_bitwise_equal(name, tmp_path, capsys):
    path = write_sample(name, tmp_path) if name in SAMPLES else contacts(tmp_path)
    # the bars of one plane pass through one another
    over = name == "four_bar"
    assert main(["convert", str(path), str(tmp_path / "out.toml"), *(["--allow-overlaps"] if over else [])]) == 0
    assert "written to" in capsys.readouterr().out
    states = []
    for source in (path, tmp_path / "out.toml"):
        simulation = abd.Simulation(abd.load(source, allow_overlaps=over), device="cpu")
        simulation.run(steps=10)
        states.append(np.array(simulation.state.q))
    assert states[0].tobytes() == states[1].tobytes()


def contacts(folder: Path) -> Path:
    """A robot on the ground whose scene has shapes of several kinds, materials, filters and a mesh file."""
    (folder / "wedge.obj").write_text("v 0 0 0\nv 0.3 0 0\nv 0 0.3 0\nv 0 0 0.3\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    path = folder / "contacts.xml"
    path.write_text(
        '<mujoco><asset><mesh name="wedge" file="wedge.obj"/></asset><worldbody><geom type="plane" size="1 1 1"/>'
        '<body name="cart" pos="0 0 0.11"><freejoint/><geom type="box" size="0.3 0.2 0.05" friction="0.8"/>'
        '<geom type="capsule" size="0.05" fromto="0 -0.2 -0.05 0 0.2 -0.05" friction="0.8"/>'
        '<body name="arm" pos="0 0 0.1"><joint axis="0 1 0" range="-90 90" limited="true"/>'
        '<geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0.2"/></body></body>'
        '<body name="wedge" pos="1 0 0.02" euler="1 2 3"><freejoint/><geom type="mesh" mesh="wedge" condim="1"/></body>'
        "</worldbody></mujoco>"
    )
    return path
