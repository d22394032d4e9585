"""Retries stay within the parts of a scene that failed: the others notice nothing, nothing passes, and the order is kept."""

from __future__ import annotations

import numpy as np
import pytest
from executors import simulation as launched_or_recorded
from on_device import NAME

import abd
from abd.backends.answers import NotProven
from abd.errors import StepFailure
from abd.step import substep as stepping
from abd.step.retries.journey import Journey
from abd.step.retries.merge import OF_BODIES

pytestmark = pytest.mark.device

DT = 0.01
MAKES = {
    NAME: lambda scene: abd.Simulation(scene, device=NAME),
    "recorded": lambda scene: launched_or_recorded(scene, True),
    "numpy": lambda scene: abd.Simulation(scene, device="numpy"),
}
THROWN, APART = ("plate", "thrown"), ("arm", "hand", "flying", "slider")


def two_places(thrown: bool = True, apart: bool = True, speed: float = 60.0, **solver) -> abd.Scene:
    """A box that would pass a plate within a step, and far from it a double pendulum, a body that flies and one that slides."""
    scene = abd.Scene(solver={"dt": DT, **solver})
    scene.add_body("ground", half_space={})
    if thrown:
        scene.add_body(
            "plate",
            box=(0.02, 1.0, 1.0),
            position=(0, 0, 2),
            kind="static",
            axis_angle={"axis": (0, 1, 0), "degrees": 10},
        )
        moves = {"velocity": (speed, 0, 0), "angular_velocity": (30, 50, 10)}
        scene.add_body("thrown", box=(0.2,) * 3, position=(-0.8, 0.05, 2), **moves)
    if apart:
        exact = {"axis": (0, 1, 0), "enforcement": "exact"}
        scene.add_body("arm", box=(0.4, 0.05, 0.05), position=(50.2, 0, 3))
        scene.add_body("hand", box=(0.4, 0.05, 0.05), position=(50.6, 0, 3))
        friction = {"theta": {"friction": 0.1, "range": (-2.0, 2.0)}}
        scene.add_hinge("shoulder", abd.WORLD, "arm", anchor=(50, 0, 3), coordinate=friction, **exact)
        scene.add_hinge("elbow", "arm", "hand", anchor=(50.4, 0, 3), **exact)
        scene.add_body("flying", box=(0.1, 0.2, 0.3), position=(55, 0, 4), angular_velocity=(3, 5, 2))
        scene.add_body("slider", box=(0.2,) * 3, position=(60, 0, 0.1), velocity=(2, 0, 0))
    return scene


def of_bodies(sim: abd.Simulation, names) -> dict[str, np.ndarray]:
    """What the checkpoint holds of some bodies."""
    rows, saved = [sim.model.bodies.names.index(name) for name in names], sim.checkpoint()
    arrays = {name: saved[name] for name in ("q", "qd", "previous_q", "previous_qd")}
    n = len(sim.model.bodies)
    arrays |= {name: saved["extra"][name].reshape(n, -1) for name in OF_BODIES}
    return {name: values[rows] for name, values in arrays.items()}


def refusing(sim: abd.Simulation, frames: tuple[int, ...]) -> abd.Simulation:
    """The way of the thrown body is refused in some whole frames."""
    names, free_way = sim.model.bodies.names, sim.backend.ways.free_way
    if "thrown" not in names:
        return sim
    pair = np.array([[names.index("thrown"), names.index("plate")]])

    def refuse(h: float) -> NotProven:
        if sim.frame in frames and 0.9 * DT < h < 1.1 * DT and not sim.backend.idle.absent[pair[0, 0]]:
            return NotProven(np.array([0.6]), pair)
        return free_way(h)

    sim.backend.ways.free_way, sim.backend.whole = refuse, None  # whole steps do not ask it
    return sim


