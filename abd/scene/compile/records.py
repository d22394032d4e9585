"""Compilation of the bodies of a scene; tables that differ only in name, world and position are compiled once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from abd.errors import Problem, SceneError
from abd.names import CopyNames, Names
from abd.scene.compile.bodies import BodyRecord, Records, compile_body
from abd.scene.compile.copies import copy_names, copy_of, copy_positions
from abd.scene.geometry.matter import MatterSource
from abd.scene.geometry.surfaces import SurfaceSource
from abd.scene.schema.findings import located
from abd.scene.schema.schema import BodySpec, SceneSpec

UNSHARED = ("name", "world", "position")
"""Keys in which bodies of one record differ."""


def compile_bodies(spec: SceneSpec, wrong: set[int], problems: list[Problem]) -> Records:
    """Compile all bodies except the `wrong` ones; problems of equal bodies are added to `problems` once."""
    compiler, lengths = _Compiler(), spec.solver.world_dt or defaultdict(lambda: spec.solver.dt)
    names, components = list[str | CopyNames](), list[tuple[str, str]]()
    numbers, counts, worlds, places = list[int](), list[int](), list[int](), list[Sequence[float]]()
    grids: dict[int, np.ndarray] = {}
    for table, body in enumerate(spec.body):
        if table in wrong or not body.enabled:
            continue
        for one, named in _compiled_alone(body):
            for suffix, number in compiler.records(one, body.name, lengths[one.world], len(named)):
                names.append(f"{one.name}{suffix}" if len(named) == 1 else named)
                components += [(f"{one.name}{suffix}", body.name)] if suffix else []
                if len(named) > 1:
                    grids[len(numbers)] = copy_positions(body)
                numbers.append(number)
                counts.append(len(named))
                worlds.append(one.world)
                places.append(one.position)
    single = Counter(name for name in names if isinstance(name, str))
    for name, table in components:
        if single[name] > 1:
            message, remedy = f"component '{name}' has the name of another body", "rename one of the bodies"
            problems.append(Problem(message, f"body.{table}.name", name, remedy=remedy))
    for fault in compiler.faults.values():
        text = f"body '{fault.name}'{and_more(fault.count)}: {fault.problem.message}"
        problems.append(replace(fault.problem, message=text))
    position = np.repeat(np.reshape(places, (-1, 3)), counts, axis=0)
    starts = np.cumsum([0, *counts])
    for k, grid in grids.items():
        position[starts[k] : starts[k + 1]] = grid
    first, world = (np.repeat(np.array(values, dtype=np.int32), counts) for values in (numbers, worlds))
    return Records(compiler.firsts, first, Names(names), world, position)


@dataclass
class _Fault:
    """A problem of `count` bodies; name: name of the first one."""

    name: str
    problem: Problem
    count: int = 0


class _Compiler:
    """Compiler of bodies: their records, and their faults by message and table or mesh file."""

    def __init__(self) -> None:
        self.firsts: list[BodyRecord] = []
        self.faults: dict[tuple[Hashable, str], _Fault] = {}
        self._source, self._matter = SurfaceSource(), MatterSource()
        self._known: dict[Hashable, tuple[list[tuple[str, int]], list[_Fault]]] = {}

    def records(self, one: BodySpec, table: str, dt: float, count: int) -> list[tuple[str, int]]:
        """Return the suffix of the name and the number of the record of a body, for every component of a split body.

        Args:
            table: name of the table of the body; dt: time step [s]; count: number of copies.
        """
        # the record of a prescribed motion holds the place and the time step
        key = one.content(*UNSHARED) if one.motion is None else (one.content("name", "world"), dt)
        if key not in self._known:
            self._known[key] = self._compiled(one, f"body.{table}", dt)
        found, faults = self._known[key]
        for fault in faults:
            fault.count += count
        return found

    def _compiled(self, one: BodySpec, where: str, dt: float) -> tuple[list[tuple[str, int]], list[_Fault]]:
        try:
            pieces = self._source.pieces(one)
        except SceneError as error:
            key = f"{where}.{'surface' if one.mesh is None else 'mesh'}"
            return [], [self._fault(one.mesh or where, one.name, located(problem, key)) for problem in error.problems]
        found, faults = list[tuple[str, int]](), list[_Fault]()
        suffixes = [f"_{k}" for k in range(len(pieces))] if one.split_components and pieces else [""]
        for suffix, piece in zip(suffixes, pieces or [None], strict=True):
            name = f"{one.name}{suffix}"
            try:
                self.firsts.append(compile_body(name, one, piece, self._matter, dt))
                found.append((suffix, len(self.firsts) - 1))
            except SceneError as error:
                faults += [self._fault(where, name, located(problem, where)) for problem in error.problems]
        return found, faults

    def _fault(self, owner: Hashable, name: str, problem: Problem) -> _Fault:
        return self.faults.setdefault((owner, problem.message), _Fault(name, problem))


def and_more(count: int) -> str:
    """Return the text " (and N more)" for a number of equal bodies."""
    return f" (and {count - 1} more)" if count > 1 else ""


def notes_of(record: BodyRecord, count: int) -> list[str]:
    """Return notes for the user about the bodies of a record."""
    body = f"body '{record.name}'{and_more(count)}"
    return [*record.notes, *(f"{body}: the part of its {key} along fixed axes has no effect" for key in record.lost)]


def _compiled_alone(body: BodySpec) -> list[tuple[BodySpec, Sequence[str]]]:
    """Return the bodies of a table to compile, each with the names of the bodies that it represents.

    The first copy represents all, unless they split into components or have a motion.
    """
    if body.repeat is None:
        return [(body, [body.name])]
    names, positions = copy_names(body.name, body.repeat), copy_positions(body)
    if body.split_components or body.motion is not None:
        return [(copy_of(body, name, place), [name]) for name, place in zip(names, positions.tolist(), strict=True)]
    return [(copy_of(body, names[0], positions[0].tolist()), names)]
