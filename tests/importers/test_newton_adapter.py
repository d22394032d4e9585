"""`abd.newton.SolverABD` in the loops of Newton's users."""

import importlib
import sys

import numpy as np
import pytest
import warp as wp
from scipy.integrate import solve_ivp

import abd
import abd.newton
from abd.errors import SceneError
from abd.optional import MissingLibrary

newton = pytest.importorskip("newton", reason="needs newton: pip install 'abd-solver[newton]'")
for name in [name for name in sys.modules if name.startswith("newton.")]:  # compiles in a fifth of the time
    wp.set_module_options({"enable_backward": False, "optimization_level": 0}, sys.modules[name])

G = 9.81


def at(x=0.0, y=0.0, z=0.0, turn=None):
    return wp.transform((x, y, z), turn if turn is not None else wp.quat_identity())


def matter(mass=1.0, *moments):
    """Keys of a body with principal moments, 0.1 each by default."""
    return {"mass": mass, "inertia": wp.diag(wp.vec3(*(moments or (0.1, 0.1, 0.1))))}


def config(**keys):
    return newton.ModelBuilder.ShapeConfig(**keys)


def finished(builder, *joints):
    """The model of a builder, whose joints form one articulation."""
    if joints:
        builder.add_articulation(list(joints))
    builder.validate_inertia_detailed = True  # without a kernel that compiles for 6 s
    return builder.finalize(device="cpu")


def simulate(model, steps, dt=0.01, start=None, control=None, each=None, **options):
    """Newton's loop with `each` before every step; the solver and the last state."""
    solver, state, other = abd.newton.SolverABD(model, **options), model.state(), model.state()
    if start is not None:
        start(state)
    elif model.joint_count:
        newton.eval_fk(model, model.joint_q, model.joint_qd, state)
    for k in range(steps):
        state.clear_forces()
        if each is not None:
            each(k, state, solver)
        solver.step(state, other, control, None, dt)
        state, other = other, state
    return solver, state


def test_missing_newton_is_reported_with_its_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "newton", None)
    monkeypatch.delitem(sys.modules, "abd.newton.solver", raising=False)
    with pytest.raises(MissingLibrary, match=r"pip install 'abd-solver\[newton\]'"):
        importlib.import_module("abd.newton.solver")


def rotation(q) -> np.ndarray:
    return np.array(wp.quat_to_matrix(wp.quat(*map(float, q[3:])))).reshape(3, 3)


def test_a_free_body_falls_and_keeps_its_spin():
    builder = newton.ModelBuilder()
    body = builder.add_body(xform=at(0, 0, 5), com=(0.1, 0.0, 0.0), **matter(2.0, 0.1, 0.2, 0.25))
    motion = np.array([[1.0, 0.5, 0.0, 0.3, 5.0, 0.2]], dtype=np.float32)
    _, state = simulate(finished(builder), 50, start=lambda state: state.body_qd.assign(motion))
    q, qd = state.body_q.numpy()[body], state.body_qd.numpy()[body]
    R = rotation(q)
    np.testing.assert_allclose(q[:3] + R @ [0.1, 0, 0], [0.1 + 0.5, 0.25, 5 - 0.5 * G * 0.25], atol=2e-5)
    np.testing.assert_allclose(qd[:3], [1, 0.5, -G * 0.5], atol=2e-5)
    np.testing.assert_allclose(R @ np.diag([0.1, 0.2, 0.25]) @ R.T @ qd[3:], [0.03, 1.0, 0.05], atol=2e-4)


def cube_mesh(half):
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=np.float32) * half
    faces = [0, 1, 3, 0, 3, 2, 4, 6, 7, 4, 7, 5, 0, 4, 5, 0, 5, 1, 2, 3, 7, 2, 7, 6, 0, 2, 6, 0, 6, 4, 1, 5, 7, 1, 7, 3]
    return newton.Mesh(corners, np.array(faces, dtype=np.int32))


