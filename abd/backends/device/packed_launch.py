"""A recorded launch with its arguments packed once, for the processor.

Warp packs the arguments of a recorded launch anew whenever it runs, which takes longer than a small kernel. They stay what
they are until the record is given others, but for structs, whose members may change at any time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import warp as wp


@dataclass(frozen=True)
class Packet:
    """What the function of a kernel on the processor is called with.

    Attributes:
        run: the function; bounds: of the launch; arguments: all of them in one piece; structs: those whose members may change,
            by name.
    """

    run: Callable
    bounds: ctypes.Structure
    arguments: ctypes.Structure
    structs: list[tuple[str, ctypes.Structure]]

    @classmethod
    def of(cls, command: wp.Launch) -> Packet | None:
        """Of a launch as it is now; None where it is none that one function carries out, or Warp holds it otherwise than it
        does today."""
        try:
            run = command.hooks.forward
            arguments, values, block = command.kernel.adj.args, command.params[1:], command.block_dim
        except AttributeError:
            return None
        plain = run is not None and not command.adjoint and block == 1
        if not plain or len(arguments) != len(values) or not all(map(_is_c, values)):
            return None
        labels = tuple(argument.label for argument in arguments)
        packet = _layout(labels, tuple(map(type, values)))(*values)
        structs = [
            (argument.label, value)
            for argument, value in zip(arguments, values, strict=True)
            if not isinstance(argument.type, wp.array) and hasattr(argument.type, "vars")
        ]
        return cls(run, command.params[0], packet, structs)


def packed(command: wp.Launch) -> Callable[[], None]:
    """Runs a launch as it is now: to be made anew when its dimensions or parameters are others. `command.launch` itself
    where it cannot be packed."""
    packet = Packet.of(command)
    if packet is None:
        return command.launch
    run, structs, arguments = packet.run, packet.structs, packet.arguments
    bounds, address = ctypes.byref(packet.bounds), ctypes.byref(arguments)

    def launch() -> None:
        for name, value in structs:
            setattr(arguments, name, value)
        run(bounds, address)

    return launch


@cache
def _layout(labels: tuple[str, ...], kinds: tuple[type, ...]) -> type[ctypes.Structure]:
    """All arguments in one piece. Launches of a kernel share it: to make a type takes longer than to fill it."""
    return type("Arguments", (ctypes.Structure,), {"_fields_": list(zip(labels, kinds, strict=True))})


def _is_c(value: object) -> bool:
    return isinstance(value, ctypes.Structure | ctypes.Array | ctypes._SimpleCData)
