"""Arrays of all worlds equal single views; efforts, resets, states without a copy, and the Gymnasium environment."""

import numpy as np
import pytest
import warp as wp
from common_scenes import on_ground
from on_device import DEVICE, NAME

import abd

DEVICES = ("numpy", "cpu")


def arm(box: bool = True) -> abd.Scene:
    """A hinged bar over a floor, and a box that falls on it."""
    scene = on_ground(0.5, dt=0.01)
    scene.add_body("bar", box=(0.6, 0.1, 0.1), position=(0.3, 0, 0.4))
    scene.add_hinge("pivot", abd.WORLD, "bar", anchor=(0, 0, 0.4), axis=(0, 1, 0), range=(-1.0, 1.0))
    if box:
        scene.add_body("box", box=(0.1, 0.1, 0.1), position=(1.0, 0, 0.052))
    return scene


def bits(sim: abd.Simulation, world: int) -> list[bytes]:
    return [sim.worlds.q[world].tobytes(), sim.worlds.qd[world].tobytes()]


@pytest.mark.parametrize("device", DEVICES)
def test_arrays_of_worlds_equal_the_views(device):
    sim = abd.Simulation(arm().replicate(3), device=device)
    worlds = sim.worlds
    efforts = np.array([[0.0], [2.0], [-3.0]])
    worlds.efforts = efforts
    sim.bodies["w1_bar"].spring_to((0.3, 0, 0.5), stiffness=5.0)  # has no coordinates of its own
    sim.run(steps=5)
    assert worlds.body_names == ("w0_ground", "w0_bar", "w0_box") and worlds.coordinate_names == ("w0_pivot.theta",)
    for k in range(3):
        for b, name in enumerate(("bar", "box"), start=1):
            body = sim.bodies[f"w{k}_{name}"]
            np.testing.assert_allclose(worlds.poses[k, b], [*body.position, *body.quaternion], atol=1e-14)
            np.testing.assert_allclose(worlds.velocities[k, b], [*body.linear_velocity, *body.angular_velocity], atol=1e-13)
            np.testing.assert_array_equal(worlds.contact_forces[k, b], body.contact_force)
        joint = sim.joints[f"w{k}_pivot"]
        np.testing.assert_array_equal(worlds.coordinates[k], joint.coordinates)
        np.testing.assert_array_equal(worlds.rates[k], joint.rates)
        assert joint.coordinate().drive_force == pytest.approx(efforts[k, 0])
        assert joint.coordinate().settings.force == efforts[k, 0]
    assert worlds.contact_forces[0, 2, 2] > 0.0
    np.testing.assert_array_equal(worlds.efforts, efforts)
    taken = sim.checkpoint()
    worlds.efforts = 0.0
    sim.restore(taken)
    np.testing.assert_array_equal(worlds.efforts, efforts)


@pytest.mark.parametrize("device", DEVICES)
def test_worlds_can_be_reset_to_given_states(device):
    mechanism = abd.Mechanism(arm(box=False).compile())
    states = [mechanism.affine_state(np.array([angle]), np.array([-0.5])) for angle in (0.3, 0.2)]
    q, qd = (np.array(one) for one in zip(*states))
    sim, alone = (abd.Simulation(arm(box=False).replicate(count), device=device) for count in (3, 1))
    sim.worlds.efforts = 1.0
    sim.step()
    sim.worlds.reset([2, 1], q=q, qd=qd)
    assert sim.worlds.coordinates[1:, 0] == pytest.approx([0.2, 0.3]) and sim.worlds.rates[1:, 0] == pytest.approx(-0.5)
    np.testing.assert_array_equal(sim.worlds.efforts, [[1.0], [0.0], [0.0]])
    alone.worlds.reset(0, q=q[:1], qd=qd[:1])
    for one in (sim, alone):
        one.run(steps=3)
    assert bits(sim, 2) == bits(alone, 0)
    for world in (0, 1):
        sim.joints[f"w{world}_pivot"].coordinate().apply_force(2.0, steps=3)
    sim.worlds.reset(1)
    sim.step()
    assert [sim.joints[f"w{world}_pivot"].coordinate().drive_force for world in (0, 1)] == pytest.approx([3.0, 0.0])
    sunk = sim.worlds.q[:1].copy()
    sunk[0, 1, 2] = 0.0
    with pytest.raises(abd.errors.SceneError, match="partly below"):
        sim.worlds.reset(0, q=sunk)