@pytest.mark.parametrize("make", MAKES)
def test_a_frame_begins_with_pieces_as_long_as_those_before(make):
    sim = refusing(MAKES[make](two_places(speed=3.0)), (1,))
    sim.step()
    assert not sim.stepper.pieces.any()
    assert sim.step().refused_ways == 1
    thrown = sim.model.bodies.names.index("thrown")
    assert np.flatnonzero(sim.stepper.pieces).tolist() == [thrown]
    length = sim.stepper.pieces[thrown]
    assert 0.1 * DT < length < 0.7 * DT
    # nothing was in the way: pieces of twice that length, and then whole frames; from a checkpoint, too
    resumed = refusing(MAKES[make](two_places(speed=3.0)), (1,))
    resumed.restore(sim.checkpoint())
    counts = []
    for _ in range(4):
        report, other = sim.step(), resumed.step()
        assert report.refused_ways == 0 and report.substeps == other.substeps
        np.testing.assert_array_equal(sim.stepper.q, resumed.stepper.q)
        np.testing.assert_array_equal(sim.stepper.pieces, resumed.stepper.pieces)
        counts.append(report.substeps)
    assert counts[0] > 1 and counts[-1] == 1 and not sim.stepper.pieces.any()


@pytest.mark.parametrize("integrator", ["generalized_alpha", "bdf2"])
@pytest.mark.parametrize("make", MAKES)
def test_a_part_that_retries_is_not_noticed(make, integrator):
    def made(**parts) -> abd.Simulation:
        return refusing(MAKES[make](two_places(speed=3.0, integrator=integrator, **parts)), (1, 2, 4))

    both, thrown, apart = made(), made(apart=False), made(thrown=False)
    # the dense matrix of the definitions is factored as a whole
    rounding = {"rtol": 1e-6, "atol": 1e-6} if make == "numpy" else {"rtol": 0.0, "atol": 0.0}
    refused = pieces = 0
    for _ in range(6):
        reports = [sim.step() for sim in (both, thrown, apart)]
        refused += reports[0].refused_ways
        pieces += reports[0].substeps > 1
        assert reports[0].substeps == reports[1].substeps and reports[2].substeps == 1
        assert both.time == apart.time
        for name, values in of_bodies(apart, APART).items():
            np.testing.assert_allclose(of_bodies(both, APART)[name], values, err_msg=name, **rounding)
        # the others do disturb its iterations, by the common line search
        np.testing.assert_allclose(of_bodies(both, THROWN)["q"], of_bodies(thrown, THROWN)["q"], atol=1e-3)
        for name in ("shoulder", "elbow"):
            for found, expected in zip(both.joints[name].wrench(), apart.joints[name].wrench(), strict=True):
                np.testing.assert_allclose(found, expected, **rounding)
    assert refused >= 1 and pieces >= 3


