"""Checkpoints are restored bit for bit, for any content and any interruption of the writer."""

import h5py
import numpy as np
import pytest

from abd.io.checkpoint import CheckpointError, create_slots, from_bytes, read_slots, to_bytes, write_slot


def bits(value):
    """Something that compares equal only for equal bits and types."""
    if isinstance(value, dict):
        return {key: bits(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, float):
        return type(value), np.float64(value).tobytes()
    return type(value), value


def test_every_bit_and_type_survives():
    rng = np.random.default_rng(1)
    odd = np.array([0x7FF8DEADBEEF0001, 0x8000000000000000, 0x0000000000000001], dtype=np.uint64).view(float)
    values = {
        "q": rng.standard_normal((5, 12)),
        "odd": odd,
        "fortran": np.asfortranarray(rng.standard_normal((3, 4))),
        "strided": np.arange(20.0)[::3],
        "empty": np.empty((0, 3)),
        "zero_dim": np.array(2.5),
        "flags": np.array([True, False]),
        "single": rng.standard_normal(3).astype(np.float32),
        "ints": np.array([-(2**62), 3]),
        "inner": {"deeper": {"touching": np.arange(4, dtype=np.int32)}, "none": {}},
        "time": 0.1 + 0.2,
        "gap": float("inf"),
        "minus_zero": -0.0,
        "numpy_scalar": np.float64(1.0) / 3.0,
        "step": 10**30,
        "on": True,
        "word": "Überschlag",
        "nothing": None,
    }
    restored = from_bytes(to_bytes(values))
    assert bits(restored) == bits(values)
    restored["q"][0, 0] = 1.0


@pytest.mark.parametrize("bad", [object(), [1, 2], np.array([None])], ids=["object", "list", "object array"])
def test_unsupported_values_are_refused_by_name(bad):
    with pytest.raises(CheckpointError, match="/inner/bad"):
        to_bytes({"inner": {"bad": bad}})


def test_slots_alternate_and_survive_a_torn_write(tmp_path):
    with h5py.File(tmp_path / "slots.h5", "w") as file:
        create_slots(file)
        with pytest.raises(CheckpointError, match="no complete checkpoint"):
            read_slots(file)
        for step in range(5):
            write_slot(file, to_bytes({"step": step, "data": np.full(1000 - 100 * step, step)}))
            assert read_slots(file)["step"] == step
        newest = file["slot0"]
        newest[60] ^= 1
        assert read_slots(file)["step"] == 3
        file["slot1"][60] ^= 1
        with pytest.raises(CheckpointError):
            read_slots(file)
