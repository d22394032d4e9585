"""Messages for invalid scenes name file, line, key and fix."""

import json
import traceback

import pytest
from joint_scenes import BODIES

import abd
from abd.errors import SceneError

B = '[[body]]\nname = "b"\n'
BALL = '[[body]]\nname = "ball"\nsphere = { radius = 1 }\n'
CUBE = '[[body]]\nname = "cube"\nbox = [1, 1, 1]\nposition = [5, 0, 0]\n'
DRIVEN = '[[body]]\nname = "cam"\nbox = [1, 1, 1]\nkind = "kinematic"\n'
PAIR = '[[material_pair]]\nbetween = ["default", "default"]\n'
JOINT = '[[joint]]\nname = "pivot"\ntype = "spherical"\nchild = "ball"\n'
COPIED = f"{BALL}repeat = {{ count = [3, 1, 1], step = [3, 0, 0] }}\n{JOINT.replace('ball', 'ball_1_0_0')}anchor = [0, 0, 0]\n"
PARTS = """[[body]]
name = "b"
radius = 0.1
split_components = true
[body.surface]
vertices = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]
edges = [[0, 1], [2, 3]]
"""
SURFACE = f'{B}[body.surface]\nvertices = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]\n'

ODD = 'name = """two\ndt = 0 ]"""  # [body]\n[solver]  # header\n"dt" = 0.01\n'
"""A string of two lines, comments with brackets, a key in quotes."""

