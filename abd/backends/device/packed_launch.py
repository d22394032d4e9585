"""Recorded CPU launches with arguments that are packed once.

Warp packs the arguments of a recorded launch at every run, which takes longer than a small kernel. Here only structs are copied
at every run, because their members may change.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import warp as wp


@dataclass(frozen=True)
class Packet:
    """Compiled function of a CPU kernel and its arguments.

    Attributes:
        run: the function; bounds: bounds of the launch; arguments: all arguments in one structure.
        structs: names and structs whose members may change.
    """

    run: Callable
    bounds: ctypes.Structure
    arguments: ctypes.Structure
    structs: list[tuple[str, ctypes.Structure]]

    @classmethod
    def of(cls, command: wp.Launch) -> Packet | None:
        """Build the packet of a launch; None if it is not a call of one function or Warp's data structures differ."""
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
    """Return a function that runs a launch with its current dimensions and parameters.

    The result is `command.launch` if the launch cannot be packed."""
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
    """Structure type of all arguments; cached per kernel, because creating a type is slow."""
    return type("Arguments", (ctypes.Structure,), {"_fields_": list(zip(labels, kinds, strict=True))})


def _is_c(value: object) -> bool:
    return isinstance(value, ctypes.Structure | ctypes.Array | ctypes._SimpleCData)
