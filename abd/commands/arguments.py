"""Kinds of arguments that several commands take."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable


def positive(what: str) -> Callable[[str], float]:
    """Reader of a positive, finite number, called `what` where it is none."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0.0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"{text!r} is not a positive {what}")
        return value

    return read


def count(what: str) -> Callable[[str], int]:
    """Reader of a positive whole number of `what`."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < 1:
            raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of {what}")
        return int(text)

    return read
