"""URDF and MJCF files and their scenes: shapes, contacts, joints, drives, options, report."""

from importlib.util import find_spec
from itertools import combinations

import numpy as np
import pytest
import trimesh
from robot_samples import arms, joint, link, mjcf, vertices, write_sample

import abd
from abd.cli import main
from abd.errors import SceneError
from abd.io.trajectory import Trajectory

mujoco = pytest.importorskip("mujoco")

TETRAHEDRON = "v 0 0 0\nv 0.3 0 0\nv 0 0.3 0\nv 0 0 0.3\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def load(text: str, folder, suffix: str = ".xml", **options) -> abd.Scene:
    path = folder / f"robot{suffix}"
    path.write_text(text)
    return abd.load(path, **options)


def falling(name: str, geoms: str, pos: str = "0 0 1") -> str:
    return f'<body name="{name}" pos="{pos}"><freejoint/>{geoms}</body>'


def assert_note(scene: abd.Scene, *words: str) -> str:
    """The one note that has these words."""
    found = [note for note in scene.notes if all(word in note for word in words)]
    assert len(found) == 1, scene.notes
    return found[0]


def test_shapes_in_the_frame_of_their_link_keep_their_kind(tmp_path):
    (tmp_path / "wedge.obj").write_text(TETRAHEDRON)
    shapes = {
        # keys of the geom, and of the body
        "box": ('type="box" size="0.1 0.2 0.3"', {"box": (0.2, 0.4, 0.6)}),
        "ball": ('type="sphere" size="0.1" euler="10 20 30"', {"sphere": {"radius": 0.1}, "quaternion": None}),
        "capsule": ('type="capsule" size="0.1 0.2"', {"capsule": {"radius": 0.1, "length": 0.4}}),
        "cylinder": ('type="cylinder" size="0.1 0.2"', {"cylinder": {"radius": 0.1, "length": 0.4}}),
        "ellipsoid": ('type="ellipsoid" size="0.1 0.2 0.3"', {"scale": (0.1, 0.2, 0.3)}),
        "mesh": ('type="mesh" mesh="wedge"', {"mesh": str(tmp_path / "wedge.obj"), "scale": (2.0, 2.0, 2.0)}),
        # visual shapes have no contact
        "with_picture": ('size="0.1"/><geom size="0.5" contype="0" conaffinity="0"', {"sphere": {"radius": 0.1}}),
    }
    geoms = {name: f"<geom {keys}/>" for name, (keys, _) in shapes.items()}
    bodies = "".join(falling(name, geom, f"{2 * k} 0 1") for k, (name, geom) in enumerate(geoms.items()))
    scene = load(mjcf(bodies, '<asset><mesh file="wedge.obj" scale="2 2 2"/></asset>'), tmp_path)
    for name, (_, expected) in shapes.items():
        found = scene.body(name).model_dump()
        for key, value in expected.items():
            assert found[key] == (found[key] | value if isinstance(value, dict) else value), (name, key)
    model = scene.started()
    np.testing.assert_allclose(model.bodies.mass[0], 1000 * 0.2 * 0.4 * 0.6)
    np.testing.assert_allclose(model.bodies.volume[5], 8 * 0.3**3 / 6, rtol=1e-6)


def test_moved_shapes_and_several_of_them_lie_where_they_are_in_the_link(tmp_path):
    geoms = (
        '<geom type="box" size="0.1 0.1 0.1" pos="1 0 0" euler="0 0 45"/><geom type="sphere" size="0.1" pos="0 0 2"/>'
    )
    rods = '<geom type="capsule" size="0.05" fromto="0 0 0 1 0 0"/><geom type="sphere" size="0.05" pos="1 1 1"/>'
    scene = load(mjcf(falling("two", geoms) + falling("rods", rods, "9 0 1")), tmp_path)
    model = scene.started()
    vertices = np.array(scene.body("two").surface.vertices)
    assert vertices[:, 2].max() == pytest.approx(2.1, abs=1e-9)
    assert vertices[:8, 0].max() == pytest.approx(1 + 0.1 * np.sqrt(2), abs=1e-12)
    assert model.meshes[0].closed
    rods = scene.body("rods")
    assert rods.radius == 0.05 and not rods.surface.triangles, "round shapes of one radius stay exact"
    np.testing.assert_allclose(sorted(rods.surface.vertices), [(0, 0, 0), (1, 0, 0), (1, 1, 1)], atol=1e-12)


MIRRORED = ("1 -1 1", "-1 -1 -1", "-2 1 0.5", "-1 1 -1")


@pytest.mark.parametrize("scale", MIRRORED)
def test_mirrored_meshes_of_urdf_keep_their_outer_side_mass_and_inertia(scale, tmp_path):
    """They equal the same mesh with the mirror in its file and reversed faces."""
    (tmp_path / "m.obj").write_text(TETRAHEDRON)
    factors = np.array(scale.split(), dtype=float)
    baked = trimesh.load_mesh(tmp_path / "m.obj", process=False)
    baked.apply_transform(np.diag([*factors, 1.0]))
    baked.export(tmp_path / "baked.obj", digits=16)

    def robot(file: str, given: str) -> abd.Scene:
        mesh = f'<geometry><mesh filename="{file}" scale="{given}"/></geometry>'
        link = f'<link name="b"><collision><origin xyz="0.1 0 0" rpy="0.5 0 0"/>{mesh}</collision></link>'
        return load(f'<robot name="r">{link}</robot>', tmp_path, ".urdf", free_base=True)

    mirrored, expected = robot("m.obj", scale), robot("baked.obj", "1 1 1")
    one, other = (scene.compile().bodies for scene in (mirrored, expected))
    assert not any("inwards" in note for note in (*mirrored.notes, *mirrored.compile().notes))
    assert one.mass[0] == pytest.approx(other.mass[0], rel=1e-6) and one.mass[0] > 0.0
    np.testing.assert_allclose(np.sort(one.moment[0]), np.sort(other.moment[0]), rtol=1e-5)
    corners = [vertices(scene, "b") for scene in (mirrored, expected)]
    outside = trimesh.Trimesh(corners[0], mirrored.compile().meshes[0].triangles, process=False)
    assert outside.volume == pytest.approx(0.3**3 / 6.0 * abs(np.prod(factors)), rel=1e-6), "faces look outwards"
    np.testing.assert_allclose(*(points[np.lexsort(np.round(points, 6).T)] for points in corners), atol=1e-7)


