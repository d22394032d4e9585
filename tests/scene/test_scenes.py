"""Every shipped scene runs, is certified, and produces the number of scenes/README.md."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
import trimesh
from scipy.integrate import solve_ivp
from scipy.special import ellipk
from tool import load_tool

import abd
from abd.api.simulation import Simulation
from abd.certificate.certificate import certify
from abd.contact.pair_law import PairLaw, PairParameters
from abd.io.run import Status, run
from abd.io.trajectory import Trajectory
from abd.scene.compile.compile import compile_scene
from abd.scene.importers.formats import scenes_directory

G = 9.81
STEPS = {
    "box_stack": 60, "card_house": 120, "chain": 120, "chain_net": 12, "double_pendulum": 500, "dzhanibekov": 800,
    "falling_box": 60, "four_bar": 400, "gear_train": 100, "gears": 150, "incline": 100, "masonry_arch": 120,
    "peg": 220, "pendulum": 400, "ragdoll": 60, "ramp_frictions": 100, "robot_arm": 260, "rope_bridge": 60,
    "slider_crank": 150, "wrecking_ball": 3,
}  # fmt: skip
"""Steps that the tests run of each scene; enough for its number."""


@dataclass
class Played:
    """A run: poses X and rates V (T, n, 4, 4) of the mesh frames by body name, time (T,) [s], and its trajectory."""

    trajectory: Trajectory
    status: Status

    def __post_init__(self):
        self.time = self.trajectory.time
        poses, rates = self.series("/bodies/transform"), self.series("/bodies/velocity")
        self.X = {name: poses[:, k] for k, name in enumerate(self.trajectory.names)}
        self.V = {name: rates[:, k] for k, name in enumerate(self.trajectory.names)}
        self.d_hat = self.trajectory.solver_settings["d_hat"]

    def series(self, name: str) -> np.ndarray:
        return self.trajectory.series(name)

    def mesh(self, name: str):
        return self.trajectory.meshes[self.trajectory.mesh[self.trajectory.names.index(name)]]

    def point(self, name: str, point: tuple[float, float, float]) -> np.ndarray:
        """(T, 3) world path of a point of a body's mesh frame."""
        return self.X[name][:, :3, :3] @ np.array(point) + self.X[name][:, :3, 3]

    def barrier_force(self, scene: str, gap: float) -> float:
        """Force [N] of a contact at a distance [m]: ``-kappa db/dd``, b = -(x - D)^2 ln(x/D) + (D - x)^3/(20 x), x = d^2, D the
        activation squared."""
        law, pair = PairLaw(abd.load(scene).compile()), (np.array([0]), np.array([1]))
        saved = self.trajectory.checkpoint()["simulation"]["tables"]["pairs"]
        law.own = PairParameters(saved["key"], saved["activation"])
        a = law.activation(*pair)
        D, square = float(a[0]) ** 2, gap * gap
        y = square - D
        slope = -2.0 * y * np.log(square / D) - y**2 / square + 0.05 * (y**3 / square**2 - 3.0 * y**2 / square)
        return -law.stiffness(*pair, a, np.zeros(1))[0] * slope * 2.0 * gap


@pytest.fixture(scope="module")
def played(tmp_path_factory, device):
    """Plays a scene once: played(name)."""
    runs: dict[str, Played] = {}

    def play(name: str) -> Played:
        if name not in runs:
            scene = abd.load(scenes_directory() / f"{name}.toml")
            folder = tmp_path_factory.mktemp("runs") / name
            outcome = run(scene, compile_scene(scene.spec), folder, device=device, steps=STEPS[name], simulate=Simulation)
            runs[name] = Played(Trajectory(folder), outcome.status)
        return runs[name]

    yield play
    for one in runs.values():
        one.trajectory.close()


