"""URDF and MJCF files and their scenes: shapes, contacts, joints, drives, options, report."""

import sys
from importlib.util import find_spec
from itertools import combinations

import numpy as np
import pytest
from robot_samples import joint, link, mjcf, write_sample

import abd
from abd.cli import main
from abd.errors import SceneError
from abd.io.trajectory import Trajectory

pytest.importorskip("mujoco")

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


# shapes


def test_shapes_in_the_frame_of_their_link_keep_their_kind(tmp_path):
    (tmp_path / "wedge.obj").write_text(TETRAHEDRON)
    shapes = {
        "box": '<geom type="box" size="0.1 0.2 0.3"/>',
        "ball": '<geom type="sphere" size="0.1" euler="10 20 30"/>',
        "capsule": '<geom type="capsule" size="0.1 0.2"/>',
        "cylinder": '<geom type="cylinder" size="0.1 0.2"/>',
        "ellipsoid": '<geom type="ellipsoid" size="0.1 0.2 0.3"/>',
        "mesh": '<geom type="mesh" mesh="wedge"/>',
    }
    bodies = "".join(falling(name, geom, f"{2 * k} 0 1") for k, (name, geom) in enumerate(shapes.items()))
    scene = load(mjcf(bodies, '<asset><mesh file="wedge.obj" scale="2 2 2"/></asset>'), tmp_path)
    assert scene.body("box").box == (0.2, 0.4, 0.6)
    assert scene.body("ball").sphere.radius == 0.1 and scene.body("ball").quaternion is None
    assert (scene.body("capsule").capsule.radius, scene.body("capsule").capsule.length) == (0.1, 0.4)
    assert (scene.body("cylinder").cylinder.radius, scene.body("cylinder").cylinder.length) == (0.1, 0.4)
    assert scene.body("ellipsoid").scale == (0.1, 0.2, 0.3)
    assert scene.body("mesh").mesh == str(tmp_path / "wedge.obj") and scene.body("mesh").scale == (2.0, 2.0, 2.0)
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


MIRRORS = ("1 -1 1", "-1 -1 -1", "-2 1 0.5", "-1 1 -1")


@pytest.mark.parametrize("scale", MIRRORS)
@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_mirrored_meshes_keep_their_outer_side_mass_and_inertia(suffix, scale, tmp_path):
    """They equal the same mesh with the mirror in its file and reversed faces."""
    (tmp_path / "m.obj").write_text(TETRAHEDRON)
    factors = np.array(scale.split(), dtype=float)
    points = np.array([line.split()[1:] for line in TETRAHEDRON.splitlines() if line[0] == "v"], dtype=float) * factors
    faces = [line.split()[1:] for line in TETRAHEDRON.splitlines() if line[0] == "f"]
    faces = [face[::-1] if np.prod(factors) < 0.0 else face for face in faces]
    baked = [f"v {x} {y} {z}\n" for x, y, z in points] + [f"f {a} {b} {c}\n" for a, b, c in faces]
    (tmp_path / "baked.obj").write_text("".join(baked))

    def robot(file: str, given: str) -> abd.Scene:
        if suffix == ".xml":
            geom = '<geom type="mesh" mesh="m" density="500" pos="0.1 0 0" euler="30 0 0"/>'
            return load(
                mjcf(falling("b", geom), f'<asset><mesh name="m" file="{file}" scale="{given}"/></asset>'), tmp_path
            )
        mesh = f'<geometry><mesh filename="{file}" scale="{given}"/></geometry>'
        link = f'<link name="b"><collision><origin xyz="0.1 0 0" rpy="0.5 0 0"/>{mesh}</collision></link>'
        return load(f'<robot name="r">{link}</robot>', tmp_path, suffix, free_base=True)

    mirrored, expected = robot("m.obj", scale), robot("baked.obj", "1 1 1")
    one, other = (scene.compile() for scene in (mirrored, expected))
    assert not any("inwards" in note for note in (*mirrored.notes, *one.notes))
    body = one.bodies.names.index("b")
    assert one.bodies.mass[body] == pytest.approx(other.bodies.mass[body], rel=1e-6) and one.bodies.mass[body] > 0.0
    np.testing.assert_allclose(np.sort(one.bodies.moment[body]), np.sort(other.bodies.moment[body]), rtol=1e-5)
    corners = []
    for model in (one, other):
        mesh = model.meshes[model.bodies.mesh[body]]
        placed = np.array([model.user_transform(model.bodies.q)[body]])[0]
        frame = model.bodies.body_frame[body]
        local = (mesh.vertices - frame[:3, 3]) @ frame[:3, :3]
        world = local @ placed[:3, :3].T + placed[:3, 3]
        triangles = world[mesh.triangles]
        volume = np.einsum("fi,fi->", triangles[:, 0], np.cross(triangles[:, 1], triangles[:, 2])) / 6.0
        assert volume == pytest.approx(0.3**3 / 6.0 * abs(np.prod(factors)), rel=1e-6), "faces look outwards"
        corners.append(world[np.lexsort(np.round(world, 6).T)])
    np.testing.assert_allclose(*corners, atol=1e-7)