def test_every_shape_comes_to_rest_on_the_plane():
    lying = at(turn=wp.quat_from_axis_angle(wp.vec3(0, 1, 0), 0.5 * np.pi))
    shapes = {
        # name: height, keys
        "box": (0.1, {"hx": 0.2, "hy": 0.15, "hz": 0.1}),
        "sphere": (0.12, {"radius": 0.12}),
        "capsule": (0.1, {"xform": lying, "radius": 0.1, "half_height": 0.2}),
        "cylinder": (0.15, {"radius": 0.2, "half_height": 0.15}),
        "cone": (0.1, {"radius": 0.2, "half_height": 0.1}),
        "ellipsoid": (0.08, {"rx": 0.2, "ry": 0.2, "rz": 0.08}),
        "mesh": (0.1, {"mesh": cube_mesh(0.1)}),
        "convex_hull": (0.1, {"mesh": cube_mesh(0.1)}),
    }
    builder = newton.ModelBuilder()
    builder.default_shape_cfg.mu = 0.5
    builder.add_ground_plane()
    for k, (name, (height, keys)) in enumerate(shapes.items()):
        body = builder.add_body(xform=at(float(k), 0.0, height + 0.005), label=name)
        getattr(builder, f"add_shape_{name}")(body, **keys)
    solver, state = simulate(finished(builder), 60)
    assert isinstance(solver, newton.solvers.SolverBase) and solver.report.min_gap > 0.0 and solver.report.contacts > 10
    q, qd = state.body_q.numpy(), state.body_qd.numpy()
    for k, (name, (height, _)) in enumerate(shapes.items()):
        # bodies rest within the activation distance, 2 % of their smallest extent
        assert -1e-4 < q[k, 2] - height < 0.02 * 2.0 * min(height, 0.2), (name, q[k, 2])
        assert np.abs(qd[k, :3]).max() < 2e-2, name
    assert list(solver.simulation.model.bodies.names)[: len(shapes)] == list(shapes)


def test_a_height_field_carries_a_ball():
    builder = newton.ModelBuilder()
    data = np.full((5, 5), 0.25, dtype=np.float32)
    builder.add_shape_heightfield(heightfield=newton.Heightfield(data=data, nrow=5, ncol=5, hx=1.0, hy=1.0))
    ball = builder.add_body(xform=at(0.1, 0.05, 0.36))
    builder.add_shape_sphere(ball, radius=0.1)
    _, state = simulate(finished(builder), 30)
    assert 0.35 - 1e-4 < state.body_q.numpy()[ball, 2] < 0.355


@pytest.mark.parametrize("mu", [(0.5, 0.0), (0.0, 0.5)])
def test_largest_friction_of_the_shapes_of_a_body_acts(mu):
    builder = newton.ModelBuilder()
    builder.add_ground_plane(cfg=config(mu=0.5))
    body = builder.add_body(xform=at(z=0.1005))
    for one, z in zip(mu, (0.0, 0.3)):
        builder.add_shape_box(body, xform=at(z=z), hx=0.3, hy=0.3, hz=0.1, cfg=config(mu=one))
    solver, state = simulate(finished(builder), 20, start=lambda state: state.body_qd.assign([[2.0, 0, 0, 0, 0, 0]]))
    assert state.body_qd.numpy()[body, 0] == pytest.approx(2.0 - 0.5 * G * 0.2, abs=5e-3)
    assert any("different mu" in note for note in solver.notes)


@pytest.mark.parametrize(
    "motion, column, rate",
    [
        ((1.0, 0, 0, 0, 10.0, 0), 0, 0.005 * G / (1.4 * 0.1)),  # rolling: v' = c g / (R + 0.4 R)
        ((0, 0, 0, 0, 0, 10.0), 5, 0.005 * G / (0.4 * 0.1**2)),  # spinning: w' = c g / (0.4 R^2)
    ],
)
def test_rolling_and_spinning_resistance_slow_a_ball(motion, column, rate):
    builder = newton.ModelBuilder()
    builder.default_shape_cfg = config(mu_rolling=0.005, mu_torsional=0.005)
    builder.add_ground_plane()
    ball = builder.add_body(xform=at(z=0.102))
    builder.add_shape_sphere(ball, radius=0.1)
    _, state = simulate(finished(builder), 20, start=lambda state: state.body_qd.assign([motion]))
    assert state.body_qd.numpy()[ball, column] == pytest.approx(motion[column] - 0.2 * rate, rel=0.02)


