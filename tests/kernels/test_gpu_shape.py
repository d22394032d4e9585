"""What a GPU would be given to do, counted without one."""

import numpy as np
import pytest
from tool import load_tool


@pytest.fixture(scope="module")
def tool():
    return load_tool("gpu_shape")


def test_a_step_is_replayed(tool):
    """Boxes that fall on one another: few launches of their own, one read per iteration."""
    row = tool.steps_of("box_stack", 3, 10**9, verbose=False)
    assert row["newton"] > 10 and row["replayed"] > row["recorded"] > 0
    assert tool.faults(row) == []
    assert row["launches"] > 0 and row["reads_renewed"] > row["reads"] == 1


def test_steps_are_cut_short(tool):
    row = tool.steps_of("box_stack", 3, 5, verbose=False)
    assert row["newton"] == 5 and row["steps"] == 1


def test_a_cube_of_boxes_has_few_levels(tool):
    row = tool.pattern_of(10)
    assert row["bodies"] == 1000 and 0 < row["levels"] < 250 and tool.faults(row) == []
    assert tool.faults(row | {"levels": 251, "depth": 21, "depth_bound": 20.0}) == ["levels 251", "depth 21"]


def test_depth_of_the_tree(tool):
    """Boxes in a cube; with one box that spoils the bounds all have one code, and hang on one another."""
    place = np.stack(np.meshgrid(*3 * [np.arange(8.0)]), axis=-1).reshape(-1, 3)
    assert tool.tree_depth(place, place + 0.5) == 9
    empty = np.full((1, 3), 3e37)
    assert tool.tree_depth(np.concatenate([empty, place]), np.concatenate([-empty, place + 0.5])) <= 10
    assert tool.tree_depth(np.concatenate([-empty, place]), np.concatenate([empty, place + 0.5])) > 100