def test_height_field(tmp_path):
    text = mjcf(
        '<geom type="hfield" hfield="hills" name="ground"/>' + falling("ball", '<geom size="0.1"/>', "0.5 0.5 8"),
        '<asset><hfield name="hills" nrow="3" ncol="4" size="3 2 0.5 0.1" elevation="0 0 0 0  0 1 1 0  0 0 0 2"/></asset>',
    )
    scene = load(text, tmp_path)
    ground = scene.started()
    mesh = ground.meshes[ground.bodies.mesh[0]]
    assert mesh.closed and scene.body("ground").kind == "static"
    mujoco = pytest.importorskip("mujoco")
    reference = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(reference)
    mujoco.mj_forward(reference, data)
    for x, y, z in mesh.vertices[:12]:
        inside = np.array([0.999999 * x, 0.999999 * y, 5.0])
        depth = mujoco.mj_ray(reference, data, inside, np.array([0.0, 0.0, -1.0]), None, 1, -1, np.zeros(1, np.int32))
        assert z == pytest.approx(5.0 - depth, abs=1e-5)
    assert sorted(mesh.vertices[:12, 2]) == pytest.approx([0] * 9 + [0.25, 0.25, 0.5])
    assert mesh.vertices[:, 2].min() == -0.1
    scene.body("ball").position = (0.5, 0.5, 0.45)
    simulation = abd.Simulation(scene, device="cpu")
    for _ in range(30):
        simulation.step()
    assert 0.25 < simulation.bodies["ball"].position[2] < 0.45, "the ball lies on the hill"


def test_colors_of_geoms_and_materials(tmp_path):
    text = mjcf(
        falling("own", '<geom size="0.1" rgba="0.25 0.5 1 1"/>')
        + falling("of_material", '<geom size="0.1" material="glass"/>', "1 0 1")
        + falling("none", '<geom size="0.1"/>', "2 0 1"),
        '<asset><material name="glass" rgba="0 1 0 0.5"/></asset>',
    )
    scene = load(text, tmp_path)
    assert [scene.body(name).color for name in ("own", "of_material", "none")] == [(0.25, 0.5, 1), (0, 1, 0, 0.5), None]


def test_visual_shapes_have_no_contact(tmp_path):
    text = mjcf(
        '<geom type="plane" size="1 1 1"/>'
        + falling("ghost", '<geom size="0.1" contype="0" conaffinity="0"/>', "0 0 0.2")
        + falling("both", '<geom size="0.1"/><geom size="0.5" contype="0" conaffinity="0"/>', "2 0 0.2")
    )
    scene = load(text, tmp_path)
    simulation = abd.Simulation(scene, device="cpu")
    for _ in range(40):
        simulation.step()
    assert simulation.bodies["ghost"].position[2] < -0.3
    assert scene.body("both").sphere.radius == 0.1
    assert simulation.bodies["both"].position[2] == pytest.approx(0.1, abs=4e-3)


