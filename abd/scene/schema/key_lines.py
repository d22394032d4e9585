"""Where every key of a TOML or JSON text stands: a map from key path to line number.

The parsers of Python's library give values without places. The scanners here read a text that such a parser has
already accepted, so they need not judge it, only find their way: strings, comments, brackets and line ends. A path is
a tuple of keys and list positions, such as ``("body", 2, "sphere", "radius")``; lines count from 1.
"""

from __future__ import annotations

import re
import tomllib
from json.decoder import scanstring

Path = tuple[str | int, ...]
Lines = dict[Path, int]

WHITE = re.compile(r"[ \t\r\n]*")
TOML_GAP = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
TOML_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
TOML_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' + r"|'''.*?'{3,5}" + r'|"(?:\\.|[^"\\\n])*"' + r"|'[^'\n]*'",
    re.DOTALL,
)
SCALAR = re.compile(r"[^,\]}#\r\n]+")


def line_of(lines: Lines, path: Path) -> int | None:
    """Line of a path, or of the nearest table or list around it; None for an empty map."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path)


class _Scanner:
    """What both scanners do: skip gaps, count lines, read the items of a list."""

    gaps: re.Pattern

    def __init__(self, text: str):
        self.text = text
        self.at = 0
        self.lines: Lines = {}
        self.counted = (0, 1)
        """Position up to which line ends were counted, and the line there."""

    def gap(self) -> int:
        """Skip white space and comments; the new position."""
        self.at = self.gaps.match(self.text, self.at).end()
        return self.at

    def mark(self, path: Path) -> int:
        """Note that a path stands at the present position, where the first place counts; the line."""
        position, line = self.counted
        line += self.text.count("\n", position, self.at)
        self.counted = (self.at, line)
        self.lines.setdefault(path, line)
        return line

    def comma(self) -> None:
        """Skip a comma, where there is one."""
        self.gap()
        self.at += self.text[self.at] == ","

    def items(self, path: Path) -> None:
        """The items of a list, from its opening to its closing bracket."""
        self.at += 1
        index = 0
        while self.text[self.gap()] != "]":
            self.mark((*path, index))
            self.value((*path, index))
            self.comma()
            index += 1
        self.at += 1


class TomlLines(_Scanner):
    """Scanner of a valid TOML text; ``TomlLines(text).lines`` is the map."""

    gaps = TOML_GAP

    def __init__(self, text: str):
        super().__init__(text.replace("\r\n", "\n"))
        self.arrays: dict[Path, int] = {}
        """Arrays of tables: number of their items so far."""
        table: Path = ()
        while self.gap() < len(self.text):
            if self.text.startswith("[", self.at):
                table = self.header()
            else:
                self.pair(table)

    def header(self) -> Path:
        start = self.at
        is_array = self.text.startswith("[[", start)
        self.at += 2 if is_array else 1
        keys = self.keys()
        path = (*self.within_last(keys[:-1]), keys[-1])
        self.at = self.text.index("]", self.at) + (2 if is_array else 1)
        after, self.at = self.at, start
        if is_array:
            self.mark(path)
            self.arrays[path] = self.arrays.get(path, 0) + 1
            path = (*path, self.arrays[path] - 1)
        self.mark(path)
        self.at = after
        return path

    def within_last(self, path: Path) -> Path:
        """The path with every array of tables on the way entered at its last item."""
        resolved: Path = ()
        for key in path:
            resolved += (key,)
            if resolved in self.arrays:
                resolved += (self.arrays[resolved] - 1,)
        return resolved

    def keys(self) -> Path:
        """A dotted key."""
        keys = []
        while True:
            self.gap()
            match = TOML_STRING.match(self.text, self.at)
            if match:
                keys.extend(tomllib.loads(f"{match[0]} = 0"))  # resolves its escapes
            else:
                match = TOML_BARE_KEY.match(self.text, self.at)
                keys.append(match[0])
            self.at = match.end()
            self.gap()
            if not self.text.startswith(".", self.at):
                return tuple(keys)
            self.at += 1

    def pair(self, table: Path) -> None:
        """``key = value`` within a table."""
        start = self.at
        keys = self.keys()
        after, self.at = self.at, start
        for n in range(1, len(keys) + 1):
            self.mark(table + keys[:n])
        self.at = self.text.index("=", after) + 1
        self.value(table + keys)

    def value(self, path: Path) -> None:
        self.gap()
        opening = self.text[self.at]
        if opening == "[":
            self.items(path)
        elif opening == "{":
            self.at += 1
            while self.text[self.gap()] != "}":
                self.pair(path)
                self.comma()
            self.at += 1
        else:
            match = TOML_STRING.match(self.text, self.at) or SCALAR.match(self.text, self.at)
            self.at = match.end()


class JsonLines(_Scanner):
    """Scanner of a valid JSON text; `lines` is the map, `repeated` the paths of keys given more than once."""

    gaps = WHITE

    def __init__(self, text: str):
        super().__init__(text)
        self.repeated: list[tuple[Path, int]] = []
        self.value(())

    def value(self, path: Path) -> None:
        self.gap()
        opening = self.text[self.at]
        if opening == "{":
            self.members(path)
        elif opening == "[":
            self.items(path)
        elif opening == '"':
            _, self.at = scanstring(self.text, self.at + 1, True)
        else:
            self.at = SCALAR.match(self.text, self.at).end()

    def members(self, path: Path) -> None:
        self.at += 1
        while self.text[self.gap()] != "}":
            key, after = scanstring(self.text, self.at + 1, True)
            member, known = (*path, key), (*path, key) in self.lines
            line = self.mark(member)
            if known:
                self.repeated.append((member, line))
            self.at = self.text.index(":", after) + 1
            self.value(member)
            self.comma()
        self.at += 1
