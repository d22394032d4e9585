"""Wrong calls are refused with what is wrong and how to correct it, and change nothing."""

import copy
import re

import numpy as np
import pytest
from on_device import NAME

import abd
from abd.errors import SceneError

pytestmark = pytest.mark.device




class Elsewhere:
    """An array on a device of DLPack."""

    def __init__(self, kind: int, number: int):
        self.place = kind, number

    def __dlpack_device__(self):
        return self.place


def workshop() -> abd.Scene:
    """A box, a fixed wall, a plate that is moved, a pendulum with a cylindrical joint, and a cart on a rail."""
    scene = abd.Scene()
    scene.add_material("ice", mu=0.0)
    scene.add_material("steel", mu=0.0)
    scene.add_body("box", box=(0.3, 0.2, 0.1), mass=2.0, material="ice", position=(0, 0, 1))
    scene.add_body("wall", box=(0.1, 1, 1), kind="static", position=(5, 0, 0))
    scene.add_body("plate", box=(0.1, 1, 1), kind="kinematic", motion={"velocity": (0, 0, 0)}, position=(-5, 0, 0))
    scene.add_body("bar", box=(1, 0.1, 0.1), position=(0, 9, 0))
    scene.add_joint("cylindrical", "pivot", "world", "bar", anchor=(0, 9, 0), axis=(0, 1, 0))
    scene.add_body("cart", box=(0.1, 0.1, 0.1), position=(0, -9, 0))
    scene.add_slider("rail", abd.WORLD, "cart", anchor=(0, -9, 0), axis=(1, 0, 0), enforcement="compliant", compliance=1e-4)
    return scene


def unequal() -> abd.Simulation:
    scene = workshop()
    scene.add_body("more", box=(0.1, 0.1, 0.1), position=(0, 0, 3), world=1)
    return abd.Simulation(scene, device="numpy")


def with_sensor(name: str, joint: str) -> None:
    scene = workshop()
    scene.add_sensor(name, "rate", joint)
    abd.Simulation(scene, device="numpy")


@pytest.fixture(scope="module")
def sim() -> abd.Simulation:
    sim = abd.Simulation(workshop(), device=NAME)
    sim.add_sensor("a", "coordinate", "rail")
    return sim


def assign(of, name: str, value):
    """Return a function that assigns a value to an attribute of ``of(sim)``."""
    return lambda sim: setattr(of(sim), name, value)


def z(sim):
    return sim.joints["rail"].z


