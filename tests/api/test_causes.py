"""The message of a failed step names the load, velocity or drive that is out of proportion."""

import pytest
from common_scenes import on_ground

import abd
from abd.errors import StepFailure


def box_above_ground(**body) -> abd.Scene:
    scene = on_ground(0.3)
    scene.add_body("box", box=(0.1, 0.1, 0.1), position=(0, 0, 0.2), mass=1, **body)
    scene.add_body("other", box=(0.1, 0.1, 0.1), position=(1, 0, 0.2), mass=1)
    return scene


def jammed(**drive) -> abd.Scene:
    """A motor on the first of two arms; only the limit between the arms stops it."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"retries": 2})
    scene.add_body("arm", box=(0.2, 0.1, 0.1), position=(0.1, 0, 0))
    scene.add_body("tip", box=(0.2, 0.1, 0.1), position=(0.3, 0, 0))
    scene.add_body("slide", box=(0.2, 0.1, 0.1), position=(0.5, 0, 0))
    exact = {"axis": (0, 1, 0), "enforcement": "exact"}
    scene.add_hinge("motor", abd.WORLD, "arm", anchor=(0, 0, 0), drive=drive, **exact)
    scene.add_hinge("elbow", "arm", "tip", anchor=(0.2, 0, 0), range=(-0.5, 0.5), **exact)
    scene.add_hinge("wrist", "tip", "slide", anchor=(0.4, 0, 0), **exact)
    scene.add_slider("rail", abd.WORLD, "slide", anchor=(0.5, 0, 0), axis=(1, 0, 0), enforcement="exact", range=(-0.02, 0.02))
    return scene


def beyond_limit() -> abd.Scene:
    scene = abd.Scene(solver={"retries": 2})
    scene.add_body("arm", box=(0.6, 0.1, 0.1), position=(0.3, 0, 0))
    drive = {"mode": "position", "target": 3}
    scene.add_hinge(
        "hinge", abd.WORLD, "arm", anchor=(0, 0, 0), axis=(0, 1, 0), enforcement="exact", range=(-1, 1), drive=drive
    )
    return scene


@pytest.mark.parametrize(
    ("scene", "change", "names"),
    [
        (box_above_ground(), lambda box: box.apply_force((1e15, 0, 0)), ["'box'", "1e+15 N", "1 kg"]),
        (box_above_ground(), lambda box: box.apply_torque((0, 0, 1e15)), ["'box'", "1e+15 N m"]),
        (box_above_ground(velocity=(0, 0, -1e9)), None, ["'box'", "1e+09 m/s"]),
        (jammed(mode="velocity", target=5), None, ["'motor'", "without effort limit", "'elbow'", "'rail'"]),
        (beyond_limit(), None, ["'hinge'", "upper limit", "1 rad"]),
    ],
)
def test_a_failed_step_names_its_probable_cause(scene, change, names):
    sim = abd.Simulation(scene, device="cpu")
    if change is not None:
        change(sim.bodies["box"])
    with pytest.raises(StepFailure) as failure:
        sim.run(steps=100)
    assert [name for name in names if name not in str(failure.value)] == []


def test_a_failure_with_usual_loads_names_no_load():
    scene = box_above_ground(velocity=(0, 0, -20), angular_velocity=(3, 1, 2))
    scene.solver.max_newton = 1
    with pytest.raises(StepFailure) as failure:
        abd.Simulation(scene, device="cpu").run(steps=100)
    assert all(word not in str(failure.value) for word in ("force", "velocity", "drive"))
