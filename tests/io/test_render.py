"""Pictures and films show the right objects at the right places."""

import os
from dataclasses import replace

import exported_run
import numpy as np
import pytest
import trimesh

import abd
from abd.api.simulation import Simulation
from abd.cli import main
from abd.errors import SceneError
from abd.io.trajectory import Trajectory
from abd.pictures import PictureError
from abd.pictures.camera import Camera
from abd.pictures.cast import Cast, Contacts, Moment, Recorded, of_model
from abd.pictures.films import Studio
from abd.pictures.rasterizer import Rasterizer
from abd.pictures.symbols import symbols
from abd.scene.schema.schema import CameraSpec

SIZE = (160, 90)


def staged(*bodies: dict) -> tuple[Cast, Moment]:
    """The cast of a scene of a few bodies, and its start."""
    scene = abd.Scene(gravity=(0, 0, 0))
    for k, keys in enumerate(bodies):
        scene.add_body(keys.pop("name", f"body{k}"), **keys)
    return of_model(scene.compile())


def taken(cast: Cast, moment: Moment, size=SIZE, **view) -> tuple[np.ndarray, Rasterizer]:
    """Pixels (h, w, 3) and their rasterizer."""
    rasterizer = Rasterizer(cast, Camera(CameraSpec(**view), cast, [moment], size))
    return rasterizer.picture(moment).astype(int), rasterizer


def items(rasterizer: Rasterizer) -> np.ndarray:
    """(2 h, 2 w) number of the item that every sample shows."""
    return rasterizer._samples.item.numpy()


def test_box_is_in_the_middle_above_its_shadow():
    cast, moment = staged({"name": "ground", "half_space": {}}, {"box": (1, 1, 1), "position": (0, 0, 1), "color": (0, 0.6, 0)})
    pixels, _ = taken(cast, moment, elevation_deg=10.0, zoom=0.4)
    box = pixels[..., 1] > pixels[..., 0] + 25
    rows, columns = np.nonzero(box)
    assert abs(columns.mean() - 79.5) < 1.5 and abs(rows.mean() - 44.5) < 3.0
    assert 0.4 * 90 * 0.5 < np.ptp(rows) < 0.4 * 90 * 1.1
    shadow = ~box & (pixels.max(axis=2) < 185)
    assert shadow.sum() > 40
    assert np.nonzero(shadow)[0].mean() > rows.mean(), "below the box"
    assert (pixels[0].min(axis=1) > 200).all(), "the sky is bright"


def test_balls_and_capsules_are_round_at_any_size():
    cast, moment = staged({"sphere": {"radius": 0.5}}, {"capsule": {"radius": 0.2, "length": 1.0}, "position": (2, 0, 0)})
    assert all(len(shape.corners) == 0 for shape in cast.shapes), "no triangles: rays meet the surfaces themselves"
    _, rasterizer = taken(cast, moment, (320, 180), azimuth_deg=-90.0, elevation_deg=0.0)
    lens = rasterizer.camera.lens(moment)
    rows, columns = (np.indices((360, 640)) + 0.5) / 2.0
    directions = lens.axes[2] + ((columns - 160) / lens.scale)[..., None] * lens.axes[0]
    directions = directions + ((90 - rows) / lens.scale)[..., None] * lens.axes[1]
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    away = np.zeros(3) - lens.eye
    miss = np.linalg.norm(away - (directions @ away)[..., None] * directions, axis=2)
    disc = columns < lens.seen(np.array([1.2, 0, 0]))[0]
    shown = (items(rasterizer) >= 0) & disc
    assert (shown != ((miss < 0.5) & disc)).sum() <= 0.002 * shown.sum()


