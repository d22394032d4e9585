"""Lines of the keys of a TOML or JSON text: a map from key path to line number.

The parsers of Python's library return values without lines. This scanner reads a text that such a parser has accepted, and
distinguishes strings, comments, brackets and line ends. JSON is read as an inline table of TOML whose keys
end in colons. A path is a tuple of keys and list positions, such as ``("body", 2, "sphere", "radius")``; lines count from 1.
"""

from __future__ import annotations

import json
import re
import tomllib

Path = tuple[str | int, ...]
Lines = dict[Path, int]

GAP = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' + r"|'''.*?'{3,5}" + r'|"(?:\\.|[^"\\\n])*"' + r"|'[^'\n]*'",
    re.DOTALL,
)
SCALAR = re.compile(r"[^,\]}#\r\n]+")


def line_of(lines: Lines, path: Path) -> int | None:
    """Line of a path, or of the nearest table or list around it; None for an empty map."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path)


class KeyLines:
    """Scanner of a valid text of TOML or JSON.

    Attributes:
        lines: of all paths; repeated: paths and lines of keys of JSON that are given again.
    """

    def __init__(self, text: str, is_json: bool):
        self.text, self.is_json, self.at = text.replace("\r\n", "\n"), is_json, 0
        self.lines: Lines = {}
        self.repeated: list[tuple[Path, int]] = []
        self._counted = (0, 1)
        """Position up to which line ends were counted, and the line there."""
        self._items: dict[Path, int] = {}
        """Number of the items so far of arrays of tables."""
        if is_json:
            self._value(())
            return
        table: Path = ()
        while self._gap() < len(self.text):
            if self.text.startswith("[", self.at):
                table = self._header()
            else:
                self._pair(table)

    def _gap(self) -> int:
        """Skip white space and comments; the new position."""
        self.at = GAP.match(self.text, self.at).end()
        return self.at

    def _mark(self, path: Path, position: int) -> None:
        """Record the first position of a path."""
        counted, line = self._counted
        line += self.text.count("\n", counted, position)
        self._counted = (position, line)
        self.lines.setdefault(path, line)

    def _header(self) -> Path:
        """Read ``[table]`` or ``[[table]]``; return the path of the table."""
        start = self.at
        brackets = 2 if self.text.startswith("[[", start) else 1
        self.at += brackets
        *outer, name = self._keys()
        path: Path = ()
        for key in outer:  # tables within an array of tables are within its last item
            path += (key,)
            if path in self._items:
                path += (self._items[path] - 1,)
        path += (name,)
        if brackets == 2:
            self._mark(path, start)
            self._items[path] = self._items.get(path, 0) + 1
            path += (self._items[path] - 1,)
        self._mark(path, start)
        self.at = self.text.index("]", self.at) + brackets
        return path

    def _keys(self) -> Path:
        """A dotted key."""
        keys: Path = ()
        while True:
            self._gap()
            match = STRING.match(self.text, self.at)
            if match:  # with its escapes resolved
                keys += (json.loads(match[0]),) if self.is_json else tuple(tomllib.loads(f"{match[0]} = 0"))
            else:
                match = BARE_KEY.match(self.text, self.at)
                keys += (match[0],)
            self.at = match.end()
            self._gap()
            if not self.text.startswith(".", self.at):
                return keys
            self.at += 1

    def _pair(self, table: Path) -> None:
        """``key = value`` or ``"key": value`` within a table."""
        start = self.at
        keys = self._keys()
        path = table + keys
        repeated = self.is_json and path in self.lines
        for n in range(1, len(keys) + 1):
            self._mark(table + keys[:n], start)
        if repeated:
            self.repeated.append((path, self._counted[1]))
        self.at += 1
        self._value(path)

    def _value(self, path: Path) -> None:
        self._gap()
        opening = self.text[self.at]
        if opening not in "[{":
            match = STRING.match(self.text, self.at) or SCALAR.match(self.text, self.at)
            self.at = match.end()
            return
        self.at += 1
        index = 0
        while self.text[self._gap()] not in "]}":
            if opening == "{":
                self._pair(path)
            else:
                self._mark((*path, index), self.at)
                self._value((*path, index))
                index += 1
            self._gap()
            self.at += self.text[self.at] == ","
        self.at += 1