def test_what_sticks_keeps_its_anchors():
    def made(**parts) -> abd.Simulation:
        scene = two_places(speed=3.0, stick="elastic", **parts)
        scene.add_material("default", mu=0.5)
        scene.gravity = (1.0, 0.0, -9.81)
        scene.add_body("held", box=(0.2,) * 3, position=(70, 0, 0.1))
        return refusing(MAKES[NAME](scene), (1, 2, 4))

    both, apart = made(), made(thrown=False)
    held = both.model.bodies.names.index("held")
    for _ in range(6):
        both.step(), apart.step()
        tables = [sim.checkpoint()["extra"] for sim in (both, apart)]
        n = [len(sim.model.bodies) for sim in (both, apart)]
        rows = [table["stick_key"] // size == size - 1 for table, size in zip(tables, n, strict=True)]
        assert rows[0].any()
        for name in ("stick_kind", "stick_point", "stick_share"):
            found, expected = (
                table[name].reshape(len(chosen), -1)[chosen] for table, chosen in zip(tables, rows, strict=True)
            )
            np.testing.assert_allclose(found, expected, atol=1e-4, err_msg=name)
    assert abs(both.stepper.qd[held, 0]) < 1e-3


@pytest.mark.parametrize("make", MAKES)
def test_friction_is_read_in_frames_in_which_some_retry(make):
    """Of those who went through it whole as without the others, and of those who went in pieces: it balances what they do."""

    def made(**parts) -> abd.Simulation:
        scene = two_places(speed=3.0, **parts)
        scene.add_material("default", mu=0.5)
        return MAKES[make](scene)

    both, apart, aside = refusing(made(), (9, 11)), made(thrown=False), made(thrown=False)
    mine = [(aside.model.bodies.names.index("slider"), aside.model.bodies.names.index("ground"))]
    free_way = aside.backend.ways.free_way

    def refuse(h: float) -> NotProven:
        if aside.frame in (9, 11) and 0.9 * DT < h < 1.1 * DT and not aside.backend.idle.absent[mine[0][0]]:
            return NotProven(np.array([0.6]), np.array(mine))
        return free_way(h)

    aside.backend.ways.free_way = refuse
    retried = 0
    for frame in range(12):
        reports = both.step(), apart.step(), aside.step()
        if frame < 9:
            continue  # it settles
        found, expected, alone = (sim.contacts("slider", "ground") for sim in (both, apart, aside))
        assert found.friction[:, 0].sum() < -0.45 * 9.81 * both.bodies["slider"].mass
        np.testing.assert_allclose(found.friction, expected.friction, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(found.slip, expected.slip, rtol=1e-4, atol=1e-4)
        retried += reports[2].refused_ways
        np.testing.assert_allclose(alone.friction.sum(axis=0), expected.friction.sum(axis=0), rtol=1e-3, atol=0.05)
        np.testing.assert_allclose(alone.slip.mean(axis=0), expected.slip.mean(axis=0), rtol=0.05, atol=1e-3)
    assert retried >= 2


def test_the_report_of_a_frame_in_which_some_retry_adds_up():
    places = (two_places(speed=3.0, **keys) for keys in ({}, {"apart": False}, {"thrown": False}))
    both, thrown, apart = (refusing(MAKES[NAME](scene), (1, 2, 4)) for scene in places)
    for _ in range(6):
        whole, one, two = (sim.step() for sim in (both, thrown, apart))
        for name, value in whole.energy.items():
            assert value == pytest.approx(one.energy[name] + two.energy[name], rel=1e-9, abs=1e-9), name
        for name in ("linear", "angular"):
            np.testing.assert_allclose(
                whole.momentum[name], np.add(one.momentum[name], two.momentum[name]), rtol=1e-9, atol=1e-9
            )
        assert whole.max_joint_residual == pytest.approx(two.max_joint_residual, abs=1e-15)


def test_a_run_in_which_some_retry_resumes_bit_for_bit():
    first = MAKES[NAME](two_places())
    for _ in range(10):
        report = first.step()
        if report.refused_ways:
            break
    assert report.refused_ways > 0
    second = MAKES[NAME](two_places())
    second.restore(first.checkpoint())
    for _ in range(3):
        first.step(), second.step()
        np.testing.assert_array_equal(second.stepper.q, first.stepper.q)
        np.testing.assert_array_equal(second.stepper.qd, first.stepper.qd)


@pytest.mark.parametrize("make", [NAME, "numpy"])
def test_who_meets_whom(make):
    """Ways that cross, or end within the activation of one another, of different parties."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"d_hat": 1e-3})
    for k in range(3):
        scene.add_body(f"box {k}", box=(0.2,) * 3, position=((0.0, 0.5, 1.2)[k], 0, 0))
    backend = MAKES[make](scene).backend
    begin, turn = backend.states.read_positions(), np.zeros((3, 3))

    def met(shift: float, *party: int) -> list[list[int]]:
        end = begin.copy()
        end[0, 0] += shift
        return backend.ways.meetings(begin, turn, end, np.array(party)).pairs.tolist()

    assert met(0.85, 1, 2, 2) == [[0, 1]]
    assert met(0.85, 1, 1, 2) == [] and met(0.85, 1, 0, 2) == []
    assert met(0.2, 1, 2, 2) == [] and met(0.2995, 1, 2, 2) == [[0, 1]]
    assert met(0.85, 1, 2, 3) == [[0, 1]] and sorted(met(1.7, 1, 2, 3)) == [[0, 1], [0, 2]]
    turn[0] = (0, 0, 2 * np.pi)
    assert met(0.0, 1, 2, 3) == [] and met(0.2985, 1, 2, 3) == [[0, 1]]


def test_who_is_met_by_one_that_retries_goes_with_it(monkeypatch):
    both, apart = MAKES[NAME](two_places()), MAKES[NAME](two_places(thrown=False))
    n, names = len(both.model.bodies), both.model.bodies.names
    thrown, flying = names.index("thrown"), names.index("flying")
    runs, go, met, parties = [], Journey._run, both.backend.ways.meetings, []

    def run(journey, start, plan, *rest):
        if journey.stepper is both.stepper:
            runs.append([name for name, chosen in zip(names, plan.who, strict=True) if chosen])
        return go(journey, start, plan, *rest)

    def meet(begin, turn, end, party):
        assert len(met(begin, turn, end, party)) == 0
        parties.append(party.copy())
        pairs = np.array([[flying, thrown]]) if len(parties) == 1 else np.zeros((0, 2), dtype=int)
        return NotProven(np.ones(len(pairs)), pairs)

    monkeypatch.setattr(Journey, "_run", run)
    monkeypatch.setattr(both.backend.ways, "meetings", meet)
    report = both.step()
    apart.step()
    while not report.refused_ways:
        report = both.step()
        apart.step()
    others = ["arm", "hand", "slider"]
    assert runs[:4] == [["arm", "hand", "flying", "slider"], ["thrown"], others, ["thrown", "flying"]]
    # where the two go together, what meets the plate fast does so in a piece that the other does not take
    assert runs[4:] == [["flying"], ["thrown"]] * (len(runs[4:]) // 2)
    assert len(parties[0]) == n and parties[0][thrown] != parties[0][flying]
    assert parties[-1][thrown] == parties[-1][flying] != parties[-1][names.index("arm")]
    for name, values in of_bodies(apart, others).items():
        np.testing.assert_array_equal(of_bodies(both, others)[name], values, err_msg=name)
    np.testing.assert_allclose(of_bodies(both, ["flying"])["q"], of_bodies(apart, ["flying"])["q"], atol=1e-5)


def test_an_island_that_does_not_converge_is_halved_alone(monkeypatch):
    """The failure names the bodies of its island."""
    halved, plain = (MAKES[NAME](two_places(thrown=False)) for _ in range(2))
    names = halved.model.bodies.names
    failing = np.array([name in ("arm", "hand") for name in names])
    solve, lengths = stepping.solve_step, []

    def refuse(backend, settings, h, *rest):
        lagged = solve(backend, settings, h, *rest)
        lengths.append((h, bool(backend.idle.absent[failing].any())))
        if h > 0.6 * DT and not backend.idle.absent[failing].any():
            raise StepFailure("not_converged", "on purpose", islands=failing)
        return lagged

    with monkeypatch.context() as patch:
        patch.setattr(stepping, "solve_step", refuse)
        report = halved.step()
    assert report.substeps == 2 and [length for length, _ in lengths] == pytest.approx([DT, DT, DT / 2, DT / 2])
    plain.step()
    for name, values in of_bodies(plain, ("flying", "slider")).items():
        np.testing.assert_array_equal(of_bodies(halved, ("flying", "slider"))[name], values, err_msg=name)
    assert 0.0 < np.abs(of_bodies(halved, ("hand",))["q"] - of_bodies(plain, ("hand",))["q"]).max() < 1e-4


def swinging(dt: float) -> abd.Simulation:
    """A double pendulum."""
    scene = abd.Scene(solver={"dt": dt})
    hinge = {"axis": (0, 1, 0), "enforcement": "exact"}
    scene.add_body("arm", box=(0.4, 0.05, 0.05), position=(0.2, 0, 0))
    scene.add_body("hand", box=(0.4, 0.05, 0.05), position=(0.6, 0, 0))
    scene.add_hinge("shoulder", abd.WORLD, "arm", anchor=(0, 0, 0), **hinge)
    scene.add_hinge("elbow", "arm", "hand", anchor=(0.4, 0, 0), **hinge)
    return MAKES[NAME](scene)


def test_forced_retries_keep_the_order(monkeypatch):
    """Every thirtieth step halved: no more than twice the error."""

    def run(dt: float, every: int = 0) -> np.ndarray:
        sim, solve = swinging(dt), stepping.solve_step
        sim.backend.whole = None  # whole steps do not call it

        def refuse(backend, settings, h, *rest):
            lagged = solve(backend, settings, h, *rest)
            if every and sim.frame % every == every - 1 and h > 0.6 * dt:
                raise StepFailure("not_converged", "on purpose")
            return lagged

        out = []
        with monkeypatch.context() as patch:
            patch.setattr(stepping, "solve_step", refuse)
            for _ in range(round(0.75 / dt)):
                assert sim.step().substeps == (2 if every and sim.frame % every == 0 else 1)
                out.append(sim.stepper.q[:, :3].copy())
        return np.array(out)

    limit = run(6.25e-4)[7::8]
    plain, retried = (np.abs(run(5e-3, every) - limit).max() for every in (0, 30))
    assert retried <= 2.0 * plain and plain < 5e-3