def test_margins_are_distances_between_surfaces():
    builder = newton.ModelBuilder()
    builder.add_ground_plane(cfg=config(margin=0.02))
    shapes = {"box": {"hx": 0.1, "hy": 0.1, "hz": 0.1}, "sphere": {"radius": 0.1}, "mesh": {"mesh": cube_mesh(0.1)}}
    for k, (name, keys) in enumerate(shapes.items()):
        body = builder.add_body(xform=at(float(k), z=0.155))
        getattr(builder, f"add_shape_{name}")(body, cfg=config(margin=0.03), **keys)
    _, state = simulate(finished(builder), 30)
    np.testing.assert_allclose(state.body_q.numpy()[:, 2] - 0.15, 0.0025, atol=0.0025)


def pendulum(gravity=G, **joint):
    """A link on a hinge half a metre away, level at first."""
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, -gravity))
    link = builder.add_link(xform=at(0.5, 0, 0), **matter(1.5, 0.01, 0.02, 0.03))
    ends = {"parent_xform": at(), "child_xform": at(-0.5, 0, 0)}
    return finished(builder, builder.add_joint_revolute(-1, link, axis=(0, 1, 0), **ends, **joint))


INERTIA = 0.02 + 1.5 * 0.25
"""Of the pendulum about its hinge [kg m^2]."""


def test_pendulum_follows_its_equation():
    """Joint coordinates are written next to the poses."""
    _, state = simulate(pendulum(), 500, 1e-3)
    couple = 1.5 * G * 0.5 / INERTIA
    truth = solve_ivp(lambda t, y: [y[1], couple * np.cos(y[0])], (0, 0.5), [0, 0], rtol=1e-10, atol=1e-12)
    assert state.joint_q.numpy()[0] == pytest.approx(truth.y[0, -1], abs=1e-4)
    assert state.joint_qd.numpy()[0] == pytest.approx(truth.y[1, -1], abs=1e-3)


@pytest.mark.parametrize("upper", [0.4, 0.0])
def test_limits_are_never_exceeded(upper):
    seen = []
    model = pendulum(limit_lower=-0.2, limit_upper=upper)
    simulate(model, 60, each=lambda k, state, _: seen.append(float(state.joint_q.numpy()[0])))
    assert upper - 0.01 < max(seen) < upper + 1e-6


def test_a_range_without_stiffness_is_ignored_outside():
    model = pendulum(gravity=0.0, limit_lower=0.1, limit_upper=0.4, limit_ke=0.0)
    solver, state = simulate(model, 3)
    assert abs(state.joint_q.numpy()[0]) < 1e-6
    assert any("limit_ke" in note for note in solver.notes)


LIMITS = {"limit_lower": -0.5, "limit_upper": 6.0}


@pytest.mark.parametrize("kind, limits", [("hinge", {}), ("hinge", LIMITS), ("d6", LIMITS)])
def test_angles_keep_their_turns(kind, limits):
    """A drive turns a link from 4 rad to 4.5 rad, with a change of the time step."""
    builder, dof = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0)), newton.ModelBuilder.JointDofConfig
    link, drive = builder.add_link(**matter()), {"target_q": 4.5, "target_ke": 50.0, "target_kd": 10.0, **limits}
    if kind == "hinge":
        joint = builder.add_joint_revolute(-1, link, axis=(0, 1, 0), **drive)
    else:
        slide, turn = dof(axis=(1, 0, 0)), dof(axis=(0, 1, 0), **drive)
        joint = builder.add_joint_d6(-1, link, linear_axes=[slide], angular_axes=[turn])
    builder.joint_q[-1] = 4.0
    model = finished(builder, joint)
    solver, state, other, seen = abd.newton.SolverABD(model), model.state(), model.state(), []
    newton.eval_fk(model, model.joint_q, model.joint_qd, state)
    for k in range(200):
        solver.step(state, other, None, None, 0.01 if k < 20 else 0.02)
        state, other = other, state
        seen.append([*state.body_q.numpy()[link, 3:], state.joint_q.numpy()[-1]])
    seen = np.array(seen)
    assert seen[-1, 4] == pytest.approx(4.5, abs=2e-3)
    assert np.abs(np.diff(seen, axis=0)).max() < 0.1


