"""The mutations that `tools/mutate_joints.py` makes are of the present text, and tests that look for them are there."""

from tool import TOOLS, load_tool


def test_every_mutation_finds_its_text_and_its_tests():
    tool = load_tool("mutate_joints")
    assert len(tool.MUTATIONS) > 50 and [one.what for one in tool.misplaced()] == []
    for one in tool.MUTATIONS:
        assert (TOOLS.parent / one.tests.split()[0]).exists(), one.what
