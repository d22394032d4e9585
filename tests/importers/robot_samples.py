"""Robots that together have every type of joint, equality and actuator of MJCF and URDF that the importer knows."""

from pathlib import Path

import numpy as np

import abd

INERTIAL = '<inertial pos="0.1 0.02 -0.15" mass="1" fullinertia="0.02 0.03 0.025 0.001 0.002 -0.003"/>'


def mjcf(bodies: str, rest: str = "", option: str = "") -> str:
    """An MJCF file around bodies."""
    head = f'<mujoco model="sample"><option gravity="0.5 0 -9.81"{option}/>'
    return f"{head}<worldbody>{bodies}</worldbody>{rest}</mujoco>"


def body(name: str, joints: str, inside: str = "", pos: str = "0 0 0", inertial: str = INERTIAL) -> str:
    """A body of MJCF with an offset and turned frame."""
    return f'<body name="{name}" pos="{pos}" euler="10 20 30">{joints}{inertial}{inside}</body>'


def arms(keys: list[str]) -> str:
    """Bodies arm0, arm1, ... on hinges j0, j1, ... with these keys."""
    axes = [f"0 {1 if k % 2 else -1} 1" for k in range(len(keys))]
    return "".join(
        body(f"arm{k}", f'<joint name="j{k}" axis="{axis}" {more}/>', pos=f"{k} 0 0")
        for k, (axis, more) in enumerate(zip(axes, keys, strict=True))
    )


def link(name: str, mass: float = 1.0, shape: str = "") -> str:
    """A link of URDF."""
    inertial = (
        f'<inertial><origin xyz="0.1 0.02 -0.15" rpy="0.1 0.2 0.3"/><mass value="{mass}"/>'
        '<inertia ixx="0.02" iyy="0.03" izz="0.025" ixy="0.001" ixz="0.002" iyz="-0.003"/></inertial>'
    )
    return f'<link name="{name}">{inertial if mass else ""}{shape}</link>'


def joint(
    name: str, kind: str, parent: str, child: str, rest: str = "", axis: str = "0 1 0", xyz: str = "0 0 -0.3"
) -> str:
    """A joint of URDF."""
    turned = f'<axis xyz="{axis}"/>' if kind not in ("fixed", "floating") else ""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="0.3 -0.2 0.1"/>{turned}{rest}</joint>'
    )


def limit(end: float = 1, effort: float = 1, velocity: float = 1) -> str:
    """Limits of a joint of URDF, the same on both sides."""
    return f'<limit lower="{-end}" upper="{end}" effort="{effort}" velocity="{velocity}"/>'


