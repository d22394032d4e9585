"""URDF and MJCF: robots as scenes, through MuJoCo's own compiler.

    xml_tree    the file, within bounds       assets      meshes and packages, what is missing
    urdf, mjcf  made ready for the compiler   compiled    the compiler and its input
    links       rigid bodies                  surfaces    their shapes
    chains      joints that move alike        joints      joints with the settings of their coordinates
    couplings   equalities and tendons        drives      actuators
    contacts    materials and filters         scene       all of it put together

What is fixed to a link belongs to it: its mass, inertia and shapes are the link's. Links without mass whose joints another
link continues become part of that link's joints. Contacts, limits and equalities are barriers and equations here, so
that MuJoCo's parameters of softness have no meaning.
"""

from __future__ import annotations

from pathlib import Path

from abd.errors import SceneError
from abd.scene.importers.formats import ImportOptions


def read(path: Path, options: ImportOptions) -> tuple[dict[str, object], list[str]]:
    """Return the scene of a URDF or MJCF file, and notes about changed, merged or ignored content.

    Raises:
        SceneError: what is wrong, in one problem where the file as such cannot be used.
    """
    from abd.scene.importers.robots.scene import read_robot

    try:
        return read_robot(path, options).scene()
    except RecursionError as error:
        raise SceneError.of("has too many nested elements", file=str(path)) from error