def test_a_reset_sets_the_turns_of_an_angle():
    model = pendulum(gravity=0.0)

    def turn(k, state, _):
        if k == 3:
            state.joint_q.assign([10.0])
            newton.eval_fk(model, state.joint_q, state.joint_qd, state)

    _, state = simulate(model, 6, each=turn)
    assert state.joint_q.numpy()[0] == pytest.approx(10.0, abs=1e-4)


DRIVE = {"target_q": 1.0, "target_ke": 50.0, "target_kd": 10.0}


@pytest.mark.parametrize(
    "keys, angle, warns",
    [
        ({"stiffness": 20.0, "rest_q": 0.5, "damping": 3.0}, 0.5, False),
        (DRIVE, 1.0, False),
        ({**DRIVE, "velocity_limit": 0.1}, 1.0, True),
        ({**DRIVE, "effort_limit": 0.0}, 0.0, False),
    ],
)
def test_settings_of_axes_act(caplog, keys, angle, warns):
    _, state = simulate(pendulum(gravity=0.0, **keys), 200)
    assert state.joint_q.numpy()[0] == pytest.approx(angle, abs=5e-3)
    assert bool(caplog.records) == warns


def test_springs_of_balls_act():
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    body = builder.add_link(**matter())
    model = finished(builder, builder.add_joint_ball(-1, body, stiffness=5.0, damping=1.0))
    torque = np.array([[0, 0, 0, 1.0, 0, 0]], dtype=np.float32)
    _, state = simulate(model, 200, each=lambda k, state, _: state.body_f.assign(torque))
    assert rotation(state.body_q.numpy()[body])[2, 1] == pytest.approx(np.sin(0.2), abs=1e-3)


def test_drives_follow_their_control():
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    slide = builder.add_link(**matter(2.0))
    model = finished(builder, builder.add_joint_prismatic(-1, slide, axis=(1, 0, 0), target_ke=800.0, target_kd=80.0))
    control, places = model.control(), []

    def aim(k, state, _):
        control.joint_target_q.assign(np.array([0.25 if k < 100 else -0.1], dtype=np.float32))
        places.append(state.body_q.numpy()[slide, 0])

    simulate(model, 300, control=control, each=aim)
    assert [places[100], places[-1]] == pytest.approx([0.25, -0.1], abs=2e-3)


def test_ball_fixed_and_distance_joints_hold():
    builder = newton.ModelBuilder()
    a, b, c = (builder.add_link(xform=at(x, 0, 0), **matter(1.0, 0.01, 0.01, 0.01)) for x in (0.3, 0.6, 1.1))
    joints = [
        builder.add_joint_ball(-1, a, parent_xform=at(0, 0, 0), child_xform=at(-0.3, 0, 0)),
        builder.add_joint_fixed(a, b, parent_xform=at(0.15, 0, 0), child_xform=at(-0.15, 0, 0)),
        builder.add_joint_distance(b, c, parent_xform=at(), child_xform=at(), min_distance=0.5, max_distance=0.5),
    ]
    _, state = simulate(finished(builder, *joints), 40)
    q = state.body_q.numpy()
    assert q[a, 2] < -0.05, "it swings"
    np.testing.assert_allclose(q[a, :3] + rotation(q[a]) @ [-0.3, 0, 0], 0.0, atol=1e-5)
    np.testing.assert_allclose(q[b, :3], q[a, :3] + rotation(q[a]) @ [0.3, 0, 0], atol=1e-5)
    assert np.linalg.norm(q[c, :3] - q[b, :3]) == pytest.approx(0.5, abs=1e-5)


