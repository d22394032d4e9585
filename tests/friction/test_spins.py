"""Friction brakes bodies that spin in place as in closed forms, for any rotation per step."""

import numpy as np
import pytest
from on_device import NAME

import abd

H, MU, G = 0.01, 0.3, 9.81
BOX, THICK = (0.1, 0.06, 0.02), 0.01
PLATE = {"box": (0.2, 0.2, 0.01), "position": (0.0, 0.0, 0.00501)}


def on_ground(floor: str, **solver) -> abd.Scene:
    scene = abd.Scene(solver={"dt": H, **solver})
    scene.add_material("default", mu=MU)
    if floor == "plane":
        scene.add_body("floor", half_space={})
    elif floor == "mesh":
        scene.add_body("floor", box=(2.0, 2.0, 0.1), kind="static", position=(0.01, 0.02, -0.05))
    else:  # a foot, on whose corners faces lie
        scene.add_body("floor", box=(0.04, 0.04, 0.04), kind="static", position=(0.0, 0.0, -0.02))
    return scene


def brakes(scene: abd.Scene, steps: int = 6) -> tuple[np.ndarray, int]:
    """By how much the spin of "body" falls in steps 2 and later [rad/s], and Newton iterations of all."""
    simulation, spins, energies, newton = abd.Simulation(scene, device=NAME), [], [], 0
    for _ in range(steps):
        report = simulation.step()
        newton += report.newton_iterations
        assert report.substeps == 1
        spins.append(simulation.bodies["body"].angular_velocity[2])
        energies.append(report.energy["kinetic"])
    assert (np.diff(energies) <= 0.0).all()
    return -np.diff(spins), newton


@pytest.mark.device
@pytest.mark.parametrize("stick", ["viscous", "elastic"])
@pytest.mark.parametrize("floor", ["plane", "mesh"])
@pytest.mark.parametrize("turn", [0.1, 0.3, 0.9, 2.5])
def test_spinning_box_is_braked_at_its_corners(turn, floor, stick):
    """It slows by ``mu g h r m / I``, r the distance of the corners; chords give 0.906 of that at 0.9 rad per step."""
    scene = on_ground(floor, stick=stick)
    scene.add_body("body", box=BOX, position=(0.0, 0.0, THICK + 1e-5), angular_velocity=(0.0, 0.0, turn / H))
    fall, newton = brakes(scene)
    corner = 0.5 * np.hypot(*BOX[:2])
    assert fall == pytest.approx(MU * G * H * corner / (corner**2 / 3.0), rel=0.01)
    assert newton <= 18


@pytest.mark.device
@pytest.mark.parametrize("turn", [0.3, 0.9])
def test_spinning_plate_is_braked_by_bodies_under_its_face(turn):
    """The lever arm on the plate is that of the final position of the corners, not of the material below them at the start."""
    scene = on_ground("foot")
    scene.add_body("body", **PLATE, angular_velocity=(0.0, 0.0, turn / H))
    fall, _ = brakes(scene)
    assert fall == pytest.approx(MU * G * H * np.hypot(0.02, 0.02) / (0.2**2 / 6.0), rel=0.01)


@pytest.mark.device
@pytest.mark.parametrize("turn", [0.3, 0.6])
def test_body_on_a_turntable_sticks(turn):
    """From the eighth step on it slips off the axis by at most 2e-6 of its distance per step."""
    scene = abd.Scene(gravity=(0.0, 0.0, -400.0), solver={"dt": H})
    scene.add_material("default", mu=2.0)
    motion = {"angular_velocity": (0.0, 0.0, turn / H)}
    scene.add_body("table", kind="kinematic", box=(0.4, 0.4, 0.02), position=(0.0, 0.0, -0.01), motion=motion)
    scene.add_body("body", box=(0.02,) * 3, position=(0.05, 0.0, 0.01001), velocity=(0.0, 0.05 * turn / H, 0.0),
                   angular_velocity=(0.0, 0.0, turn / H))  # fmt: skip
    simulation, places = abd.Simulation(scene, device=NAME), []
    for _ in range(25):
        simulation.step()
        table, body = (simulation.bodies[name].transform for name in ("table", "body"))
        places.append((table[:3, :3].T @ (body[:3, 3] - table[:3, 3]))[:2])
    assert np.abs(np.array(places[8:]) - places[8]).max() < 20 * 2e-6 * 0.05 * 2
