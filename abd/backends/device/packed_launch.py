"""A recorded launch with its arguments packed once, for the processor.

Warp packs the arguments of a recorded launch anew whenever it runs, which takes longer than a small kernel. They stay what
they are until the record is given others, but for structs, whose members may change at any time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import warp as wp


def packed(command: wp.Launch) -> Callable[[], None]:
    """Runs a launch as it is now: to be made anew when its dimensions or parameters are others. `command.launch` itself
    where the launch is none that one function carries out, or Warp holds it otherwise than it does today."""
    try:
        run = command.hooks.forward
        arguments, values, block = command.kernel.adj.args, command.params[1:], command.block_dim
    except AttributeError:
        return command.launch
    plain = run is not None and not command.adjoint and block == 1
    if not plain or len(arguments) != len(values) or not all(map(_is_c, values)):
        return command.launch
    fields = [(argument.label, type(value)) for argument, value in zip(arguments, values, strict=True)]
    packet = type("Arguments", (ctypes.Structure,), {"_fields_": fields})()
    for (name, _), value in zip(fields, values, strict=True):
        setattr(packet, name, value)
    structs = [
        (argument.label, value)
        for argument, value in zip(arguments, values, strict=True)
        if hasattr(argument.type, "vars")
    ]
    bounds, address = ctypes.byref(command.params[0]), ctypes.byref(packet)

    def launch() -> None:
        for name, value in structs:
            setattr(packet, name, value)
        run(bounds, address)

    return launch


def _is_c(value: object) -> bool:
    return isinstance(value, ctypes.Structure | ctypes.Array | ctypes._SimpleCData)