@pytest.mark.parametrize(
    "keys",
    [
        "", 'refpos="0.5 0 0"', 'refquat="0.9 0.1 0.3 0.2"', 'refpos="0.5 1 0" refquat="0.9 0.1 0.3 0.2" scale="-1 2 3"',
        *(f'scale="{scale}"' for scale in MIRRORED),
    ],
)
@pytest.mark.parametrize("source", ['file="m.obj"', 'vertex="0 0 0 0.3 0 0 0 0.3 0 0 0 0.3"'])
def test_vertices_of_meshes_are_those_of_mujoco(source, keys, tmp_path):
    (tmp_path / "m.obj").write_text(TETRAHEDRON)
    geom = '<geom type="mesh" mesh="m" pos="0.1 0.2 0.3" euler="10 20 30"/>'
    scene = load(mjcf(falling("b", geom), f'<asset><mesh name="m" {source} {keys}/></asset>'), tmp_path)
    reference = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    data = mujoco.MjData(reference)
    mujoco.mj_forward(reference, data)
    expected = reference.mesh_vert @ data.geom_xmat[0].reshape(3, 3).T + data.geom_xpos[0]
    found = vertices(scene, "b")
    np.testing.assert_allclose(*(points[np.lexsort(np.round(points, 4).T)] for points in (found, expected)), atol=1e-6)
    surface = trimesh.Trimesh(found, scene.compile().meshes[0].triangles, process=False)
    np.testing.assert_allclose(surface.center_mass, data.xipos[1], atol=1e-6)
    assert surface.volume == pytest.approx(reference.body_mass[1] / 1000.0, rel=1e-5), "faces look outwards"
    moments = scene.compile().bodies.moment[0]
    np.testing.assert_allclose(np.sort(moments.sum() - moments), np.sort(reference.body_inertia[1]), rtol=1e-4)


def test_warnings_of_mujoco_are_notes(tmp_path, monkeypatch, capfd):
    """Two hinges about one axis have a singular inertia matrix."""
    monkeypatch.chdir(tmp_path)
    text = mjcf('<body name="a"><joint axis="0 0 1"/><joint axis="0 0 1"/><geom size="0.1"/></body>')
    assert [note for note in load(text, tmp_path).notes if note.startswith("MuJoCo: Inertia matrix is too close to singular")]
    assert [path.name for path in tmp_path.iterdir()] == ["robot.xml"]
    assert not "".join(capfd.readouterr())


def test_height_field(tmp_path):
    text = mjcf(
        '<geom type="hfield" hfield="hills" name="ground"/>' + falling("ball", '<geom size="0.1"/>', "0.5 0.5 8"),
        '<asset><hfield name="hills" nrow="3" ncol="4" size="3 2 0.5 0.1" elevation="0 0 0 0  0 1 1 0  0 0 0 2"/></asset>',
    )
    scene = load(text, tmp_path)
    ground = scene.started()
    mesh = ground.meshes[ground.bodies.mesh[0]]
    assert mesh.closed and scene.body("ground").kind == "static"
    reference = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(reference)
    mujoco.mj_forward(reference, data)
    for x, y, z in mesh.vertices[:12]:
        inside = np.array([0.999999 * x, 0.999999 * y, 5.0])
        depth = mujoco.mj_ray(reference, data, inside, np.array([0.0, 0.0, -1.0]), None, 1, -1, np.zeros(1, np.int32))
        assert z == pytest.approx(5.0 - depth, abs=1e-5)
    assert sorted(mesh.vertices[:12, 2]) == pytest.approx([0] * 9 + [0.25, 0.25, 0.5])
    assert mesh.vertices[:, 2].min() == -0.1


def test_colors_of_geoms_and_materials(tmp_path):
    text = mjcf(
        falling("own", '<geom size="0.1" rgba="0.25 0.5 1 1"/>')
        + falling("of_material", '<geom size="0.1" material="glass"/>', "1 0 1")
        + falling("none", '<geom size="0.1"/>', "2 0 1"),
        '<asset><material name="glass" rgba="0 1 0 0.5"/></asset>',
    )
    scene = load(text, tmp_path)
    assert [scene.body(name).color for name in ("own", "of_material", "none")] == [(0.25, 0.5, 1), (0, 1, 0, 0.5), None]