# text of the scene, line, and fragments of the problem's key, message and remedy
WRONG = {
    "syntax": ("gravity = [0, 0\n\n[solver]\n", 3, "", "TOML", ""),
    "key given twice": (f"gravity = [0, 0, 0]\n\ngravity = [0, 0, 1]\n{BALL}", 3, "", "overwrite", "once"),
    "misspelt key": (f"gravty = [0, 0, 0]\n{BALL}", 1, "gravty", "unknown key", "'gravity'"),
    "key of another table": (f"{BALL}dt = 0.1\n", 4, "body.ball.dt", "unknown key", "[solver]"),
    "word of another program": (f"{BALL}rotation = [0, 0, 90]\n", 4, "rotation", "unknown key", "quaternion"),
    "number in quotes": (f'[solver]\ndt = "0.1"\n{BALL}', 2, "solver.dt", "without quotes, not '0.1'", ""),
    "time step of zero": (f"[solver]\n\n# comment\ndt = 0\n{BALL}", 4, "solver.dt", "greater than 0, not 0", ""),
    "negative tolerance": (f"[solver]\ntolerance = -1e-3\n{BALL}", 2, "tolerance", "greater than 0, not -0.001", ""),
    "world beyond all": (f"{BALL}world = 2147483647\n", 4, "body.ball.world", "1000000, not 2147483647", ""),
    "not finite": (f"[solver]\nd_hat = nan\n{BALL}", 2, "solver.d_hat", "finite number, not nan", ""),
    "unknown choice": (f'[solver]\nbarrier = "lgo"\n{BALL}', 2, "barrier", "'log', 'log_sq' or 'cubic'", "'log'"),
    "union": (f'[solver]\ncontact_stiffness = "aut"\n{BALL}', 2, "contact_stiffness", "'auto' or a number", "'auto'"),
    "both tolerances": (f"[solver]\ntolerance = 1e-3\ntolerance_relative = 1e-2\n{BALL}",
        3, "tolerance_relative", "tolerance is given as well", "keep one"),
    "frames and duration": (f"[output]\nframes = 9\nduration = 1.0\n{BALL}", 3, "output.duration", "given as well", "keep"),
    "no bodies": ('name = "empty"\n', None, "body", "no bodies", "[[body]]"),
    "after odd strings": (f'{ODD}{BALL}position = [  # ]\n  0,\n  1]\n', 8, "position", "three numbers, not [0, 1]", ""),
    "lines of Windows": (f"{ODD}{BALL}mass = -1\n".replace("\n", "\r\n"), 8, "body.ball.mass", "greater than 0, not -1", ""),
    "filter of one body twice": (f'{BALL}{CUBE}[[contact_filter]]\nbodies = ["ball", "cube",\n  "ball"]\n',
        10, "contact_filter[0].bodies[2]", "'ball' is given twice", "keep one"),
    "ball with three scales": (f"{BALL}scale = [1, 2, 1]\n", 1, "body.ball", "different scale factors", "subdivisions"),
    "rounded ball": (f"{BALL}rounding = 0.1\n", 4, "body.ball.rounding", "no effect on an exact sphere", "radius"),
    "short vector": (f"{BALL}position = [0, 1]\n", 4, "body.ball.position", "three numbers, not [0, 1]", ""),
    "unknown color": (f'{BALL}color = "reddish"\n', 4, "body.ball.color", "should be a CSS colour name or", ""),
    "repeat that a joint needs": (
        f"{BALL}repeat = {{ count = [0, 1, 1], step = [3, 0, 0] }}\n{JOINT.replace('ball', 'ball_0_0_0')}"
        "anchor = [0, 0, 0]\nrepeat = { count = [2, 1, 1] }\n",
        *(4, "body.ball.repeat.count", "at least 1", ""),
    ),
    "flag": (f"{BALL}enabled = 1\n", 4, "enabled", "true or false, not 1", ""),
    "no name": ("[[body]]\nbox = [1, 1, 1]\n", 1, "body[0].name", "is missing", "unique name"),
    "name twice": (f"{BALL}\n{BALL}", 6, "body.ball.name", "earlier body (number 1", "unique"),
    "name of a copy": (
        f'{BALL}repeat = {{ count = [2, 1, 1], step = [3, 0, 0] }}\n[[body]]\nname = "ball_1_0_0"\nbox = [1, 1, 1]\n',
        *(6, "body.ball_1_0_0.name", "a copy of 'ball'", "unique"),
    ),
    "reserved name": ('[[body]]\nname = "world"\nbox = [1, 1, 1]\n', 2, "name", "is reserved for the world", "another name"),
    "name with a space": ('[[body]]\nname = "a "\nbox = [1, 1, 1]\n', 2, "name", "leading or trailing spaces", "drop"),
    "no surface": ('\n[[body]]\nname = "ball"\n', 2, "body.ball", "no surface", "sphere"),
    "two surfaces": (f"{BALL}box = [1, 1, 1]\n", 3, "sphere", "'box' and 'sphere' are given", "keep one"),
    "radius of a table": (f'{B}[body.sphere]\nradius = 0\n', 4, "body.b.sphere.radius", "than 0", ""),
    "flat box": (f'{B}box = [1, 0, 1]\n', 3, "body.b.box", "greater than 0", ""),
    "scale of zero": (f"{BALL}scale = 0\n", 4, "body.ball.scale", "one or three factors other than 0, not 0", "mirrors"),
    "number instead of a table": (f'{B}sphere = 1\n', 3, "body.b.sphere", "should be a table, not 1", "radius"),
    "table instead of a list": (f"[material]\nmu = 1\n{BALL}", 1, "material", "should be a list, not {'mu': 1}", ""),
    "camera in its target": (f"[camera]\nposition = [0, 0, 1]\ntarget = [0, 0, 1]\n{BALL}",
        1, "camera", "should be a table whose position and target are not the same point", ""),
    "negative density": (f"{BALL}density = -5\n", 4, "body.ball.density", "greater than 0, not -5", ""),
    "proxy without mass": ('[[body]]\nname = "p"\nproxy = true\ninertia = [1, 1, 1]\n', 1, "body.p", "needs mass", "give"),
    "inertia without mass": (f"{BALL}inertia = [1, 1, 1]\n", 4, "inertia", "needs mass", "give mass"),
    "impossible inertia": (f"{BALL}mass = 1\ninertia = [1, 1, 3]\n", 5, "inertia", "principal moments 1, 1, 3", "units"),
    "thickness of a box": (f"{CUBE}thickness = 0.1\n", 5, "thickness", "no effect on a body with box", "remove it"),
    "two rotations": (f"{BALL}quaternion = [1, 0, 0, 0]\neuler = {{ degrees = [1, 2, 3] }}\n",
        5, "euler", "one notation", "keep one"),
    "zero quaternion": (f"{BALL}quaternion = [0, 0, 0, 0]\n", 4, "quaternion", "other than zero", "[1, 0, 0, 0]"),
    "no rotation matrix": (f"{BALL}matrix = [[2, 0, 0],\n [0, 1, 0], [0, 0, 1]]\n", 4, "matrix", "no", "scale"),
    "reflection": (f"{BALL}matrix = [[-1, 0, 0], [0, 1, 0], [0, 0, 1]]\n", 4, "matrix", "reflection", "mirror"),
    "Euler angles": (f'{BALL}euler = {{ order = "xy", degrees = [9] }}\n', 4, "euler.degrees", "has 1 angles", "one angle"),
    "unknown axis": (f'{BALL}fix = ["x", "rw"]\n', 4, "body.ball.fix[1]", "not 'rw'", ""),
    "one fixed rotation": (f'{BALL}fix = ["rx"]\n', 4, "body.ball.fix", "none, two or three", "add ry or rz"),
    "fixed twice": (f'{BALL}fix = ["x", "x"]\n', 4, "body.ball.fix", "twice", "once"),
    "velocity of a static body": (f'{BALL}kind = "static"\nvelocity = [1, 0, 0]\n', 5, "velocity", "no effect", "remove"),
    "velocity in two units": (f"{BALL}angular_velocity = [1, 0, 0]\nangular_velocity_deg = [9, 0, 0]\n",
        5, "angular_velocity_deg", "as well", "keep one"),
    "unknown material": (f'[[material]]\nname = "ice"\n{BALL}material = "icee"\n',
        6, "body.ball.material", "no material 'icee'", "'ice'"),
    "pair of unknown": (f'[[material_pair]]\nbetween = ["default",\n "tar"]\n{BALL}',
        3, "material_pair[0].between[1]", "no material 'tar'", "[[material]]"),
    "pair twice": (f"{PAIR}{PAIR}{BALL}", 4, "material_pair[1].between", "of these materials (number 1", "keep one"),
    "one table for a list": ('[body]\nname = "b"\nsphere = { radius = 1 }\n', 1, "body", "a list", "[[body]]"),
    "static body called fixed": (f'{BALL}kind = "fixed"\n', 4, "body.ball.kind", "not 'fixed'", "'static'"),
    "truth value of Python": (f"{BALL}enabled = True\n", 4, "", "TOML", "true and false"),
    "half-space with a place": ('[[body]]\nname = "g"\nhalf_space = {}\nposition = [0, 0, 1]\n',
        4, "body.g.position", "no effect", "offset"),
    "normal of zero": ('[[body]]\nname = "g"\nhalf_space = { normal = [0, 0, 0] }\n', 3, "normal", "than zero", "[0, 0, 1]"),
    "missing mesh": (f'{B}mesh = "lnk.obj"\n', 3, "body.b.mesh", "'lnk.obj' not found in", "'link.obj'"),
    "mesh format": (f'{B}mesh = "link.blend"\n', 3, "body.b.mesh", "'.blend'", ".obj .stl"),
    "vertex number": (f'{B}[body.surface]\nvertices = [[0, 0, 0], [1, 0, 0]]\nedges = [\n[0, 1],\n[0, 2]]\n',
        7, "body.b.surface.edges[1]", "index 2 is not one of the 2 vertices", ""),
    "too many copies": (
        f"{BALL}repeat = {{ count = [100000, 1000000, 1], step = [1, 1, 1] }}\n{JOINT}anchor = [0, 0, 0]\n",
        *(4, "body.ball.repeat.count", "a product of at most 1000000 (ABD_MOST_COPIES), not [100000, 1000000, 1]", ""),
    ),
    "misspelt kind": (f'{BALL}kind = "kinematik"\nmotion = {{ velocity = [1, 0, 0] }}\n',
        4, "body.ball.kind", "not 'kinematik'", "'kinematic'"),
    "repeat in place": (f"{BALL}[body.repeat]\ncount = [2, 1, 1]\nstep = [0, 1, 1]\n",
        6, "body.ball.repeat.step", "0 along x", "distance along x"),
    "motion of a dynamic body": (f"{BALL}motion = {{ velocity = [1, 0, 0] }}\n", 4, "motion", "kinematic", "set kind"),
    "kinematic without motion": (DRIVEN, 4, "body.cam.kind", "needs a motion", "static"),
    "empty motion": (f"{DRIVEN}motion = {{}}\n", 5, "body.cam.motion", "has no velocity", "velocity"),
    "two forms of motion": (f'{DRIVEN}[body.motion]\nfile = "poses.csv"\nformulas = {{ x = "t" }}\n',
        7, "body.cam.motion.formulas", "one form", "keep one"),
    "unordered keyframes": (f"{DRIVEN}[body.motion]\nkeyframes = [\n  {{ time = 1 }},\n  {{ time = 0.5 }},\n]\n",
        8, "body.cam.motion.keyframes[1].time", "must exceed the time before it", "sort the keyframes"),
    "formula": (f'{DRIVEN}[body.motion.formulas]\nx = "t"\ny = "0.1 * sinn(t)"\n',
        7, "body.cam.motion.formulas.y", "unknown name 'sinn' (column 7", "'sin'"),
    "formula without value": (f'{DRIVEN}motion = {{ formulas = {{ rz = "1/t" }} }}\n',
        5, "formulas.rz", "no value at t = 0", ""),
    "broken pose file": (f'{DRIVEN}motion = {{ file = "broken.csv" }}\n',
        5, "body.cam.motion.file", "broken.csv:3: times must increase", ""),
    "joint without anchor": (BALL + JOINT, 4, "joint.pivot", "no anchor", "parent_anchor and child_anchor"),
    "half of an anchor": (f"{BALL}{JOINT}child_anchor = [0, 0, 0]\n", 8, "child_anchor", "parent_anchor is missing", "both"),
    "both anchors": (f"{BALL}{JOINT}anchor = [0, 0, 0]\nchild_anchor = [0, 0, 0]\n",
        9, "joint.pivot.child_anchor", "anchor is given as well", "keep anchor"),
    "unknown body": (f'{BALL}{CUBE}{JOINT}anchor = [0, 0, 0]\nparent = "cub"\n',
        13, "joint.pivot.parent", "no body 'cub'", "'cube'"),
    "a repeated body": (f"{BALL}repeat = {{ count = [1, 1, 2], step = [0, 0, 3] }}\n{JOINT}anchor = [0, 0, 0]\n",
        8, "joint.pivot.child", "is a repeated body", "'ball_0_0_0'"),
    "sensor of a disabled body": (f'{BALL}{CUBE}enabled = false\n[[sensor]]\nname = "s"\nwhat = "position"\nbody = "cube"\n',
        12, "sensor.s.body", "body 'cube' is disabled", "enable it"),
    "only disabled bodies": (f"{BALL}enabled = false\n", 1, "body", "all bodies of the scene are disabled", "enable"),
    "component with the name of a body": (f'{PARTS}[[body]]\nname = "b_0"\nbox = [1, 1, 1]\nposition = [5, 0, 0]\n',
        2, "body.b.name", "component 'b_0' has the name of another body", "rename"),
    "sensor of an unknown body": (f'{BALL}[[sensor]]\nname = "s"\nwhat = "position"\nbody = "bal"\n',
        7, "sensor.s.body", "no body 'bal'", "'ball'"),
    "sensor of an unknown joint": (f'{BALL}[[sensor]]\nname = "s"\nwhat = "wrench"\njoint = "pivot"\n',
        7, "sensor.s.joint", "no joint 'pivot'", "give a joint"),
    "sensor of an unknown coordinate": (
        f'{BALL}{JOINT}anchor = [0, 0, 0]\n[[sensor]]\nname = "s"\nwhat = "rate"\njoint = "pivot"\n',
        *(9, "sensor.s.coordinate", "joint 'pivot' has no coordinate", "none"),
    ),
    "joined to itself": (f'{BALL}{JOINT}anchor = [0, 0, 0]\nparent = "ball"\n', 7, "child", "different bodies", "change one"),
    "world as child": (f'{BALL}[[joint]]\nname = "j"\ntype = "pin"\nchild = "world"\nanchor = [0, 0, 0]\n',
        7, "child", "world", "swap"),
    "joint that holds nothing": (
        f'[[body]]\nname = "ball"\nbox = [1, 1, 1]\nkind = "static"\n{JOINT}anchor = [0, 0, 0]\n',
        *(8, "joint.pivot.child", "at least one body must be dynamic", ""),
    ),
    "different worlds": (f'{BALL}{CUBE}world = 1\n{JOINT}parent = "cube"\nanchor = [0, 0, 0]\n',
        12, "joint.pivot.child", "in one world, not in 1 and 0", "change"),
    "axis too short to have a direction": (
        f'{BALL}[[joint]]\nname = "j"\ntype = "hinge"\nchild = "ball"\nanchor = [0, 0, 0]\naxis = [0, 1e-300, 0]\n',
        *(9, "joint.j.axis", "other than zero", "direction"),
    ),
    "axis of a weld": (
        f'{BALL}[[joint]]\nname = "j"\ntype = "fixed"\nchild = "ball"\nanchor = [0, 0, 0]\naxis = [0, 0, 1]\n',
        *(9, "joint.j.axis", "no axis", "'hinge'"),
    ),
    "sheet without thickness": (f"{SURFACE}triangles = [[0, 1, 2]]\n", 1, "body.b.thickness", "needs a thickness", "close it"),
    "rod without radius": (f"{SURFACE}edges = [[0, 1], [1, 2]]\n", 1, "body.b.radius", "needs a radius", "radius > 0"),
    "points without radius": (f"{SURFACE}points = [0, 1, 2]\n", 1, "body.b.radius", "needs a radius", "radius > 0"),
    "rod without inertia": (f'{B}mass = 1\n[body.surface]\nvertices = [[0, 0, 0], [1, 0, 0]]\nedges = [[0, 1]]\n',
        1, "body.b", "no inertia about its line", ""),
    "more joints than children": (f'{COPIED}parent = "ball_0_0_0"\nrepeat = {{ count = [3, 1, 1] }}\n',
        11, "joint.pivot.repeat", "the last copy has the child 'ball_3_0_0', but 'ball' has", ""),
    "repeated joint of single bodies": (f"{BALL}{JOINT}anchor = [0, 0, 0]\nrepeat = {{ count = [2, 1, 1] }}\n",
        9, "joint.pivot", "parent or child must be a copy", ""),
    "joint named as a copy": (
        f'{COPIED}repeat = {{ count = [2, 1, 1] }}\n{JOINT.replace("pivot", "pivot_1_0_0").replace("ball", "ball_0_0_0")}'
        "anchor = [0, 0, 0]\n",
        *(12, "joint.pivot_1_0_0.name", "'pivot_1_0_0', a copy of 'pivot', is the name of an earlier joint", ""),
    ),
    "proxy without inertia": ('[[body]]\nname = "p"\nproxy = true\nmass = 1\n', 1, "body.p", "needs inertia", ""),
    "unsymmetric inertia": (f"{BALL}mass = 1\ninertia = [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]\n", 5, "inertia", "symmetric", ""),
    "unknown component": (f"{PARTS}{JOINT.replace('ball', 'b_2')}anchor = [0, 0, 0]\n",
        11, "joint.pivot.child", "no body 'b_2'", "'b_1'"),
    "joint of a body without free axes": (f'{BALL}fix = ["x", "y", "z", "rx", "ry", "rz"]\n{JOINT}anchor = [0, 0, 0]\n',
        8, "joint.pivot.child", "neither 'world' nor 'ball' is dynamic", ""),
}


