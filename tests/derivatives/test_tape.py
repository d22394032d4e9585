"""Gradients by adjoints of recorded steps, compared with central differences of complete simulations."""

import inspect
from collections.abc import Callable

import numpy as np
import pytest
from common_scenes import on_ground
from on_device import NAME

import abd
from abd.errors import NotDifferentiable
from abd.state import State

DT, STEPS, WARM = 2e-3, 5, 10


def chain(
    device: str, angle: float = 0.0, swing: float = 0.4, rest: float = 0.1, stiffness: float = 3.0, damping: float = 0.02,
    friction: float = 0.05, drive_stiffness: float = 20.0, drive_damping: float = 0.3, target: float = 0.2, effort: float = 0.3,
    push: float = 0.2, speed: float = 0.6, force: float = 0.5, torque: float = 0.1, integrator: str = "generalized_alpha",
) -> abd.Simulation:  # fmt: skip
    """Four bars with hinges at an angle to the horizontal, swinging about the first: a spring, drives, an effort and loads."""
    scene = abd.Scene(solver={"dt": DT, "tolerance": 1e-10, "integrator": integrator})
    spring = {"stiffness": stiffness, "damping": damping, "rest": rest, "friction": friction}
    drive = {"mode": "pd", "target": target, "stiffness": drive_stiffness, "damping": drive_damping}
    slow = {"mode": "velocity", "target": speed, "damping": 0.3}
    settings = [{"drive": slow}, spring, {"drive": drive, "armature": 0.01}, {"drive": {"mode": "force", "target": push}}]
    u = np.array([np.cos(angle), 0.0, -np.sin(angle)])
    for k in range(4):
        scene.add_body(
            f"bar {k}", box=(0.3, 0.05, 0.05), mass=1.0, position=(0.3 * k + 0.15) * u,
            axis_angle={"axis": (0, 1, 0), "degrees": np.degrees(angle)},
            velocity=swing * np.cross((0, 1, 0), (0.3 * k + 0.15) * u), angular_velocity=(0, swing, 0),
        )  # fmt: skip
        scene.add_hinge(
            f"pin {k}", f"bar {k - 1}" if k else "world", f"bar {k}", anchor=0.3 * k * u, axis=(0, 1, 0),
            enforcement="exact" if k % 2 else "penalty",
            coordinate={"theta": settings[k]},
        )  # fmt: skip
    sim = abd.Simulation(scene, device=device)
    sim.joints["pin 2"].coordinate("theta").apply_force(effort)
    sim.bodies["bar 3"].apply_force((0, 0, force))
    sim.bodies["bar 0"].apply_torque((0, torque, 0))
    return sim


def box(
    device: str, radius: float = 0.0, spin: float = 0.0, lifted: float = 0.0, speed: float = 1.0, laggings: int = 1,
    rolling: float = 0.0,
) -> abd.Simulation:  # fmt: skip
    """A box or a ball that slides, rolls and spins, or sticks, on a floor; a force may lift another box from it."""
    scene = abd.Scene(solver={"dt": DT, "tolerance": 1e-12 if laggings == 1 else 1e-11, "friction_iterations": laggings})
    scene.add_material("default", mu=0.3, rolling=rolling, spinning=rolling)
    scene.add_body("floor", half_space={})
    if lifted:
        scene.add_body("other", box=(0.1, 0.1, 0.1), position=(0, 2, 0.0501), mass=1.0, force=(0, 0, lifted))
    size = {"sphere": {"radius": radius}} if radius else {"box": (0.2, 0.3, 0.2)}
    height = 0.1001 if not radius else radius + 1e-4
    motion = {"velocity": (speed, 0.3 * speed, 0), "angular_velocity": (0, 0, spin)}
    scene.add_body("box", **size, position=(0, 0, height), mass=1.0, **motion)
    sim = abd.Simulation(scene, device=device)
    sim.bodies["box"].apply_force((0.5, 0.0, 0.0))
    if lifted:
        sim.bodies["other"].apply_force((0.0, 0.0, -20.0), at=(0.0, 0.0, 0.01), steps=WARM)
    return sim


def gripper(device: str, mu: float) -> abd.Simulation:
    """A hand that lifts a box between two jaws."""
    scene = abd.Scene(solver={"dt": DT, "tolerance": 1e-13})
    scene.add_material("default", mu=mu)
    scene.add_body("hand", box=(0.2, 0.1, 0.02), position=(0, 0, 0.1), mass=0.5)
    scene.add_slider("lift", "world", "hand", anchor=(0, 0, 0.1), axis=(0, 0, 1), enforcement="exact")
    scene.add_body("box", box=(0.1, 0.1, 0.1), mass=0.5)
    for name, side in (("left", -1), ("right", 1)):
        scene.add_body(name, box=(0.02, 0.08, 0.08), position=(side * 0.0602, 0, 0), mass=0.2)
        scene.add_slider(name, "hand", name, anchor=(0, 0, 0), axis=(-side, 0, 0), enforcement="exact")
    sim = abd.Simulation(scene, device=device)
    for name, effort in (("left", 20.0), ("right", 20.0), ("lift", 35.0)):
        joint = sim.joints[name]
        joint.coordinate(joint.coordinate_names[0]).apply_force(effort)
    return sim


