"""Candidates: lists within a step, and the tree over the bodies with subtrees of worlds and distant bodies."""

from dataclasses import replace

import numpy as np
import pytest
import warp as wp
from contact_models import near_on, random_path, scene, states
from contact_on_device import upload_path
from on_device import DEVICE, NAME
from tool import load_tool

import abd
from abd.backends.device.device import EMULATED, Device
from abd.backends.warp.terms.candidates import Candidates
from abd.contact.pair_law import PairLaw
from abd.contact.pairs import body_pairs
from abd.contact.path import Path
from abd.errors import StepFailure


def rows(found: Candidates) -> np.ndarray:
    """(count, 5) bodies and primitives of the candidates, in their order."""
    items = DEVICE.read(found.items, found.count).reshape(-1, 4)
    return np.column_stack([found.pair_list()[items[:, 0]], items[:, 1:]])


def moved(model, q: np.ndarray):
    """The model in another state."""
    return replace(model, bodies=replace(model.bodies, q=q))


@pytest.mark.device
@pytest.mark.parametrize("seed", range(3))
def test_a_renewed_list_is_complete_and_reuses_earlier_pairs(seed):
    """The list contains all close pairs of five bodies that move at different speeds, in all steps."""
    model = scene([0, 1, 2, 0, 1], states(5, seed, 0.8), radius=np.array([0.0, 0.01, 0.02, 0.0, 0.005]))
    found = Candidates(model, DEVICE, PairLaw(model))
    limits = DEVICE.zeros(5, wp.int32), DEVICE.upload(np.ones(1), wp.float64)  # one island, free to follow all of a path
    covered, searched, kept, named = DEVICE.zeros(1, wp.int32), 0, 0, 0
    found.forget()
    for turn in range(12):
        path = random_path(model, 100 * seed + turn, 0.01, 0.005)
        slow = np.arange(5) >= 2
        for values in (path.dp, path.w, path.S):
            values[slow] *= 0.02
        bound = (np.linalg.norm(path.dp, axis=1) + path.affine_speed).max()  # on how far any point moves
        arcs, motion = upload_path(path), DEVICE.upload([bound], wp.float64)
        found.test_cover(arcs, motion, *limits, covered)
        if is_renewed := not DEVICE.read(covered)[0]:
            found.renew(arcs, bound, *limits)
        if is_renewed and turn:
            numbers = DEVICE.read(found.kept, found.pair_count)
            kept, searched = kept + int((numbers >= 0).sum()), searched + int((numbers < 0).sum())
        listed = {tuple(row) for row in rows(found).tolist()}
        pairs = body_pairs(model)
        near = {(pairs.i[pair], pairs.j[pair], *rest) for pair, *rest in near_on(model, path, 20).tolist()}
        assert near <= listed and len(listed) == found.count
        named += len(near)
        model = moved(model, path.samples(np.array([1.0]))[0])
    assert kept > 0 and searched > 0 and named > 10


@pytest.mark.device
def test_list_beyond_its_memory_limit_is_refused():
    simulation = abd.Simulation("box_stack", device=NAME)
    simulation.step()
    found = simulation.backend.contacts.candidates
    for capacity, what in ((100, "body pairs"), (20_000, "primitives near")):
        found.most_bytes = capacity
        with pytest.raises(StepFailure, match=rf"the {what}.* GiB.*solver\.dt") as raised:
            simulation.step()
        assert raised.value.reason == "candidates"
    found.most_bytes = 1 << 30
    assert simulation.step().converged


WORLDS = 5


def heap(seed: int, boxes: int = 6) -> abd.Scene:
    """Boxes without order above two half-spaces, and a fixed box."""
    random = np.random.default_rng(seed)
    scene = abd.Scene()
    scene.add_body("ground", half_space={})
    for k in range(boxes):
        place, kind = random.uniform(0.0, 0.4, 3).tolist(), "static" if k == 2 else "dynamic"
        scene.add_body(f"box{k}", box=(0.1,) * 3, density=1000, position=place, kind=kind)
    scene.add_body("wall", half_space={"normal": (1, 0, 0)})
    return scene


@pytest.mark.device
def test_pairs_of_a_world_equal_those_of_a_single_run():
    """This holds also after all bodies have moved far and the tree is rebuilt."""
    together = heap(0).replicate(WORLDS)
    for world in range(WORLDS):
        for body in heap(world).spec.body:
            together.body(f"w{world}_{body.name}").position = body.position
    alone = [heap(world).compile() for world in range(WORLDS)]
    model = together.compile()
    n, found = len(alone[0].bodies), Candidates(model, DEVICE, PairLaw(model))
    single = [Candidates(one, DEVICE, PairLaw(one)) for one in alone]
    for turn in range(3):
        path = random_path(model, turn, 0.3, 0.2)
        every, counts = pairs(found, path, slice(0, n * WORLDS), turn == 1), []
        for world, one in enumerate(single):
            mine = every[every[:, 0] // n == world] - n * world
            assert np.array_equal(mine, pairs(one, path, slice(world * n, (world + 1) * n), False)), (turn, world)
            counts.append(len(mine))
        assert min(counts) > 0 and len(every) == sum(counts)


def pairs(found: Candidates, path: Path, bodies: slice, far: bool) -> np.ndarray:
    """Pairs of a new list for the path of some bodies, which have moved far before or not."""
    found.forget()
    found.travel = np.inf if far else found.travel
    part = Path(**{name: values[bodies] for name, values in vars(path).items()})
    island = DEVICE.zeros(bodies.stop - bodies.start, wp.int32)
    found.renew_last(upload_path(part), 0.0, island, DEVICE.upload(np.ones(1), wp.float64))
    return found.pair_list()


def test_distant_body_does_not_deepen_the_tree():
    """The pairs equal those of the processor's tree, also with bodies beyond all bounds."""
    scene = abd.Scene()
    for k in range(216):
        place = 0.2 * np.array([k % 6, k // 6 % 6, k // 36])
        scene.add_body(f"box{k}", box=(0.19,) * 3, density=1000, position=place)
    for k, place in enumerate(([1e5] * 3, [1e5, 1e5 + 0.101, 1e5], [-2e5] * 3)):
        scene.add_body(f"far{k}", box=(0.1,) * 3, density=1000, position=place)
    model, found = scene.compile(), []
    path = random_path(model, 0, 0.01, 0.0)
    for device in (Device(EMULATED), Device("cpu")):
        candidates = Candidates(model, device, PairLaw(model))
        found.append(pairs(candidates, path, slice(0, 219), False))
        boxes = [device.read(one) for one in candidates.tree_boxes]
    assert np.array_equal(*found) and found[0].tolist().count([216, 217]) == 1 and not (found[0] == 218).any()
    clamped = Candidates(model, device := Device(EMULATED), PairLaw(model))
    pairs(clamped, path, slice(0, 219), False)
    depth = load_tool("gpu_shape").tree_depth
    assert depth(*(device.read(one) for one in clamped.tree_boxes)) < 20 < depth(*boxes)
