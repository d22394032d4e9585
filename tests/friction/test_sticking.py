"""Sticking contacts: state of their springs, and rest of bodies."""

from math import atan, cos, degrees, sin

import numpy as np
import pytest
from checkpoints import assert_goes_on
from on_device import NAME

import abd


def on_slope(share: float, mu: float = 0.5, floor: int = 0, solver: dict | None = None, **motion) -> tuple[abd.Scene, np.ndarray]:
    """A box on a slope of `share` of the friction angle, a half-space or `floor`^2 squares; and the direction downhill (3,)."""
    angle = share * atan(mu)
    scene = abd.Scene(solver=solver)
    scene.add_material("rough", mu=mu)
    normal, downhill = np.array([sin(angle), 0.0, cos(angle)]), np.array([cos(angle), 0.0, -sin(angle)])
    common = {"axis_angle": {"axis": (0.0, 1.0, 0.0), "degrees": degrees(angle)}, "material": "rough"}
    if floor:
        scene.add_body("slope", kind="static", surface=squares(floor), **common)
    else:
        scene.add_body("slope", half_space={"normal": tuple(normal)}, material="rough")
    scene.add_body("box", box=(0.2, 0.2, 0.2), position=tuple(0.1002 * normal + (0.0, 0.013, 0.0)), **common, **motion)
    return scene, downhill


def squares(n: int) -> dict:
    """A flat surface of 1 m of n^2 squares, in two triangles each."""
    x = np.linspace(-0.5, 0.5, n + 1)
    vertices = [(a, b, 0.0) for a in x for b in x]
    corners = [(i * (n + 1) + j, (i + 1) * (n + 1) + j) for i in range(n) for j in range(n)]
    triangles = [t for a, b in corners for t in ((a, b, b + 1), (a, b + 1, a + 1))]
    return {"vertices": vertices, "triangles": triangles}


def follow(simulation: abd.Simulation, steps: int, along: np.ndarray) -> np.ndarray:
    """(steps,) places of the box [m]."""
    return np.array([(simulation.step(), simulation.bodies["box"].position @ along)[1] for _ in range(steps)])


@pytest.mark.device
@pytest.mark.parametrize("contact_set", ["minima", "ipc"])
@pytest.mark.parametrize("floor", [0, 7])
def test_a_box_near_the_angle_of_friction_stays(floor, contact_set):
    """Contacts with edges of the floor change while springs take their load."""
    scene, downhill = on_slope(0.95, floor=floor, solver={"contact_set": contact_set})
    places = follow(abd.Simulation(scene, device=NAME), 150, downhill)
    assert np.ptp(places[20:]) < 1e-7


@pytest.mark.device
def test_anchors_of_kernels_equal_the_definition():
    """A box slides, rotates and comes to rest on triangles, compared in each step from the same state."""
    scene, _ = on_slope(0.5, floor=3, velocity=(0.3, 0.2, 0.0), angular_velocity=(0.0, 0.0, 1.0))
    defined, device = abd.Simulation(scene, device="numpy"), abd.Simulation(scene, device=NAME)
    some = 0
    for _ in range(12):
        defined.restore(device.checkpoint())
        defined.step()
        device.step()
        one, other = (each.stepper.backend.friction.read_anchors() for each in (defined, device))
        assert len(one) == len(other)
        some += len(one)
        order, same = (np.lexsort((*each.point.T.round(7), each.key)) for each in (one, other))
        np.testing.assert_array_equal(one.key[order], other.key[same])
        np.testing.assert_allclose(one.point[order], other.point[same], atol=1e-7)
        np.testing.assert_allclose(one.share[order], other.share[same], atol=1e-2)
    assert some > 20


@pytest.mark.device
def test_friction_at_the_start_does_not_depend_on_rounding():
    """At the start the activation of a pair equals its gap, so that rounding decides whether there is contact with almost no
    force."""
    scene, _ = on_slope(0.5, floor=3, velocity=(0.3, 0.2, 0.0), angular_velocity=(0.0, 0.0, 1.0))
    velocities = []
    for rounding in (-1e-14, 1e-14):
        simulation = abd.Simulation(scene, device=NAME)
        start = simulation.checkpoint()
        pairs = start["tables"]["pairs"]
        for name in ("activation", "home"):
            pairs[name] = np.asarray(pairs[name]) * (1.0 + rounding)
        simulation.restore(start)
        simulation.step()
        velocities.append(simulation.stepper.qd[1, :3].copy())
    np.testing.assert_allclose(*velocities, atol=1e-3)


@pytest.mark.device
@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf2"])
def test_restored_run_sticks_as_the_original(integrator):
    scene, _ = on_slope(0.9, solver={"integrator": integrator})
    went_on, continued = abd.Simulation(scene, device=NAME), abd.Simulation(scene, device=NAME)
    went_on.run(steps=6)
    assert len(went_on.stepper.backend.friction.read_anchors()) >= 4
    assert_goes_on(went_on, continued, 4)
