"""What a stage says that a scene cannot: schemas and attributes that nothing here reads, each told once."""

from __future__ import annotations

from collections import Counter

from abd.scene.importers.usd.stage import Stage, modules

FOREIGN = ("physx", "newton", "mjc", "omni", "isaac")
"""Beginnings of the names of schemas and attributes that other simulators bring."""
FOLLOWED = ("NewtonSceneAPI", "NewtonArticulationRootAPI", "NewtonJointAPI", "NewtonMassAPI", "NewtonMimicAPI")


def left_out(stage: Stage) -> None:
    """Add to the notes what was not followed."""
    Usd, UsdGeom, _ = modules()

    schemas, attributes, types = Counter(), Counter(), Counter()
    moved = []
    bodies = {str(one.primPath) for one in stage.of("RigidBody") if not one.kinematicBody}
    for prim in Usd.PrimRange(stage.usd.GetPseudoRoot(), Usd.TraverseInstanceProxies()):
        kind = str(prim.GetTypeName())
        if kind.lower().startswith(FOREIGN):
            types[kind] += 1
        for schema in prim.GetPrimTypeInfo().GetAppliedAPISchemas():
            name = str(schema).split(":", 1)[0]
            if name.lower().startswith(FOREIGN) and name not in FOLLOWED:
                schemas[name] += 1
        for attribute in prim.GetAuthoredProperties():
            name = attribute.GetName()
            if name.lower().startswith(FOREIGN) and name not in stage.consumed and ":" in name:
                attributes[name] += 1
        if str(prim.GetPath()) in bodies and UsdGeom.Xformable(prim).TransformMightBeTimeVarying():
            moved.append(str(prim.GetPath()))
    for one in stage.of("CustomJoint"):
        stage.notes.append(f"joint {one.primPath} is of a type of its own, and left out")
    for what, found in (("prims of type", types), ("schema", schemas), ("attribute", attributes)):
        stage.notes += [f"{what} {name} is left out ({count} times)" for name, count in sorted(found.items())]
    if moved:
        stage.notes.append(f"time samples of bodies that move by forces are left out: {', '.join(moved[:5])}"
                           + (f" and {len(moved) - 5} more" if len(moved) > 5 else ""))  # fmt: skip
