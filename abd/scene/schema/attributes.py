"""Suggestions for unknown attributes of scenes, simulations and their views."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel

from abd.scene.schema.findings import did_you_mean, synonyms

MOST_PLACES = 2
"""Attributes that a message suggests."""


class KnownAttributes:
    """Base of classes whose unknown attributes are errors with a suggestion, when they are read and when they are set.

    Attributes:
        RELATED: expressions of other objects and their classes, whose attributes are suggested too.
    """

    __slots__ = ()
    RELATED: ClassVar[tuple[tuple[str, type], ...]] = ()

    if not TYPE_CHECKING:  # type checkers report unknown attributes themselves

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):  # a property has raised AttributeError: raise it again
                return object.__getattribute__(self, name)
            raise unknown_attribute(self, name, self.RELATED)

        def __setattr__(self, name: str, value: Any) -> None:
            if not hasattr(type(self), name):
                raise unknown_attribute(self, name, self.RELATED)
            object.__setattr__(self, name, value)


def unknown_attribute(
    owner: Any, name: str, related: tuple[tuple[str, type], ...] = (), kind: str = "attribute"
) -> AttributeError:
    """Return the error about an unknown attribute, or argument (`kind`), with attributes of the owner or of related objects."""
    message = f"{type(owner).__name__} has no {kind} '{name}'"
    if name.startswith("_"):
        return AttributeError(message)
    own = _public(owner)
    if name in own:
        setters = [word for word in _public(getattr(owner, name)) if word.startswith("set")]
        return AttributeError(
            f"{type(owner).__name__}.{name} cannot be set; call one of its methods {', '.join(setters)}"
        )
    words = [name, *synonyms(name)]
    found = [word for word in words if word in own]
    if not found:
        found = [word for word in own if word.endswith(f"_{name}")]
        found += [f"{place}.{word}" for place, other in related for word in words if word in _public(other)]
    near = f"did you mean {' or '.join(found[:MOST_PLACES])}?" if found else did_you_mean(name, own)
    listed = [word for word in own if not hasattr(type(owner), word)] or own  # the coordinates of a joint
    return AttributeError(f"{message}; {near or 'it has ' + ', '.join(listed)}", name=name, obj=None)


def _public(owner: Any) -> list[str]:
    """Return the public attributes of an object or a class; of a table, its keys."""
    model = owner if isinstance(owner, type) else type(owner)
    names: Iterable[str] = model.model_fields if issubclass(model, BaseModel) else dir(owner)
    return [name for name in names if not name.startswith("_") and not name.isupper()]
