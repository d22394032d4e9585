"""Reader of XML from untrusted sources: limited size, no entities, line of every element; xacro by xacrodoc.

Macros are programs: they may include any file and evaluate expressions. Expand macros from trusted sources only.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat

from abd.errors import Problem, SceneError
from abd.optional import required
from abd.scene.importers.formats import check_size

MOST_BYTES = 64 << 20
"""Size of a file that is read [bytes]."""
DEEPEST = 500
"""Elements inside one another."""
NAMES = ("name", "class", "file", "filename")
"""Attributes that may contain "nan" or "inf" without being numbers."""


@dataclass
class Tree:
    """A file's elements.

    Attributes:
        path: of the file; root: its root element; lines: file and line of every element.
        problems, notes: of the content.
    """

    path: Path
    root: ElementTree.Element
    lines: dict[ElementTree.Element, tuple[Path, int]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def error(self, element: ElementTree.Element, message: str, value: object = None, remedy: str = "") -> SceneError:
        """Return the error of a problem at the location of an element."""
        path, line = self.lines.get(element, (self.path, None))
        return SceneError.of(message, file=str(path), line=line, value=value, remedy=remedy)

    def wrong(self, element: ElementTree.Element, message: str, value: object = None, remedy: str = "") -> None:
        """Add a problem at the location of an element."""
        self.problems += self.error(element, message, value, remedy).problems

    def raise_problems(self) -> None:
        """Raise the problems found so far."""
        if self.problems:
            raise SceneError(self.problems)

    def text(self) -> str:
        """Return the elements as XML, if there are no problems."""
        self.raise_problems()
        return ElementTree.tostring(self.root, encoding="unicode")


def read_bytes(path: Path) -> bytes:
    """Return the content of a file of at most `MOST_BYTES`."""
    try:
        check_size(path, MOST_BYTES, "give the file of the robot")
        return path.read_bytes()
    except OSError as error:
        raise SceneError.of(f"cannot be read: {error.strerror or error}", file=str(path)) from None


def read_tree(path: Path, data: bytes | None = None) -> Tree:
    """Return the elements of an XML file, or of `data` instead.

    Raises:
        SceneError: the XML is invalid, declares entities or a document type, is nested too deeply, or has numbers that are
            not finite.
    """
    data = read_bytes(path) if data is None else data
    builder = ElementTree.TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    lines: dict[ElementTree.Element, tuple[Path, int]] = {}
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            message = f"must not have more than {DEEPEST} nested elements"
            raise SceneError.of(message, file=str(path), line=parser.CurrentLineNumber)
        for key, value in attributes.items():
            _check_finite(path, parser.CurrentLineNumber, tag, key, value)
        lines[builder.start(tag, attributes)] = (path, parser.CurrentLineNumber)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def refuse(*_) -> None:
        message = "declares a document type or entities, which are not supported"
        raise SceneError.of(message, file=str(path), line=parser.CurrentLineNumber, remedy="remove <!DOCTYPE ...>")

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, builder.data
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = parser.ExternalEntityRefHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        message = f"is not valid XML: {expat.ErrorString(error.code)}"
        raise SceneError.of(message, file=str(path), line=error.lineno) from None
    return Tree(path, builder.close(), lines)


def number(text: str | None, default: float = math.nan) -> float:
    """Return a text as a number, NaN if it is invalid; `default` without a text."""
    try:
        return default if text is None else float(text)
    except ValueError:
        return math.nan


def is_scale(mesh: ElementTree.Element) -> bool:
    """Whether the scale of a mesh is three finite factors other than 0."""
    factors = [number(word) for word in mesh.get("scale", "1 1 1").split()]
    return len(factors) == 3 and all(map(math.isfinite, factors)) and 0.0 not in factors


SCALE_REMEDY = "give three factors other than 0; a negative factor mirrors"


def _check_finite(path: Path, line: int, tag: str, key: str, value: str) -> None:
    if key in NAMES or not any(word in value.lower() for word in ("nan", "inf")):
        return
    try:
        numbers = [float(word) for word in value.split()]
    except ValueError:
        return
    unbounded = tag == "limit" and not any(math.isnan(number) for number in numbers)
    if not unbounded and not all(math.isfinite(number) for number in numbers):
        raise SceneError.of(f"<{tag} {key}={value!r}> is not finite", file=str(path), line=line, remedy="give numbers")


CODE = re.compile(r"load_yaml|\$\((?:env|optenv|eval)\b|\*\*|__")
"""Elements that read other files or the environment, or take unlimited time and memory."""
INCLUDE = re.compile(r"""<xacro:include\s[^>]*filename\s*=\s*["']([^"'$]+)["']""")
MOST_FILES = 200


def expanded(path: Path, allow_code: bool = False) -> bytes:
    """Expand a .xacro file to URDF.

    Args:
        allow_code: whether macros may read YAML files and the environment, and evaluate programs and powers.

    Raises:
        MissingLibrary: xacrodoc is not installed.
        SceneError: the macros are invalid, or use features that are not allowed.
    """
    if not allow_code:
        _refuse_code(path)
    xacrodoc = required("xacrodoc", "robots", "xacrodoc", "reading xacro")
    try:
        document = xacrodoc.XacroDoc.from_file(str(path), resolve_packages=False)
        return document.to_urdf_string().encode()
    except Exception as error:  # xacro evaluates expressions, which may raise any exception
        message = f"xacro: {type(error).__name__}: {' '.join(str(error).split())}"
        raise SceneError.of(message, file=str(path), remedy="correct the macros") from None


def _refuse_code(path: Path) -> None:
    """Raise `SceneError` if a file, or one that it includes, needs the user's consent."""
    waiting, seen = [path.resolve()], set()
    while waiting and len(seen) < MOST_FILES:
        file = waiting.pop()
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        text = read_bytes(file).decode(errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            if found := CODE.search(line):
                message = f"xacro: '{found[0]}' can read files or the environment, or take unlimited time and memory"
                remedy = "if you trust the file, add --allow-code (in Python: allow_code=True)"
                raise SceneError.of(message, file=str(file), line=number, value=found[0], remedy=remedy)
        waiting += [(file.parent / name).resolve() for name in INCLUDE.findall(text)]
