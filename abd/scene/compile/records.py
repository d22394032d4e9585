"""Compilation of the bodies of a scene; tables that differ only in name, world and position are compiled once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace

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
    numbers, worlds, places = list[int](), list[int](), list[Sequence[Sequence[float]]]()
    for table, body in enumerate(spec.body):
        if table in wrong or not body.enabled:
            continue
        for one, named, positions in _compiled_alone(body):
            for suffix, number in compiler.records(one, body.name, lengths[one.world], len(named)):
                names.append(f"{one.name}{suffix}" if len(named) == 1 else named)
                components += [(f"{one.name}{suffix}", body.name)] if suffix else []
                numbers.append(number)
                worlds.append(one.world)
                places.append(positions)
    single = Counter(name for name in names if isinstance(name, str))
    for name, table in components:
        if single[name] > 1:
            message, remedy = f"component '{name}' has the name of another body", "rename one of the bodies"
            problems.append(Problem(message, f"body.{table}.name", name, remedy=remedy))
    for fault, (name, problem) in compiler.faults.items():
        text = f"body '{name}'{and_more(compiler.counts[fault])}: {problem.message}"
        problems.append(replace(problem, message=text))
    counts = [len(positions) for positions in places]
    first, world = (np.repeat(np.array(values, dtype=np.int32), counts) for values in (numbers, worlds))
    return Records(compiler.firsts, first, Names(names), world, np.concatenate([np.zeros((0, 3)), *places]))


Fault = tuple[str, str]
"""Table or mesh file, and message, of a problem of bodies."""


class _Compiler:
    """Compiler of bodies.

    Attributes:
        firsts: their records; faults: name of the first body and problem of every fault; counts: number of its bodies.
    """

    def __init__(self) -> None:
        self.firsts: list[BodyRecord] = []
        self.faults: dict[Fault, tuple[str, Problem]] = {}
        self.counts: Counter[Fault] = Counter()
        self._source, self._matter = SurfaceSource(), MatterSource()
        self._known: dict[Hashable, tuple[list[tuple[str, int]], list[Fault]]] = {}

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
        self.counts.update(dict.fromkeys(faults, count))
        return found

    def _compiled(self, one: BodySpec, where: str, dt: float) -> tuple[list[tuple[str, int]], list[Fault]]:
        try:
            pieces = self._source.pieces(one)
        except SceneError as error:
            key = f"{where}.{'surface' if one.mesh is None else 'mesh'}"
            return [], [self._fault(one.mesh or where, one.name, located(problem, key)) for problem in error.problems]
        found, faults = list[tuple[str, int]](), list[Fault]()
        suffixes = [f"_{k}" for k in range(len(pieces))] if one.split_components and pieces else [""]
        for suffix, piece in zip(suffixes, pieces or [None], strict=True):
            name = f"{one.name}{suffix}"
            try:
                self.firsts.append(compile_body(name, one, piece, self._matter, dt))
                found.append((suffix, len(self.firsts) - 1))
            except SceneError as error:
                faults += [self._fault(where, name, located(problem, where)) for problem in error.problems]
        return found, faults

    def _fault(self, owner: str, name: str, problem: Problem) -> Fault:
        self.faults.setdefault((owner, problem.message), (name, problem))
        return owner, problem.message


def and_more(count: int) -> str:
    """Return the text " (and N more)" for a number of equal bodies."""
    return f" (and {count - 1} more)" if count > 1 else ""


def notes_of(record: BodyRecord, count: int) -> list[str]:
    """Return notes for the user about the bodies of a record."""
    body = f"body '{record.name}'{and_more(count)}"
    return [*record.notes, *(f"{body}: the part of its {key} along fixed axes has no effect" for key in record.lost)]


def _compiled_alone(body: BodySpec) -> list[tuple[BodySpec, Sequence[str], Sequence[Sequence[float]]]]:
    """Return the bodies of a table to compile, each with names and positions of the bodies that it represents.

    The first copy represents all, unless they split into components or have a motion.
    """
    if body.repeat is None:
        return [(body, [body.name], [body.position])]
    names, positions = copy_names(body.name, body.repeat), copy_positions(body)
    if body.split_components or body.motion is not None:
        places = zip(names, positions.tolist(), strict=True)
        return [(copy_of(body, name, place), [name], [place]) for name, place in places]
    return [(copy_of(body, names[0], positions[0].tolist()), names, positions)]
