"""Robots' files that are broken, hostile or too large: one message, exit status 2, bounded memory and time."""

import struct
import time
import tracemalloc
import zipfile
import zlib

import pytest
from robot_samples import joint, link, mjcf

import abd
from abd.cli import main
from abd.errors import SceneError

pytest.importorskip("mujoco")
for module in ("abd.commands.check", "abd.scene.scene", "abd.scene.importers.robots.scene"):
    pytest.importorskip(module)  # what it costs to load is no part of the bounds

def urdf(inner: str, name: str = "r") -> str:
    return f'<robot name="{name}">{inner}</robot>'


def links(*names: str) -> str:
    return "".join(map(link, names))


def hinge(name: str, parent: str, child: str, kind: str = "revolute") -> str:
    return joint(name, kind, parent, child)


def shape_link(shape: str) -> str:
    return link("a", shape=f"<collision><geometry>{shape}</geometry></collision>")


def mesh_link(filename: str, scale: str = "1 1 1") -> str:
    return shape_link(f'<mesh filename="{filename}" scale="{scale}"/>')


MESH = '<asset><mesh name="m" file="{}" scale="{}"/></asset>'
USES_MESH = '<body><joint/><geom type="mesh" mesh="m"/></body>'
HILLS = '<asset><hfield {} size="1 1 1 1"/></asset>'
COPIES = '<replicate count="50000">'
AB, ABC, X = links("a", "b"), links("a", "b", "c"), hinge("x", "a", "b")
DOUBLED = "".join(f'<!ENTITY a{k} "&a{k - 1};&a{k - 1};">' for k in range(1, 40))
LAUGHS = f'<!DOCTYPE r [<!ENTITY a0 "haha">{DOUBLED}]>'
EXTERNAL = '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]>'

CASES = {
    # name: file name, text, words of the message
    "truncated urdf": ("r.urdf", urdf(links("a", "b"))[:90], "not valid XML"),
    "truncated mjcf": ("r.xml", mjcf('<body><joint/><geom size="1"/></body>')[:40], "not valid XML"),
    "empty": ("r.urdf", "", "not valid XML"),
    "no robot at all": ("r.xml", "<svg/>", "neither URDF nor MJCF"),
    "no links": ("r.urdf", urdf(""), "no links"),
    "circle": ("r.urdf", urdf(links("a", "b", "c") + hinge("x", "a", "b") + hinge("y", "b", "a")), "cycle"),
    "own parent": ("r.urdf", urdf(links("a", "b") + hinge("x", "b", "b")), "cycle"),
    "two parents": ("r.urdf", urdf(ABC + X + hinge("y", "a", "c") + hinge("z", "b", "c")), "the child of joint 'y'"),
    "two roots": ("r.urdf", urdf(links("a", "b")), "2 links are not the child of a joint"),
    "two joints of one name": ("r.urdf", urdf(ABC + X + hinge("x", "b", "c")), "two joints have the name 'x'"),
    "joint without name": ("r.urdf", urdf(AB + hinge("", "a", "b")), "a joint has no name"),
    "mimics itself": ("r.urdf", urdf(AB + X.replace("<child", '<mimic joint="x"/><child')), "joint 'x' mimics itself"),
    "huge position": ("r.xml", mjcf('<geom size="1" pos="1e200 0 0"/>'), "three numbers of at most 1e+50"),
    "unknown link": ("r.urdf", urdf(links("base") + hinge("x", "base", "basee")), "did you mean 'base'"),
    "unknown joint type": ("r.urdf", urdf(AB + hinge("x", "a", "b", "revolut")), "did you mean 'revolute'"),
    "macro": ("r.urdf", urdf(links("a") + '<xacro:m xmlns:xacro="x"/>'), "is a macro"),
    "nan inertia": ("r.urdf", urdf(links("a").replace('ixx="0.02"', 'ixx="nan"')), "not finite"),
    "infinite mass": ("r.urdf", urdf(links("a").replace('value="1.0"', 'value="inf"')), "not finite"),
    "negative mass": ("r.urdf", urdf(links("a").replace('value="1.0"', 'value="-1"')), "negative"),
    "nan in mjcf": ("r.xml", mjcf('<body><inertial pos="0 0 0" mass="1" diaginertia="1 NaN 1"/></body>'), "not finite"),
    "flat scale": ("r.urdf", urdf(mesh_link("m.obj", "1 0 -1")), "cannot have the scale '1 0 -1'"),
    "flat scale in mjcf": ("r.xml", mjcf(USES_MESH, MESH.format("m.obj", "-1 1 0")), "cannot have the scale '-1 1 0'"),
    "negative size": ("r.urdf", urdf(shape_link('<sphere radius="-1"/>')), "sizes"),
    "outside": ("r.urdf", urdf(mesh_link("../../../etc/passwd")), "outside of"),
    "outside, absolute": ("r.urdf", urdf(mesh_link("file:///etc/hostname")), "outside of"),
    "outside of a package": ("r.urdf", urdf(mesh_link("package://p/../../../etc/hostname")), "outside of"),
    "outside in mjcf": ("r.xml", mjcf(USES_MESH, MESH.format("/etc/hostname", "1 1 1")), "outside of"),
    "include outside": ("r.xml", '<mujoco><include file="../../../etc/hostname"/></mujoco>', "outside of"),
    "from the net": ("r.urdf", urdf(mesh_link("http://example.org/m.obj")), "scheme 'http'"),
    "includes itself": ("r.xml", '<mujoco><include file="r.xml"/></mujoco>', "includes itself"),
    "external entity": ("r.urdf", EXTERNAL + urdf(links("a"), "&x;"), "entities"),
    "a billion laughs": ("r.xml", LAUGHS + mjcf("&a39;"), "entities"),
    "too many nested": ("r.xml", mjcf("<body>" * 5000 + "</body>" * 5000), "nested"),
    "too many copies": ("r.xml", mjcf(COPIES + COPIES + '<geom size="1"/></replicate></replicate>'), "copies"),
    "mujoco refuses": ("r.xml", mjcf('<body><joint tipe="hinge"/></body>'), "unrecognized attribute"),
    "reference to a removed element": (
        "r.xml",
        mjcf('<flexcomp name="c"/>', '<contact><exclude body1="c_0" body2="world"/></contact>'),
        "1 <flexcomp>",
    ),
    "needs the centre of mass": ("r.xml", mjcf('<body><joint/><geom size="0"/></body>'), "MuJoCo's compiler"),
    "no height field": ("r.xml", mjcf("", HILLS.format('file="h.png"')), "does not exist"),
    "large height field": ("r.xml", mjcf("", HILLS.format('nrow="99999" ncol="99999"')), "too large"),
}