OWNERS = {
    "sim": lambda sim: sim,
    "scene": lambda sim: sim.scene,
    "solver": lambda sim: sim.scene.solver,
    "worlds": lambda sim: sim.worlds,
    "body": lambda sim: sim.bodies["box"],
    "wall": lambda sim: sim.bodies["wall"],
    "plate": lambda sim: sim.bodies["plate"],
    "joint": lambda sim: sim.joints["rail"],
    "pivot": lambda sim: sim.joints["pivot"],
    "coordinate": z,
    "material": lambda sim: sim.materials["ice"],
    "pair": lambda sim: sim.pair("box", "wall"),
    "fixed pair": lambda sim: sim.pair("wall", "plate"),
    "sensor": lambda sim: sim.sensors["a"],
    "spring": lambda sim: sim.recompiled().bodies["box"].spring_to((0, 0, 0), 1.0),
}
VALUES = {
    # call, fragment of the message
    "force on a fixed body": (lambda sim: sim.bodies["wall"].apply_force((1, 0, 0)), "'wall' is static"),
    "force of two numbers": (lambda sim: sim.bodies["box"].apply_force((1, 0)), "3 finite numbers"),
    "force for no steps": (lambda sim: sim.bodies["cart"].apply_force((1, 0, 0), steps=0), "steps must be a positive number"),
    "force for part of a step": (lambda sim: z(sim).apply_force(1.0, steps=1.5), "steps must be a positive number"),
    "array of the model": (lambda sim: sim.model.bodies.force.fill(1.0), "read-only"),
    "setting of the model": (lambda sim: sim.model.settings.gravity.fill(0.0), "read-only"),
    "gravity": (assign(OWNERS["sim"], "gravity", (0, 0, np.nan)), "3 finite numbers"),
    "position": (assign(OWNERS["body"], "position", (1e300, 0, 0)), "at most 1e+50"),
    "position of a fixed body": (assign(OWNERS["wall"], "position", (0, 0, 0)), "static"),
    "position of a moved body": (assign(OWNERS["plate"], "position", (0, 0, 1)), "use move_to"),
    "no rotation": (assign(OWNERS["body"], "transform", np.diag([2.0, 1, 1, 1])), "must be a rotation"),
    "move of a dynamic body": (lambda sim: sim.bodies["box"].move_to(position=(0, 0, 1)), "move_to needs a kinematic body"),
    "move to two numbers": (lambda sim: sim.bodies["plate"].move_to(position=(0, 0)), "3 finite"),
    "move to no rotation": (lambda sim: sim.bodies["plate"].move_to(quaternion=(0, 0, 0, 0)), "not all zero"),
    "move in no time": (lambda sim: sim.bodies["plate"].move_to(duration=0), "positive"),
    "friction": (assign(OWNERS["material"], "mu", -1.0), "not negative"),
    "table of friction": (lambda sim: sim.set_friction(np.full((3, 3), -1.0)), "not negative"),
    "friction of one order": (lambda sim: sim.set_friction(np.triu(np.ones((3, 3)))), "symmetric"),
    "no friction": (lambda sim: sim.set_friction(np.full((3, 3), np.nan)), "3 x 3 finite numbers"),
    "one number for friction": (lambda sim: sim.set_friction(0.5), "3 x 3 finite numbers"),
    "soft spring": (lambda sim: sim.bodies["box"].spring_to((0, 0, 0), -1.0), "finite and not negative, not -1.0"),
    "no spring": (lambda sim: sim.bodies["box"].spring_to((0, 0, 0), 0.0), "needs a stiffness or a damping"),
    "damping of a spring": (lambda sim: sim.bodies["box"].spring_to((0, 0, 0), 1.0, np.nan), "finite and not negative, not nan"),
    "spring of a fixed body": (lambda sim: sim.bodies["wall"].spring_to((0, 0, 0), 1.0), "springs need a dynamic body"),
    "end of a spring": (lambda sim: sim.bodies["box"].spring_to((0, 0), 1.0), "3 finite numbers"),
    "sensor twice": (lambda sim: sim.add_sensor("a", "rate", "rail"), "already"),
    "quantity": (lambda sim: sim.add_sensor("b", "heat", "rail"), "unknown quantity 'heat'; it must be coordinate, rate"),
    "sensor of no joint": (lambda sim: sim.add_sensor("b", "wrench", "door"), "no joint 'door'"),
    "sensor of no body": (lambda sim: sim.add_sensor("b", "position", "door"), "no body 'door'"),
    "sensor of no coordinate": (lambda sim: sim.add_sensor("b", "rate", ("rail", "y")), "has no coordinate 'y'"),
    "interval of a sensor": (lambda sim: sim.add_sensor("b", "rate", "rail", 0), "must be a positive number"),
    "part of an interval": (lambda sim: sim.add_sensor("b", "rate", "rail", 1.5), "must be a positive number"),
    "pair of one body": (lambda sim: sim.pair("box", "box"), "two different bodies"),
    "pair of fixed bodies": (assign(OWNERS["fixed pair"], "enabled", True), "neither body is dynamic"),
    "steps and duration": (lambda sim: sim.run(duration=1, steps=1), "cannot both be given"),
    "part of a step": (lambda sim: sim.run(steps=2.5), "steps must be a "),
    "negative steps": (lambda sim: sim.run(steps=-1), "steps must be a "),
    "duration in words": (lambda sim: sim.run(duration="1 s"), "duration must be a "),
    "no duration": (lambda sim: sim.run(duration=float("nan")), "duration must be a "),
    "resume of no run": (lambda sim: sim.run(steps=1, resume=True), "resume continues the run in the folder"),
    "resume and overwrite": (
        lambda sim: sim.run(steps=1, record="run", overwrite=True, resume=True), "resume continues the run in the folder",
    ),
    "target": (lambda sim: z(sim).set_target(None), "the target of 'z' must be a finite number"),
    "targets": (lambda sim: z(sim).set_target((1.0, 2.0)), "the target of 'z' must be a finite number"),
    "no target": (lambda sim: z(sim).set_target(float("nan")), "the target of 'z' must be a finite number"),
    "force in words": (lambda sim: sim.bodies["box"].apply_force("up"), "the load on body 'box' must be 3 finite numbers"),
    "no lock": (lambda sim: z(sim).lock(np.nan), "the locked value of 'z' must be a finite number"),
    "turned range": (lambda sim: z(sim).set_range(1.0, 0.5), "must be below"),
    "damping of a limit": (lambda sim: z(sim).set_limit(damping=-1.0), "not negative"),
    "values of coordinates": (assign(OWNERS["pivot"], "coordinates", [1.0]), "coordinates z, theta, and cannot take 1 values"),
    "frame of zeros": (assign(OWNERS["joint"], "T_DW", np.zeros((4, 4))), "pose"),
    "small frame": (assign(OWNERS["joint"], "T_DW", np.eye(3)), "pose"),
    "mirrored frame": (assign(OWNERS["joint"], "T_DW", np.diag([1.0, 1.0, -1.0, 1.0])), "rotation"),
    "compliances": (assign(OWNERS["joint"], "compliance", [1e-4] * 6), "at most 5 numbers"),
    "negative damping": (assign(OWNERS["joint"], "damping", -1.0), "nonnegative"),
    "damping ratio": (lambda sim: sim.joints["rail"].damp_critically(-1.0), "zeta"),
    "other body": (lambda sim: sim.joints["rail"].other_body("box"), "connects 'world' and 'cart'"),
    "side of a wrench": (lambda sim: sim.joints["rail"].wrench(on="both"), "must be"),
    "frame of a wrench": (lambda sim: sim.joints["rail"].wrench(frame="body"), "must be"),
    "point of a wrench": (lambda sim: sim.joints["rail"].wrench(point="middle"), "must be"),
    "no point of a wrench": (lambda sim: sim.joints["rail"].wrench(point=(0, 0, np.nan)), "3 finite numbers"),
    "point of a Jacobian": (lambda sim: sim.reduced().jacobian("cart", (0, np.nan, 0)), "3 finite numbers"),
    "part of a wrench": (lambda sim: sim.joints["rail"].wrench(part="both"), "must be"),
    "single precision": (lambda sim: sim.set_velocities(np.zeros((5, 12), np.float32)), "must be float64, not float32"),
    "velocities": (lambda sim: sim.set_velocities(np.zeros((2, 12))), "must have the shape (5, 12), not (2, 12)"),
    "no velocities": (lambda sim: sim.set_velocities(np.full((5, 12), np.nan)), "velocities of row 0 are not finite"),
    "another device": (lambda sim: sim.set_velocities(Elsewhere(2, 7)), "are on cuda:7, but the simulation is on"),
    "unknown device": (lambda sim: sim.set_velocities(Elsewhere(10, 0)), "are on a device of DLPack's type 10"),
    "few poses": (lambda sim: sim.move_to(np.zeros((2, 12))), "q must be 5 x 12 finite numbers"),
    "no poses": (lambda sim: sim.move_to(np.full((5, 12), np.nan)), "q must be 5 x 12 finite numbers"),
    "huge integers": (lambda sim: sim.move_to(np.full((5, 12), 10**70)), "q must be 5 x 12 finite numbers"),
    "huge poses": (lambda sim: sim.move_to(np.full((5, 12), 1e300)), "q must be 5 x 12 finite numbers"),
    "efforts": (assign(OWNERS["worlds"], "efforts", [1.0] * 4), "must broadcast"),
    "no efforts": (assign(OWNERS["worlds"], "efforts", np.nan), "finite"),
    "world": (lambda sim: sim.reset(worlds=np.int64(3)), "world 3 is unknown; the scene has 1 world"),
    "mask of worlds": (lambda sim: sim.reset(worlds=[True, False]), "numbers, or a mask of all 1, not bool"),
    "world twice": (lambda sim: sim.worlds.reset([0, 0]), "must not repeat"),
    "state of a world": (lambda sim: sim.worlds.reset(0, q=np.zeros((1, 12))), "q must be 1 x 5 x 12 finite numbers"),
    "no state": (lambda sim: sim.worlds.reset(0, q=np.full((1, 5, 12), np.nan)), "q must be 1 x 5 x 12 finite numbers"),
    "time steps": (assign(OWNERS["worlds"], "dt", [0.01] * 3), "one number or 1"),
    "time step of zero": (assign(OWNERS["worlds"], "dt", 0.0), "positive"),
    "no time step": (assign(OWNERS["worlds"], "dt", np.nan), "positive"),
    "accelerations": (lambda sim: sim.reduced().inverse_dynamics([1.0]), "9 finite numbers"),
    "inputs": (lambda sim: sim.reduced().linearize(inputs=["pin.theta"]), "unknown coordinate 'pin"),
    "no copies": (lambda sim: sim.scene.replicate(0), "count must be at least 1, not 0"),
    "time steps of copies": (lambda sim: sim.scene.replicate(2, dt=[0.01] * 3), "one time step for each of the 2 copies, not 3"),
    "unequal worlds": (lambda sim: unequal().worlds.poses, "worlds differ: world 0 has 5 bodies, world 1 has 1"),
    "reset of a recompiled world": (lambda sim: sim.recompiled().reset(worlds=0), "recompiled simulation cannot be reset"),
    "recompiled without scene": (lambda sim: abd.Simulation(sim.model, "numpy").recompiled(), "without a scene"),
    "record without scene": (lambda sim: abd.Simulation(sim.model, "numpy").run(steps=1, record="run"), "no scene"),
}
NAMES = {
    "body": (lambda sim: sim.bodies["boxx"], "no body 'boxx'; did you mean 'box'?"),
    "far name": (lambda sim: sim.bodies["zz"], "no body 'zz'; there are 5: 'box', 'wall'"),
    "number": (lambda sim: sim.bodies[0], "must be a name"),
    "contacts": (lambda sim: sim.contacts("bax"), "no body 'bax'"),
    "material": (lambda sim: sim.materials["ice"].against("stel"), "did you mean 'steel'"),
    "coordinate": (lambda sim: sim.joints["rail"].coordinate("theta"), "no coordinate 'theta'"),
    "row": (lambda sim: sim.joints["rail"].row("z.lock"), "no row 'z.lock'"),
}
SCENES = {
    "coordinate of a joint": (lambda sim: sim.set_coordinates({("pivot", "phi"): 0.5}), "there are z, theta"),
    "quantity of a joint": (lambda sim: sim.scene.add_sensor("s", "rotation", joint="rail"), "not a quantity of a joint"),
    "joint and body": (lambda sim: sim.scene.add_sensor("s", "rate", "rail", body="bar"), "exactly one of joint and body"),
    "point of a rate": (lambda sim: sim.scene.add_sensor("s", "rate", "rail", point=(0, 0, 1)), "has no effect on"),
    "name of a sensor": (lambda sim: with_sensor("a ", "rail"), "a name must not have"),
    "sensor of no joint": (lambda sim: with_sensor("s", "door"), "sensor.s.joint: there is no joint 'door'"),
    "time steps of worlds": (assign(OWNERS["solver"], "world_dt", (0.01, -0.01)), "world_dt"),
}
TABLES = {ValueError: VALUES, KeyError: NAMES, SceneError: SCENES}
REFUSED = [pytest.param(error, *case, id=name) for error, table in TABLES.items() for name, case in table.items()]