# contacts


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
    import mujoco

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


@pytest.mark.parametrize("dt", [0.01, 0.002, 0.0005])
def test_a_body_that_collides_by_a_pair_rests_on_the_floor(dt, tmp_path):
    box = '<geom name="box" type="box" size="0.1 0.1 0.1" contype="0" conaffinity="0"/>'
    text = mjcf(
        '<geom name="floor" type="plane" size="1 1 1"/>' + falling("body", box, "0 0 0.101"),
        '<contact><pair geom1="box" geom2="floor"/></contact>',
    )
    simulation = abd.Simulation(load(text, tmp_path, overrides=[f"solver.dt={dt}"]), device="cpu")
    simulation.run(duration=0.2)
    assert simulation.bodies["body"].position[2] == pytest.approx(0.1, abs=4e-3)


def test_contact_with_the_world_can_be_excluded(tmp_path):
    floor, geom = '<geom name="floor" type="plane" size="2 2 .1"/>', '<geom type="box" size=".05 .05 .05" mass="1"/>'
    text = mjcf(floor + falling("a", geom, "0 0 0.06"), '<contact><exclude body1="world" body2="a"/></contact>')
    simulation = abd.Simulation(load(text, tmp_path), device="cpu")
    simulation.run(duration=0.2)
    assert simulation.bodies["a"].position[2] == pytest.approx(0.06 - 0.5 * 9.81 * 0.04, abs=0.01)


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


# names

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


# joints and the settings of their coordinates


def test_limits_efforts_and_speeds_of_urdf(tmp_path):
    scene = abd.load(write_sample("serial", tmp_path))
    first = scene.joint("j1").coordinate["theta"]
    assert scene.joint("j1").enforcement == "exact" and scene.joint("j1").parent == "world"
    assert (first.range, first.effort_limit, first.velocity_limit, first.damping) == ((-2.0, 2.0), 30.0, 5.0, 0.3)
    assert scene.joint("j2").coordinate["theta"].range is None
    assert scene.joint("j3").type == "slider"
    assert {body.name for body in scene.spec.body} == {"a", "b", "c", "finger1", "finger2"}
    assert_note(scene, "merged with 'c'", "'tool', 'frame'")
    mimic = scene.spec.coupling[0]
    assert (mimic.coordinate, mimic.terms[0].coordinate, mimic.terms[0].factor) == ("f2.theta", "f1.theta", -0.5)
    assert scene.body("c").mass == pytest.approx(1.2)


MJCF_RANGES = {
    "hinge": ('range="1 -1"', "", "range [1, -1]"),
    "slide": ('type="slide" range="1 -1"', "", "range [1, -1]"),
    "ball": ('type="ball" range="0.5 0.1"', "", "range [0.5, 0.1]"),
    "equal": ('range="0.5 0.5"', "", "range [0.5, 0.5]"),
    "effort": ('actuatorfrcrange="1 -1"', "", "actfrcrange [1, -1]"),
    "control": ("", '<actuator><motor joint="j" ctrlrange="1 -1"/></actuator>', "ctrlrange [1, -1]"),
    "force": ("", '<actuator><motor joint="j" forcerange="1 -1"/></actuator>', "forcerange [1, -1]"),
    "tendon": ("", '<tendon><fixed range="1 -1"><joint joint="j" coef="1"/></fixed></tendon>', "range [1, -1]"),
}


@pytest.mark.parametrize("name", MJCF_RANGES)
def test_ranges_without_extent_are_reported_in_mjcf(name, tmp_path):
    keys, rest, words = MJCF_RANGES[name]
    text = mjcf(f'<body name="a"><joint name="j" {keys}/><geom size="0.1"/></body>', rest)
    assert_note(load(text, tmp_path), words, "ignored, as in MuJoCo")