def start(random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    mechanism = abd.Mechanism(arm(box=False).compile())
    states = [mechanism.affine_state(*random.uniform(-0.04, 0.04, (2, 1))) for _ in range(count)]
    return tuple(np.array(one) for one in zip(*states, strict=True))


def environment(mode, worlds: int = 2, **keys):
    """Bars that are pushed up; an episode ends beyond 0.05 rad."""
    return abd.gym.VectorEnv(
        arm(box=False), worlds, {"pivot.theta": 40.0}, lambda worlds: np.concatenate([worlds.coordinates, worlds.rates], axis=1),
        lambda worlds, x, actions: -np.abs(actions[:, 0]), lambda worlds, x: np.abs(x[:, 0]) > 0.05,
        autoreset_mode=mode, device="numpy", **keys,
    )  # fmt: skip


def test_the_environment_follows_gymnasium():
    gymnasium = pytest.importorskip("gymnasium", reason="needs Gymnasium: pip install gymnasium")
    modes = gymnasium.vector.AutoresetMode
    env = environment(modes.SAME_STEP)
    assert env.action_space.shape == (2, 1) and env.observation_space.shape == (2, 2)
    first, info = env.reset(seed=1)
    assert env.observation_space.contains(first) and info == {}
    ended = np.zeros(2, dtype=int)
    for _ in range(40):
        x, rewards, terminated, truncated, info = env.step(np.array([[0.0], [100.0]], dtype=np.float32))
        assert rewards.tolist() == [0.0, -40.0], "actions are clipped to their limit"
        assert not truncated.any() and x.shape == (2, 2)
        ended += terminated
        for k in np.flatnonzero(terminated):
            assert abs(info["final_obs"][k][0]) > 0.05 and x[k] == pytest.approx(first[k])
        np.testing.assert_array_equal(info.get("_final_obs", np.zeros(2, dtype=bool)), terminated)
    assert (ended > 0).all()
    manual = environment(modes.DISABLED, max_steps=3)
    manual.reset()
    for _ in range(3):
        *_, truncated, _ = manual.step(np.zeros((2, 1)))
    assert truncated.all()
    with pytest.raises(ValueError, match="have ended"):
        manual.step(np.zeros((2, 1)))
    for wrong in ([1, 0], [False, False], [True]):
        with pytest.raises(ValueError, match="reset_mask must be 2 booleans"):
            manual.reset(options={"reset_mask": wrong})
    manual.reset(options={"reset_mask": truncated})
    with pytest.raises(ValueError, match="is needed"):
        manual.step(np.zeros(1))
    manual.step(np.zeros((2, 1)))
    with pytest.raises(ValueError, match="no coordinate 'elbow'"):
        abd.gym.VectorEnv(arm(), 1, {"elbow": 1.0}, None, None, None, device="numpy")
    with pytest.raises(ValueError, match="SAME_STEP and DISABLED"):
        environment(modes.NEXT_STEP)
    with pytest.raises(ValueError, match="at least 1"):
        environment(modes.SAME_STEP, frames=0)
    for name, shapes in (("reward", ((2, 1), (2,))), ("terminate", ((2,), ()))):
        reward, ends = (lambda worlds, *_, shape=shape: np.zeros(shape) for shape in shapes)
        wrong = abd.gym.VectorEnv(arm(), 2, {"pivot.theta": 1.0}, lambda one: one.rates, reward, ends, device="numpy")
        wrong.reset()
        with pytest.raises(ValueError, match=f"{name} returned the shape"):
            wrong.step(np.zeros((2, 1)))


@pytest.mark.filterwarnings("ignore:.*WARN")
def test_checks_of_gymnasium_pass():
    """`check_env` takes environments of one world."""
    gymnasium = pytest.importorskip("gymnasium", reason="needs Gymnasium: pip install gymnasium")
    from gymnasium.utils.env_checker import check_env

    class Single(gymnasium.Env):
        """The world of a vector environment with one world."""

        def __init__(self):
            self.worlds = environment(gymnasium.vector.AutoresetMode.DISABLED, 1, start=start)
            self.action_space, self.observation_space = self.worlds.single_action_space, self.worlds.single_observation_space

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            first, info = self.worlds.reset(seed=seed, options=options)
            return first[0], info

        def step(self, action):
            x, reward, terminated, truncated, info = self.worlds.step(action[None])
            return x[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), info

    check_env(Single())


def test_seeds_of_worlds_are_independent_of_other_worlds():
    gymnasium = pytest.importorskip("gymnasium", reason="needs Gymnasium: pip install gymnasium")
    runs = []
    for seeds in ([5, 6], [6, 7]):
        env = environment(gymnasium.vector.AutoresetMode.SAME_STEP, max_steps=3, start=start)
        first = env.reset(seed=seeds)[0]
        runs.append(np.array([first, *(env.step(np.zeros((2, 1)))[0] for _ in range(7))]))
    np.testing.assert_array_equal(runs[0][:, 1], runs[1][:, 0])
    assert (runs[0][0] != runs[1][0]).all() and len(np.unique(runs[0][[0, 3, 6], 1, 0])) == 3
    with pytest.raises(ValueError, match="1 seeds are given for 2 worlds"):
        env.reset(seed=[5])


def test_efforts_and_states_can_be_arrays_of_other_libraries():
    sim = abd.Simulation(arm().replicate(2), device="cpu")
    sim.worlds.efforts = wp.array([[1.0], [-2.0]], dtype=wp.float64, device="cpu")
    np.testing.assert_array_equal(sim.worlds.efforts, [[1.0], [-2.0]])
    start = sim.worlds.q
    sim.run(steps=3)
    sim.worlds.reset(q=wp.array(start, dtype=wp.float64, device="cpu"))
    np.testing.assert_array_equal(sim.worlds.q, start)


def falling(device: str = NAME) -> abd.Simulation:
    """Two boxes in the air and a fixed one."""
    scene = abd.Scene(solver={"dt": 0.01, "integrator": "bdf1"})
    for k, name in enumerate(("one", "other")):
        scene.add_body(name, box=(0.1, 0.1, 0.1), position=(k, 0, 1), velocity=(0, 0, 0.5))
    scene.add_body("post", box=(0.1, 0.1, 0.1), position=(0, 3, 0), kind="static")
    return abd.Simulation(scene, device=device)


@pytest.mark.device
def test_the_state_is_read_without_a_copy():
    simulation = falling()
    simulation.step()
    q, qd = simulation.state.q, simulation.state.qd
    assert (q.shape, qd.shape, q.dtype, q.device) == ((3, 12), (3, 12), wp.float64, DEVICE.warp)
    np.testing.assert_array_equal(q.numpy(), simulation.stepper.q)
    np.testing.assert_array_equal(qd.numpy(), simulation.stepper.qd)
    assert q.__dlpack_device__() == ((1, 0) if q.device.is_cpu else (2, q.device.ordinal))
    if q.device.is_cpu:
        for array in (q, qd):
            assert np.from_dlpack(array).ctypes.data == array.ptr == np.asarray(array).ctypes.data
    else:
        for array in (q, qd):
            assert array.__cuda_array_interface__["data"][0] == array.ptr
            assert wp.from_dlpack(array).ptr == array.ptr


@pytest.mark.device
@pytest.mark.parametrize("kind", [np.asarray, lambda qd: wp.array(qd, dtype=wp.float64, device=DEVICE.warp), np.ndarray.tolist])
def test_velocities_can_be_set_from_arrays_of_other_libraries(kind):
    simulation, plain = falling(), falling("numpy")
    for one in (simulation, plain):
        one.step()
    qd = simulation.stepper.qd.copy()
    qd[0, :3], qd[2, :3] = (1.0, 2.0, 3.0), (9.0, 9.0, 9.0)
    before = simulation.stepper.q.copy()
    simulation.set_velocities(kind(qd))
    plain.set_velocities(qd)
    np.testing.assert_array_equal(simulation.stepper.q, before)
    qd[2] = 0.0
    np.testing.assert_array_equal(simulation.state.qd.numpy(), qd)
    np.testing.assert_array_equal(plain.state.qd, qd)
    assert plain.state.q.shape == (3, 12) and plain.state.body_frame.shape == (3, 4, 4)
    assert simulation.bodies["one"].velocity[:3, 3] == pytest.approx((1.0, 2.0, 3.0))
    report = simulation.step()
    plain.step()
    assert report.step == 2 and report.time == pytest.approx(0.02)
    moved = simulation.stepper.q - before
    assert moved[0, :3] == pytest.approx((0.01, 0.02, 0.03 - 9.81e-4)) and not moved[2].any()
    np.testing.assert_allclose(simulation.stepper.q, plain.stepper.q, atol=1e-12)