RULES = {
    # name: attributes of the geom
    "plain": "",
    "rough": 'friction="1.5 0.01 0.002"',
    "masked": 'contype="2" conaffinity="4"',
    "other": 'contype="4" conaffinity="0" friction="0.3"',
    "icy": 'condim="1" friction="0.9"',
    "smooth": 'condim="1" friction="0.4"',
    "turning": 'condim="4" friction="0.5 0.02 0.001"',
    "rolling": 'condim="6" friction="0.6 0.003 0.004"',
    "leading": 'priority="1" friction="0.05"',
    "leading_icy": 'priority="2" condim="1"',
    "ghost": 'contype="0" conaffinity="0"',
    "paired": 'contype="0" conaffinity="0"',
    "paired_too": 'contype="0" conaffinity="0"',
    "pair_of_masked": 'contype="2" conaffinity="0"',
}
PAIRS = (
    '<contact><pair geom1="floor" geom2="paired" friction="0.3 0.3 0.005 0.0001 0.0001"/><pair geom1="paired" geom2="plain"/>'
    '<pair geom1="paired" geom2="paired_too" condim="6" friction="0.2 0.2 0.03 0.01 0.01"/><pair geom1="rough" geom2="plain" '
    'condim="1"/><pair geom1="pair_of_masked" geom2="floor" condim="4" friction="0.7 0.7 0.1 0 0"/>'
    '<exclude body1="smooth" body2="rough"/></contact>'
)


def test_contact_rules_are_those_that_mujoco_finds(tmp_path):
    names = ["floor", *RULES]
    bodies = "".join(
        falling(name, f'<geom name="{name}" size="0.1" {keys}/>', f"{k} 0 0.5")
        for k, (name, keys) in enumerate(RULES.items())
    )
    text = mjcf('<geom name="floor" type="plane" size="1 1 1" friction="0.2"/>' + bodies, PAIRS)
    compiled = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(compiled)
    data.qpos.reshape(-1, 7)[:, :3] = np.arange(len(RULES))[:, None] * 1e-3
    mujoco.mj_forward(compiled, data)
    right = {}
    for contact in data.contact:
        acting = contact.friction[[0, 2, 3]] * (contact.dim >= np.array([3, 4, 6]))
        right[tuple(sorted(compiled.geom(g).name for g in contact.geom))] = acting
    model = load(text, tmp_path).started()
    material = {name: model.bodies.material[model.bodies.names.index(name)] for name in names}
    tables, excluded = model.materials, ("rough", "smooth")
    np.testing.assert_array_equal(model.filtered, [sorted(model.bodies.names.index(name) for name in excluded)])
    for pair in combinations(sorted(names), 2):
        a, b = (material[name] for name in pair)
        assert tables.enabled[a, b] == (pair in right) or pair == excluded, pair
        if pair in right:
            got = [table[a, b] for table in (tables.mu, tables.spinning, tables.rolling)]
            np.testing.assert_allclose(got, right[pair], rtol=1e-12, err_msg=str(pair))


BALL, SEEN = '<geom size="0.1"/>', '<geom size="0.1" contype="0" conaffinity="0"/>'
HOOK = '<body name="hook" pos="0 0 0.3"><geom name="hook" size="0.1"/></body>'
EXCLUSIONS = {
    # name: shapes of body a, names of the excluded bodies, `<pair>`s, filters, shapes in a note
    "world": (BALL, "world a", "", [["floor", "a"]], ""),
    "body with a merged one": (BALL + HOOK, "world a", "", [], "'floor' and 'a'"),
    "merged body": (BALL + HOOK, "world hook", "", [], "'floor' and 'a'"),
    "merged body and another one": (BALL + HOOK, "hook b", "", [], "'a' and 'b'"),
    "merged body with all contact": (SEEN + HOOK, "world hook", "", [["floor", "a"]], ""),
    "both": (BALL + HOOK, "world hook world a", "", [["floor", "a"]], ""),
    "pair of a merged body": (BALL + HOOK, "world hook world a", '<pair geom1="floor" geom2="hook"/>', [], "'floor' and 'a'"),
    "child": (BALL + HOOK + f'<body name="c" pos="0 0 1"><joint/>{BALL}</body>', "hook c", "", [], ""),
}


@pytest.mark.parametrize("name", EXCLUSIONS)
def test_exclusions_of_all_shapes_are_filters_and_others_are_reported(name, tmp_path):
    shapes, ends, pairs, filters, noted = EXCLUSIONS[name]
    bodies = '<geom name="floor" type="plane" size="2 2 .1"/>' + falling("a", shapes) + falling("b", BALL, "9 0 1")
    names = ends.split()
    excludes = "".join(f'<exclude body1="{one}" body2="{two}"/>' for one, two in zip(names[::2], names[1::2]))
    scene = load(mjcf(bodies, f"<contact>{excludes}{pairs}</contact>"), tmp_path)
    assert [one.bodies for one in scene.spec.contact_filter] == filters
    assert [noted in note for note in scene.notes if "exclusions" in note] == [True] * bool(noted)


@pytest.mark.parametrize("held", ["joint", "exclude"])
def test_a_pair_overrides_filters(held, tmp_path):
    geom = '<geom name="{0}" size="0.1"/>'
    inner = f'<body name="b" pos="0 0 0.5"><joint axis="0 1 0"/>{geom.format("b")}</body>'
    exclude = '<exclude body1="a" body2="b"/>'
    if held == "joint":
        bodies, exclude = falling("a", geom.format("a") + inner), ""
    else:
        bodies = falling("a", geom.format("a")) + falling("b", geom.format("b"), "0 0 2")
    text = mjcf(bodies, f'<contact>{exclude}<pair geom1="a" geom2="b"/></contact>')
    scene = load(text, tmp_path)
    assert not scene.spec.contact_filter and all(joint.collide for joint in scene.spec.joint)


def test_a_link_collides_with_fixed_bodies_and_not_with_its_parent(tmp_path):
    arm = '<body name="arm" pos="0 0 0.1"><joint axis="0 1 0"/><geom type="capsule" size="0.05" fromto="0 0 0 0 0 0.5"/></body>'
    fixed = '<geom name="post" type="box" size="0.1 0.1 0.1"/>'
    moving = falling("base", f'<geom type="box" size="0.1 0.1 0.1"/>{arm}')
    assert load(mjcf(moving), tmp_path).started()
    with pytest.raises(SceneError, match=r"arm.*intersects.*post|post.*intersects.*arm"):
        load(mjcf(fixed + arm), tmp_path).started()
    scene = load(mjcf(fixed + arm), tmp_path, allow_overlaps=True)
    assert scene.spec.contact_filter[0].bodies == ["post", "arm"]
    assert_note(scene, "initial overlaps", "'post' and 'arm'")