HINGE = '[[joint]]\nname = "j"\ntype = "hinge"\nparent = "a"\nchild = "b"\n'
ENDS = "parent_anchor = [0, 0, 0]\nchild_anchor = [0, 0, 0]\n"
SPRING = HINGE.replace("hinge", "spring") + ENDS
PLACE = "anchor = [1, 0, 0]\naxis = [0, 0, 1]\n"
COUPLED = '[[joint]]\nname = "k"\ntype = "hinge"\nchild = "a"\nanchor = [0, 0, 0]\naxis = [0, 0, 1]\n[[coupling]]\nname = "c"\n'
WRONG_JOINTS = {
    # what follows the two bodies: number of lines after BODIES, key, part of the message, part of the remedy
    "parallel": (f"{HINGE}{PLACE}x_axis = [0, 0, 2]\n", 8, "joint.j.x_axis", "parallel to axis", "not parallel"),
    "half an x": (f"{HINGE}{PLACE}child_x_axis = [1, 0, 0]\n", 8, "joint.j.child_x_axis", "is missing", "both"),
    "frame and anchor": (f"{HINGE}{PLACE}parent_frame = {{}}\n", 6, "joint.j.anchor", "given as well", "keep one"),
    "child's frame alone": (f"{HINGE}child_frame = {{}}\n", 6, "joint.j.child_frame", "parent", "'world_frame'"),
    "foreign parameter": (f"{HINGE}{PLACE}unilateral = true\n", 8, "joint.j.unilateral", "has no unilateral", "remove it"),
    "misspelt coordinate": (f"{HINGE}{PLACE}[joint.coordinate.thea]\nlocked = true\n",
        8, "joint.j.coordinate.thea", "no coordinate 'thea'", "'theta'"),
    "misspelt key": (f"{HINGE}{PLACE}[joint.coordinate.theta]\nrnge = [0, 1]\n",
        9, "joint.j.coordinate.theta.rnge", "unknown key", "'range'"),
    "turned range": (f"{HINGE}{PLACE}range_deg = [9, -9]\n", 8, "joint.j.range_deg", "must be below", "lower"),
    "both units": (f"{HINGE}{PLACE}range = [0, 1]\nrange_deg = [0, 1]\n", 9, "joint.j.range_deg", "as well", "keep one"),
    "start outside": (f"{HINGE}{PLACE}range = [0, 1]\ninitial = 2\n", 9, "joint.j.initial", "must start inside", "compliant"),
    "default start outside": (f"{HINGE}{PLACE}range = [1, 2]\n", 8, "joint.j.range", "must start inside", "widen"),
    "default start just outside": (f"{HINGE}{PLACE}range = [1e-4, 1]\n", 8, "joint.j.range", "must start inside", "widen"),
    "law of a hinge": (f'{HINGE}{PLACE}force_formula = "-q"\n',
        8, "joint.j.force_formula", "a hinge joint has no force_formula", "to 'spring', or to [joint.coordinate.NAME]"),
    "spring without law": (SPRING, 1, "joint.j", "has no stiffness", "force_formula"),
    "misspelt name in a law": (f'{SPRING}force_formula = "-3 * legnth"\n',
        8, "joint.j.force_formula", "unknown name 'legnth' (column 6)", "'length'"),
    "unknown function": (f'{SPRING}force_function = "nobody"\n', 8, "force_function", "no function 'nobody'", "define it"),
    "two laws": (f'{SPRING}force_formula = "-gap"\nforce_function = "nobody"\n',
        9, "joint.j.force_function", "force_formula is given as well", "keep one"),
    "lock outside": (f"{HINGE}{PLACE}[joint.coordinate.theta]\nrange = [-1, 1]\nlocked = true\nlock_value = 3\n",
        11, "joint.j.coordinate.theta.lock_value", "must be locked inside", "inside"),
    "said twice": (f"{HINGE}{PLACE}friction = 1\n[joint.coordinate.theta]\nfriction = 2\n",
        8, "joint.j.friction", "is also given in", "keep one"),
    "lock and drive": (f'{HINGE}{PLACE}locked = true\ndrive = {{ mode = "position" }}\n',
        9, "joint.j.drive", "cannot have a drive", "remove"),
    "soft end without compliance": (f'{HINGE}{PLACE}[joint.coordinate.theta]\nrange = [-1, 1]\nlimit = "compliant"\n',
        10, "joint.j.coordinate.theta.limit", "needs a compliance", "limit_compliance"),
    "drive mode": (f'{HINGE}{PLACE}drive = {{ mode = "pdd" }}\n', 8, "joint.j.drive.mode", "not 'pdd'", "'pd'"),
    "drive without gains": (f'{HINGE}{PLACE}drive = {{ mode = "pd" }}\n', 8, "joint.j.drive.mode", "no gains", "stiffness"),
    "formula": (f'{HINGE}{PLACE}drive = {{ mode = "position", target = "sim(t)" }}\n',
        8, "joint.j.drive.target", "unknown name 'sim' (column 1)", "did you mean 'sin'?"),
    "uid of the other kind": (f'{HINGE}{PLACE}drive = {{ mode = "position", uid = 21 }}\n',
        8, "joint.j.drive.uid", "does not drive theta", "19"),
    "compliance of a penalty": (f"{HINGE}{PLACE}compliance = 1e-6\n", 8, "joint.j.compliance", "penalty", "compliant"),
    "compliant without compliance": (
        f'{HINGE.replace("hinge", "spherical")}anchor = [0, 0, 0]\nenforcement = "compliant"\n',
        *(7, "joint.j.enforcement", "needs a compliance", "linear_compliance"),
    ),
    "damping of the constraints": (f'{HINGE}{PLACE}enforcement = "exact"\ndamping = 2\n',
        9, "damping", "has no effect on a joint with enforcement = exact", "belongs to its coordinate"),
    "negative compliance": (f'{HINGE}{PLACE}enforcement = "compliant"\ncompliance = [1, -1]\n',
        9, "joint.j.compliance", "negative", ""),
    "too many rows": (f'{HINGE}{PLACE}enforcement = "compliant"\ncompliance = [1, 1, 1, 1, 1, 1]\n',
        9, "joint.j.compliance", "at most 5 numbers", "x, y, z, rx, ry"),
    "far apart": (
        f"{HINGE}parent_anchor = [0, 0, 0]\nchild_anchor = [0, 0, 0]\nparent_axis = [0, 0, 1]\nchild_axis = [0, 0, 1]\n",
        *(7, "joint.j.child_anchor", "anchors are 2 m apart", "mesh frames"),
    ),
    "negative friction": (f"{HINGE}{PLACE}friction = -1\n", 8, "joint.j.friction", "greater than or equal to 0", ""),
    "coupled joint": (f'{HINGE}{PLACE}{COUPLED}coordinate = "jj.theta"\nterms = [{{ coordinate = "k" }}]\n',
        16, "coupling.c.coordinate", "no joint 'jj'", "'j'"),
    "coupled coordinate": (f'{HINGE}{PLACE}{COUPLED}coordinate = "j.z"\nterms = [{{ coordinate = "k" }}]\n',
        16, "coupling.c.coordinate", "no coordinate 'z'", "'theta'"),
    "coupled to itself": (f'{HINGE}{PLACE}{COUPLED}coordinate = "j"\nterms = [{{ coordinate = "j.theta" }}]\n',
        17, "coupling.c.terms[0].coordinate", "depends on itself", "two different"),
    "polynomial of a high order": (
        f'{HINGE}{PLACE}{COUPLED}coordinate = "j"\nterms = [{{ coordinate = "k", polynomial = [0, 1, 0, 0, 0, 0, 1] }}]\n',
        *(17, "coupling.c.terms[0].polynomial", "7 coefficients", "table"),
    ),
    "spline that turns back": (
        f'{HINGE}{PLACE}{COUPLED}coordinate = "j"\nterms = [{{ coordinate = "k", table = [[1, 0], [0, 1]] }}]\n',
        *(17, "coupling.c.terms[0].table", "q must increase", "sort"),
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenes")
    (folder / "link.obj").write_text("v 0 0 0\n")
    (folder / "poses.csv").write_text("time,x,y,z\n0,0,0,0\n")
    (folder / "broken.csv").write_text("time,x,y,z\n1,0,0,0\n0,0,0,0\n")
    return folder


def problems_of(path):
    with pytest.raises(SceneError) as error:
        abd.load(path).compile()
    return error.value.problems


LINES = BODIES.count("\n")
CASES = WRONG | {f"joint: {name}": (BODIES + text, LINES + line, *rest) for name, (text, line, *rest) in WRONG_JOINTS.items()}


@pytest.mark.parametrize("text, line, key, message, remedy", CASES.values(), ids=CASES)
def test_wrong_scene(folder, text, line, key, message, remedy):
    path = folder / "wrong.toml"
    path.write_text(text)
    problems = problems_of(path)
    assert len(problems) == 1, [str(problem) for problem in problems]
    problem = problems[0]
    assert (problem.file, problem.line) == (str(path), line)
    assert key in problem.key and message in problem.message and remedy in problem.remedy
    place = f"{path}:{line}: " if line else f"{path}: "
    assert str(problem).startswith(place + (problem.key and f"{problem.key}: ") + problem.message)


def test_json_of_the_same_schema(folder):
    path = folder / "wrong.json"
    path.write_text(
        '{\n "body": [\n  {"name": "a",\n   "box": [1, 1, 1],\n   "densty": 3},\n'
        '  {"name": "b", "sphere":\n   {"radius": -1}}\n ],\n "name": "x",\n "gravity": [0, NaN, 0],\n "name": "y"\n}\n'
    )
    problems = problems_of(path)
    found = [(p.line, p.key) for p in problems]
    assert found == [(5, "body.a.densty"), (7, "body.b.sphere.radius"), (10, "gravity"), (11, "name")]
    assert "twice" in problems[3].message
    path.write_text('{"name": "x",\n "gravity": }')
    assert problems_of(path)[0].line == 2
    path.write_text(json.dumps([1, 2]))
    assert "at the top" in problems_of(path)[0].message


def test_invalid_scene_files_are_refused(folder):
    (folder / "latin.toml").write_bytes(b'a = 1\nname = "caf\xe9"\n')
    problem = problems_of(folder / "latin.toml")[0]
    assert problem.line == 2 and "UTF-8" in problem.message
    for source, words in {
        folder: ("is a folder", "'latin.toml'"),
        folder / "latn.toml": ("no such scene", "latin.toml'"),
        folder / "link.obj": ("'.obj' is not the suffix", "key `mesh`"),
        "no_such_scene_anywhere": ("no such scene", ""),
    }.items():
        with pytest.raises(SceneError) as error:
            abd.load(source)
        assert all(word in str(error.value) for word in words)
        assert error.value.exit_status == 2


WRONG_CALLS = (lambda scene: scene.add_body("part", box=(1, -1, 1)), lambda scene: setattr(scene.solver, "dt", -1))


@pytest.mark.parametrize("call", WRONG_CALLS, ids=["size", "step"])
def test_tracebacks_have_no_causes_inside_libraries(call):
    with pytest.raises(SceneError) as caught:
        call(abd.Scene())
    shown = "".join(traceback.format_exception(caught.value))
    assert "pydantic" not in shown and "direct cause" not in shown
