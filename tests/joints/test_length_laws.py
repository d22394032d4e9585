"""Forces by length, gap, speed or coordinate, compared with closed forms and built-in springs and dampers; moving offsets."""

import numpy as np
import pytest
from checkpoints import assert_goes_on
from on_device import DEVICE, NAME

import abd
from abd.errors import DeviceError, SceneError
from abd.joints.measures.slopes import differences
from abd.joints.rows.measured_rows import integral
from abd.scene.schema.formula import NamedFormula

pytestmark = pytest.mark.device

on_host = pytest.mark.skipif(DEVICE.wide, reason="users' functions are Python, which runs on the processor")
ENDS = {"parent_anchor": (0, 0, 0), "child_anchor": (0, 0, 0)}


def pulled(law: dict, dt: float = 0.01, speed: float = 0.0, **solver) -> abd.Scene:
    """A body of 2 kg, a metre from the origin, which it is tied to, and leaves at a speed."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": dt, "tolerance": 1e-8, **solver})
    scene.add_body("a", box=(0.1, 0.1, 0.1), mass=2.0, position=(1.0, 0, 0), velocity=(speed, 0, 0))
    scene.add_spring("tie", abd.WORLD, "a", **law, **ENDS)
    return scene


def place(scene: abd.Scene, steps: int, device: str = NAME) -> tuple[float, float, float]:
    """Place, speed and force after some steps."""
    sim = abd.run(scene, steps=steps, device=device)
    body = sim.bodies["a"]
    return body.position[0], body.linear_velocity[0], sim.joints["tie"].wrench()[0][0]


@on_host
def test_inverse_square_attraction_follows_kepler():
    """The speed follows v^2 / 2 = (c / m) (1 / r - 1)."""
    x, v, force = place(pulled({"force_formula": "-3 / length**2"}, dt=0.005, spectral_radius=1.0), 130)
    assert x < 0.65 and v == pytest.approx(-np.sqrt(3.0 * (1.0 / x - 1.0)), rel=2e-3)
    assert force == pytest.approx(-3.0 / x**2, rel=1e-6)


@on_host
@pytest.mark.parametrize(("stiffness", "device"), [(200.0, NAME), (1e6, NAME), (1e6, "numpy")])
def test_a_linear_law_is_the_spring_of_the_same_stiffness(device, stiffness):
    common = {"rest_length": 0.9, "damping": 3.0}
    laws = {"stiffness": stiffness}, {"force_formula": f"-{stiffness} * gap"}
    one, other = (place(pulled(law | common, integrator="bdf1"), 8, device) for law in laws)
    assert other[:2] == pytest.approx(one[:2], abs=2e-8) and other[2] == pytest.approx(one[2], abs=4e-8 * stiffness + 1e-5)


@on_host
def test_a_function_that_only_pulls_carries_where_it_is_taut():
    """A slack cubic rope has no force; it carries m g where a gap^3 = m g."""
    abd.coupling_function("cubic rope", lambda at: -5e4 * max(0.0, at[1]) ** 3)
    scene = abd.Scene(solver={"dt": 0.01, "tolerance": 1e-9, "integrator": "bdf1"})
    scene.add_body("a", box=(0.1, 0.1, 0.1), mass=2.0, position=(0, 0, -1), rotary_damping=10.0, linear_damping=50.0)
    scene.add_spring("tie", abd.WORLD, "a", force_function="cubic rope", rest_length=1.1, **ENDS)
    sim = abd.Simulation(scene, device=NAME)
    sim.step()
    assert not sim.joints["tie"].wrench()[0].any()
    sim.run(steps=150)
    assert -sim.bodies["a"].position[2] - 1.1 == pytest.approx((2.0 * 9.81 / 5e4) ** (1.0 / 3.0), rel=1e-4)
    assert sim.joints["tie"].wrench()[0][2] == pytest.approx(2.0 * 9.81, rel=1e-4)
    with pytest.raises(SceneError, match="units of a function are unknown"):
        scene.scaled(2.0)


@on_host
def test_a_law_is_kept_by_files_and_scales(tmp_path):
    """A scene of ten times the size falls ten times as far in the same time."""
    scene = pulled({"force_formula": "-3 / length**2 - gap", "rest_length": 0.2})
    scene.save(tmp_path / "tie.toml")
    assert place(abd.load(tmp_path / "tie.toml"), 20) == place(scene, 20)
    large = scene.scaled(10.0)
    assert np.array(place(large, 20)) == pytest.approx(10.0 * np.array(place(scene, 20)), rel=1e-6)


@on_host
@pytest.mark.parametrize(
    ("damping", "integrator", "device"),
    [
        (30.0, "generalized_alpha", "numpy"), (30.0, "generalized_alpha", NAME), (1e6, "bdf1", NAME),
        (1e6, "generalized_alpha", NAME),
    ],
)  # fmt: skip
def test_a_law_linear_in_the_speed_is_the_damper_of_the_same_constant(device, integrator, damping):
    abd.coupling_function("dashpot", lambda at: -damping * at[3])
    laws = {"stiffness": 0.0, "damping": damping}, {"force_formula": f"-{damping} * speed"}, {"force_function": "dashpot"}
    known, *given = (place(pulled(law, speed=2.0, integrator=integrator), 6, device) for law in laws)
    for one in given:
        assert one[:2] == pytest.approx(known[:2], abs=1e-8) and one[2] == pytest.approx(known[2], abs=1e-8 * damping)


@on_host
def test_quadratic_damping_follows_its_closed_form():
    """The motion is v = v0 / (1 + c v0 t / m), x = 1 + m / c ln(1 + c v0 t / m), and the work is the energy loss."""
    scene = pulled({"force_formula": "-5 * speed * abs(speed)"}, speed=2.0, spectral_radius=1.0)
    sim = abd.Simulation(scene, device=NAME)
    reports = [sim.step() for _ in range(50)]
    v, x = 2.0 / (1.0 + 5.0 * 2.0 * 0.5 / 2.0), 1.0 + 2.0 / 5.0 * np.log(1.0 + 5.0 * 2.0 * 0.5 / 2.0)
    assert sim.bodies["a"].linear_velocity[0] == pytest.approx(v, rel=1.5e-3)
    assert sim.bodies["a"].position[0] == pytest.approx(x, rel=1e-3)
    force, back = (sim.joints["tie"].wrench(on=end)[0] for end in ("child", "parent"))
    assert force == pytest.approx([-5.0 * v**2, 0, 0], rel=3e-3, abs=1e-9) and back == pytest.approx(-force, abs=1e-12)
    assert max(report.newton_iterations for report in reports) <= 3
    assert reports[-1].energy["external_work"] == pytest.approx(v**2 - 2.0**2, rel=4e-2)


@on_host
@pytest.mark.parametrize("law", [lambda v: np.clip(1000.0 * v, -10.0, 10.0), lambda v: 10.0 * np.tanh(v / 0.01)])
def test_a_blow_off_damper_has_corners_or_saturates(law):
    """It takes few iterations per step; the body stops where m v^2 / 2 = F s, less m v dt / 2 of implicit Euler."""
    abd.coupling_function("blow-off", lambda at: -float(law(at[3])))
    sim = abd.Simulation(pulled({"force_function": "blow-off"}, speed=2.0, integrator="bdf1"), device=NAME)
    counts = [sim.step().newton_iterations for _ in range(60)]
    assert sim.bodies["a"].position[0] == pytest.approx(1.4 - 0.01, abs=1e-3) and max(counts) <= 10
    assert abs(sim.bodies["a"].linear_velocity[0]) < 1e-4


@on_host
def test_coordinate_law_depends_on_the_rate():
    """A formula brakes a slider and a hinge like built-in damping, also from a file and at ten times the size."""
    kinds = ("slider", "z", 5.0, {"velocity": (2.0, 0, 0)}), ("hinge", "theta", 0.05, {"angular_velocity": (2.0, 0, 0)})
    for kind, name, damping, velocity in kinds:
        ends = []
        for own in ({"damping": damping}, {"force_formula": f"-{damping} * rate"}):
            scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01, "tolerance": 1e-9})
            scene.add_body("a", box=(0.2, 0.2, 0.2), mass=1.0, **velocity)
            scene.add_joint(kind, "j", abd.WORLD, "a", anchor=(0, 0, 0), axis=(1, 0, 0), coordinate={name: own})
            for one in (scene, scene.scaled(10.0)):
                sim = abd.run(one, steps=10, device=NAME)
                ends.append(sim.joints["j"].rates[0])
        assert ends[2:] == pytest.approx(ends[:2], rel=1e-6) and 0.1 < abs(ends[0]) < 1.99


@on_host
def test_dashpot_resumes_from_a_checkpoint_bitwise():
    law = {"force_formula": "-20 * gap - 4 * speed**3 + 3 * sin(9 * t)", "rest_length": 0.8}
    one, other = (abd.Simulation(pulled(law, speed=2.0), device=NAME) for _ in range(2))
    one.run(steps=5)
    assert_goes_on(one, other, 7)


def test_host_functions_are_refused_on_cuda():
    with pytest.raises(DeviceError, match=r"force_formula, force_function\) do not run on .*; use --device cpu or numpy"):
        abd.Simulation(pulled({"force_formula": "-gap"}), device="emulated")


FORMULAS = (
    "-3 / length**2 - gap", "-400 * max(0, gap) - 3 * speed * abs(speed)", "sin(gap) * exp(-t) + cos(speed) * sqrt(length)",
    "2**gap + gap**speed", "log(length) * smoothstep(0, 1, gap)", "-tan(gap) + min(length, speed)", "step(gap) * length",
)  # fmt: skip


@pytest.mark.parametrize("corner", [0.01, 0.4, 0.99])
def test_the_work_of_a_force_with_a_corner_is_accurate(corner):
    assert integral(lambda s: max(0.0, s - corner), 0.0, 1.0) == pytest.approx(0.5 * (1.0 - corner) ** 2, rel=1e-9)


def test_a_root_at_zero_has_the_slope_of_differences():
    assert NamedFormula("-sqrt(abs(gap))", ("gap",)).gradient((0.0,)) == pytest.approx([0.0], abs=1e-9)


@pytest.mark.parametrize("formula", FORMULAS)
def test_slopes_of_formulas_are_exact(formula):
    law, at = NamedFormula(formula, ("length", "gap", "t", "speed")), (1.3, 0.4, 0.2, -0.7)
    assert law.gradient(at) == pytest.approx(differences(law, at), abs=1e-9)


def joined(**joint) -> abd.Scene:
    """Two boxes in free flight that turn together about z, joined at a point between them."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01})
    own = {"box": (0.2, 0.2, 0.2), "angular_velocity": (0, 0, 1)}
    scene.add_body("one", mass=1.0, **own)
    scene.add_body("two", mass=2.0, position=(0.5, 0, 0), velocity=(0, 0.5, 0), **own)
    scene.add_joint("general", "joint", "one", "two", anchor=(0.5, 0, 0), **joint)
    return scene