@pytest.mark.parametrize("shape", [
    {"cylinder": {"radius": 0.1, "length": 0.1, "segments": 32}}, {"cylinder": {"radius": 0.1, "length": 0.1}},
    {"cone": {"radius": 0.1, "length": 0.2}}, {"mesh": trimesh.creation.icosphere(3, 0.1)},
], ids=["coarse", "cylinder", "cone", "ball"])  # fmt: skip
def test_rounded_bodies_have_no_holes(shape):
    """Every line of the picture shows a convex body between its ends."""
    _, rasterizer = taken(*staged({**shape, "rounding": 0.02}), elevation_deg=10.0)
    shown = items(rasterizer) >= 0
    assert np.abs(np.diff(shown.astype(int), axis=1)).sum(axis=1).max() == 2


def test_nearer_bodies_hide_farther_ones_and_back_faces_of_closed_surfaces_are_culled():
    square = {"vertices": [(0, -1, -1), (0, 1, -1), (0, 1, 1), (0, -1, 1)], "triangles": [(0, 1, 2), (0, 2, 3)]}
    bodies = [
        {"surface": square, "kind": "static", "position": (x, 0, 0), "color": color}
        for x, color in ((0.5, (1, 0, 0)), (-0.5, (0, 0, 1)))
    ]
    cast, moment = staged(*bodies, {"box": (0.8, 0.8, 0.8), "position": (0, 0, 0)})
    for azimuth, seen in ((0.0, 0), (180.0, 2)):
        pixels, _ = taken(cast, moment, azimuth_deg=azimuth, elevation_deg=0.0)
        assert np.argmax(pixels[45, 80]) == seen, "open surfaces show both sides"
    _, rasterizer = taken(*staged({"box": (1, 1, 1)}), azimuth_deg=30.0, elevation_deg=40.0)
    front = np.unique(items(rasterizer)[items(rasterizer) >= 0])
    assert len(front) == 6, "two triangles of each of three sides"


def test_translucent_bodies_show_a_fraction_of_the_bodies_behind():
    cast, moment = staged(
        {"name": "front", "box": (0.1, 2, 2), "position": (1, 0, 0), "color": (1, 0, 0, 0.5)},
        {"name": "back", "box": (0.1, 2, 2), "position": (-1, 0, 0), "color": (0, 0, 1)},
    )
    _, rasterizer = taken(cast, moment, azimuth_deg=0.0, elevation_deg=0.0)
    middle = items(rasterizer)[60:120, 120:200]
    assert np.mean(middle < 12) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("covered", [0.0, 0.3])
@pytest.mark.parametrize("azimuth", [-60.0, 10.0, 135.0])
@pytest.mark.parametrize("elevation", [5.0, 60.0, -89.99])
def test_camera_shows_all_bodies(azimuth, elevation, covered):
    cast, moment = staged(
        {"box": (1, 1, 4)}, {"sphere": {"radius": 0.4}, "position": (6, -2, 1)}, {"box": (1, 1, 1), "position": (3, 9, 0)},
    )
    lens = Camera(CameraSpec(azimuth_deg=azimuth, elevation_deg=elevation), cast, [moment], SIZE, covered).lens(moment)
    free = ((1.0 - covered) * SIZE[0], SIZE[1])
    corners = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)])
    for body, shape in enumerate(cast.shape):
        low, high = cast.shapes[shape].box
        seen = lens.seen((low + corners * (high - low)) @ moment.transform[body, :3, :3].T + moment.transform[body, :3, 3])
        assert (seen[:, 2] > 0).all() and (seen[:, :2] > 0).all() and (seen[:, :2] < free).all()


def test_followed_bodies_stay_in_place_and_orbits_rotate():
    cast, moment = staged({"name": "a", "box": (1, 1, 1)}, {"name": "b", "box": (1, 1, 1), "position": (9, 0, 0)})
    later = replace(moment, transform=moment.transform.copy())
    later.transform[1, :3, 3] += (5.0, 3.0, 2.0)
    camera = Camera(CameraSpec(follow="b"), cast, [moment, later], SIZE)
    for one in (moment, later):
        np.testing.assert_allclose(camera.lens(one).seen(one.transform[1, :3, 3])[:2], (80, 45), atol=1e-6)
    beside = Camera(CameraSpec(follow="b"), cast, [moment, later], SIZE, covered=0.25)
    np.testing.assert_allclose(beside.lens(later).seen(later.transform[1, :3, 3])[:2], (60, 45), atol=1e-6)
    camera = Camera(CameraSpec(orbit_deg=180.0, target=(0, 0, 0)), cast, [moment], SIZE)
    ends = [camera.lens(moment, progress).axes[2] for progress in (0.0, 1.0)]
    np.testing.assert_allclose(ends[0][:2], -ends[1][:2], atol=1e-12)
    with pytest.raises(PictureError, match="'bb'"):
        Camera(CameraSpec(follow="bb"), cast, [moment], SIZE)