@pytest.mark.parametrize("key", ["effort", "velocity"])
@pytest.mark.parametrize("value", ["-5", "high"])
def test_efforts_and_speeds_that_are_not_positive_are_reported(key, value, tmp_path):
    bounds = {"effort": "10", "velocity": "1", key: value}
    limit = f'<limit lower="-1" upper="1" effort="{bounds["effort"]}" velocity="{bounds["velocity"]}"/>'
    robot = f'<robot name="r">{link("base")}{link("arm")}{joint("j", "revolute", "base", "arm", limit)}</robot>'
    assert_note(load(robot, tmp_path, ".urdf"), f"{key} '{value}' is ignored")


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "planar"])
@pytest.mark.parametrize(
    "limit, words", [("1.2 -0.5", "[1.2, -0.5]"), ("0.5 0.5", "equal lower and upper"), ("0 0", "equal")]
)
def test_ranges_without_extent_are_reported_in_urdf(kind, limit, words, tmp_path):
    lower, upper = limit.split()
    ends = f'<limit lower="{lower}" upper="{upper}" effort="10" velocity="1"/>'
    robot = f'<robot name="r">{link("base")}{link("arm")}{joint("j", kind, "base", "arm", ends)}</robot>'
    scene = load(robot, tmp_path, ".urdf")
    assert_note(scene, "'j'", words)
    assert all(one.range is None for one in scene.spec.joint[0].coordinate.values())


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
    one = joint("j", "prismatic", "base", "arm", f'<limit {limit} effort="10" velocity="1"/>')
    scene = load(f'<robot name="r">{link("base")}{link("arm")}{one}</robot>', tmp_path, ".urdf")
    assert scene.joint("j").coordinate["z"].range == ends


def test_asymmetric_force_ranges_are_reported(tmp_path):
    arm, servo = '<body name="a"><joint name="j"/><geom size="0.1"/></body>', '<position name="s" joint="j" forcerange="-1 3"/>'
    scene = load(mjcf(arm, f"<actuator>{servo}</actuator>"), tmp_path)
    assert_note(scene, "'s'", "range -1 .. 3 is not symmetric")
    assert scene.joint("j").coordinate["theta"].drive.effort == 1.0


def test_gravcomp_of_a_part_is_reported(tmp_path):
    part = '<body name="part" pos="0.2 0 0" gravcomp="1"><geom size="0.1"/></body>'
    scene = load(mjcf(f'<body name="a"><joint axis="0 1 0"/><geom size="0.1"/>{part}</body>'), tmp_path)
    assert_note(scene, "'a'", "gravcomp")


def test_massless_links_are_merged_with_the_next_joint(tmp_path):
    scene = abd.load(write_sample("roving", tmp_path))
    assert scene.joint("pan+tilt").type == "universal" and scene.joint("pan+tilt").parent == "cart"
    assert scene.joint("plane").type == "planar"
    assert all("flight" not in joint.name for joint in scene.spec.joint), "a floating joint constrains nothing"
    assert_note(scene, "links without mass", "'gimbal_ring'")


def test_the_types_of_many_joints(tmp_path):
    scene = abd.load(write_sample("many", tmp_path))
    types = {joint.name: joint.type for joint in scene.spec.joint}
    assert types == {
        "u1+u2": "universal",
        "g1+g2+g3": "gimbal",
        "p1+p2+p3": "planar",
        "x+y+z": "general",
        "tx+ty": "general",
        "c1+c2": "cylindrical",
        "s1+s2": "slotted_hinge",
    }
    assert scene.joint("g1+g2+g3").coordinate["pitch"].range == pytest.approx((-np.pi / 3, np.pi / 3))


def test_balls_have_ranges_rotors_and_friction(tmp_path):
    keys = 'range="0 40" limited="true" stiffness="0.4" damping="0.1" frictionloss="0.2" armature="0.3"'
    joint = load(mjcf(f'<body name="a"><joint name="a" type="ball" {keys}/><geom size="0.1"/></body>'), tmp_path).joint("a")
    assert joint.type == "spherical" and joint.max_rotation == pytest.approx((np.radians(40),) * 3)
    found = (joint.rotary_stiffness, joint.rotary_damping, joint.rotary_friction, joint.rotary_armature)
    assert found == (0.4, 0.1, 0.2, 0.3)


