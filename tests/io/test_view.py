"""Runs and simulations in the browser: sent data, and the page in a real browser."""

import io
import shutil
import subprocess
import sys
import time
from contextlib import closing, contextmanager

import exported_run
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import abd
from abd.cli import main
from abd.colors import PALETTE
from abd.io.trajectory import Trajectory
from abd.pictures.camera import Camera
from abd.pictures.cast import Recorded, of_model
from abd.pictures.shapes import unit
from abd.scene.geometry.frames import triad
from abd.scene.importers.formats import shipped_scenes
from abd.scene.schema.schema import CameraSpec

viser = pytest.importorskip("viser", reason="needs viser: pip install 'abd-solver[view]'")


@pytest.fixture
def server():
    from abd.commands.view import serve

    with serve("127.0.0.1", 8300) as served:
        yield served


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 60_000
"""Longest wait for a page [ms]: without a GPU the browser draws on the processor."""


@contextmanager
def page(width: int = 480, height: int = 300):
    """A page of Chromium without a window, by playwright, and the errors that it reports; skips the test without a browser."""
    reason = "needs playwright and Chromium: pip install playwright; playwright install chromium"
    api = pytest.importorskip("playwright.sync_api", reason=reason)
    own = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    with api.sync_playwright() as driver:
        arguments = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
        try:
            browser = driver.chromium.launch(executable_path=own, args=arguments)
        except api.Error as error:
            pytest.skip(f"{reason}; {str(error).splitlines()[0]}")
        opened = browser.new_page(viewport={"width": width, "height": height})
        opened.set_default_timeout(PATIENCE)
        errors: list[str] = []
        opened.on("console", lambda one: errors.append(one.text) if one.type == "error" else None)
        opened.on("pageerror", lambda one: errors.append(str(one)))
        try:
            yield opened, errors
        finally:
            browser.close()


def pixels(opened) -> np.ndarray:
    """(h, w, 3) pixels of the page."""
    from PIL import Image

    picture = Image.open(io.BytesIO(opened.screenshot(timeout=2 * PATIENCE)))
    return np.asarray(picture.convert("RGB")).astype(int)


def matrices(wxyz: np.ndarray) -> np.ndarray:
    """Rotations (n, 3, 3) of quaternions (w, x, y, z)."""
    return Rotation.from_quat(np.asarray(wxyz, dtype=float)[:, [1, 2, 3, 0]]).as_matrix()


def test_maps_without_shear_are_instances_to_rounding():
    from abd.viewer.stage import decomposed, from_z

    random = np.random.default_rng(1)
    half_turns = [np.diag(signs) for signs in ((1, -1, -1), (-1, 1, -1), (-1, -1, 1))]
    turns = np.concatenate([Rotation.random(200, random_state=2).as_matrix(), half_turns])
    maps = np.tile(np.eye(4), (len(turns), 1, 1))
    maps[:, :3, :3], maps[:, :3, 3] = turns * random.uniform(0.5, 2.0, (len(turns), 1, 3)), random.normal(size=(len(turns), 3))
    position, wxyz, scales, rest = decomposed(maps)
    np.testing.assert_array_equal(position, maps[:, :3, 3])
    np.testing.assert_allclose(matrices(wxyz) * scales[:, None], maps[:, :3, :3], atol=1e-12)
    directions = unit(np.concatenate([random.normal(size=(20, 3)), [[0, 0, -2.0], [0, 0, 1.0]]]))
    np.testing.assert_allclose(triad(directions)[:, :, 2], directions, atol=1e-12)
    np.testing.assert_allclose(matrices(from_z(3.0 * directions)), triad(directions), atol=1e-6)
    assert rest.max() < 1e-12


@pytest.mark.parametrize("scene", sorted(shipped_scenes()))
def test_moving_bodies_of_shipped_scenes_are_beside_the_panel(scene):
    from abd.viewer.stage import PANEL

    loaded, size = abd.load(scene), (1280, 720)
    cast, moment = of_model(loaded.started())
    view = loaded.camera
    lens = Camera(view, cast, [moment], size, PANEL).lens(moment)
    moving = np.flatnonzero((cast.kind != "static") & (cast.shape >= 0))
    corners = np.stack([cast.boxes[moving][:, sides, range(3)] for sides in np.ndindex(2, 2, 2)], axis=1)
    maps = moment.transform[moving, None]
    x, y, depth = lens.seen((maps[..., :3, :3] @ corners[..., None])[..., 0] + maps[..., :3, 3]).T
    assert depth.min() > 0 and x.min() > 0 and x.max() < (1.0 - PANEL) * size[0] and y.min() > 0 and y.max() < size[1]


def test_tilted_planes_are_drawn_at_their_half_space(server, monkeypatch):
    from abd.viewer.stage import Stage

    scene = box_in_space()
    scene.body("box").position = (2, 1, 2)
    normal = (-0.5, 0.0, np.sqrt(0.75))
    scene.add_body("slope", half_space={"normal": normal, "offset": 0.3}, kind="static")
    cast, moment = of_model(scene.compile())
    drawn = []
    monkeypatch.setattr(server.scene, "add_grid", lambda name, **keys: drawn.append(keys))
    Stage(server, cast, CameraSpec(), [moment])
    assert drawn[0]["position"] @ normal == pytest.approx(0.3)
    np.testing.assert_allclose(matrices(drawn[0]["wxyz"][None])[0, :, 2], normal, atol=1e-12)