def rods_of(drawn) -> np.ndarray:
    """(r, 2, 3) ends of all rods of symbols."""
    return np.concatenate([np.zeros((0, 2, 3)), *(ends for ends, *_ in drawn.rods)])


def test_joints_ropes_and_springs_are_drawn_between_their_points(folder):
    with Trajectory(folder) as trajectory:
        run = Recorded(trajectory)
        moment = run.moment(-1)
        groups = {group.names[0]: group for group in run.cast.joints}
        drawn = rods_of(symbols(run.cast, moment))
        for name in ("rope", "spring", "pivot", "socket"):
            cast = replace(run.cast, joints=[groups[name]])
            alone = rods_of(symbols(cast, replace(moment, active=[np.ones(1, bool)])))
            assert len(alone) > 0 and len(drawn) > len(alone)
            D, C = groups[name].frames(moment.transform)
            if name in ("rope", "spring"):
                np.testing.assert_allclose(alone[0, 0], D[0, :3, 3], atol=1e-12)
                np.testing.assert_allclose(alone[-1, 1], C[0, :3, 3], atol=1e-12)
            if name == "rope":
                length = np.linalg.norm(np.diff(alone, axis=1), axis=2).sum()
                assert length == pytest.approx(2.0, rel=0.02), "it hangs through by what it is too long"
            hidden = replace(groups[name], drawing={"show": False})
            assert len(rods_of(symbols(replace(cast, joints=[hidden]), replace(moment, active=[np.ones(1, bool)])))) == 0
            assert len(rods_of(symbols(cast, replace(moment, active=[np.zeros(1, bool)])))) == 0, "not where it is switched off"


def test_contacts_are_arrows_along_their_forces():
    cast, moment = staged({"name": "a", "box": (1, 1, 1)})
    force = np.array([[0, 0, 10.0], [1e-9, 0, 0]])
    found = Contacts(np.zeros((2, 3)), force)
    moment = replace(moment, contacts=found)
    drawn = symbols(cast, moment, contacts=0.1)
    ((heads, _, _),), shafts = drawn.cones, rods_of(drawn)
    assert len(heads) == len(shafts) == 1, "a negligible force has no arrow"
    np.testing.assert_allclose(shafts[0, 0], (0, 0, 0))
    np.testing.assert_allclose(shafts[0, 1], heads[0, 0])
    np.testing.assert_allclose(heads[0, 1], (0, 0, 1))
    assert not symbols(cast, moment).cones
    plain, _ = taken(cast, moment, (320, 180))
    rasterizer = Rasterizer(cast, Camera(CameraSpec(), cast, [moment], (320, 180)), contacts=0.2)
    pixels = rasterizer.picture(moment).astype(int)
    red = (pixels[..., 0] > pixels[..., 1] + 60) & (pixels[..., 0] > pixels[..., 2] + 60)
    assert red.sum() > 20 and not (plain != pixels).all()


def test_pictures_are_the_same_for_any_number_of_threads(folder, monkeypatch):
    films = []
    for threads in ("1", "3"):
        monkeypatch.setenv("ABD_THREADS", threads)
        with Trajectory(folder) as trajectory:
            run = Recorded(trajectory)
            films.append(list(Studio(run, np.arange(len(run)), CameraSpec(orbit_deg=90.0), SIZE).film()))
    np.testing.assert_array_equal(*films)
    assert len(films[0]) == exported_run.FRAMES and (films[0][0] != films[0][-1]).any()


