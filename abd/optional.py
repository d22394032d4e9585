"""Import of optional libraries; the error for a missing library has the command that installs it."""

from __future__ import annotations

import importlib
from types import ModuleType

from abd.errors import UsageError


class MissingLibrary(UsageError):
    """A library that is not installed, with the command that installs it."""


def required(module: str, extra: str, package: str, purpose: str) -> ModuleType:
    """Import a library; raises `MissingLibrary` with the command that installs it.

    Args:
        module: name of the module; package: name on the package index.
        extra: extra of abd-solver that contains it; purpose: use of the library, for the message.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        install = f"pip install 'abd-solver[{extra}]', or pip install {package}"
        raise MissingLibrary(f"{purpose} needs {package}, which is not installed: {install}") from error