def recorded(sim: abd.Simulation, steps: int = STEPS) -> abd.Tape:
    tape = abd.Tape(sim)
    for _ in range(steps):
        tape.step()
    return tape


def value(sim: abd.Simulation, by: np.ndarray) -> float:
    return float(np.sum(by * np.stack([sim.stepper.q, sim.stepper.qd])))


@pytest.mark.device
@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1"])
def test_gradients_of_a_pendulum_chain(integrator):
    """From the first step they equal differences by initial angle and speed, joint parameters, effort, force and torque."""
    sim = chain(NAME, integrator=integrator)
    by = np.random.default_rng(1).normal(size=(2, 4, 12))
    gradient = recorded(sim).gradient(*by)
    found = {name: gradient.coordinates[name][1] for name in ("rest", "stiffness", "damping", "friction")}
    found |= {name: gradient.coordinates[name][2] for name in ("drive_stiffness", "drive_damping", "target")}
    found |= {"speed": gradient.coordinates["target"][0], "push": gradient.coordinates["target"][3]}
    found |= {"effort": gradient.efforts[:, 2].sum(), "force": gradient.force[:, 3, 2].sum()}
    found |= {"torque": gradient.torque[:, 0, 1].sum()}
    values = {name: one.default for name, one in inspect.signature(chain).parameters.items()}
    for name in ("angle", "swing", *found):
        ends = [chain(NAME, integrator=integrator, **{name: values[name] + e}) for e in (1e-5, -1e-5)]
        if name not in found:
            start = [np.stack([one.stepper.q, one.stepper.qd]) for one in ends]
            found[name] = np.sum(np.stack([gradient.q, gradient.qd]) * (start[0] - start[1])) / 2e-5
        for one in ends:
            one.run(steps=STEPS)
        assert found[name] == pytest.approx((value(ends[0], by) - value(ends[1], by)) / 2e-5, rel=1e-5), name


def check(sim: abd.Simulation, change: dict[str, Callable], found: Callable, warm: int = WARM) -> None:
    """Compare gradients of the state of the box with differences by its state at the start, by friction, and by `change`."""
    body = sim.bodies["box"].index
    sim.run(steps=warm)
    saved, mu = sim.checkpoint(), sim.model.materials.mu.copy()
    by = np.zeros((2, *saved["q"].shape))
    by[:, body] = np.random.default_rng(1).normal(size=by[:, body].shape)
    gradient = recorded(sim).gradient(*by)
    columns = {"position": ("q", 0, 1e-7), "velocity": ("qd", 0, 1e-4), "turn": ("qd", 4, 1e-4)}
    expected = {name: getattr(gradient, array)[body, k] for name, (array, k, _) in columns.items()}
    for name, exact in {**expected, "friction": gradient.friction[0, 0], **found(gradient)}.items():
        array, k, size = columns.get(name, ("", 0, 1e-4 if name == "friction" else 1e-2))
        ends = []
        for e in (size, -size):
            state = dict(saved)
            if array:
                state[array] = saved[array].copy()
                state[array][body, k] += e
            sim.restore(state)
            if name == "friction":
                sim.set_friction(mu + e)
            elif not array:
                change[name](e)
            for _ in range(STEPS):
                assert sim.step().substeps == 1
            ends.append(value(sim, by))
        assert exact == pytest.approx((ends[0] - ends[1]) / (2.0 * size), rel=1e-5, abs=1e-7), name


SHAPES = {
    "box": {}, "spinning": {"spin": 3.0}, "ball": {"radius": 0.1}, "rolling": {"radius": 0.1, "spin": 0.5, "rolling": 2e-3},
    "sticking": {"lifted": 14.0, "speed": 0.0},
}  # fmt: skip


@pytest.mark.parametrize(
    "name, device", [pytest.param("box", "numpy", marks=pytest.mark.slow), *((name, NAME) for name in SHAPES)]
)
def test_gradients_of_a_sliding_body(name, device):
    sim = box(device, **SHAPES[name])
    push = {"force": lambda e: sim.bodies["box"].apply_force((0.5 + e, 0.0, 0.0))}
    check(sim, push, lambda gradient: {"force": gradient.force[:, sim.bodies["box"].index, 0].sum()})


