"""Scenes of mechanisms with known motion and joint forces, and the expected values.

`reference_values.py` contains the values and their sources. Bodies are proxies with given mass and inertia. SI units.
"""

from functools import partial

import numpy as np
import reference_values as known
from reference_runs import Case, Values
from scipy.integrate import solve_ivp

import abd

G = 9.81
ROUNDED = 1e-6
"""Resolution of the published table of A01."""


def empty(h: float, gravity=(0.0, -G, 0.0), **solver) -> abd.Scene:
    """Create a scene without bodies."""
    return abd.Scene(gravity=gravity, solver={"dt": h, "integrator": "generalized_alpha", **solver})


def link(scene: abd.Scene, name: str, mass: float, inertia, position, **keys) -> None:
    """Add a body without a surface, with principal moments (3,); the origin of its frame is the centre of mass."""
    scene.add_body(name, proxy=True, mass=mass, inertia=inertia, position=position, **keys)


def about_y(angle: float) -> dict[str, object]:
    """Return the key of a body for a rotation by an angle [rad] about y."""
    return {"axis_angle": {"axis": (0, 1, 0), "degrees": np.degrees(angle)}}


def position(simulation: abd.Simulation, body: str) -> np.ndarray:
    """Return the centre of mass (3,) [m]."""
    return simulation.bodies[body].transform[:3, 3]


def angular_velocity(simulation: abd.Simulation, body: str) -> np.ndarray:
    """Return the angular velocity (3,) [rad/s] in world axes."""
    view = simulation.bodies[body]
    W = view.velocity[:3, :3] @ np.linalg.inv(view.transform[:3, :3])
    return 0.5 * np.array([W[2, 1] - W[1, 2], W[0, 2] - W[2, 0], W[1, 0] - W[0, 1]])


def solution(rate, start, times) -> np.ndarray:
    """Solve an ordinary differential equation to 1e-12; return (len(times), k)."""
    return solve_ivp(rate, (0.0, max(times)), start, method="DOP853", rtol=1e-12, atol=1e-13, t_eval=times).y.T


def spherical_chain(h: float, enforcement: str = "exact", **solver) -> abd.Scene:
    """Create a chain of four bodies with spherical joints; the first one slides along x."""
    scene = empty(h, **solver)
    for i in range(4):
        link(scene, f"body{i}", 2.0, (6.0, 1.0, 6.0), (-0.3 + 0.6 * i, 0.0, 0.0))
    scene.add_spherical(
        "joint0", abd.WORLD, "body0", anchor=(-0.3, 0, 0), constrained=["y", "z"], frame="world",
        enforcement=enforcement,
    )  # fmt: skip
    for i in range(1, 4):
        ends = {"parent_anchor": (0.3, 0, 0.1), "child_anchor": (-0.3, 0, 0.1)}
        scene.add_spherical(f"joint{i}", f"body{i - 1}", f"body{i}", enforcement=enforcement, **ends)
    return scene


def chain_values(simulation: abd.Simulation) -> Values:
    """Read positions, angular velocities, and forces on the children."""
    values = {}
    for i in range(4):
        values[f"position {i}"] = position(simulation, f"body{i}")
        values[f"velocity {i}"] = angular_velocity(simulation, f"body{i}")
        values[f"force {i}"] = simulation.joints[f"joint{i}"].wrench()[0]
    return values


def _expected(table, names: tuple[str, ...]) -> dict[float, Values]:
    """Split the rows of a table into vectors (3,) of the given names, by time and body."""
    return {
        time: {f"{name} {i}": part for i, row in rows.items() for name, part in zip(names, np.reshape(row, (3, 3)))}
        for time, rows in table.items()
    }