NAMES = (
    *("a/b", "a_b", "a.b", "a b", "a|b", "a%2Fb", ".", "..", "/", "a/", "a+b", "a,b", "3", "\u00e4\u65e5", "it's", "-o"),
    "body.a.mass",
)


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_names_of_the_file_are_kept(suffix, tmp_path):
    """Bodies and joints of any name stay distinct in Python, scene files, trajectories and exports."""
    if suffix == ".urdf":
        links = "".join(link(name, 1.0 + k) for k, name in enumerate(NAMES))
        joints = "".join(joint(name, "continuous", "base", name, xyz=f"{k} 0 0") for k, name in enumerate(NAMES))
        text = f'<robot name="r/1">{link("base")}{links}{joints}</robot>'
    else:
        bodies = (
            f'<body name="{name}" pos="{k} 0 0"><joint name="{name}" axis="0 1 0"/>'
            f'<inertial pos="0.1 0 0" mass="{1 + k}" diaginertia="1 1 1"/></body>'
            for k, name in enumerate(NAMES)
        )
        text = mjcf("".join(bodies))
    scene = load(text, tmp_path, suffix)
    assert not any("has the name" in note for note in scene.notes)
    scene.save(tmp_path / "scene.toml")
    assert main(["run", str(tmp_path / "scene.toml"), "--device", "numpy", "--steps", "2", "--out", str(tmp_path / "run")]) == 0
    simulation = abd.Simulation(abd.load(tmp_path / "scene.toml", overrides=["body.a/b.mass=7.0"]), device="numpy")
    assert simulation.bodies["a/b"].mass == 7.0
    with Trajectory(tmp_path / "run") as trajectory:
        for k, name in enumerate(NAMES):
            assert name == "a/b" or simulation.bodies[name].mass == 1.0 + k
            assert simulation.joints[name].child == name
        assert sorted(trajectory.joint_names()) == sorted(NAMES)
        assert all(group.attrs["bodies"][1] == group.attrs["name"] for _, group in trajectory.joint_groups())
    for kind in ("usd", "glb", "obj", "vtk"):
        assert (kind == "usd" and find_spec("pxr") is None) or main(["export", str(tmp_path / "run"), "--to", kind]) == 0


def test_changed_names_are_reported(tmp_path):
    text = mjcf(
        '<geom name="box" size="0.1"/>' + falling("box", '<geom size="0.1"/>') + falling(" box", '<geom size="0.1"/>', "1 0 1")
    )
    scene = load(text, tmp_path)
    assert_note(scene, "geom 'box' of the world has the name 'box_'")
    assert_note(scene, "body ' box' has the name 'box_1'")
    assert scene.body("box").kind == "dynamic"


def test_limits_efforts_and_speeds_of_urdf(tmp_path):
    scene = abd.load(write_sample("serial", tmp_path))
    first, theta = scene.joint("j1"), scene.joint("j1").coordinate["theta"]
    assert (first.enforcement, first.parent, scene.joint("j3").type) == ("exact", "world", "slider")
    assert (theta.range, theta.effort_limit, theta.velocity_limit, theta.damping) == ((-2.0, 2.0), 30.0, 5.0, 0.3)
    assert scene.joint("j2").coordinate["theta"].range is None
    assert {body.name for body in scene.spec.body} == {"a", "b", "c", "finger1", "finger2"}
    assert_note(scene, "fixed to 'c'", "'tool', 'frame'")
    mimic = scene.spec.coupling[0]
    assert (mimic.coordinate, mimic.terms[0].coordinate, mimic.terms[0].factor) == ("f2.theta", "f1.theta", -0.5)
    assert scene.body("c").mass == pytest.approx(1.2)


def arm(keys: str = "", rest: str = "") -> str:
    """An MJCF file with a hinge j, unless its keys name another type."""
    return mjcf(f'<body name="a"><joint name="j" {keys}/><geom size="0.1"/></body>', rest)


def urdf_arm(kind: str, limit: str) -> str:
    """A URDF file with a joint j and its limit."""
    return f'<robot name="r">{link("base")}{link("arm")}{joint("j", kind, "base", "arm", f"<limit {limit}/>")}</robot>'


