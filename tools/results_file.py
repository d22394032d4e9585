"""JSON files of results: rows, and the facts without which they mean nothing."""

from __future__ import annotations

import json
from pathlib import Path


def write_results(path: Path, device: str, rows: list[dict], **facts) -> None:
    """Write rows with the date, the machine, the load, the versions, and further facts of the run."""
    from abd.commands.bench import circumstances

    content = {"facts": {**circumstances(device), **facts}, "rows": rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