def test_planes_of_joints_have_their_own_colours(server, monkeypatch):
    from abd.viewer.stage import Stage

    scene = box_in_space()
    for name, color in (("red", (1, 0, 0)), ("green", (0, 1, 0, 0.5))):
        scene.add_slider(name, abd.WORLD, "box", anchor=(0, 0, 0), axis=(0, 0, 1), plane_size=0.5, color=color)
    cast, moment = of_model(scene.compile())
    drawn, add = [], server.scene.add_mesh_simple
    monkeypatch.setattr(server.scene, "add_mesh_simple", lambda *mesh, **keys: drawn.append(keys) or add(*mesh, **keys))
    Stage(server, cast, CameraSpec(), [moment]).show(moment)
    assert [(*one["color"], one["opacity"]) for one in drawn] == [(255, 0, 0, None), (0, 255, 0, 0.5)]


@pytest.mark.parametrize("size", [1.0, 1e-5])
def test_the_first_view_is_centred_at_any_scale(server, size):
    from abd.viewer.stage import Stage

    scene = abd.Scene()
    scene.add_body("box", box=(size, size, size))
    cast, moment = of_model(scene.compile())
    Stage(server, cast, CameraSpec(), [moment])
    assert np.linalg.norm(server.initial_camera.look_at) < 0.2 * size


class Watched:
    """A simulation with a `LiveView`, advanced step by step; `looking`: whether a browser is connected."""

    def __init__(self, server, scene, looking: bool = True):
        from abd.viewer.live import LiveView

        server.get_clients = lambda: {0: object()} if looking else {}
        self.sim = abd.Simulation(scene, device="cpu")
        self.live = LiveView(server, CameraSpec())
        self.live.begin(self.sim, 0, 100)
        self.live.pace.value = "as fast as possible"
        self.live.stage._follow = lambda moment: None

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            assert not self.live.waits()
            self.live.step(self.sim.step(), None)


def box_in_space() -> abd.Scene:
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01})
    scene.add_body("box", box=(0.4, 0.4, 0.4))
    return scene


@pytest.mark.parametrize("pace, least", [("real time", 0.1), ("1/4", 0.4), ("as fast as possible", 0.0)])
def test_live_run_keeps_its_pace(server, pace, least):
    watched = Watched(server, box_in_space())
    live, sim = watched.live, watched.sim
    live.pace.value = pace
    begun, held = time.monotonic(), False
    for _ in range(11):
        while live.waits():
            held = True
            time.sleep(0.001)
        live.step(sim.step(), None)
    assert time.monotonic() - begun >= least and (least > 0.0 or not held)
    live.end(None)
    assert "0.11 s" in live.clock.content


def test_pulled_body_reaches_the_target_and_release_removes_the_force(server):
    watched = Watched(server, box_in_space())
    live, sim = watched.live, watched.sim
    live._actions.append(lambda: live._grab(0, np.array([0.2, 0.0, 0.0]), np.array([0.2, 0.0, 0.0])))
    live._actions.append(lambda: live._move_target(np.array([1.2, 0.0, 0.5])))
    watched.step(150)
    held = sim.bodies["box"].transform @ live._pull.local
    np.testing.assert_allclose(held[:3], (1.2, 0.0, 0.5), atol=0.05)
    np.testing.assert_allclose(live.stage.pull[1], (1.2, 0.0, 0.5))
    live._actions.append(live._release)
    watched.step(2)
    before = sim.bodies["box"].linear_velocity
    watched.step(5)
    speed = np.linalg.norm(sim.bodies["box"].linear_velocity - before)
    assert speed < 0.2, "without a force, only the velocity of the mesh frame of a turning body changes"
    assert live._pull is None


def test_sliders_set_targets_of_drives(server):
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.01})
    scene.add_body("arm", box=(0.6, 0.1, 0.1), position=(0.3, 0, 0))
    drive = {"mode": "pd", "target_deg": 0, "stiffness": 500, "damping": 60}
    keys = {"anchor": (0, 0, 0), "axis": (0, 0, 1), "enforcement": "exact", "range_deg": (-90, 45), "drive": drive}
    scene.add_joint("hinge", "shoulder", abd.WORLD, "arm", **keys)
    watched = Watched(server, scene)
    handles = server.gui._gui_input_handle_from_uuid.values()
    (slider,) = [handle for handle in handles if "shoulder.theta [deg]" in str(handle.label)]
    assert (round(slider.min), round(slider.max), slider.value) == (-90, 45, 0.0)
    watched.step(2)
    assert abs(watched.sim.joints["shoulder"].coordinates[0]) < 1e-6
    slider.value = 30.0
    watched.step(80)
    assert watched.sim.joints["shoulder"].coordinate().value_deg == pytest.approx(30.0, abs=1.0)