def test_the_command_writes_pictures_and_films(folder, tmp_path, capsys):
    from PIL import Image

    size = ["--size", "64x36", "--quiet"]
    assert main(["render", str(folder), "--out", str(tmp_path / "a.png"), *size, "--frame", "2"]) == 0
    assert Image.open(tmp_path / "a.png").size == (64, 36)
    assert main(["render", str(folder), "--to", "png", "--size", "64x36", "--follow", "ball"]) == 0
    assert capsys.readouterr().out.strip() == str(folder / f"frame-{exported_run.FRAMES - 1}.png")
    os.remove(folder / f"frame-{exported_run.FRAMES - 1}.png")
    speed = ["--fps", "50", "--speed", "0.5", "--orbit"]
    assert main(["render", str(folder), "--out", str(tmp_path / "a.gif"), *size, *speed]) == 0
    with Image.open(tmp_path / "a.gif") as film:
        assert film.n_frames == 7 and film.info["duration"] == 20
    assert main(["render", str(folder), "--out", str(tmp_path / "b.gif"), *size, "--fps", "30", "--speed", "0.2"]) == 0
    with Image.open(tmp_path / "b.gif") as film:
        duration = sum(film.seek(k) or film.info["duration"] for k in range(film.n_frames))
    assert duration == pytest.approx(10 * 1000 / 30, abs=5)
    ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="needs imageio-ffmpeg: pip install 'abd-solver[film]'")
    assert main(["render", str(folder), "--out", str(tmp_path / "a.mp4"), *size, *speed]) == 0
    assert ffmpeg.count_frames_and_secs(str(tmp_path / "a.mp4"))[0] == 7
    assert not list(tmp_path.glob("*.part*"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--frame", "70"], "frames 0 to 6"),
        (["--to", "gif", "--fps", "1e300"], "--fps"),
        (["--camera", "zum=2"], "zum"),
        (["--camera", "zoom="], "zoom="),
        (["--camera", "zoom=-1"], "zoom"),
        (["--follow", "bal"], "'ball'"),
        (["--to", "mp4", "--frame", "1"], "--to png"),
        (["--to", "mp4", "--size", "65x36"], "65x36"),
        (["--to", "gif", "--fps", "60"], "use --fps 50"),
        (["--out", "a.jpg"], "--to"),
    ],
)
def test_wrong_arguments_are_reported_in_one_line(folder, tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    kind = [] if "--to" in arguments or "--out" in arguments else ["--to", "png"]
    assert main(["render", str(folder), *kind, "--quiet", *arguments]) == 2
    message = capsys.readouterr().err
    assert said in message and "Traceback" not in message
    assert not list(tmp_path.iterdir())


def test_a_camera_that_sees_no_body_is_reported(folder, tmp_path, capsys):
    away = "position=[0, 0, 50], target=[0, 0, 100]"
    assert main(["render", str(folder), "--out", str(tmp_path / "a.png"), "--size", "64x36", "--camera", away]) == 0
    assert "no body is in the picture" in capsys.readouterr().err


def test_the_camera_of_a_scene_is_that_of_its_pictures(tmp_path):
    scene = exported_run.scene()
    scene.camera.azimuth_deg = 20.0
    scene.camera.follow = "ball"
    scene.save(tmp_path / "scene.toml")
    again = abd.load(tmp_path / "scene.toml")
    assert again == scene and again.camera.follow == "ball"
    from abd.io.run import run

    run(again, again.started(), tmp_path / "run", device="cpu", steps=1, simulate=Simulation)
    with Trajectory(tmp_path / "run") as trajectory:
        assert trajectory.camera == {"azimuth_deg": 20.0, "follow": "ball"}
    with pytest.raises(SceneError, match=r"camera\.follow.*'bull'.*'ball'"):
        again.override(["camera.follow=bull"]).compile()
    with pytest.raises(SceneError, match="same point"):
        abd.load(tmp_path / "scene.toml", ["camera.position=[0, 0, 1]", "camera.target=[0, 0, 1]"])
