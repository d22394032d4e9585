"""Preparation of MJCF for MuJoCo's compiler: one tree without references to files, and unsupported content."""

from __future__ import annotations

import io
import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element

from abd.errors import SceneError
from abd.scene.importers.robots.assets import Assets
from abd.scene.importers.robots.xml_tree import SCALE_REMEDY, Tree, is_scale, number, read_tree
from abd.scene.schema.values import most, remedy

MOST_INCLUDES = 200
MOST_CELLS = 1_000_000
"""Samples of one height field."""
UNKNOWN = ("flex", "flexcomp", "extension", "plugin", "model", "attach")
"""Elements that act on the motion and are not supported."""


@dataclass
class Mjcf:
    """Content of an MJCF file that MuJoCo does not store.

    Attributes:
        hfields: content of the files of height fields, by their keys in the XML.
        timestep: whether the file defines one; removed: the removed elements, in words.
    """

    tree: Tree
    assets: Assets
    hfields: dict[str, bytes] = field(default_factory=dict)
    timestep: bool = False
    removed: str = ""

    def prepared(self) -> str:
        """Return the XML for MuJoCo.

        Raises:
            SceneError: an include cannot be read, a path leads out of the allowed folders, or a scale is 0.
        """
        self._include(self.tree.root, [self.tree.path.resolve()])
        root = self.tree.root
        self.timestep = any("timestep" in one.attrib for one in root.iter("option"))
        self._count_copies(root, 1.0)
        self._drop()
        folder = self.assets.read_compilers(root.iter("compiler"))
        for mesh in root.iter("mesh"):
            self._mesh(mesh, folder)
        for one in root.iter("hfield"):
            self._hfield(one, folder)
        left = [one for one in root.iter() if "file" in one.attrib and one.tag not in ("mesh", "hfield")]
        for one in left:
            self.tree.wrong(one, f"<{one.tag} file=...> is not supported", one.get("file"))
        return self.tree.text()

    def _include(self, parent: Element, path: list[Path]) -> None:
        """Replace inclusions by the content of the included files."""
        for index in reversed(range(len(parent))):
            child = parent[index]
            if child.tag != "include":
                self._include(child, path)
                continue
            reference = child.get("file", "")
            found, tried = self.assets.find(reference)
            if found is None:
                raise self.tree.error(child, f"included file '{reference}' does not exist", reference, _list(tried))
            if found.resolve() in path or len(path) > MOST_INCLUDES:
                raise self.tree.error(child, f"'{reference}' includes itself", reference, "remove an inclusion")
            inner = read_tree(found)
            self.tree.lines |= inner.lines
            self._include(inner.root, [*path, found.resolve()])
            if len(self.tree.lines) > 2_000_000:
                raise self.tree.error(child, "the included files have more than 2,000,000 elements", reference)
            parent[index : index + 1] = list(inner.root)

    def _count_copies(self, element: Element, outside: float) -> None:
        if element.tag in ("replicate", "composite"):
            outside *= math.prod(number(word) for word in element.get("count", "1").split())
            if not outside <= most("REPLICAS"):
                message = f"<{element.tag}> makes {outside:g} copies; at most {most('REPLICAS')} are allowed"
                raise self.tree.error(element, message, outside, remedy("REPLICAS"))
        for child in element:
            self._count_copies(child, outside)

    def _drop(self) -> None:
        """Remove unsupported elements, with notes about relevant ones."""
        root = self.tree.root
        ignored: Counter[str] = Counter()
        for parent in list(root.iter()):
            for child in list(parent):
                if child.tag == "sensor" and parent is root:
                    ignored["sensor"] += len(child)
                    parent.remove(child)
                elif child.tag in ("camera", "light", "skin", *UNKNOWN) and parent.tag != "default":
                    ignored[child.tag] += 1
                    parent.remove(child)
                elif child.tag in ("texture", "layer"):
                    ignored["texture"] += child.tag == "texture"
                    parent.remove(child)
                elif child.tag in ("visual", "statistic", "custom", "size", "deformable") and parent is root:
                    ignored["deformable"] += child.tag == "deformable"
                    parent.remove(child)
            if parent.tag == "material":
                parent.attrib.pop("texture", None)
        for parent in root.iter("default"):
            for child in [one for one in parent if one.tag in ("camera", "light")]:
                parent.remove(child)
        counted = [f"{count} <{tag}>" for tag, count in sorted(ignored.items()) if count]
        if counted:
            self.removed = f"not supported: {', '.join(counted)}"
            self.tree.notes.append(self.removed)

    def _mesh(self, mesh: Element, folder: str) -> None:
        if not is_scale(mesh):
            message = f"mesh '{mesh.get('name', mesh.get('file', ''))}' cannot have the scale {mesh.get('scale')!r}"
            self.tree.wrong(mesh, message, mesh.get("scale"), SCALE_REMEDY)
        if "file" in mesh.attrib:
            reference = mesh.get("file")
            if "name" not in mesh.attrib:
                mesh.set("name", Path(reference.replace("\\", "/")).stem)
            mesh.attrib.pop("content_type", None)
            mesh.set("file", self.assets.key(reference, folder))

    def _hfield(self, one: Element, folder: str) -> None:
        """Read the file of a height field within bounds; MuJoCo gets its content."""
        rows, columns = number(one.get("nrow", "0")), number(one.get("ncol", "0"))
        if not rows * columns <= MOST_CELLS:
            self._too_many(one, f"{one.get('nrow')} x {one.get('ncol')}")
        if "file" not in one.attrib:
            return
        reference = one.get("file")
        found, tried = self.assets.find(reference, folder)
        if found is None:
            raise self.tree.error(one, f"height field '{reference}' does not exist", reference, _list(tried))
        if "name" not in one.attrib:
            one.set("name", found.stem)
        key = f"hfield_{len(self.hfields)}{'.png' if found.suffix.lower() == '.png' else '.bin'}"
        self.hfields[key] = self._samples(one, found)
        one.set("file", key)
        one.attrib.pop("content_type", None)

    def _samples(self, one: Element, path: Path) -> bytes:
        if path.suffix.lower() != ".png":
            if path.stat().st_size > 4 * MOST_CELLS + 8:
                self._too_many(one, f"{path.stat().st_size} bytes")
            return path.read_bytes()
        from PIL import Image, UnidentifiedImageError

        try:
            with Image.open(path, formats=("PNG",)) as image:
                if image.width * image.height > MOST_CELLS:
                    self._too_many(one, f"{image.width} x {image.height}")
                out = io.BytesIO()
                image.convert("L").save(out, "PNG")
        except Image.DecompressionBombError as error:
            self._too_many(one, str(error))
        except (OSError, UnidentifiedImageError, ValueError) as error:
            raise SceneError.of(f"is not a valid PNG file: {error}", file=str(path)) from None
        return out.getvalue()

    def _too_many(self, one: Element, size: str) -> None:
        message = f"height field '{one.get('name', '')}' of {size} is too large: at most {MOST_CELLS} samples are allowed"
        raise self.tree.error(one, message, size, "give fewer samples")


def _list(tried: list[Path]) -> str:
    return f"tried {', '.join(str(path) for path in tried)}"