def test_balls_beyond_their_range_start_inside_it(tmp_path):
    body = '<body name="a"><joint name="a" type="ball" range="0 30" limited="true"/><geom size="0.1" pos="0.2 0 0"/></body>'
    scene = load(mjcf(body, '<keyframe><key name="k" qpos="0.877 0 0.479 0"/></keyframe>'), tmp_path, keyframe="k")
    assert_note(scene, "moved inside the range", "'a' from 0.9998 to 0.5226")
    expected = np.r_[np.cos(0.2613), 0, np.sin(0.2613), 0]
    assert abd.Simulation(scene, device="cpu").bodies["a"].quaternion == pytest.approx(expected, abs=1e-4)


def test_joints_at_a_bound_start_inside_their_range(tmp_path):
    text = mjcf(
        '<body><joint name="j" axis="0 1 0" range="0 90" limited="true"/><geom size="0.1" pos="0.2 0 0"/></body>'
    )
    scene = load(text, tmp_path)
    assert_note(scene, "moved inside the range", "'j' from 0 to 0.001")
    simulation = abd.Simulation(scene, device="cpu")
    for _ in range(20):
        simulation.step()
    assert 0 < simulation.joints["j"].coordinate("theta").value < np.pi / 2


def test_drives_of_actuators(tmp_path):
    scene = abd.load(write_sample("driven", tmp_path), keyframe="go")
    drives = [scene.joint(f"j{k}").coordinate["theta"].drive for k in range(6)]
    assert (drives[0].mode, drives[0].target) == ("force", pytest.approx(2.1))
    assert (drives[1].mode, drives[1].stiffness, drives[1].damping) == ("pd", 80.0, pytest.approx(2.0))
    assert drives[1].target == pytest.approx(0.2)
    assert (drives[2].mode, drives[2].damping, drives[2].rate) == ("pd", 1.5, pytest.approx(-0.6))
    assert drives[3].stiffness == 6 and drives[3].target == pytest.approx((4 * 0.3 + 0.5) / 6)
    assert drives[4].stiffness == pytest.approx(45) and drives[4].target == pytest.approx(0.2 / 3)
    assert drives[5].stiffness == 3 and drives[5].target == pytest.approx((2 * 0.5 - 3 * 0.4) / 3)
    assert scene.joint("string_spring").type == "spring"


def test_keyframes(tmp_path):
    text = mjcf(
        '<body><joint name="j" axis="0 1 0"/><geom size="0.1" pos="0 0 -0.5"/></body>',
        '<keyframe><key name="up" qpos="2" qvel="3"/><key qpos="1"/></keyframe>',
    )
    assert_note(load(text, tmp_path), "--keyframe", "up, 1")
    for key, value, speed in (("up", 2.0, 3.0), ("1", 1.0, 0.0)):
        coordinate = abd.Simulation(load(text, tmp_path, keyframe=key), device="cpu").joints["j"].coordinate("theta")
        assert (coordinate.value, coordinate.speed) == (pytest.approx(value), pytest.approx(speed))


# what is missing, wrong or not followed


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
    assert len(error.value.problems) == 1
    message = str(error.value)
    assert "package://bot/meshes/arm.obj" in message and str(tmp_path / "bot" / "meshes" / "arm.obj") in message
    assert "--missing-meshes boxes" in message and "gone.dae" not in message, (
        "pictures of what has a shape are not needed"
    )
    scene = load(URDF_WITH_MESH.format(0.25), tmp_path, ".urdf", missing_meshes="boxes")
    assert_note(scene, "missing mesh", "arm.obj")
    extents = np.array(scene.body("arm").box)
    x, y, z = np.sort(np.sqrt(12 * 0.5 * (np.array([0.25 + 0.2, 0.25 + 0.13, 0.2 + 0.13]) - [0.13, 0.2, 0.25]) / 6))
    np.testing.assert_allclose(np.sort(extents), [x, y, z], rtol=1e-6)