@pytest.mark.parametrize("slides, turn", [((0, 1), 2), ((0, 2), 1)])
def test_d6_joint_of_two_slides_and_a_turn(slides, turn):
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    axes = [newton.ModelBuilder.JointDofConfig(axis=axis) for axis in np.eye(3).tolist()]
    body = builder.add_link(**matter(2.0))
    joint = builder.add_joint_d6(-1, body, linear_axes=[axes[k] for k in slides], angular_axes=[axes[turn]])
    push = np.array([[1.0, 2.0, 5.0, 0.3, 0.3, 0.4]], dtype=np.float32)
    _, state = simulate(finished(builder, joint), 50, each=lambda k, state, _: state.body_f.assign(push))
    moved = 0.0625 * push[0, slides]
    np.testing.assert_allclose(state.body_q.numpy()[body, slides], moved, atol=2e-5)
    np.testing.assert_allclose(state.joint_q.numpy(), [*moved, 1.25 * push[0, 3 + turn]], atol=1e-4)


def test_efforts_act_about_turned_axes():
    """The first angle of a universal joint turns the axis of the second by 90 degrees."""
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    axes = [newton.ModelBuilder.JointDofConfig(axis=axis) for axis in np.eye(3).tolist()]
    joint = builder.add_joint_d6(-1, builder.add_link(**matter()), angular_axes=axes[:2])
    builder.joint_q[:] = [0.5 * np.pi, 0.0]
    model = finished(builder, joint)
    control = model.control()
    control.joint_f.assign(np.array([0.0, 0.2], dtype=np.float32))
    _, state = simulate(model, 20, control=control)
    np.testing.assert_allclose(state.joint_qd.numpy(), [0.0, 0.2 * 0.2 / 0.1], atol=1e-5)


def test_loads_jump_and_add_to_those_of_the_simulation():
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.add_body(**matter(), label="body")
    speeds = []

    def push(k, state, solver):
        state.body_f.assign([[float(k >= 3), 0, 0, 0, 0, 0]])
        speeds.append(state.body_qd.numpy()[0, :2].copy())
        if k == 6:
            solver.simulation.bodies["body"].apply_force((0, 2, 0), steps=1)

    simulate(finished(builder), 9, each=push)
    np.testing.assert_allclose(np.array(speeds)[:, 0], 0.01 * np.maximum(np.arange(9) - 3, 0), atol=1e-7)
    np.testing.assert_allclose(np.array(speeds)[5:, 1], [0, 0, 0.02, 0.02], atol=1e-7)


def test_values_set_by_the_user_are_used():
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    first, second = (builder.add_body(xform=at(float(k)), **matter()) for k in range(2))
    mover = builder.add_body(xform=at(0, 5, 0), is_kinematic=True, **matter())
    model = finished(builder)

    def touch(k, state, _):
        q, qd = state.body_q.numpy(), state.body_qd.numpy()
        if k == 5:
            q[first, :3], qd[second] = (0, 0, 7), (0, 2, 0, 0, 0, 1)
        q[mover, 0], qd[mover] = 0.1 * (k + 1), (10, 0, 0, 0, 0, 0)
        state.body_q.assign(q)
        state.body_qd.assign(qd)

    solver, state = simulate(model, 15, each=touch)
    q = state.body_q.numpy()
    np.testing.assert_allclose(q[first, :3], [0, 0, 7], atol=1e-6)
    np.testing.assert_allclose(q[second, :3], [1, 0.2, 0], atol=1e-5)
    assert q[mover, 0] == pytest.approx(1.5)
    np.testing.assert_array_equal(state.body_qd.numpy()[mover], [10, 0, 0, 0, 0, 0])
    body = solver.simulation.bodies[model.body_label[mover].replace("/", ".")]
    assert body.position[0] == pytest.approx(1.5, abs=1e-6)


def test_a_blocked_kinematic_body_is_reported_where_it_is():
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.add_shape_box(-1, xform=at(0.5), hx=0.1, hy=1.0, hz=1.0)
    for x, is_kinematic in ((0.18, False), (-0.03, True)):
        builder.add_shape_box(builder.add_body(xform=at(x), is_kinematic=is_kinematic), hx=0.1, hy=0.1, hz=0.1)

    def push(k, state, _):
        q = state.body_q.numpy()
        q[1, 0] = 0.02 * k - 0.03
        state.body_q.assign(q)

    _, state = simulate(finished(builder), 10, each=push, kinematic_block="lag")
    box, mover = state.body_q.numpy()[:, 0]
    assert 0.2 < box - mover < 0.21 and mover < 0.1