EMPTY_RANGES = (
    ('lower="1.2" upper="-0.5"', "[1.2, -0.5]"),
    ('lower="0.5" upper="0.5"', "equal lower and upper"),
    ('lower="0" upper="0"', "equal"),
)
UNUSED_LIMITS = {
    # name: file, words of the note
    "hinge": (arm('range="1 -1"'), "range [1, -1]", "as in MuJoCo"),
    "slide": (arm('type="slide" range="1 -1"'), "range [1, -1]", "as in MuJoCo"),
    "ball": (arm('type="ball" range="0.5 0.1"'), "range [0.5, 0.1]", "as in MuJoCo"),
    "equal": (arm('range="0.5 0.5"'), "range [0.5, 0.5]", "as in MuJoCo"),
    "effort": (arm('actuatorfrcrange="1 -1"'), "actfrcrange [1, -1]", "as in MuJoCo"),
    "control": (arm("", '<actuator><motor joint="j" ctrlrange="1 -1"/></actuator>'), "ctrlrange [1, -1]", "as in MuJoCo"),
    "force": (arm("", '<actuator><motor joint="j" forcerange="1 -1"/></actuator>'), "forcerange [1, -1]", "as in MuJoCo"),
    "tendon": (
        arm("", '<tendon><fixed range="1 -1"><joint joint="j" coef="1"/></fixed></tendon>'), "range [1, -1]", "as in MuJoCo"
    ),
    **{
        f"{kind} {limit}": (urdf_arm(kind, f'{limit} effort="10" velocity="1"'), "'j'", words)
        for kind in ("revolute", "prismatic", "planar") for limit, words in EMPTY_RANGES
    },
    **{
        f"{kind} without bounds": (urdf_arm(kind, 'effort="10" velocity="1"'), "without lower and upper", "'j'")
        for kind in ("revolute", "prismatic")
    },
    "no limit": (urdf_arm("revolute", "").replace("<limit />", ""), "without lower and upper", "'j'"),
    "negative effort": (urdf_arm("continuous", 'effort="-5" velocity="1"'), "effort '-5' is ignored"),
    "word for an effort": (urdf_arm("continuous", 'effort="high" velocity="1"'), "effort 'high' is ignored"),
    "negative speed": (urdf_arm("continuous", 'effort="10" velocity="-5"'), "velocity '-5' is ignored"),
    "word for a speed": (urdf_arm("continuous", 'effort="10" velocity="high"'), "velocity 'high' is ignored"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNUSED_LIMITS)
def test_ranges_efforts_and_speeds_without_extent_are_reported_and_limit_nothing(name, tmp_path):
    text, *words = UNUSED_LIMITS[name]
    scene = load(text, tmp_path, ".urdf" if text.startswith("<robot") else ".xml")
    assert_note(scene, *words)
    assert all(one.range is None for joint in scene.spec.joint for one in joint.coordinate.values())


@pytest.mark.parametrize(
    "limit, ends",
    [
        ('upper="0.3"', (0.0, 0.3)),
        ('lower="-0.3"', (-0.3, 0.0)),
        ('lower="-inf" upper="0.3"', (-np.inf, 0.3)),
        ('lower="-0.3" upper="inf"', (-0.3, np.inf)),
        ('lower="-inf" upper="inf"', (-np.inf, np.inf)),
        ("", None),
    ],
)
def test_missing_and_infinite_bounds_in_urdf(limit, ends, tmp_path):
    """A missing bound is 0."""
    scene = load(urdf_arm("prismatic", f'{limit} effort="10" velocity="1"'), tmp_path, ".urdf")
    assert scene.joint("j").coordinate["z"].range == ends


def test_the_types_of_many_joints(tmp_path):
    scene = abd.load(write_sample("many", tmp_path))
    assert {joint.name: joint.type for joint in scene.spec.joint} == {
        "u1+u2": "universal", "g1+g2+g3": "gimbal", "p1+p2+p3": "planar", "x+y+z": "general", "tx+ty": "general",
        "c1+c2": "cylindrical", "s1+s2": "slotted_hinge",
    }  # fmt: skip
    assert scene.joint("g1+g2+g3").coordinate["pitch"].range == pytest.approx((-np.pi / 3, np.pi / 3))


def test_balls_have_ranges_rotors_and_friction(tmp_path):
    keys = 'range="0 40" limited="true" stiffness="0.4" damping="0.1" frictionloss="0.2" armature="0.3"'
    joint = load(arm(f'type="ball" {keys}'), tmp_path).joint("j").model_dump()
    assert joint["type"] == "spherical" and joint["max_rotation"] == pytest.approx((np.radians(40),) * 3)
    assert [joint[f"rotary_{name}"] for name in ("stiffness", "damping", "friction", "armature")] == [0.4, 0.1, 0.2, 0.3]


def test_balls_beyond_their_range_start_inside_it(tmp_path):
    body = '<body name="a"><joint name="a" type="ball" range="0 30" limited="true"/><geom size="0.1" pos="0.2 0 0"/></body>'
    scene = load(mjcf(body, '<keyframe><key name="k" qpos="0.877 0 0.479 0"/></keyframe>'), tmp_path, keyframe="k")
    assert_note(scene, "moved inside the range", "'a' from 0.9998 to 0.5226")
    expected = np.r_[np.cos(0.2613), 0, np.sin(0.2613), 0]
    assert abd.Simulation(scene, device="cpu").bodies["a"].quaternion == pytest.approx(expected, abs=1e-4)


def test_joints_at_a_bound_start_inside_their_range(tmp_path):
    keys = 'axis="0 1 0" pos="-0.2 0 0" range="0 90" limited="true"'
    scene = load(arm(keys), tmp_path)
    assert_note(scene, "moved inside the range", "'j' from 0 to 0.001")
    simulation = abd.run(scene, duration=0.2, device="cpu")
    assert 0 < simulation.joints["j"].coordinate("theta").value < np.pi / 2


def test_coupled_joints_at_a_bound_start_and_stay_at_rest(tmp_path):
    bound = '<limit lower="0" upper="1" effort="5" velocity="20"/>'
    text = f'<robot name="r"><link name="a"/>{link("b")}{link("c")}' + "".join(
        joint(name, "revolute", "a", child, rest, axis="0 0 1")
        for name, child, rest in (("j", "b", bound), ("k", "c", f'{bound}<mimic joint="j" multiplier="0.5"/>'))
    )
    scene = load(f"{text}</robot>", tmp_path, ".urdf")
    scene.gravity = (0, 0, 0)
    simulation = abd.Simulation(scene, device="numpy")
    simulation.step()
    j, k = (simulation.joints[name].theta for name in "jk")
    assert j.value > 0 and k.value == pytest.approx(0.5 * j.value, rel=1e-9)
    assert (j.speed, k.speed) == pytest.approx((0, 0), abs=1e-6)


def test_an_equality_of_one_tendon_locks_its_length(tmp_path):
    """MuJoCo uses the constant of the polynomial only."""
    tendons = "".join(f'<fixed name="{name}"><joint joint="{name}" coef="2"/></fixed>' for name in ("j0", "j1"))
    rest = f'<tendon>{tendons}</tendon><equality><tendon tendon1="j0" polycoef="0.3 0 0.5 0 0"/></equality>'
    scene = load(mjcf(arms(["", 'ref="30"']), rest), tmp_path)
    assert not scene.spec.coupling and scene.joint("j0").coordinate["theta"].lock_value == pytest.approx(0.15)


def test_velocity_servos_are_velocity_drives(tmp_path):
    scene = load(arm('axis="0 1 0"', '<actuator><velocity joint="j" kv="2" forcerange="-9 9"/></actuator>'), tmp_path)
    drive = scene.joint("j").coordinate["theta"].drive
    assert (drive.mode, drive.target, drive.damping, drive.effort) == ("velocity", 0.0, 2.0, 9.0)


def test_velocity_limits_of_joints_with_changed_names_act(tmp_path):
    bounds = '<limit lower="-1" upper="1" effort="5" velocity="2"/>'
    text = f'<robot name="r"><link name="a"/>{link("b")}{joint("j ", "revolute", "a", "b", bounds)}</robot>'
    assert load(text, tmp_path, ".urdf").joint("j").coordinate["theta"].velocity_limit == 2.0


def test_keyframes(tmp_path):
    text = arm('axis="0 1 0"', '<keyframe><key name="up" qpos="2" qvel="3"/><key qpos="1"/></keyframe>')
    assert_note(load(text, tmp_path), "--keyframe", "up, 1")
    for key, state in (("up", (2.0, 3.0)), ("1", (1.0, 0.0))):
        theta = abd.Simulation(load(text, tmp_path, keyframe=key), device="cpu").joints["j"].theta
        assert (theta.value, theta.speed) == pytest.approx(state)


URDF_WITH_MESH = (
    '<robot name="r"><link name="base"/><link name="arm"><inertial><mass value="6"/>'
    '<inertia ixx="{0}" iyy="0.2" izz="0.13" ixy="0" ixz="0" iyz="0"/></inertial><visual><geometry>'
    '<mesh filename="package://bot/gone.dae"/></geometry></visual><collision><geometry>'
    '<mesh filename="package://bot/meshes/arm.obj"/></geometry></collision></link>'
    '<joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>'
)


def test_missing_meshes_are_listed_with_the_paths_tried(tmp_path, monkeypatch):
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    with pytest.raises(SceneError) as error:
        load(URDF_WITH_MESH.format(0.25), tmp_path, ".urdf")
    (problem,), mesh = error.value.problems, str(tmp_path / "bot" / "meshes" / "arm.obj")
    assert all(words in str(problem) for words in ("package://bot/meshes/arm.obj", mesh, "--missing-meshes boxes"))
    assert "gone.dae" not in str(problem), "pictures of bodies with a shape are not needed"
    scene = load(URDF_WITH_MESH.format(0.25), tmp_path, ".urdf", missing_meshes="boxes")
    assert_note(scene, "missing mesh", "arm.obj")
    moments = np.array([0.25, 0.2, 0.13])
    extents = np.sqrt(12 * (0.5 * moments.sum() - moments) / 6)
    np.testing.assert_allclose(np.sort(scene.body("arm").box), np.sort(extents), rtol=1e-6)


def test_packages_are_found_beside_the_file_in_assets_and_in_the_path_of_ros(tmp_path, monkeypatch):
    (tmp_path / "bot" / "urdf").mkdir(parents=True)
    (tmp_path / "x").mkdir()
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "path"))
    for place, robot, assets in ((".", "bot/urdf", []), ("elsewhere", "x", [tmp_path / "elsewhere"]), ("path", "x", [])):
        mesh = tmp_path / place / "bot" / "meshes" / "arm.obj"
        mesh.parent.mkdir(parents=True)
        mesh.write_text(TETRAHEDRON)
        scene = load(URDF_WITH_MESH.format(0.25), tmp_path / robot, ".urdf", assets=assets)
        assert scene.body("arm").mesh == str(mesh)
        mesh.unlink()


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_folder_and_stripped_paths_of_meshes(suffix, tmp_path):
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "m.obj").write_text(TETRAHEDRON)
    compiler, file = '<compiler strippath="true" meshdir="meshes"/>', r"C:\elsewhere\m.obj"
    if suffix == ".xml":
        asset = f'{compiler}<asset><mesh name="m" file="{file}"/></asset>'
        scene = load(mjcf(falling("b", '<geom type="mesh" mesh="m"/>'), asset), tmp_path)
    else:
        text = URDF_WITH_MESH.format(0.25).replace("package://bot/meshes/arm.obj", file)
        scene = load(text.replace("</robot>", f"<mujoco>{compiler}</mujoco></robot>"), tmp_path, suffix)
    assert scene.spec.body[0].mesh == str(tmp_path / "meshes" / "m.obj")


