"""Contact filters of a stage: collision groups, filtered pairs, and articulations without self-collision."""

from __future__ import annotations

from abd.scene.importers.usd.bodies import Bodies
from abd.scene.importers.usd.shapes import KINDS
from abd.scene.importers.usd.stage import Stage, UsdPhysics


def contact_filters(stage: Stage, bodies: Bodies) -> list[dict]:
    """Tables of contact filters, between bodies: a pair is filtered if all of its colliders are."""
    pairs: set[frozenset[str]] = set()
    (filtered, whole), owners = _between_colliders(stage, bodies), bodies.of_collider
    # filters of single colliders count where the bodies have no others
    names = {body.name: body for body in bodies.all}
    partly = {frozenset(owners[path].name for path in pair if path in owners) for pair in filtered}
    for pair in sorted((pair for pair in partly if len(pair) == 2), key=sorted):
        a, b = (names[name] for name in sorted(pair))
        if {frozenset((x.path, y.path)) for x in a.colliders for y in b.colliders} <= filtered:
            pairs.add(pair)
        else:
            stage.notes.append(
                f"filters between some colliders of {a.path} and {b.path} are ignored: filters apply to whole bodies"
            )
    tables = [{"bodies": sorted(names)} for names in (*whole, *sorted(pairs, key=sorted))]
    return tables + _articulations(stage, bodies)


def _between_colliders(stage: Stage, bodies: Bodies) -> tuple[set[frozenset[str]], list[set[str]]]:
    """Return the pairs of paths of colliders that do not collide, by groups or by filters of their own, and the names of bodies
    in each group without contact within it, in place of the pairs of their colliders."""
    groups = {
        str(one.primPath): [str(group) for group in one.collisionGroups] for kind in KINDS for one in stage.of(kind)
    }
    out: set[frozenset[str]] = set()
    whole: list[set[str]] = []
    for kind in ("RigidBody", *KINDS):
        for one in stage.of(kind):
            for other in one.filteredCollisions:
                others = _colliders(bodies, str(other))
                out.update(frozenset((path, end)) for path in _colliders(bodies, str(one.primPath)) for end in others)
    if not any(groups.values()):
        return out, whole
    table = UsdPhysics.CollisionGroup.ComputeCollisionGroupTable(stage.usd)
    members: dict[str, list[str]] = {}
    for path, own in groups.items():
        for group in own:
            members.setdefault(group, []).append(path)
    for first in sorted(members):
        for second in sorted(members):
            if first <= second and not table.IsCollisionEnabled(first, second):
                ends = members[first]
                if first == second:
                    inside = {path: bodies.of_collider.get(path) for path in ends}
                    names = {body.name for body in inside.values() if body and {one.path for one in body.colliders} <= {*inside}}
                    whole += [names] if len(names) > 1 else []
                    ends = [path for path, body in inside.items() if body and body.name not in names]
                out.update(frozenset((a, b)) for a in ends for b in members[second] if a != b)
    return out, whole


def _colliders(bodies: Bodies, path: str) -> list[str]:
    """The colliders that a filter names: those of a body, one, or all below a prim, such as an articulation."""
    if path in bodies.by_path:
        return [one.path for one in bodies.by_path[path].colliders]
    if path in bodies.of_collider:
        return [path]
    return [one.path for body in bodies.all if body.path.startswith(path.rstrip("/") + "/") for one in body.colliders]


def _articulations(stage: Stage, bodies: Bodies) -> list[dict]:
    """Return one filter for each articulation without self-collision, by the attribute of Newton or PhysX."""
    tables = []
    for one in stage.of("Articulation"):
        prim = stage.prim(one.primPath)
        own = stage.newton(prim, "selfCollisionEnabled")
        if own is None:
            stage.consumed.add("physxArticulation:enabledSelfCollisions")
            attribute = prim.GetAttribute("physxArticulation:enabledSelfCollisions")
            own = attribute.Get() if attribute and attribute.HasAuthoredValue() else None
        names = [bodies.by_path[str(path)].name for path in one.articulatedBodies if str(path) in bodies.by_path]
        if own is False and len(names) > 1:
            tables.append({"bodies": names})
    return tables
