"""Combinations of immobile bodies, inactive joints, failed frames and both integrators."""

import numpy as np
import pytest
from on_device import NAME

import abd

pytestmark = pytest.mark.device

ROUND = (0.1, 0.1, 0.1)


def empty(gravity=(0.0, -9.81, 0.0), **solver):
    return abd.Scene(gravity=gravity, solver={"dt": 0.01, "integrator": "generalized_alpha", **solver})


def link(scene, name, mass, position, **keys):
    inertia = tuple(mass * one for one in ROUND)
    scene.add_body(name, proxy=True, mass=mass, inertia=inertia, position=position, kappa=1e9, **keys)


def hang(scene, parent, name, mass, x, **keys):
    """A link that can swing about z on an exact hinge half a metre to its left."""
    link(scene, name, mass, (x + 0.5, 0, 0))
    scene.add_hinge(f"on {name}", parent, name, anchor=(x, 0, 0), axis=(0, 0, 1), enforcement="exact", **keys)


@pytest.mark.parametrize("off", [0, 1])
def test_coupling_is_inactive_with_an_inactive_joint(off):
    scene = empty()
    for k in range(2):
        hang(scene, abd.WORLD, f"arm{k}", 1.0, 3.0 * k, active=k != off)
    scene.add_coupling("gear", "on arm0.theta", [{"coordinate": "on arm1.theta", "factor": -1.0}], enforcement="exact")
    simulation = abd.run(scene, steps=5, device="numpy")
    assert simulation.couplings["gear"].force == 0.0
    simulation.joints[f"on arm{off}"].active = True
    assert simulation.backend.system.row_laws.active.all()


@pytest.mark.parametrize("integrator", ["bdf1", "generalized_alpha"])
def test_damping_of_limits_is_in_newton_seconds_per_metre(integrator):
    scene = empty(gravity=(0.0, 0.0, 0.0), integrator=integrator)
    link(scene, "block", 1e6, (0, 0, 0), velocity=(1.0, 0, 0))
    ends = {"range": (-np.inf, 0.001), "limit": "compliant", "limit_compliance": 1e9, "limit_damping": 100.0}
    scene.add_slider("slide", abd.WORLD, "block", anchor=(0, 0, 0), axis=(1, 0, 0), enforcement="exact", coordinate={"z": ends})
    simulation = abd.run(scene, steps=6, device="numpy")
    z = simulation.joints["slide"].coordinate()
    assert z.limit_force == pytest.approx(-100.0 * z.speed, rel=1e-5)


def test_inactive_exact_joint_can_be_open():
    scene = empty()
    link(scene, "arm", 1.0, (0.5, 0, 0))
    ends = {"parent_anchor": (0, 0, 0), "child_anchor": (-0.3, 0, 0), "axis": (0, 0, 1)}
    scene.add_hinge("off", abd.WORLD, "arm", **ends, enforcement="exact", active=False)
    assert not any("closed" in note or "moved" in note for note in scene.compile().notes)


@pytest.mark.parametrize("device", [pytest.param("numpy", marks=pytest.mark.slow), NAME])
@pytest.mark.parametrize(("compliance", "stretch"), [(0.0, 0.0), (1e-3, 9.81e-3)])
def test_ropes_stretch_by_their_compliance(device, compliance, stretch):
    scene = empty(tolerance=1e-6)  # m/s: forces are as exact as that times m / h
    link(scene, "weight", 1.0, (0, -0.9999, 0))
    points = {"parent_anchor": (0, 0, 0), "child_anchor": (0, 0, 0), "distance": 1.0}
    gives = {"enforcement": "compliant", "compliance": [compliance], "critical_damping": True}
    scene.add_rope("rope", abd.WORLD, "weight", **points, **gives)
    simulation = abd.run(scene, steps=200, device=device)
    assert simulation.bodies["weight"].transform[1, 3] == pytest.approx(-1.0 - stretch, abs=3e-5)
    np.testing.assert_allclose(simulation.joints["rope"].wrench()[0], (0, 9.81, 0), atol=0.03)


def test_profile_read_outs_use_the_segment_of_the_last_step():
    """This holds after a checkpoint and after a change of another joint, which compiles the rows again."""

    def on_a_slope():
        scene = empty(gravity=(0.0, 0.0, -9.81))
        link(scene, "block", 1.0, (2, 0, 1), fix=["rx", "ry", "rz"])
        origin = {"position": (0, 0, 0)}
        profile = {"segments": [(-1, 0), (0, 0), (1, 0.5), (3, 1.5)], "enforcement": "exact"}
        keys = {"parent_frame": origin, "child_frame": origin, **profile}
        scene.add_joint("segmented_planar_connector", "slope", abd.WORLD, "block", **keys)
        hang(scene, abd.WORLD, "arm", 1.0, 0.0)
        return abd.Simulation(scene, device="numpy")

    simulation, again = on_a_slope(), on_a_slope()
    np.testing.assert_allclose(again.joints["slope"].residual, 0.0, atol=1e-12)
    simulation.run(steps=5)
    force = simulation.joints["slope"].wrench()[0]
    np.testing.assert_allclose(force, np.array([-0.4, 0.0, 0.8]) * 9.81, atol=1e-3)
    again.restore(simulation.checkpoint())
    np.testing.assert_array_equal(again.joints["slope"].wrench()[0], force)
    simulation.joints["on arm"].coordinate().lock()
    np.testing.assert_allclose(simulation.joints["slope"].wrench()[0], force, rtol=1e-9)
    assert simulation.joints["slope"].residual[0] < 1e-8