def refused(path, capsys, *options: str) -> str:
    """What `abd check` says of a file that it refuses, within bounds."""
    start = time.process_time()
    tracemalloc.start()
    try:
        status = main(["check", str(path), *options])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    told = capsys.readouterr().err
    assert status == 2, told
    assert told.endswith("\n1 problem\n") and "Traceback" not in told, told
    assert peak < 100e6 and time.process_time() - start < 10.0
    return told


@pytest.mark.parametrize("case", CASES)
def test_malformed_files_give_one_message(case, tmp_path, capsys):
    name, text, words = CASES[case]
    path = tmp_path / name
    path.write_text(text)
    assert words in refused(path, capsys)


def test_huge_files(tmp_path, capsys):
    (tmp_path / "r.urdf").write_text(urdf(mesh_link("m.obj")))
    with (tmp_path / "m.obj").open("wb") as file:
        file.truncate(10 << 30)
    assert "10240 MiB" in refused(tmp_path / "r.urdf", capsys)
    with (tmp_path / "huge.xml").open("wb") as file:
        file.truncate(10 << 30)
    assert "10240 MiB" in refused(tmp_path / "huge.xml", capsys)


@pytest.mark.parametrize(("name", "content", "words"), [
    ("m.stl", bytes(80) + struct.pack("<I", 4_000_000_000) + bytes(50), "has no triangles"),
    ("m.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 3\nf 2 4 3\n", "m.obj' has coplanar vertices"),
])  # fmt: skip
def test_unusable_meshes_are_named(name, content, words, tmp_path, capsys):
    """One has a header of billions of triangles, the other one is flat."""
    (tmp_path / "r.urdf").write_text(urdf(mesh_link(name)))
    (tmp_path / name).write_bytes(content)
    assert words in refused(tmp_path / "r.urdf", capsys)


def test_zip_bombs(tmp_path, capsys):
    bomb = tmp_path / "r.urdf"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("r.urdf", bytes(50 << 20))
    assert "not valid XML" in refused(bomb, capsys)
    bomb.rename(tmp_path / "r.mjz")
    assert "not the suffix of a scene file" in refused(tmp_path / "r.mjz", capsys)


def test_picture_that_decompresses_to_gigabytes(tmp_path, capsys):
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 60000, 60000, 8, 0, 0, 0, 0)
    data = zlib.compress(bytes(10 << 20), 9)
    picture = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    (tmp_path / "h.png").write_bytes(picture)
    path = tmp_path / "r.xml"
    path.write_text(mjcf("", HILLS.format('file="h.png"')))
    assert "too large" in refused(path, capsys)


def test_symbolic_links_out_of_the_folder(tmp_path, capsys):
    folder = tmp_path / "robot"
    folder.mkdir()
    (tmp_path / "secret.obj").write_text("v 0 0 0\n")
    (folder / "m.obj").symlink_to(tmp_path / "secret.obj")
    (folder / "r.urdf").write_text(urdf(mesh_link("m.obj")))
    assert "outside of" in refused(folder / "r.urdf", capsys)


def test_wrong_options(tmp_path, capsys):
    path = tmp_path / "r.xml"
    path.write_text(mjcf('<body><joint/><geom size="1"/></body>', '<keyframe><key name="up" qpos="1"/></keyframe>'))
    assert "did you mean 'up'" in refused(path, capsys, "--keyframe", "upp")
    assert "not a folder" in refused(path, capsys, "--assets", str(tmp_path / "nowhere"))
    path.write_text(mjcf('<body><joint/><geom size="1"/></body>', '<keyframe><key qpos="1"/></keyframe>'))
    assert "give number 0" in refused(path, capsys, "--keyframe", "up")


@pytest.mark.parametrize("suffix", [".json", ".usda"])
def test_options_of_other_formats(suffix, tmp_path):
    path = tmp_path / f"scene{suffix}"
    path.write_text('{"rigid_body_problem": {"rigid_bodies": []}}' if suffix == ".json" else "#usda 1.0\n")
    with pytest.raises(SceneError) as error:
        abd.load(path, keyframe="k", free_base=True)
    assert [problem.remedy for problem in error.value.problems] == ["drop --keyframe", "drop --free-base"]
