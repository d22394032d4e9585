"""Pictures, films and views of runs and scenes.

`cast`, `shapes` and `symbols` define the drawn objects, `camera` the view; `rasterizer` and `films` draw on the CPU.
"""

from abd.errors import UsageError


class PictureError(UsageError):
    """A picture, a film or a view that cannot be made."""