def slider_chain(h: float, enforcement: str = "exact", **solver) -> abd.Scene:
    """Create a row of five cuboids, connected by a slider along y with a spring and hinges about z, x, y and z.

    The spring has 500 N/m and 10 N s/m along each axis of the world. It is a bushing, whose axes are those of its parent;
    therefore its parent is a body of 1 mg that moves with the second cuboid and does not rotate. A free joint between the
    world and the end of the last body applies a force of 20 N along z.
    """
    scene = empty(h, **solver)
    cross, along = 4.0 * (0.4**2 + 0.1**2) / 12.0, 4.0 * (0.1**2 + 0.1**2) / 12.0
    kinds = (("hinge", (0, 0, 1)), ("hinge", (1, 0, 0)), ("slider", (0, 1, 0)), ("hinge", (0, 1, 0)), ("hinge", (0, 0, 1)))
    for i, (kind, axis) in enumerate(kinds):
        link(scene, f"body{i}", 4.0, (along, cross, cross), (0.4 * i + 0.2, 0.0, 0.0))
        parent, anchor = f"body{i - 1}" if i else abd.WORLD, (0.4 * i, 0, 0)
        scene.add_joint(kind, f"joint{i}", parent, f"body{i}", anchor=anchor, axis=axis, enforcement=enforcement)
    link(scene, "axes", 1e-6, (1e-6, 1e-6, 1e-6), (0.8, 0, 0), fix=["rx", "ry", "rz"])
    scene.add_spherical("carrier", "body1", "axes", anchor=(0.8, 0, 0), enforcement=enforcement)
    gains = {"stiffness": (500, 500, 500, 0, 0, 0), "damping": (10, 10, 10, 0, 0, 0)}
    scene.add_joint("bushing", "spring", "axes", "body2", anchor=(0.8, 0, 0), **gains)
    load = {"z": {"drive": {"mode": "force", "target": 20.0}}}
    scene.add_joint("free", "load", abd.WORLD, "body4", anchor=(2, 0, 0), coordinate=load)
    return scene


def pendulum(h: float, enforcement: str = "exact", **solver) -> abd.Scene:
    """Create A01: a point mass on a massless rod of 1 m, released horizontally; its inertia of 1e-9 kg m^2 is negligible."""
    scene = empty(h, **solver)
    link(scene, "bob", 1.0, (1e-9, 1e-9, 1e-9), (-1.0, 0.0, 0.0))
    scene.add_spherical("pivot", abd.WORLD, "bob", anchor=(0, 0, 0), enforcement=enforcement)
    return scene


def pendulum_values(simulation: abd.Simulation) -> Values:
    """Read the position of the mass and the joint force on it."""
    return {"position": position(simulation, "bob")[:2], "force": simulation.joints["pivot"].wrench()[0][:2]}


def _pendulum_expected() -> dict[float, Values]:
    """Return positions and the force of the rod, ``-(m w^2 - m g . u) u``; assert that they agree with the published table."""
    motion = solution(lambda t, y: [y[1], -G * np.cos(y[0])], [np.pi, 0.0], list(known.A01))
    expected = {}
    for (time, published), (angle, rate) in zip(known.A01.items(), motion):
        u = np.array([np.cos(angle), np.sin(angle)])
        assert np.abs(u - published).max() < ROUNDED
        expected[time] = {"position": u, "force": -(rate**2 - G * np.sin(angle)) * u}
    return expected


def windows(h: float, count: int = 2, enforcement: str = "exact", **solver) -> abd.Scene:
    """Create A02: N windows of rods of 1 m and 1 kg, with hinges about z, of whose rows a third are redundant."""
    scene = empty(h, **solver)
    rod = 1.0 / 12.0
    hinge = {"axis": (0, 0, 1), "enforcement": enforcement}
    for i in range(count + 1):
        motion = {"velocity": (0.5, 0, 0), "angular_velocity": (0, 0, -1)}
        link(scene, f"post{i}", 1.0, (rod, 0.5 * rod, rod), (i, 0.5, 0), **motion)
        scene.add_hinge(f"foot{i}", abd.WORLD, f"post{i}", anchor=(i, 0, 0), **hinge)
    for i in range(count):
        link(scene, f"beam{i}", 1.0, (0.5 * rod, rod, rod), (i + 0.5, 1, 0), velocity=(1, 0, 0))
        scene.add_hinge(f"left{i}", f"post{i}", f"beam{i}", anchor=(i, 1, 0), **hinge)
        scene.add_hinge(f"right{i}", f"beam{i}", f"post{i + 1}", anchor=(i + 1, 1, 0), **hinge)
    return scene


def windows_values(simulation: abd.Simulation) -> Values:
    """Read position and velocity of the upper end of the first post."""
    view = simulation.bodies["post0"]
    end = np.array([0.0, 0.5, 0.0, 1.0])
    return {"position": (view.transform @ end)[:2], "velocity": (view.velocity @ end)[:2]}


def windows_motion(count: int, times) -> np.ndarray:
    """Return angle of the posts from the vertical [rad] and its rate (t, 2): ``phi'' = (c/I) sin phi``."""
    inertia, couple = (count + 1) / 3.0 + count, ((count + 1) / 2.0 + count) * G
    return solution(lambda t, y: [y[1], couple / inertia * np.sin(y[0])], [0.0, 1.0], times)