def test_packages_are_found(tmp_path, monkeypatch):
    for place in ("bot", "elsewhere/bot", "path/bot"):
        (tmp_path / place / "meshes").mkdir(parents=True)
    (tmp_path / "bot" / "urdf").mkdir()
    (tmp_path / "bot" / "meshes" / "arm.obj").write_text(TETRAHEDRON)
    assert (
        load(URDF_WITH_MESH.format(0.25), tmp_path / "bot" / "urdf", ".urdf")
        .body("arm")
        .mesh.endswith("bot/meshes/arm.obj")
    )
    (tmp_path / "bot" / "meshes" / "arm.obj").rename(tmp_path / "elsewhere" / "bot" / "meshes" / "arm.obj")
    (tmp_path / "x").mkdir()
    scene = load(URDF_WITH_MESH.format(0.25), tmp_path / "x", ".urdf", assets=[tmp_path / "elsewhere"])
    assert "elsewhere" in scene.body("arm").mesh
    (tmp_path / "elsewhere" / "bot" / "meshes" / "arm.obj").rename(tmp_path / "path" / "bot" / "meshes" / "arm.obj")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "path"))
    assert "path" in load(URDF_WITH_MESH.format(0.25), tmp_path / "x", ".urdf").body("arm").mesh


def test_impossible_inertias(tmp_path):
    (tmp_path / "bot" / "meshes").mkdir(parents=True)
    (tmp_path / "bot" / "meshes" / "arm.obj").write_text(TETRAHEDRON)
    scene = load(URDF_WITH_MESH.format(0.9), tmp_path, ".urdf")
    assert_note(scene, "'arm'", "principal inertias [0.13, 0.2, 0.9]", "nearest")
    values = np.sort(np.array(scene.body("arm").inertia))
    # S = diag(-0.285, 0.415, 0.485) with its negative entry at a millionth of the largest
    np.testing.assert_allclose(values, np.sort([0.9, 0.485, 0.415]), rtol=1e-5)
    assert scene.started()


def test_ignored_elements_are_reported(tmp_path):
    text = mjcf(
        '<camera name="c" pos="0 0 1"/><light pos="0 0 1"/>'
        + falling("b", '<geom size="0.1" condim="6" margin="0.01"/><site name="s"/>')
        + '<body name="w"><joint name="w" range="-90 90" limited="true" margin="0.1"/><joint name="v" axis="0 1 0" pos="1 0 0"/>'
        '<geom size="0.1"/></body>',
        '<asset><texture name="t" type="2d" builtin="flat" width="4" height="4"/></asset>'
        '<sensor><gyro site="s"/></sensor><actuator><motor site="s" name="jet"/><muscle joint="w" name="m" lengthrange="0 1"/>'
        '</actuator><tendon><fixed name="t"><joint joint="w" coef="1"/></fixed></tendon>',
        ' density="1.2" viscosity="0.1"',
    )
    scene = load(text, tmp_path)
    assert_note(scene, "not supported: 1 <camera>, 1 <light>, 1 <sensor>, 1 <texture>")
    assert_note(scene, "jet", "sites")
    assert_note(scene, "actuators are ignored: m (")
    assert_note(scene, "carriers", "'w'")
    assert_note(scene, "margin of 1 geoms", "margin of 1 limits")
    assert_note(scene, "medium")
    assert scene.started()