@pytest.mark.device
def test_gradients_of_crossing_edges():
    """A box slides and turns with an edge across that of another one."""
    scene = abd.Scene(solver={"dt": DT, "tolerance": 1e-12})
    scene.add_material("default", mu=0.3)
    turns = {"axis": (1, 0, 0), "degrees": 45}, {"axis": (0, 1, 0), "degrees": 45}
    scene.add_body("rail", box=(0.5, 0.1, 0.1), axis_angle=turns[0], kind="static")
    motion = {"velocity": (0.2, 0, 0), "angular_velocity": (0, 0, 1)}
    scene.add_body("box", box=(0.1, 0.5, 0.1), axis_angle=turns[1], position=(0, 0.01, 0.14149), mass=1.0, **motion)
    check(abd.Simulation(scene, device=NAME), {}, lambda gradient: {})


@pytest.mark.device
def test_gradients_without_friction_beside_rough_materials():
    scene = abd.Scene(solver={"dt": DT, "tolerance": 1e-13})
    scene.add_material("default", mu=0.0)
    scene.add_material("rough", mu=0.5)
    scene.add_body("floor", half_space={})
    scene.add_body("box", box=(0.2, 0.3, 0.2), position=(0, 0, 0.1001), mass=1.0, velocity=(1, 0, 0))
    sim = abd.Simulation(scene, device=NAME)
    sim.run(steps=WARM)
    tape = recorded(sim)
    by_end = np.zeros((2, 12))
    by_end[sim.bodies["box"].index, 0] = 1.0
    assert tape.gradient(q=by_end).qd[sim.bodies["box"].index, 0] == pytest.approx(STEPS * DT, rel=1e-9)


@pytest.mark.device
def test_gradients_from_the_first_step_in_contact():
    """Friction that is lagged until it converges has gradients where a contact begins; other repeated laggings have none."""
    sim = box(NAME, laggings=-1)
    check(sim, {}, lambda gradient: {}, warm=0)
    for laggings in (1, 2):
        with pytest.raises(NotDifferentiable, match="friction_iterations = -1"):
            abd.Tape(box(NAME, laggings=laggings)).step()


@pytest.mark.device
@pytest.mark.parametrize("mu", [0.6, 0.3])
def test_gradients_of_a_gripper(mu):
    """The box sticks at a high coefficient of friction, and slips at a low one."""
    sim = gripper(NAME, mu)
    order = [sim.model.joints[k].name for k in sim.reader.table.joint]

    def effort(joints: tuple[str, ...], base: float) -> Callable:
        def change(e: float) -> None:
            for name in joints:
                joint = sim.joints[name]
                joint.coordinate(joint.coordinate_names[0]).apply_force(base + e)

        return change

    change = {"grip": effort(("left", "right"), 20.0), "lift": effort(("lift",), 35.0)}
    efforts = {"grip": [order.index("left"), order.index("right")], "lift": [order.index("lift")]}
    check(sim, change, lambda gradient: {name: gradient.efforts[:, of].sum() for name, of in efforts.items()})


@pytest.mark.device
@pytest.mark.parametrize("make, size", [(chain, 1e-5), (lambda device: gripper(device, 0.3), 1e-8)], ids=["chain", "gripper"])
def test_a_linearised_step_equals_differences(make, size):
    """A and B equal differences of a step from perturbed states, with springs, a drive, friction in hinges, and contact."""
    sim = make(NAME)
    sim.run(steps=WARM)
    arm, state = sim.reduced(), sim.host_state()
    A, B = arm.linearize()
    place, (joint, name) = 2, [(sim.model.joints[k].name, one) for k, one in zip(sim.reader.table.joint, sim.reader.names)][2]
    effort, nv = sim.control.efforts.constant[2], len(arm.v)
    for k in range(2 * nv + 1):
        ends = []
        for e in (size, -size):
            dx = e * np.eye(2 * nv + 1)[k]
            start = arm.mechanism.affine_state(arm.mechanism.moved(arm.q, dx[:nv]), arm.v + dx[nv : 2 * nv])
            sim.joints[joint].coordinate(name).apply_force(effort + 1e3 * dx[-1])
            sim.stepper.restore(State(*start, time=state.time, step=state.step, pairs=state.pairs, anchors=state.anchors))
            sim.step()
            ends.append(np.concatenate(arm.mechanism.state_of(sim.stepper.q, sim.stepper.qd, last=arm.q)))
        difference = (ends[0] - ends[1]) / (2.0 * size)
        exact, found = np.split(difference, [len(arm.q)]), A[:, k] if k < 2 * nv else 1e3 * B[:, place]
        assert found[nv:] == pytest.approx(exact[1], rel=1e-5, abs=1e-5), (k, "rates")
        if len(arm.q) == nv:
            assert found[:nv] == pytest.approx(exact[0], rel=1e-5, abs=1e-7), (k, "values")