def crossings(time: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Times at which values change sign, by linear interpolation."""
    k = np.flatnonzero(np.sign(values[1:]) != np.sign(values[:-1]))
    return time[k] + values[k] / (values[k] - values[k + 1]) * (time[k + 1] - time[k])


def linking_number(first: np.ndarray, second: np.ndarray) -> float:
    """Gauss linking number of two closed polygons (k, 3), (m, 3), segment by segment (Klenin and Langowski 2000)."""
    a, b = first[:, None], np.roll(first, -1, axis=0)[:, None]
    c, d = second[None], np.roll(second, -1, axis=0)[None]
    faces = [np.cross(c - a, d - a), np.cross(d - a, d - b), np.cross(d - b, c - b), np.cross(c - b, c - a)]
    faces = [n / np.linalg.norm(n, axis=2, keepdims=True) for n in faces]
    angle = sum(np.arcsin(np.clip(np.sum(n * m, axis=2), -1.0, 1.0)) for n, m in zip(faces, [*faces[1:], faces[0]]))
    return float(np.sum(angle * np.sign(np.sum(np.cross(d - c, b - a) * (a - c), axis=2))) / (4.0 * np.pi))


def center_line(run: Played, name: str) -> np.ndarray:
    """(k, 3) centre line of a six-sided ring or link in the last frame."""
    vertices = run.mesh(name).vertices.reshape(-1, 6, 3).mean(axis=1)
    return vertices @ run.X[name][-1, :3, :3].T + run.X[name][-1, :3, 3]


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name == "chain_net" else name for name in STEPS])
def test_runs_and_is_certified(name, played):
    """The certificate of the swept paths of a ball among rings takes minutes."""
    run = played(name)
    assert run.status is Status.DONE
    assert run.series("/solver/converged").all()
    certificate = certify(run.trajectory.path, every=max(1, STEPS[name] // 15))
    assert certificate.ok, str(certificate)


def test_meshes_equal_the_output_of_their_script():
    script = load_tool("make/make_meshes")
    folder = scenes_directory() / "meshes"
    assert {path.stem for path in folder.glob("*.obj")} == set(script.MESHES)
    assert sum(path.stat().st_size for path in folder.iterdir()) < 1_000_000
    for name, make in script.MESHES.items():
        vertices, triangles = make()
        stored = trimesh.load(folder / f"{name}.obj", process=False)
        np.testing.assert_allclose(stored.vertices, vertices, atol=1e-6)
        np.testing.assert_array_equal(stored.faces, triangles)
        if name != "card":
            assert stored.is_watertight and stored.volume > 0.0, name


def test_falling_box_follows_the_integrator_and_contact_carries_its_weight(played):
    run = played("falling_box")
    step = np.arange(31)
    np.testing.assert_allclose(run.X["box"][:31, 2, 3], 0.6 - G * 1e-4 * step**2 / 2, atol=1e-13)
    gap = run.X["box"][-1, 2, 3] - 0.1
    assert 4.0 * run.barrier_force("falling_box", gap) == pytest.approx(8.0 * G, rel=2e-2)


def test_box_stack_stands_and_the_ground_carries_all_of_it(played):
    run = played("box_stack")
    centers = np.array([run.X[f"box_0_0_{k}"][-1, :3, 3] for k in range(10)])
    gaps = np.diff(np.concatenate([[-0.05], centers[:, 2]])) - 0.1
    assert (gaps > 0.0).all() and (gaps < run.d_hat).all()
    assert (np.diff(gaps[1:]) > 0.0).all(), "the lower, the tighter"
    assert np.abs(centers[:, :2]).max() < 1e-9
    assert 4.0 * run.barrier_force("box_stack", gaps[0]) == pytest.approx(10.0 * G, rel=5e-3)


SLOPES = {
    # scene: angle [degrees], first step and duration [s] of sliding, friction of sliding boxes by name, sticking boxes
    "incline": (20.0, 20, 0.8, {"slides": 0.35397}, ["sticks"]),
    "ramp_frictions": (25.0, 30, 0.7, {f"box_{k:02d}": 0.01 * k for k in (0, 10, 20, 30, 40, 45)}, ["box_50", "box_60"]),
}


@pytest.mark.parametrize("scene", SLOPES)
def test_boxes_on_a_slope_slide_with_their_friction_or_stick(scene, played):
    degrees, first, duration, slides, sticks = SLOPES[scene]
    run, sin, cos = played(scene), np.sin(np.radians(degrees)), np.cos(np.radians(degrees))
    speed = {name: run.V[name][:, :3, 3] @ [cos, 0.0, -sin] for name in (*slides, *sticks)}
    for name, mu in slides.items():
        assert (speed[name][-1] - speed[name][first]) / duration == pytest.approx(G * (sin - mu * cos), rel=0.01), name
    assert max(abs(speed[name][-1]) for name in sticks) < 1e-9, "held by springs"


def test_pendulum_has_the_period_of_the_elliptic_integral(played):
    run = played("pendulum")
    position = run.X["bar"][:, :3, 3]
    passages = crossings(run.time, np.arctan2(position[:, 0], -position[:, 2]))
    inertia = 1.0 / 3.0 + 0.1**2 / 12.0
    expected = 4.0 * np.sqrt(inertia / (0.5 * G)) * ellipk(np.sin(np.radians(30.0)) ** 2)
    assert 2.0 * np.diff(passages)[0] == pytest.approx(expected, rel=1e-4)


def test_double_pendulum_follows_its_differential_equation(played):
    run = played("double_pendulum")
    length, inertia = 0.5, (0.5**2 + 0.05**2) / 12.0

    def motion(_, y):
        """Angles of both bars below the horizontal, and their rates; masses cancel."""
        a, b, wa, wb = y
        coupling = 0.5 * length**2
        M = [[inertia + 1.25 * length**2, coupling * np.cos(a - b)], [coupling * np.cos(a - b), inertia + length**2 / 4]]
        load = [
            -coupling * np.sin(a - b) * wb**2 + 1.5 * G * length * np.cos(a),
            coupling * np.sin(a - b) * wa**2 + 0.5 * G * length * np.cos(b),
        ]
        return [wa, wb, *np.linalg.solve(M, load)]

    a, b = solve_ivp(motion, (0.0, 1.0), [0.0] * 4, t_eval=run.time.clip(max=1.0), rtol=1e-11, atol=1e-11).y[:2]
    tip = length * np.stack([np.cos(a) + np.cos(b), 0.0 * a, -np.sin(a) - np.sin(b)], axis=1)
    distance = np.linalg.norm(run.point("lower", (0.25, 0.0, 0.0)) - tip, axis=1)
    assert distance.max() < 4e-4


def test_four_bar_turns_its_rocker_by_the_closed_form(played):
    run = played("four_bar")
    crank, rocker = run.point("crank", (0.15, 0.0, 0.0)), run.point("rocker", (0.3, 0.0, 0.0))
    assert np.ptp(np.unwrap(np.arctan2(crank[:, 1], crank[:, 0]))) > 2.0 * np.pi, "the crank goes round"
    # The rocker's tip is 0.8 m from the crank's and 0.6 m from its own pivot.
    pivot = np.array([0.7, 0.0])
    line = pivot - crank[:, :2]
    distance = np.linalg.norm(line, axis=1, keepdims=True)
    along = (0.8**2 - 0.6**2 + distance**2) / (2.0 * distance)
    unit = line / distance
    tip = crank[:, :2] + along * unit + np.sqrt(0.8**2 - along**2) * np.stack([-unit[:, 1], unit[:, 0]], axis=1)
    angles = [np.arctan2(p[:, 1], p[:, 0] - pivot[0]) for p in (tip, rocker)]
    assert np.abs(angles[1] - angles[0]).max() < 5e-5
    assert run.series("/solver/max_joint_residual").max() < 2e-5


def test_t_handle_turns_over_by_eulers_equations(played):
    run = played("dzhanibekov")
    shape = trimesh.load(scenes_directory() / "meshes" / "t_handle.obj", process=False)
    inertia = np.diag(shape.moment_inertia)
    turn, rate = run.X["handle"][:, :3, :3], run.V["handle"][:, :3, :3]
    W = np.linalg.inv(turn) @ rate
    about_stem = 0.5 * (W[:, 0, 2] - W[:, 2, 0])
    euler = solve_ivp(lambda _, w: np.cross(inertia * w, w) / inertia, (0.0, 2.1), [0.1, 10.0, 0.0], t_eval=run.time, rtol=1e-10)
    assert crossings(run.time, about_stem)[0] == pytest.approx(crossings(run.time, euler.y[1])[0], rel=1e-5)
    momentum = run.series("/momentum/angular")
    assert np.linalg.norm(momentum - momentum[0], axis=1).max() < 1e-11 * np.linalg.norm(momentum[0])


def test_chain_stays_linked_and_hangs_by_its_links(played):
    run = played("chain")
    names = sorted(run.trajectory.names, key=lambda name: -run.X[name][-1, 2, 3])
    lines = [center_line(run, name) for name in names]
    for upper, lower in pairwise(lines):
        assert abs(linking_number(upper, lower)) == pytest.approx(1.0, abs=1e-6)
    assert linking_number(lines[0], lines[2]) == pytest.approx(0.0, abs=1e-6)
    pitch = load_tool("make/make_meshes").LINK_PITCH
    gaps = pitch - -np.diff([run.X[name][-1, 2, 3] for name in names])
    assert (gaps > 0.0).all() and (gaps < run.d_hat).all()


def test_chain_net_keeps_its_links(played):
    run = played("chain_net")
    lying = [name for name in run.trajectory.names if name.startswith(("corner", "along", "inner"))]
    standing = [name for name in run.trajectory.names if name.startswith("tie")]
    assert (len(lying), len(standing)) == (64, 112)
    near = 0.2
    lines = {name: center_line(run, name) for name in lying + standing}
    middles = {name: line.mean(axis=0) for name, line in lines.items()}
    articulations = [
        sum(
            abs(round(linking_number(lines[tie], lines[other])))
            for other in lying
            if np.linalg.norm(middles[tie] - middles[other]) < near
        )
        for tie in standing
    ]
    assert articulations == [2] * 112


def test_gears_turn_two_to_three_and_press_along_the_line_of_action(played):
    run = played("gears")
    angles = [np.unwrap(np.arctan2(X[:, 1, 0], X[:, 0, 0])) for X in (run.X["driver"], run.X["driven"])]
    steady = slice(60, None)
    error = angles[1] + 2.0 / 3.0 * angles[0]
    assert np.ptp(error[steady]) < 1e-3
    assert np.ptp(angles[0][steady]) > 1.5
    force = np.linalg.norm(run.series("/joints/shaft/wrench")[steady, :2], axis=1)
    base_radius = 0.15 * np.cos(np.radians(20.0))
    assert force.mean() == pytest.approx(20.0 / base_radius, rel=0.03)


def test_peg_is_lifted_and_ends_in_the_hole(played):
    run = played("peg")
    peg = run.point("peg", (0.0, 0.0, 0.0))
    lifted = np.abs(run.time - 1.05) < 0.05
    np.testing.assert_allclose(peg[lifted, 2] - peg[20, 2], 0.05, atol=1e-4)
    assert np.hypot(peg[-1, 0] - 0.04, peg[-1, 1]) < 1e-4, "within the clearance"
    assert 0.04 < peg[-1, 2] < 0.0402, "on the ground"
    assert run.X["left_finger"][-1, 0, 3] < peg[-1, 0] - 0.015, "released"


def test_masonry_arch_stands(played):
    run = played("masonry_arch")
    stones = [name for name in run.trajectory.names if name.startswith("stone")]
    assert len(stones) == 25
    moved = [run.point(name, run.mesh(name).vertices.mean(axis=0)) for name in stones]
    assert max(np.linalg.norm(path[-1] - path[0]) for path in moved) < 4.5e-3
    assert max(np.linalg.norm(path[-1] - path[-21]) for path in moved) < 0.2e-3, "in the last 0.2 s"


def test_house_of_cards_stands(played):
    run = played("card_house")
    cards = [name for name in run.trajectory.names if name != "table"]
    assert max(np.linalg.norm(run.X[name][-1, :3, 3] - run.X[name][0, :3, 3]) for name in cards) < 1e-3


def test_ragdoll_stays_connected(played):
    run = played("ragdoll")
    mass = sum(m for m, kind in zip(run.trajectory.mass, run.trajectory.kind) if kind == "dynamic")
    flight = slice(0, np.flatnonzero(run.series("/solver/contacts") > 0)[0])
    assert len(run.time[flight]) > 10
    momentum = run.series("/momentum/linear")[flight]
    fallen = momentum[0] - mass * np.outer(run.time[flight], [0.0, 0.0, G])
    np.testing.assert_allclose(momentum, fallen, atol=1e-9 * mass)
    assert run.series("/solver/max_joint_residual").max() < 1e-8


def test_pistons_of_the_slider_crank_follow_the_closed_form(played):
    run = played("slider_crank")
    for k in range(3):
        pin, piston = run.point(f"pin_{k}", (0.0, 0.0, 0.0)), run.point(f"piston_{k}", (0.0, 0.0, 0.0))
        angle = np.unwrap(np.arctan2(pin[:, 0], pin[:, 2]))
        height = 0.07 * np.cos(angle) + np.sqrt(0.24**2 - (0.07 * np.sin(angle)) ** 2)
        assert np.abs(piston - np.stack([0.0 * height, 0.2 * k + 0.0 * height, height], axis=1)).max() < 5e-7
        assert angle[-1] - angle[0] > 1.5 * np.pi
    assert (angle[-1] - angle[-2]) / 0.005 == pytest.approx(4.0 * np.pi, rel=1e-4), "the drive's speed"


def test_gear_train_accelerates_with_its_motor(played):
    run = played("gear_train")
    ratio, radius, effort, armature, friction = 4.0 / 9.0, 0.06, 25.0, 0.05, 1.0
    masses = dict(zip(run.trajectory.names, run.trajectory.mass))

    def inertia(name: str) -> float:
        """About the body's own z [kg m^2]."""
        mesh = trimesh.Trimesh(run.mesh(name).vertices, run.mesh(name).triangles, process=False)
        mesh.density = 7800.0
        return mesh.moment_inertia[2, 2]

    assert inertia("drum") == pytest.approx(0.5 * masses["drum"] * radius**2, rel=0.02)
    load = masses["rack"] * G * radius * ratio
    resistance = friction * (1.0 + 2.0 / 3.0 + ratio)
    turning = inertia("wheel_1") + armature + masses["rack"] * (radius * ratio) ** 2
    turning += 4.0 / 9.0 * sum(map(inertia, ("wheel_2", "shaft", "wheel_3")))
    turning += ratio**2 * (inertia("wheel_4") + inertia("drum"))
    motor, rack = run.series("/joints/motor/coordinates")[:, 0], run.series("/joints/guide/coordinates")[:, 0]
    # Coordinates are those of the nearest rigid bodies: the strain of the wheels, some 1e-6, stays in.
    np.testing.assert_allclose(rack, radius * ratio * motor, atol=3e-7)
    speed = np.diff(motor) / 0.005
    early = slice(5, 25)
    assert np.polyfit(run.time[1:][early], speed[early], 1)[0] == pytest.approx((effort - load - resistance) / turning, rel=1e-6)
    assert speed[-1] == pytest.approx(6.0, rel=1e-3)
    lift = run.series("/joints/guide/wrench")[-1, 2]
    assert lift == pytest.approx(masses["rack"] * G, rel=1e-3)
    assert run.series("/solver/contacts").max() == 0, "teeth never touch"


def test_robot_arm_sags_by_its_weight_over_its_gains_and_clears_the_table(played):
    run = played("robot_arm")
    masses = dict(zip(run.trajectory.names, run.trajectory.mass))
    moving = ("upper_arm", "elbow_block", "forearm", "wrist", "tool")
    at_rest = 39
    for axis, gain, friction, x, count in (
        ("axis_2", 30000, 2, 0.0, 5),
        ("axis_3", 20000, 1, 0.0, 4),
        ("axis_5", 3000, 0.5, 0.435, 2),
    ):
        weight = sum(masses[name] * G * (run.X[name][at_rest, 0, 3] - x) for name in moving[-count:])
        sag = run.series(f"/joints/{axis}/coordinates")[at_rest, 0]
        assert abs(gain * sag - weight) < friction + 0.05, axis
    for k in range(3):
        assert run.X[f"box_{k}"][-1, 1, 3] > 0.25, "the arm has swept it along"


def test_ropes_of_the_bridge_never_stretch_and_its_forces_balance(played):
    run = played("rope_bridge")
    taut = 0
    for k in range(8):
        for y in (-0.45, 0.45):
            gap = run.point(f"plank_{k + 1}", (-0.125, y, 0.0)) - run.point(f"plank_{k}", (0.125, y, 0.0))
            length = np.linalg.norm(gap, axis=1)
            assert length.max() < 0.06 + 1e-8
            taut += length.max() > 0.06 - 1e-8
    assert taut == 16
    # Until the ball arrives, bushings, springs and weight are all that acts on the planks from outside.
    planks = [f"plank_{k}" for k in range(9)]
    masses = dict(zip(run.trajectory.names, run.trajectory.mass))
    momentum = sum(masses[name] * run.V[name][:, :3, 3] for name in planks)
    force = sum(
        run.series(f"/joints/{name}/wrench")[:, :3]
        for name in ("bushing_west", "bushing_east", "guy_south", "guy_north")
    )
    weight = sum(masses[name] for name in planks) * np.array([0.0, 0.0, -G])
    # Their springs act with the mean of both ends of a step, their dampers, which set in during the first one, and everything
    # where a rope is taut, with the end.
    found, both = np.diff(momentum, axis=0)[1:6] / 0.01, 0.5 * (force[1:6] + force[2:7])
    off = np.minimum(np.abs(found - (force + weight)[2:7]).max(axis=1), np.abs(found - (both + weight)).max(axis=1))
    assert off.max() <= 1e-3 * 530.0


def test_wrecking_ball_has_574_bodies_and_a_chain_of_twelve(played):
    run = played("wrecking_ball")
    names = run.trajectory.names
    assert len(names) == 574
    links = sorted((n for n in names if n == "hook" or n.startswith(("odd", "even"))), key=lambda n: -run.X[n][0, 0, 3])
    assert len(links) == 12
    lines = [center_line(run, name) for name in links]
    for one, other in pairwise(lines):
        assert abs(linking_number(one, other)) == pytest.approx(1.0, abs=1e-6)