def test_worlds_share_the_ground_and_do_not_collide():
    one, builder = newton.ModelBuilder(), newton.ModelBuilder()
    one.add_shape_box(one.add_body(xform=at(0, 0, 0.105)), hx=0.1, hy=0.1, hz=0.1)
    builder.add_ground_plane()
    builder.replicate(one, 3)
    solver, state = simulate(finished(builder), 30)
    z = state.body_q.numpy()[:, 2]
    assert len(z) == 3 and np.ptp(z) < 1e-6 and (abs(z - 0.1) < 0.02 * 0.2).all()
    assert len(solver.simulation.model.bodies) == 6


def test_overlaps_are_refused_unless_filtered_or_allowed():
    builder = newton.ModelBuilder()
    bodies = [builder.add_body(xform=at(0.05 * k, 0, 1)) for k in range(2)]
    shapes = [builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1) for body in bodies]
    model = finished(builder)
    with pytest.raises(SceneError, match=r"overlap|intersect"):
        simulate(model, 1)
    solver, _ = simulate(model, 2, allow_overlaps=True)
    assert any("initial overlaps" in note for note in solver.notes)
    builder.add_shape_collision_filter_pair(*shapes)
    solver, _ = simulate(finished(builder), 2)
    assert solver.simulation.model.filtered.tolist() == [[0, 1]]


def test_groups_of_shapes_filter_contacts():
    """Positive groups collide with themselves and negative ones; negative groups collide with all others."""
    builder, groups = newton.ModelBuilder(), {"one": 1, "two": 2, "same": 2, "minus": -1, "other": -1}
    for k, (name, group) in enumerate(groups.items()):
        body = builder.add_body(xform=at(z=float(k)), label=name)
        builder.add_shape_sphere(body, radius=0.1, cfg=config(collision_group=group))
    solver, _ = simulate(finished(builder), 1)
    names = list(groups)
    filtered = {(names[i], names[j]) for i, j in solver.simulation.model.filtered.tolist()}
    assert filtered == {("one", "two"), ("one", "same"), ("minus", "other")}


def test_models_without_a_scene_are_refused():
    from abd.newton.model_values import ModelError

    soft, (one, worlds) = newton.ModelBuilder(), (newton.ModelBuilder() for _ in range(2))
    soft.add_particle((0, 0, 0), (0, 0, 0), 1.0)
    one.add_body(xform=at(1.0), **matter())
    worlds.add_shape_sphere(worlds.add_body(label="all"), radius=0.1)
    worlds.replicate(one, 2)
    for builder, words in ((soft, "1 particles"), (newton.ModelBuilder(), "no bodies"), (worlds, "'all'.*each world")):
        with pytest.raises(ModelError, match=words):
            simulate(finished(builder), 1)


def test_change_of_model_or_step_restarts_the_solver():
    builder = newton.ModelBuilder()
    body = builder.add_body(xform=at(0, 0, 5), **matter())
    model = finished(builder)
    solver, state, other = abd.newton.SolverABD(model), model.state(), model.state()
    for k in range(30):
        if k == 20:
            model.set_gravity((0.0, 0.0, 0.0))
            solver.notify_model_changed(newton.ModelFlags.MODEL_PROPERTIES)
        state.clear_forces()
        solver.step(state, other, None, None, 0.01 if k < 10 else 0.02)
        state, other = other, state
    assert state.body_qd.numpy()[body, 2] == pytest.approx(-G * 0.3, rel=1e-4)


def test_a_failed_restart_keeps_the_time_step():
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    for k in range(2):
        builder.add_shape_sphere(builder.add_body(xform=at(float(k))), radius=0.1)
    model = finished(builder)
    solver, state, other = abd.newton.SolverABD(model), model.state(), model.state()
    state.body_qd.assign([[0, 1, 0, 0, 0, 0]] * 2)
    solver.step(state, other, None, None, 0.01)
    overlapping = model.state()
    overlapping.body_q.assign(np.tile(other.body_q.numpy()[0], (2, 1)))
    with pytest.raises(SceneError):
        solver.step(overlapping, model.state(), None, None, 0.02)
    solver.step(other, state, None, None, 0.02)
    assert state.body_q.numpy()[0, 1] == pytest.approx(0.03, abs=1e-6)