CHAIN = mjcf(
    body(
        "arm",
        '<joint name="shoulder" axis="1 2 0.5" pos="0 0.1 0" stiffness="3" springref="20" ref="10" damping="0.2" '
        'armature="0.05" range="-170 170" limited="true"/>',
        body(
            "rod",
            '<joint name="rail" type="slide" axis="0 0.6 0.8" ref="0.05" stiffness="40" damping="1" armature="0.2"/>',
            body("tip", '<joint name="tip" axis="0 1 0"/>', pos="0.1 0 -0.2")
            + '<body name="brace" pos="0 0.1 0"><geom type="box" size="0.05 0.02 0.03" contype="0" conaffinity="0"/></body>',
            pos="0 0 -0.3",
        ),
    )
)
BALL_KEYS = {
    "plain": "",
    "damped": 'damping="0.03"',
    "hardly": 'damping="1e-6"',
    "sprung": 'stiffness="3"',
    "heavy": 'armature="0.02"',
}
BALLS = mjcf(
    "".join(
        body(
            name,
            f'<joint name="{name}" type="ball" pos="0 0 0.05" {keys}/>',
            body(f"{name}_2", f'<joint name="{name}_2" type="ball" {keys}/>', pos="0 0 -0.4"),
            pos=f"{3 * k} 0 0",
        )
        for k, (name, keys) in enumerate(BALL_KEYS.items())
    )
    + body(
        "sliding",
        '<joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>'
        '<joint name="z" type="slide" axis="0 0 1" stiffness="50"/><joint name="r" type="ball" damping="0.05"/>',
        pos="18 0 0",
    )
)
FREE = mjcf(
    body("base", "<freejoint/>", body("flap", '<joint name="flap" axis="0 0 1" stiffness="2"/>', pos="0 0.2 0"))
    + '<body name="lifted" pos="0 0 5" gravcomp="0.4"><freejoint/><geom size="0.1" contype="0" conaffinity="0"/></body>'
    + body("thrown", '<joint name="other" type="free"/>', pos="3 0 1"),
)
JOINTS = {
    # name of the body: its joints
    "universal": '<joint name="u1" ref="20" axis="0 0 1"/><joint name="u2" ref="-30" axis="0 1 1" pos="0 0 0"/>',
    "gimbal": '<joint name="g1" ref="15" axis="1 0 0"/><joint name="g2" axis="0 0 1" range="-60 60" limited="true"/>'
    '<joint name="g3" ref="25" axis="0 -1 0" damping="0.3"/>',
    "planar": '<joint name="p1" ref="0.1" type="slide" axis="1 0 0"/><joint name="p2" ref="-0.05" type="slide" axis="0 0 1"/>'
    '<joint name="p3" ref="40" axis="0 1 0"/>',
    "gantry": '<joint name="x" ref="0.03" type="slide" axis="0 1 0"/><joint name="y" ref="0.1" type="slide" axis="0 0 -1"/>'
    '<joint name="z" ref="-0.1" type="slide" axis="1 0 0" damping="1"/>',
    "table": '<joint name="tx" type="slide" axis="1 0 0" ref="0.1"/><joint name="ty" type="slide" axis="0 1 0"/>',
    "screwed": '<joint name="c1" ref="0.2" type="slide" axis="0 0 -1" stiffness="9"/><joint name="c2" ref="-20" axis="0 0 1"/>',
    "slotted": '<joint name="s1" ref="0.1" type="slide" axis="1 0 0"/><joint name="s2" ref="30" axis="0 0 1" pos="0.1 0 0"/>',
}
MANY = mjcf("".join(body(name, joints, pos=f"{2 * k} 0 0") for k, (name, joints) in enumerate(JOINTS.items())))
CARRIERS = mjcf(
    body(
        "first",
        '<joint name="a1" axis="0 1 0" pos="0 0 0.3" armature="0.02"/><joint name="a2" axis="1 0 0" pos="0 0 0.1" ref="15"/>',
        body(
            "second",
            '<joint name="b1" axis="0 0 1"/><joint name="b2" type="slide" axis="1 0 0" stiffness="30"/>',
            pos="0 0 -0.3",
        ),
    )
)
FOUR_BAR = mjcf(
    '<body name="crank"><joint name="crank" axis="0 1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 0.2 0 0.1"/>'
    '<body name="coupler" pos="0.2 0 0.1"><joint name="coupler" axis="0 1 0"/>'
    '<geom type="capsule" size="0.02" fromto="0 0 0 0.5 0 0.2"/></body></body>'
    '<body name="rocker" pos="0.8 0 0"><joint name="rocker" axis="0 1 0"/>'
    '<geom type="capsule" size="0.02" fromto="0 0 0 -0.1 0 0.3"/></body>'
    + body("held", "<freejoint/>", pos="0.8 0.5 0"),
    '<equality><connect name="pin" body1="coupler" body2="rocker" anchor="0.5 0 0.2"/>'
    '<weld name="glue" body1="rocker" body2="held"/></equality>',
)
WELDS = mjcf(
    body("arm", '<joint name="arm" axis="0 1 0"/>')
    + "".join(body(f"held{k}", f'<joint name="f{k}" type="free"/>', pos=f"{k} 0.1 -0.6") for k in range(3)),
    '<equality><weld body1="arm" body2="held0" anchor="0.1 0.2 0.3"/>'
    '<weld body1="arm" body2="held1" torquescale="0"/>'
    '<weld body1="held1" body2="held2" torquescale="0" anchor="-0.1 0.2 0"/></equality>',
)
GEARS = mjcf(
    "".join(body(f"wheel{k}", f'<joint name="w{k}" axis="0 0 1" ref="{5 * k}"/>', pos=f"{k} 0 0") for k in range(5)),
    '<tendon><fixed name="t1"><joint joint="w2" coef="2"/><joint joint="w3" coef="-1"/></fixed>'
    '<fixed name="t2"><joint joint="w4" coef="0.5"/></fixed></tendon>'
    '<equality><joint joint1="w1" joint2="w0" polycoef="0 0.5 0.2 0 0"/><tendon tendon1="t1" tendon2="t2"/></equality>',
)
DRIVEN = mjcf(
    arms(['damping="0.1"'] * 6)
    + '<body name="hung" pos="0 3 0"><freejoint/><geom size="0.1" contype="0" conaffinity="0"/>'
    '<site name="eye" pos="0 0 0.1"/></body>' + '<site name="hook" pos="0.3 3 1"/>',
    '<tendon><spatial name="string" stiffness="50" damping="0.5" springlength="0.7"><site site="hook"/><site site="eye"/>'
    '</spatial><fixed name="one"><joint joint="j4" coef="3"/></fixed></tendon>'
    '<actuator><motor joint="j0" gear="3"/><position joint="j1" kp="20" kv="0.5" gear="2"/><velocity joint="j2" kv="1.5"/>'
    '<general joint="j3" gainprm="4" biastype="affine" biasprm="0.5 -6 -0.2"/><position tendon="one" kp="5"/>'
    '<motor joint="j5" gear="2"/><position joint="j5" kp="3"/></actuator>'
    '<keyframe><key name="go" ctrl="0.7 0.4 -0.6 0.3 0.2 0.5 -0.4"/></keyframe>',
)
ACTUATED = mjcf(
    arms(['damping="0.1"'] * 7),
    '<actuator><damper joint="j0" kv="2" ctrlrange="0 3" gear="0.5"/><intvelocity joint="j1" kp="20" actrange="-0.3 0.02"/>'
    '<general joint="j2" dyntype="filter" dynprm="0.05" gainprm="4"/>'
    '<general joint="j3" dyntype="filterexact" dynprm="0.2" gainprm="8" biastype="affine" biasprm="0 -8 -0.3" gear="2"/>'
    '<general joint="j4" dyntype="integrator" gainprm="3" biastype="affine" biasprm="0.2 0 -0.4"/>'
    '<general joint="j5" gaintype="affine" gainprm="2 -3 -0.2" biastype="affine" biasprm="0.1 -5 -0.1"/>'
    '<position joint="j6" kp="3"/><general joint="j6" dyntype="integrator" gainprm="1"/></actuator>'
    '<keyframe><key name="go" ctrl="0.8 0.5 0.7 0.4 -0.6 0.6 0.3 0.9" act="0.1 -0.2 0.3 0.1 0.4"/></keyframe>',
)
FORCE_RANGES = ("-0.2 0.5", "-0.2 0.5", "0 0.5", "0.1 0.5", "-0.1 0.5", "-0.5 0.5")
CLIPPED = mjcf(
    arms(['damping="0.1"'] * 4 + [f'damping="0.1" actuatorfrcrange="{ends}"' for ends in FORCE_RANGES]),
    '<actuator><motor joint="j0" forcerange="-0.2 0.5"/><motor joint="j1" forcerange="0 0.5" gear="-2"/>'
    '<general joint="j2" dyntype="filter" dynprm="0.05" gainprm="4" forcerange="-0.1 0.7"/>'
    '<motor joint="j3" forcerange="-0.2 0.5"/><motor joint="j3" gear="-1"/>'
    '<motor joint="j4"/><motor joint="j5" gear="-1"/><motor joint="j6" gear="2"/><motor joint="j7"/>'
    '<general joint="j8" dyntype="filter" dynprm="0.05" gainprm="4"/><motor joint="j9" forcerange="-0.3 0.3"/></actuator>'
    '<keyframe><key name="go" ctrl="3 3 0.7 3 0.5 3 3 3 0 0.7 3"/></keyframe>',
)
GEARED = mjcf(
    arms(['damping="0.1"', "", 'armature="0.1"', "", "", ""]),
    '<option actuatorgroupdisable="2"><flag clampctrl="disable"/></option>'
    '<tendon><fixed name="one"><joint joint="j3" coef="3"/></fixed></tendon>'
    '<actuator><pid joint="j0" kp="3" kv="2" group="2"/><motor joint="j0" armature="0.3" damping="0.2" gear="2"/>'
    '<motor joint="j1" gear="-2" damping="0.4" group="2"/><position joint="j2" kp="3" armature="0.1" forcerange="-1 1"/>'
    '<motor tendon="one" armature="0.02" damping="0.03" gear="-0.5"/><motor joint="j4" ctrlrange="-0.1 0.1"/>'
    '<position joint="j5" kp="9" group="2"/></actuator><keyframe><key name="go" ctrl="3 4 0.7 3 0.5 0.8 2 1"/></keyframe>',
)
TENDONS = mjcf(
    arms([f'ref="{7 * k}"' for k in range(7)]),
    '<tendon><fixed name="pair" stiffness="5" damping="0.2" springlength="0.3"><joint joint="j0" coef="1"/>'
    '<joint joint="j1" coef="-0.5"/></fixed><fixed name="alone" stiffness="4" damping="0.1" springlength="0.1">'
    '<joint joint="j2" coef="-2"/></fixed><fixed name="led"><joint joint="j3" coef="1"/><joint joint="j4" coef="0.5"/></fixed>'
    '<fixed name="lead"><joint joint="j5" coef="2"/><joint joint="j6" coef="-1"/></fixed></tendon>'
    '<equality><tendon tendon1="led" tendon2="lead" polycoef="0 0.6 0.3 -0.2 0.1"/></equality>',
)
NOT_PASSIVE = mjcf(
    arms(['stiffness="3" damping="0.1"'] * 2 + [""])
    + '<body name="lifted" pos="0 0 5" gravcomp="0.4"><freejoint/><geom size="0.1" contype="0" conaffinity="0"/>'
    '<site name="eye" pos="0 0 0.1"/></body><site name="hook" pos="0.3 3 5"/>',
    '<option><flag spring="disable" damper="disable"/></option>'
    '<tendon><spatial stiffness="50" damping="0.5" springlength="0.7"><site site="hook"/><site site="eye"/></spatial>'
    '<fixed stiffness="5" damping="0.2"><joint joint="j1" coef="1"/><joint joint="j2" coef="-1"/></fixed></tendon>',
)
UNDAMPED = NOT_PASSIVE.replace('spring="disable" ', "")
SERIAL = (
    '<robot name="serial">'
    + "".join(link(name) for name in ("base", "a", "b", "c"))
    + "".join(link(name, mass) for name, mass in (("tool", 0.2), ("finger1", 0.3), ("finger2", 0.3), ("frame", 0.0)))
    + joint("j1", "revolute", "base", "a", limit(2, 30, 5) + '<dynamics damping="0.3" friction="0"/>')
    + joint("j2", "continuous", "a", "b", '<dynamics damping="0.1"/>', "1 0 0")
    + joint("j3", "prismatic", "b", "c", limit(0.4, 9, 1), "0 0 1")
    + joint("mount", "fixed", "c", "tool")
    + joint("mark", "fixed", "c", "frame")
    + joint("f1", "revolute", "tool", "finger1", limit(), "0 0 1")
    + joint("f2", "revolute", "tool", "finger2", limit() + '<mimic joint="f1" multiplier="-0.5" offset="0"/>', "0 0 1", "0.1 0 0")
    + "</robot>"
)
ROVING = (
    '<robot name="roving">'
    + "".join(link(name) for name in ("cart", "drone"))
    + "".join(link(name, mass) for name, mass in (("world_frame", 0.0), ("gimbal_ring", 0.0), ("camera", 0.5)))
    + joint("plane", "planar", "world_frame", "cart", axis="0 0 1")
    + joint("flight", "floating", "world_frame", "drone", xyz="3 0 1")
    + joint("pan", "revolute", "cart", "gimbal_ring", limit(2), "0 0 1")
    + '<joint name="tilt" type="revolute"><parent link="gimbal_ring"/><child link="camera"/><axis xyz="0 1 0"/>'
    + f"{limit()}</joint></robot>"
)
MIMICS = (
    '<robot name="mimics"><link name="world"/>'
    + "".join(link(name) for name in "abcd")
    + joint("b", "revolute", "world", "b", f'{limit(3, 100, 100)}<mimic joint="c" multiplier="-0.5" offset="0.1"/>', xyz="1 0 0")
    + joint("c", "continuous", "world", "c", '<mimic joint="a" multiplier="2" offset="0.3"/>', xyz="2 0 0")
    + joint("d", "prismatic", "world", "d", f'{limit(3, 100, 100)}<mimic joint="a" multiplier="0.2" offset="0.05"/>', xyz="3 0 0")
    + joint("a", "continuous", "world", "a")
    + "</robot>"
)
SAMPLES = {
    # name: suffix, text, seed of the start (None: the file's own), keyframe
    "chain": (".xml", CHAIN, 3, ""),
    "balls": (".xml", BALLS, 3, ""),
    "free": (".xml", FREE, 3, ""),
    "many": (".xml", MANY, 3, ""),
    "carriers": (".xml", CARRIERS, 3, ""),
    "four_bar": (".xml", FOUR_BAR, None, ""),
    "welds": (".xml", WELDS, None, ""),
    "gears": (".xml", GEARS, None, ""),
    "mimics": (".urdf", MIMICS, None, ""),
    "driven": (".xml", DRIVEN, None, "go"),
    "actuated": (".xml", ACTUATED, None, "go"),
    "clipped": (".xml", CLIPPED, None, "go"),
    "geared": (".xml", GEARED, None, "go"),
    "tendons": (".xml", TENDONS, None, ""),
    "not_passive": (".xml", NOT_PASSIVE, None, ""),
    "undamped": (".xml", UNDAMPED, None, ""),
    "serial": (".urdf", SERIAL, None, ""),
    "roving": (".urdf", ROVING, 3, ""),
}


def vertices(scene: abd.Scene, name: str) -> np.ndarray:
    """Return the vertices (v, 3) of a body in the world at the start [m]."""
    model = scene.compile()
    body = model.bodies.names.index(name)
    pose, frame = model.user_transform(model.bodies.q)[body], model.bodies.body_frame[body]
    local = (model.meshes[model.bodies.mesh[body]].vertices - frame[:3, 3]) @ frame[:3, :3]
    return local @ pose[:3, :3].T + pose[:3, 3]


def write_sample(name: str, folder: Path) -> Path:
    """The file of a sample, written into a folder."""
    suffix, text, _, _ = SAMPLES[name]
    path = folder / f"{name}{suffix}"
    path.write_text(text)
    return path