def test_runs_that_cannot_be_shown_are_refused(folder, tmp_path, capsys):
    assert main(["view", "nowhere"]) == 2
    assert main(["view", "falling_box", "--html", str(tmp_path / "a.html")]) == 2
    assert "run the scene first" in capsys.readouterr().err
    assert main(["view", str(folder), "--follow", "bal"]) == 2
    assert "'ball'" in capsys.readouterr().err


def test_a_replay_is_one_file_that_needs_nothing_else(folder, tmp_path, capsys):
    target = tmp_path / "run.html"
    assert main(["view", str(folder), "--html", str(target), "--fps", "100", "--port", "8310"]) == 0
    assert "7 of 7 frames" in capsys.readouterr().out
    text = target.read_text()
    assert "<title>mixed &lt;scene&gt;</title>" in text and "__VISER_EMBED_DATA__" in text
    assert 'src="http' not in text and 'href="http' not in text


@pytest.mark.slow
def test_a_browser_replays_the_file(folder, tmp_path):
    target = tmp_path / "run.html"
    assert main(["view", str(folder), "--html", str(target), "--fps", "100", "--port", "8320"]) == 0
    with page() as (opened, errors):
        opened.goto(target.as_uri())
        opened.wait_for_selector("canvas")
        opened.keyboard.press("Space")
        slider = opened.locator("[role=slider]").first
        opened.wait_for_timeout(1000)
        first, now = pixels(opened), float(slider.get_attribute("aria-valuenow"))
        opened.keyboard.press("Space")
        opened.wait_for_function(f"Math.abs(document.querySelector('[role=slider]').ariaValueNow - {now}) > 0.015")
        opened.keyboard.press("Space")
        opened.wait_for_timeout(1000)
        assert float(slider.get_attribute("aria-valuenow")) != now
        assert (np.abs(first - pixels(opened))[:200].max(axis=2) > 20).sum() > 20, "bodies have moved"
        assert errors == []


@pytest.mark.slow
def test_a_browser_plays_a_run(folder):
    from abd.commands.view import serve
    from abd.viewer.player import Player

    with (
        Trajectory(folder) as trajectory,
        serve("127.0.0.1", 8330) as server,
        page(900, 400) as (opened, errors),
        closing(Player(server, Recorded(trajectory), CameraSpec())) as player,
    ):
        opened.goto(f"http://127.0.0.1:{server.get_port()}")
        opened.wait_for_selector("canvas")
        opened.get_by_text("box one").first.wait_for()
        opened.wait_for_timeout(2000)
        first = pixels(opened)
        assert len(np.unique(first[:, :400].reshape(-1, 3), axis=0)) > 200, "the scene is there"
        opened.get_by_label("loop").first.dispatch_event("click")
        opened.get_by_label("play").first.dispatch_event("click")
        wait_for(lambda: player.frame == exported_run.FRAMES - 1 and not player.play.value, 30.0)
        opened.get_by_text("t = 0.06 s of 0.06 s").wait_for()
        opened.wait_for_timeout(1000)
        assert (np.abs(first - pixels(opened))[:, :400].max(axis=2) > 20).sum() > 20, "bodies have moved"
        opened.set_viewport_size({"width": 900, "height": 900})
        opened.get_by_text("Plots").first.click()
        opened.wait_for_timeout(2000)
        line = np.abs(pixels(opened)[:, 500:] - np.round(255.0 * PALETTE[1])).max(axis=2) < 40
        assert line.sum() > 90, "the line of an energy, which is longer than its mark in the legend"
        assert errors == []


@pytest.mark.slow
def test_browser_shows_a_live_run(tmp_path):
    command = [sys.executable, "-m", "abd.cli", "run", "falling_box", "--steps", "5000", "--device", "cpu"]
    run = subprocess.Popen(
        [*command, "--out", str(tmp_path / "run"), "--view", "--port", "8340"], stderr=subprocess.PIPE, text=True
    )
    try:
        lines = []
        while "waiting for a browser" not in (lines[-1] if lines else ""):
            lines.append(run.stderr.readline())
            assert run.poll() is None, lines
        address = next(line for line in lines if line.startswith("http")).strip()
        with page(900, 400) as (opened, errors):
            opened.goto(address)
            clock = opened.get_by_text("Newton iterations").first
            clock.wait_for()
            opened.get_by_label("pause").first.dispatch_event("click")
            opened.wait_for_timeout(1500)
            first = clock.inner_text()
            opened.wait_for_timeout(700)
            assert clock.inner_text() == first, "the clock has stopped"
            opened.get_by_role("button", name="one step").dispatch_event("click")
            at = int(first.split(",")[0].removeprefix("step "))
            opened.get_by_text(f"step {at + 1}, ").wait_for()
            assert errors == []
        run.send_signal(2)
        assert run.wait(30) == 130
    finally:
        if run.poll() is None:
            run.kill()


def wait_for(there, seconds: float = 10.0) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end, "the condition stays false"
        time.sleep(0.02)