def test_impossible_inertias(tmp_path):
    (tmp_path / "bot" / "meshes").mkdir(parents=True)
    (tmp_path / "bot" / "meshes" / "arm.obj").write_text(TETRAHEDRON)
    scene = load(URDF_WITH_MESH.format(0.9), tmp_path, ".urdf")
    assert_note(scene, "'arm'", "principal inertias [0.13, 0.2, 0.9]", "nearest")
    values = np.sort(np.array(scene.body("arm").inertia))
    # S = diag(-0.285, 0.415, 0.485) with its negative entry at a millionth of the largest
    np.testing.assert_allclose(values, np.sort([0.9, 0.485, 0.415]), rtol=1e-5)
    assert scene.started()


INNER = '<body name="v" pos="0 0 1"><joint name="v" axis="0 1 0"/><geom size="0.1"/><site name="t"/></body>'
SERVO = '<actuator><position name="s" joint="j" forcerange="-1 3"/></actuator>'
PLAIN_SERVO = '<actuator><position name="s" joint="j"/></actuator>'
BOX = '<collision><geometry><box size="0.2 0.4 0.6"/></geometry></collision>'
UNSUPPORTED = {
    # name: file, words of each note
    "elements": (
        mjcf(
            '<camera name="c" pos="0 0 1"/><light pos="0 0 1"/>'
            + falling("b", '<geom size="0.1" condim="6" margin="0.01"/><site name="s"/>')
            + '<body name="w"><joint name="w" range="-90 90" limited="true" margin="0.1"/>'
            '<joint name="v" axis="0 1 0" pos="1 0 0"/><geom size="0.1"/></body>',
            '<asset><texture name="t" type="2d" builtin="flat" width="4" height="4"/></asset>'
            '<sensor><gyro site="s"/></sensor><actuator><motor site="s" name="jet"/></actuator>'
            '<tendon><fixed name="t"><joint joint="w" coef="1"/></fixed></tendon>',
            ' density="1.2" viscosity="0.1"',
        ),
        ("not supported: 1 <camera>, 1 <light>, 1 <sensor>, 1 <texture>",),
        ("jet", "sites"), ("carriers", "'w'"), ("density", "viscosity", "margin of joint 'w'", "margin of geom 0"),
    ),
    "actuators and tendons": (
        mjcf(
            f'<body name="w"><joint name="w" axis="0 1 0"/><geom size="0.1"/><site name="s"/>{INNER}</body>',
            '<tendon><fixed name="sum" limited="true" range="-1 1"><joint joint="w" coef="1"/><joint joint="v" coef="1"/>'
            '</fixed><spatial name="cord" limited="true" range="0.1 1"><site site="s"/><site site="t"/></spatial></tendon>'
            '<actuator><muscle joint="v" name="biceps" lengthrange="0 1"/><motor tendon="sum" name="winch"/>'
            '<adhesion body="v" name="sticky" ctrlrange="0 1"/></actuator>',
        ),
        ("actuators are ignored: biceps (their type of gain is not supported)",), ("winch", "tendons"),
        ("sticky", "adhesion"), ("tendon 'sum'", "range is ignored"), ("tendon 'cord'", "smallest length 0.1 m"),
    ),
    "values": (
        arm(
            'stiffness="1 2" damping="1 2" springyield="1" actuatorgravcomp="true" actuatorfrcrange="-1 1"',
            '<option><flag override="enable"/></option><tendon><fixed name="t" stiffness="1 2" damping="1 0 2" springyield="1" '
            'actuatorfrcrange="-1 1"><joint joint="j" coef="1"/></fixed></tendon>'
            '<actuator><motor name="m" joint="j" delay="0.1" nsample="9" damping="0 1"/></actuator>',
        ),
        (
            *("override", "delay of actuator 'm'", "actuatorgravcomp within actuatorfrcrange of joint 'j'"),
            *(f"springyield of {one}" for one in ("joint 'j'", "tendon 't'")),
            *(f"nonlinear damping of {one}" for one in ("joint 'j'", "tendon 't'", "actuator 'm'")),
            *(f"nonlinear stiffness of {one}" for one in ("joint 'j'", "tendon 't'")),
            "actuatorfrcrange of tendon 't'",
        ),
    ),
    "values of many": (
        mjcf("".join(falling(f"b{k}", f'<geom size="0.1" surfacevel="{k} 0 0" adhesion="1"/>', f"{k} 0 0") for k in range(5))),
        ("adhesion of geoms 0, 1, 2 and 2 more; surfacevel of geoms 1, 2, 3 and 1 more",),
    ),
    "friction of shapes": (
        mjcf(
            falling("a", '<geom size="0.1" condim="1"/><geom size="0.2"/>')
            + falling("b", '<geom size="0.1" condim="6"/><geom size="0.2" condim="6" friction="1 0.3 0.02"/>', "1 0 0")
            + falling("c", '<geom size="0.1" priority="1"/><geom size="0.2"/>', "2 0 0")
            + falling("d", '<geom size="0.1"/><geom size="0.2"/>', "3 0 0")
            + falling("e", '<geom name="e" size="0.1"/><geom name="f" size="0.2"/>', "4 0 0")
            + '<geom name="wall" pos="9 0 0" size="1"/>',
            '<contact><pair geom1="e" geom2="wall" condim="1"/><pair geom1="f" geom2="wall" friction="1 2 0 0 0"/></contact>',
        ),
        *(("different friction", f"'{name}': its", f"condim {n}") for name, n in (("a", 3), ("b", 6), ("c", 3))),
        ("different friction", "'wall' and 'e', 'wall' and 'f'"), ("anisotropic friction of pair 1",),
    ),
    "shapes with different pairs": (
        mjcf(
            falling("a", '<geom name="a" size="0.1"/><geom name="b" size="0.2"/>')
            + '<geom name="c" pos="5 0 0" size="1"/><geom name="d" pos="9 0 0" size="1"/>',
            '<contact><pair geom1="a" geom2="c"/><pair geom1="b" geom2="d"/></contact>',
        ),
        ("'a': its shapes have different", "pairs"),
    ),
    "contacts and limits that rebound": (
        mjcf(
            "".join(
                falling(name, f'<geom name="{name}" size="0.1" {keys}/>', f"{k} 0 0")
                for k, (name, keys) in enumerate(
                    {
                        "a": 'solref="-10000 -0.1"', "b": 'solref="0.02 0.2"', "c": 'gap="0.05"', "d": 'solref="0.5 1"',
                        "e": 'solref="-100 -20"', "f": 'solref="-1 0" contype="0" conaffinity="0"',
                    }.items()
                )
            )
            + '<body pos="9 0 0"><joint name="j" solreflimit="0.1 0.1" range="-1 1"/><geom size="0.1"/></body>',
            '<contact><pair geom1="a" geom2="b" solref="0.02 0.1" gap="0.1"/></contact>',
        ),
        ("gap of geom 'c'; gap of pair 0;", "joint 'j', geoms 'a', 'b', pair 0"),
    ),
    "plane of a mocap body": (
        mjcf('<body mocap="true" pos="0 0 -1"><geom name="p" type="plane" size="1 1 1"/></body>' + falling("a", BALL)),
        ("plane 'p'", "static"),
    ),
    "links without inertia": (
        f'<robot name="r">{link("base", 0)}{link("a", 0, BOX)}{link("b", 0, BOX)}{link("c")}'
        + joint("j", "continuous", "base", "a") + joint("k", "fixed", "a", "b") + joint("l", "continuous", "b", "c")
        + "</robot>",
        ("without mass", "'a' (48 kg), 'b' (48 kg)"),
    ),
    "several actuators with limits": (
        arm("", '<actuator><motor joint="j" forcerange="-5 5"/><velocity name="v" joint="j" forcerange="-5 5"/></actuator>'),
        ("ignored: v", "several actuators of a joint with force limits"),
    ),
    "asymmetric force range": (arm("", SERVO), ("'s'", "range -1 .. 3 is not symmetric")),
    "asymmetric effort range": (
        arm('actuatorfrcrange="-1 3"', PLAIN_SERVO), ("'j.theta'", "range -1 .. 3 is not symmetric; the smaller limit is used")
    ),
    "effort in one direction": (arm('actuatorfrcrange="0 3"', PLAIN_SERVO), ("ignored: s (forces in one direction only",)),
    "two controls": (arm("", '<actuator><pid name="p" joint="j" kp="1" kv="1"/></actuator>'), ("ignored: p (",)),
    "gravcomp of a part": (
        mjcf('<body name="a"><joint axis="0 1 0"/><geom size="0.1"/><body gravcomp="1"><geom size="0.1"/></body></body>'),
        ("'a'", "gravcomp"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_elements_are_reported(name, tmp_path):
    text, *notes = UNSUPPORTED[name]
    scene = load(text, tmp_path, ".urdf" if text.startswith("<robot") else ".xml")
    for words in notes:
        assert_note(scene, *words)
    assert scene.started()


def test_mocap_bodies_are_kinematic(tmp_path):
    text = mjcf(
        '<body name="hand/left" mocap="true" pos="0 0 1"/>' + falling("held", '<geom size="0.1"/>'),
        '<equality><weld body1="hand/left" body2="held"/></equality>',
    )
    scene = load(text, tmp_path)
    assert_note(scene, "mocap body 'hand/left' does not move")
    simulation = abd.Simulation(scene, device="cpu")
    simulation.run(steps=5)
    np.testing.assert_allclose(simulation.bodies["held"].position, (0, 0, 1), atol=1e-9)
    for k in range(10):
        simulation.bodies["hand/left"].move_to(position=(0, 0.001 * k, 1))
        simulation.step()
    np.testing.assert_allclose(simulation.bodies["held"].position, (0, 0.009, 1), atol=1e-9)


@pytest.mark.parametrize("keys", ["", 'contype="0" conaffinity="0"'])
def test_links_without_mass_that_collide_remain(keys, tmp_path):
    inner = '<body name="c"><joint axis="0 1 0"/><geom size="0.1" pos="0.5 0 0"/></body>'
    scene = load(mjcf(f'<body name="b"><joint axis="0 0 1"/><geom size="0.1" mass="0" {keys}/>{inner}</body>'), tmp_path)
    assert [body.name for body in scene.spec.body] == (["c"] if keys else ["b", "c"])


def test_a_free_base(tmp_path):
    text = mjcf('<body name="base"><geom type="box" size="0.1 0.1 0.1"/></body>')
    assert load(text, tmp_path).body("base").kind == "static"
    scene = load(text, tmp_path, free_base=True)
    assert scene.body("base").kind == "dynamic"
    assert_note(scene, "'base' is free")
    assert_note(load(mjcf(falling("base", '<geom size="0.1"/>')), tmp_path, free_base=True), "--free-base has no effect")


def test_files_are_converted(tmp_path, capsys):
    convert = ["convert", str(write_sample("serial", tmp_path)), str(tmp_path / "out.toml")]
    assert main([*convert, "-o", "solver.dt=0.002"]) == 0
    assert abd.load(tmp_path / "out.toml").solver.dt == 0.002
    assert main(convert) == 2 and "--force" in capsys.readouterr().err
    assert main([*convert[:2], str(tmp_path / "out.json")]) == 2 and main([*convert, "--force"]) == 0


def test_macros(tmp_path):
    pytest.importorskip("xacrodoc")
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    macro = f'<link name="${{n}}"><inertial><mass value="${{2 * l}}"/>{inertia}</inertial></link>'
    text = (
        '<robot name="m" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:property name="l" value="0.5"/>'
        f'<xacro:macro name="part" params="n">{macro}</xacro:macro><xacro:part n="a"/><xacro:part n="b"/>'
        '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>'
    )
    assert load(text, tmp_path, ".xacro").body("b").mass == 1.0
    with pytest.raises(SceneError, match="'k' is not defined"):
        load(text.replace("2 * l", "2 * k"), tmp_path, ".xacro")