def _windows_expected(count: int, published: dict[float, tuple[float, float]], tolerance: float) -> dict[float, Values]:
    """Return the solution every 0.05 s; assert that it agrees with the published values to `tolerance`."""
    times = [round(0.05 * k, 2) for k in range(1, 201)]
    expected = {}
    for time, (phi, rate) in zip(times, windows_motion(count, times)):
        end, along = np.array([np.sin(phi), np.cos(phi)]), np.array([np.cos(phi), -np.sin(phi)])
        assert time not in published or np.abs(end - published[time]).max() < tolerance
        expected[time] = {"position": end, "velocity": rate * along}
    return expected


BASE, LENGTHS = 1.10, (0.5, 1.20, 0.75)
START = (1.6707963267948966, 1.6707963267948966 - 1.4591054166649482, 1.5397303602625536)
"""Initial angles of the three links from x [rad]."""


def four_bar(h: float, enforcement: str = "exact", **solver) -> abd.Scene:
    """Create a four-bar from the origin to (1.1, 0, 0) with axes -y, initially at rest."""
    scene = empty(h, gravity=(0, 0, -G), **solver)
    hinge = {"axis": (0, -1, 0), "enforcement": enforcement}
    along = [np.array([np.cos(angle), 0.0, np.sin(angle)]) for angle in START]
    starts = [np.zeros(3), LENGTHS[0] * along[0], np.array([BASE, 0.0, 0.0])]
    properties = ((0.5, 0.333), (1.0, 0.537), (0.75, 0.4))
    for k, (mass, inertia) in enumerate(properties):
        pose = about_y(-START[k])
        centre = starts[k] + 0.5 * LENGTHS[k] * along[k]
        link(scene, f"link{k + 1}", mass, (0.5 * inertia, inertia, 0.5 * inertia), centre, **pose)
    scene.add_hinge("joint1", abd.WORLD, "link1", anchor=starts[0], initial=START[0], **hinge)
    scene.add_hinge("joint2", "link1", "link2", anchor=starts[1], initial=START[1] - START[0], **hinge)
    scene.add_hinge("joint3", abd.WORLD, "link3", anchor=starts[2], initial=START[2], **hinge)
    scene.add_hinge("loop", "link2", "link3", anchor=starts[2] + LENGTHS[2] * along[2], **hinge)
    return scene


def angle_values(simulation: abd.Simulation, *names: str) -> Values:
    """Read angles and rates of hinges."""
    joints = [simulation.joints[name] for name in names]
    return {
        "position: angles": np.array([joint.coordinates[0] for joint in joints]),
        "velocity: rates": np.array([joint.rates[0] for joint in joints]),
    }


def four_bar_values(simulation: abd.Simulation) -> Values:
    """Read angles and rates of the first and last link, and the force of the hinge that closes the loop."""
    return {**angle_values(simulation, "joint1", "joint3"), "force": simulation.joints["loop"].wrench()[0]}


def _four_bar_expected() -> dict[float, Values]:
    expected = {time: {"position: angles": np.array(angles)} for time, angles in known.FOUR_BAR.items()}
    expected[0.5]["force"] = np.array(known.LOOP_FORCE)
    expected[1.0]["velocity: rates"] = np.array([0.7888582651, 0.5243977304])
    return expected


def double_pendulum(h: float, start=(0.1, 0.2), enforcement: str = "exact", **solver) -> abd.Scene:
    """Create links of 1 kg with lengths of 1 m and 2 m and hinges about y; inertias about the hinges are .333 and 1.33 kg m^2."""
    scene = empty(h, gravity=(0, 0, -G), **solver)
    point, angle = np.zeros(3), 0.0
    parent: str | int = abd.WORLD
    for k, (turn, inertia, length) in enumerate(zip(start, (0.333 - 0.25, 1.33 - 1.0), (1.0, 2.0)), 1):
        angle += turn
        down = np.array([-np.sin(angle), 0.0, -np.cos(angle)])
        pose = about_y(angle)
        link(scene, f"link{k}", 1.0, (inertia,) * 3, point + 0.5 * length * down, **pose)
        hinge = {"anchor": point, "axis": (0, 1, 0), "initial": turn, "enforcement": enforcement}
        scene.add_hinge(f"joint{k}", parent, f"link{k}", **hinge)
        parent, point = f"link{k}", point + length * down
    return scene


def _double_pendulum_expected(start: tuple[float, float]) -> dict[float, Values]:
    expected = {}
    for time, numbers in known.DOUBLE_PENDULUM[start].items():
        expected[time] = {"position: angles": np.array(numbers[:2])}
        if len(numbers) == 4:
            expected[time]["velocity: rates"] = np.array(numbers[2:])
    return expected


