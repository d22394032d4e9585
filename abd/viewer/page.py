"""Replay of a run in one file for any browser, without a server or a network."""

from __future__ import annotations

import html
import itertools
from pathlib import Path

import numpy as np

from abd.pictures.cast import Recorded, evenly_spaced
from abd.pictures.symbols import force_scale
from abd.scene.schema.schema import CameraSpec
from abd.viewer.stage import CAMERA_FRAMES, Stage

LARGEST_REPLAY = 400 * 2**20
"""Largest size of the poses of a replay, which browsers keep in memory; beyond it frames are skipped."""
INSTANCE_BYTES = 40
"""Position, quaternion and scales of one body in one frame."""


def frames_for(run: Recorded, fps: float) -> np.ndarray:
    """Frames of a replay: at most `fps` per second of the run, within the memory limit."""
    time = run.time
    wanted = max(1, round(float(time[-1] - time[0]) * fps)) + 1
    most = max(2, LARGEST_REPLAY // (INSTANCE_BYTES * max(len(run.cast), 1)))
    return evenly_spaced(range(len(time)), min(wanted, most))


def write_page(server, run: Recorded, view: CameraSpec, path: Path, fps: float = 30.0) -> int:
    """Write the file; returns its number of frames.

    Args:
        server: a dedicated `viser.ViserServer`; run: the run; view: the camera.
    """
    frames = frames_for(run, fps)
    moments = run.moments(evenly_spaced(frames, CAMERA_FRAMES))
    stage = Stage(server, run.cast, view, moments)
    stage.forces = force_scale(run.cast, moments)
    stage.show(run.moment(int(frames[0])))
    recording = server.get_scene_serializer()
    for before, frame in itertools.pairwise(frames):
        recording.insert_sleep(float(run.time[frame] - run.time[before]))
        stage.show(run.moment(int(frame)))
    # show the last frame for a moment before the replay restarts
    recording.insert_sleep(0.5 if len(frames) > 1 else 0.0)
    text = recording.as_html()
    title = f"<title>{html.escape(run.cast.name or 'abd')}</title>"
    path.write_text(text.replace("<title>Viser</title>", title), encoding="utf-8")
    return len(frames)