def test_steps_without_derivatives_name_the_reason():
    scene = on_ground(restitution=0.8, body="floor", dt=DT)
    scene.add_body("ball", sphere={"radius": 0.1}, position=(0, 0, 0.101), velocity=(0, 0, -1))
    with pytest.raises(NotDifferentiable, match="impact"):
        abd.Tape(abd.Simulation(scene, device="numpy")).step()
    sim = chain("numpy")
    tape = abd.Tape(sim)
    with pytest.raises(ValueError, match="record a step"):
        tape.gradient()
    tape.step()
    for given in ({"q": np.zeros(12)}, {"coordinates": np.zeros(5)}):
        with pytest.raises(ValueError, match="shape"):
            tape.gradient(**given)
    with pytest.raises(TypeError, match=r"abd\.Simulation\(scene\)"):
        abd.Tape(abd.Scene())
    with pytest.raises(TypeError, match=r"\['pin 0.theta'\]"):
        sim.reduced().linearize("pin 0.theta")
    sim.step()
    with pytest.raises(NotDifferentiable, match="begin a new tape"):
        tape.step()


def test_gradients_of_joint_angles_equal_differences():
    """Of the angles after two of three steps, by an effort in the first step."""
    by = np.zeros((3, 4))
    by[1], by[2] = [1.0, -2.0, 0.5, 0.0], [0.3, 0.0, 0.0, 1.0]

    def angles(effort: float) -> tuple[abd.Tape, float]:
        sim = chain("numpy", integrator="bdf1", effort=0.0)
        tape, total = abd.Tape(sim), 0.0
        sim.joints["pin 1"].coordinate("theta").apply_force(effort, steps=1)
        for k in range(3):
            tape.step()
            total += by[k] @ sim.coordinates
        return tape, total

    found = angles(0.2)[0].gradient(coordinates=by).efforts[0, 1]
    assert found == pytest.approx((angles(0.3)[1] - angles(0.1)[1]) / 0.2, rel=1e-6)


def test_efforts_may_begin_at_zero():
    sim = chain("numpy", integrator="bdf1")
    tape = abd.Tape(sim)
    for k in range(3):
        sim.joints["pin 0"].coordinate("theta").apply_force(0.1 * k)
        tape.step()
    assert tape.gradient(q=np.ones((4, 12))).efforts[:, 0].all()


@pytest.mark.parametrize("change", ["reset", "velocities"])
@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf1"])
def test_gradients_after_a_restart_of_one_world(integrator, change):
    """They equal those after a restart of all worlds."""
    sim = abd.Simulation(chain("numpy", integrator=integrator).scene.replicate(2), device="numpy")
    by, found = np.zeros((2, 8, 12)), []
    by[:, :4] = np.random.default_rng(1).normal(size=(2, 4, 12))
    sim.run(steps=3)
    saved = sim.checkpoint()
    for worlds in ([0, 1], [0]):
        sim.restore(saved)
        if change == "reset":
            sim.worlds.reset(worlds)
        else:
            sim.set_velocities(np.where(np.isin(sim.model.bodies.world, worlds)[:, None], 0.9, 1.0) * saved["qd"])
        gradient = recorded(sim, 2).gradient(*by)
        found.append(np.stack([gradient.q, gradient.qd])[:, :4])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6, atol=1e-8)


def test_efforts_on_inactive_joints_have_no_effect():
    sim = chain("numpy", integrator="bdf1")
    sim.joints["pin 2"].active = False
    sim.bodies["bar 0"].enabled = False
    assert (recorded(sim, 1).gradient(qd=np.ones((4, 12))).efforts[0] != 0.0).tolist() == [False, False, False, True]


def test_gradients_by_friction_exclude_the_brake():
    """Friction and a brake act like friction of the same sum."""
    found = []
    for friction, drive in ((0.02, {"drive": {"mode": "brake", "effort": 0.05}}), (0.07, {})):
        scene = abd.Scene(solver={"dt": DT, "tolerance": 1e-11})
        scene.add_body("bar", box=(0.3, 0.05, 0.05), mass=1.0, position=(0.15, 0, 0), angular_velocity=(0, 0.4, 0))
        settings = {"theta": {"friction": friction, **drive}}
        scene.add_hinge("pin", "world", "bar", anchor=(0, 0, 0), axis=(0, 1, 0), coordinate=settings)
        tape = recorded(abd.Simulation(scene, device="numpy"), 1)
        found.append(tape.gradient(qd=np.ones((1, 12))).coordinates["friction"][0])
    assert found[0] == pytest.approx(found[1], rel=1e-6) and found[0] != 0.0