def test_muscles_activations_and_limits_of_tendons_are_in_the_report(tmp_path):
    inner = '<body name="v" pos="0 0 1"><joint name="v" axis="0 1 0"/><geom size="0.1"/><site name="t"/></body>'
    text = mjcf(
        f'<body name="w"><joint name="w" axis="0 1 0"/><geom size="0.1"/><site name="s"/>{inner}</body>',
        '<tendon><fixed name="sum" limited="true" range="-1 1"><joint joint="w" coef="1"/><joint joint="v" coef="1"/></fixed>'
        '<spatial name="cord" limited="true" range="0.1 1"><site site="s"/><site site="t"/></spatial></tendon><actuator>'
        '<general joint="w" name="filtered" dyntype="filter" dynprm="0.1"/><muscle joint="v" name="biceps" lengthrange="0 1"/>'
        '<general joint="v" name="summed" dyntype="integrator"/><position joint="w" name="slow" kp="3" timeconst="0.2"/>'
        '<motor tendon="sum" name="winch"/><damper joint="w" name="damper" kv="1" ctrlrange="0 1"/>'
        '<adhesion body="v" name="sticky" ctrlrange="0 1"/></actuator>',
    )
    scene = load(text, tmp_path)
    assert_note(scene, "actuators are ignored: biceps (their type of gain is not supported)")
    assert_note(scene, "winch", "tendons")
    assert_note(scene, "sticky", "adhesion")
    assert_note(scene, "tendon 'sum'", "range is only supported")
    assert_note(scene, "tendon 'cord'", "smallest length 0.1 m")


def test_mocap_bodies_are_kinematic(tmp_path):
    text = mjcf(
        '<body name="hand/left" mocap="true" pos="0 0 1"/>' + falling("held", '<geom size="0.1"/>'),
        '<equality><weld body1="hand/left" body2="held"/></equality>',
    )
    scene = load(text, tmp_path)
    assert_note(scene, "mocap body 'hand/left' does not move")
    simulation = abd.Simulation(scene, device="cpu")
    for _ in range(5):
        simulation.step()
    np.testing.assert_allclose(simulation.bodies["held"].position, (0, 0, 1), atol=1e-9)
    for k in range(10):
        simulation.bodies["hand/left"].move_to(position=(0, 0.001 * k, 1))
        simulation.step()
    np.testing.assert_allclose(simulation.bodies["held"].position, (0, 0.009, 1), atol=1e-9)


def test_a_free_base(tmp_path):
    text = mjcf('<body name="base"><geom type="box" size="0.1 0.1 0.1"/></body>')
    assert load(text, tmp_path).body("base").kind == "static"
    scene = load(text, tmp_path, free_base=True)
    assert scene.body("base").kind == "dynamic"
    assert_note(scene, "'base' is free")


# commands


def test_commands_take_robots(tmp_path, capsys):
    path = write_sample("serial", tmp_path)
    assert main(["check", str(path)]) == 0
    assert "note: merged with 'c'" in capsys.readouterr().out
    assert main(["run", str(path), "--steps", "2", "--device", "cpu", "--out", str(tmp_path / "run")]) == 0
    assert main(["convert", str(path), str(tmp_path / "out.toml"), "-o", "solver.dt=0.002"]) == 0
    assert abd.load(tmp_path / "out.toml").solver.dt == 0.002
    capsys.readouterr()
    assert main(["convert", str(path), str(tmp_path / "out.toml")]) == 2
    assert "--force" in capsys.readouterr().err
    assert main(["convert", str(path), str(tmp_path / "out.json")]) == 2
    assert main(["convert", str(path), str(tmp_path / "out.toml"), "--force"]) == 0


def test_check_reports_errors_of_an_imported_scene(tmp_path, monkeypatch):
    """Findings of an imported scene are reported like those of a native one."""
    from abd.commands.check import check
    from abd.scene.importers.robots.scene import Robot

    made = Robot.scene

    def without_mass(robot):
        tables, notes = made(robot)
        return tables | {"body": [*tables["body"], {"name": "lost", "proxy": True}]}, notes

    monkeypatch.setattr(Robot, "scene", without_mass)
    _, model, problems = check(write_sample("serial", tmp_path))
    assert model is None and {problem.key for problem in problems} == {"body.lost"}


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


@pytest.mark.parametrize(("suffix", "package"), [(".urdf", "mujoco"), (".xacro", "xacrodoc")])
def test_missing_packages_are_reported_with_the_command_that_installs_them(suffix, package, tmp_path, monkeypatch, capsys):
    path = write_sample("serial", tmp_path).rename(tmp_path / f"serial{suffix}")
    for name in [name for name in sys.modules if name.startswith("abd.scene.importers.robots.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["check", str(path)]) == 2
    assert "[robots]" in capsys.readouterr().err