def swing(h: float, damping: float = 0.0, enforcement: str = "exact", **solver) -> abd.Scene:
    """Create RigidBodyJoint of ArtiSynth: a capsule on a hinge 5 m from its centre, 35 degrees above the horizontal."""
    scene = empty(h, gravity=(0, 0, -98.0), **solver)
    theta = np.radians(35.0)
    centre = np.array([5.0, 0.0, 15.0]) + 5.0 * np.array([np.cos(theta), 0.0, np.sin(theta)])
    inertia = (3.4766959, 78.3513208, 78.3513208)
    link(scene, "capsule", 7.12094335, inertia, centre, density=0.2, **about_y(-theta))
    settings = {"theta": {"initial": theta, "damping": damping}}
    scene.add_hinge(
        "hinge", abd.WORLD, "capsule", anchor=(5, 0, 15), axis=(0, -1, 0), coordinate=settings, enforcement=enforcement
    )
    return scene


def linkage(h: float, enforcement: str = "exact", compliance: dict | None = None, **solver) -> abd.Scene:
    """Create FourBarLinkage of ArtiSynth: a square of 1 m in the plane x-z, whose left side is fixed."""
    scene = empty(h, gravity=(0, 0, -9.8), **solver)
    thin, thick = (59.8175, (7.37961, 7.47898, 0.498158)), (89.7262, (11.44327, 11.21848, 1.121096))
    poses = ((thick, (0, 0, 0.5), 90.0), (thin, (0.5, 0, 0), 180.0), (thick, (0, 0, -0.5), 270.0))
    for k, ((mass, inertia), centre, degrees) in enumerate(poses, 1):
        link(scene, f"link{k}", mass, inertia, centre, **about_y(np.radians(degrees)))
    corners = ((-0.5, 0, 0.5), (0.5, 0, 0.5), (0.5, 0, -0.5), (-0.5, 0, -0.5))
    ends = ((abd.WORLD, "link1"), ("link1", "link2"), ("link2", "link3"), (abd.WORLD, "link3"))
    hinge = {"axis": (0, -1, 0), "enforcement": enforcement, **(compliance or {})}
    for k, (corner, (parent, child)) in enumerate(zip(corners, ends)):
        scene.add_hinge(f"joint{k}", parent, child, anchor=corner, **hinge)
    return scene


SOFT = {"enforcement": "compliant", "compliance": {"compliance": (1e-6,) * 5, "damping": (25000.0,) * 5}}
"""Compliance [m/N, rad/(N m)] and damping of all rows of the hinges."""


def linkage_values(simulation: abd.Simulation) -> Values:
    """Read position and velocity of the second link, and the angular velocity of the first link."""
    return {
        "position": position(simulation, "link2"),
        "velocity": simulation.bodies["link2"].velocity[:3, 3],
        "velocity: rate": angular_velocity(simulation, "link1")[1],
    }


def _linkage_expected() -> dict[float, Values]:
    names = ("position", "velocity", "velocity: rate")
    return {time: {k: np.array(part, dtype=float) for k, part in zip(names, row)} for time, row in known.LINKAGE.items()}


CASES = {
    case.name: case
    for case in (
        Case("spherical chain", spherical_chain, chain_values, _expected(known.CHAIN, ("position", "velocity", "force"))),
        Case("A01 pendulum", pendulum, pendulum_values, _pendulum_expected()),
        Case("A02, N = 2", windows, windows_values, _windows_expected(2, known.A02_2, 1e-9)),
        Case("A02, N = 40", partial(windows, count=40), windows_values, _windows_expected(40, known.A02_40, 5e-6)),
        Case("four-bar", four_bar, four_bar_values, _four_bar_expected()),
        *(
            Case(
                f"double pendulum {start}", partial(double_pendulum, start=start),
                lambda simulation: angle_values(simulation, "joint1", "joint2"), _double_pendulum_expected(start),
            )
            for start in known.DOUBLE_PENDULUM
        ),
        *(
            Case(
                f"capsule on a hinge, damping {damping:g}", partial(swing, damping=damping),
                lambda simulation: {"position: angle": simulation.joints["hinge"].coordinates + 0.5 * np.pi},
                {time: {"position: angle": np.array([angle])} for time, angle in angles.items()},
            )
            for damping, angles in known.SWING.items()
        ),
        Case("linkage", linkage, linkage_values, _linkage_expected()),
        Case("linkage, compliant", partial(linkage, **SOFT), linkage_values, _linkage_expected()),
    )
}