@pytest.mark.parametrize(("error", "call", "words"), REFUSED)
def test_wrong_values_and_names_are_refused(sim, error, call, words):
    before = sim.checkpoint()
    with pytest.raises(error, match=re.escape(words)):
        call(sim)
    np.testing.assert_equal(sim.checkpoint(), before)


ATTRIBUTES = [
    # object, attribute that it does not have, and words of the message
    ("sim", "dt", "sim.worlds.dt"),
    ("sim", "dt", "scene.solver.dt"),
    ("sim", "time_step", "sim.worlds.dt"),
    ("sim", "mu", "sim.materials[name].mu"),
    ("sim", "body", "bodies"),
    ("scene", "dt", "scene.solver.dt"),
    ("scene", "duration", "scene.output.duration"),
    ("solver", "timestep", "dt"),
    ("body", "pos", "position"),
    ("body", "velocity_of", "velocity"),
    ("body", "force", "apply_force"),
    ("body", "density", "scene.body(name).density"),
    ("body", "friction", "sim.materials[name].mu"),
    ("joint", "zz", "z"),
    ("joint", "range", "joint.coordinate(name).range"),
    ("coordinate", "target", "set_target"),
    ("coordinate", "velocity", "speed"),
    *((name, "gravty", "gravty") for name in ("sim", "scene", "worlds", "body", "joint", "coordinate", "material")),
    *((name, "gravty", "gravty") for name in ("pair", "sensor", "spring")),
]


@pytest.mark.parametrize(("owner", "attribute", "words"), ATTRIBUTES)
def test_an_unknown_attribute_is_refused_with_a_suggestion(sim, owner, attribute, words):
    found = OWNERS[owner](sim)
    for use in (lambda: getattr(found, attribute), lambda: setattr(found, attribute, 1.0)):
        with pytest.raises((AttributeError, SceneError), match=re.escape(words)):
            use()


def test_wrong_uses_of_attributes_name_the_right_ones(sim):
    with pytest.raises(AttributeError, match="a name in brackets, not the attribute 'box', to find a body"):
        sim.bodies.box  # noqa: B018
    assert copy.copy(sim.bodies)["box"].name == "box"
    with pytest.raises(AttributeError, match="set linear_velocity and angular_velocity of body 'box'"):
        sim.bodies["box"].velocity = (1, 0, 0)
    with pytest.raises(AttributeError, match=r"set coordinates by set_coordinates"):
        sim.coordinates = [0.5]
    with pytest.raises(AttributeError, match=r"z cannot be set.*set_target"):
        sim.joints["rail"].z = 0.5