def test_an_offset_of_a_held_axis_follows_time():
    """An axis with a position drive is constrained with an offset, as exactly as the joint, on a rotating parent."""
    drive = {"mode": "position", "target": "0.02*sin(3*t)"}
    others = ["y", "z", "rx", "ry", "rz"]
    sim = abd.Simulation(joined(constrained=others, enforcement="exact", coordinate={"x": {"drive": drive}}), device=NAME)
    for _ in range(30):
        report = sim.step()
        assert sim.joints["joint"].coordinate("x").value == pytest.approx(0.02 * np.sin(3 * sim.time), abs=1e-8)
        assert report.max_joint_residual[0] < 1e-8


@on_host
def test_a_bushing_by_functions_of_its_coordinates():
    gains = {"x": 400.0, "y": 300.0, "z": 500.0, "rx": 3.0, "ry": 4.0, "rz": 5.0}
    forces = {name: {"force_formula": f"-{k} * q",} for name, k in gains.items()}
    scenes = [joined(constrained=[], coordinate=forces), abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01})]
    scenes[1].spec.body.extend(scenes[0].spec.body)
    scenes[1].add_joint("bushing", "joint", "one", "two", anchor=(0.5, 0, 0), stiffness=list(gains.values()))
    sims = [abd.run(scene, steps=30, device=NAME) for scene in scenes]
    for name in ("one", "two"):
        np.testing.assert_allclose(*(sim.bodies[name].transform for sim in sims), atol=1e-5)
