"""JSON files of results: rows, and the facts without which they mean nothing."""

from __future__ import annotations

import json
import os
import platform
from datetime import date
from pathlib import Path

import numpy as np


def write_results(path: Path, device: str, rows: list[dict], **facts) -> None:
    """Write rows beside the date, the machine, the versions, and further facts of the run."""
    import warp

    common = {
        "date": date.today().isoformat(),
        "device": device,
        "cores": os.cpu_count(),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "warp": warp.__version__,
    }
    path.write_text(json.dumps({"facts": {**common, **facts}, "rows": rows}, indent=1) + "\n", encoding="utf-8")
