"""Serialised checkpoints and the two slots of a trajectory file that store them.

A checkpoint is a dictionary of arrays, numbers, strings and dictionaries, as `Simulation.checkpoint()` returns it. Its bytes are
a JSON table of contents followed by the raw memory of the arrays, so that reading gives back every bit.

Each write takes the older slot, with a serial number and a checksum, so that one slot holds a complete checkpoint whenever the
process is killed.
"""

from __future__ import annotations

import hashlib
import json
import struct
from io import BytesIO

import numpy as np

from abd.errors import AbdError
from abd.io.datasets import growth

_MAGIC = b"abdckpt1"
_RECORD = struct.Struct("<8sQQ32s")
"""Head of a slot: magic, serial number, length of the content [bytes], its SHA-256."""
_LENGTH = struct.Struct("<Q")


class CheckpointError(AbdError):
    """No usable checkpoint exists, or a value cannot be stored in a checkpoint."""


def to_bytes(values: dict) -> bytes:
    """Serialise arrays of plain numbers, numbers, strings, None and dictionaries; `CheckpointError` for other values."""
    arrays: list[bytes] = []
    contents = json.dumps(_describe(values, "", arrays), separators=(",", ":")).encode()
    return b"".join([_LENGTH.pack(len(contents)), contents, *arrays])


def from_bytes(data: bytes) -> dict:
    """Return the checkpoint that `to_bytes` wrote; arrays are writable copies."""
    (length,) = _LENGTH.unpack_from(data)
    start = _LENGTH.size + length
    contents = json.loads(bytes(data[_LENGTH.size : start]))
    return _restore(contents, BytesIO(data[start:]))


def _describe(value, where: str, arrays: list[bytes]):
    """Return the entry of one value in the table of contents; memory of arrays is appended to `arrays`."""
    if isinstance(value, dict):
        return {"dict": {str(key): _describe(inner, f"{where}/{key}", arrays) for key, inner in value.items()}}
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject or value.dtype.names:
            raise CheckpointError(f"checkpoint entry {where} is an array of {value.dtype}, not of plain numbers")
        arrays.append(np.ascontiguousarray(value).tobytes())
        return {"array": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return {"scalar": _describe(np.asarray(value), where, arrays)}
    if value is None or isinstance(value, bool | int | float | str):
        return {"plain": value}
    raise CheckpointError(f"checkpoint entry {where} is a {type(value).__name__}, which a checkpoint cannot hold")


def _restore(entry: dict, memory: BytesIO):
    """Return the value of an entry of the table of contents; memory of arrays is read from `memory`."""
    if "dict" in entry:
        return {key: _restore(inner, memory) for key, inner in entry["dict"].items()}
    if "array" in entry:
        dtype, shape = np.dtype(entry["array"]), tuple(entry["shape"])
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return np.frombuffer(memory.read(size), dtype).reshape(shape).copy()
    if "scalar" in entry:
        return _restore(entry["scalar"], memory)[()]
    return entry["plain"]


def create_slots(group) -> None:
    """Create the two empty slots in an HDF5 group."""
    for name in ("slot0", "slot1"):
        group.create_dataset(name, (0,), maxshape=(None,), chunks=(1 << 16,), dtype=np.uint8)


def slot_growth(group, content: bytes) -> int:
    """Return the maximum growth of the file [bytes] by `write_slot`."""
    return max(growth(slot, max(0, _RECORD.size + len(content) - len(slot))) for slot in group.values())


def write_slot(group, content: bytes) -> None:
    """Overwrite the older slot of an HDF5 group with a checkpoint serialised by `to_bytes`."""
    serials = [_serial(group[name]) for name in ("slot0", "slot1")]
    slot = group[f"slot{int(np.argmin(serials))}"]
    head = _RECORD.pack(_MAGIC, max(serials) + 1, len(content), hashlib.sha256(content).digest())
    record = np.frombuffer(head + content, np.uint8)
    if len(slot) < len(record):
        slot.resize(len(record), axis=0)
    slot[: len(record)] = record


def read_slots(group) -> dict:
    """Return the newest complete checkpoint of an HDF5 group; `CheckpointError` without any."""
    found = [record for record in (_read(group[name]) for name in ("slot0", "slot1")) if record is not None]
    if not found:
        raise CheckpointError("the trajectory holds no complete checkpoint, so the run cannot be resumed")
    return from_bytes(max(found)[1])


def _serial(slot) -> int:
    """Serial number of a slot, 0 if the slot is empty."""
    if len(slot) < _RECORD.size:
        return 0
    magic, serial, _, _ = _RECORD.unpack(slot[: _RECORD.size].tobytes())
    return serial if magic == _MAGIC else 0


def _read(slot) -> tuple[int, bytes] | None:
    """Serial number and content of a slot; None if it is empty or incomplete after a crash."""
    try:
        data = slot[...].tobytes()
    except OSError:
        # HDF5 refuses to read blocks beyond the end that a killed writer had recorded.
        return None
    if len(data) < _RECORD.size:
        return None
    magic, serial, length, digest = _RECORD.unpack_from(data)
    content = data[_RECORD.size : _RECORD.size + length]
    if magic != _MAGIC or len(content) != length or hashlib.sha256(content).digest() != digest:
        return None
    return serial, content
