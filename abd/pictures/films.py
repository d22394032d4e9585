"""Pictures and films of runs, for `abd render`."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from abd.backends.device.launcher import threads_available
from abd.io.directory import replacing
from abd.optional import required
from abd.pictures import PictureError
from abd.pictures.camera import Camera
from abd.pictures.cast import Moment, Recorded, evenly_spaced
from abd.pictures.rasterizer import Rasterizer
from abd.pictures.symbols import force_scale
from abd.scene.schema.schema import CameraSpec

CAMERA_FRAMES = 24
"""Number of frames of a film that determine the camera position."""
GIF_COLORS = 255
GIF_RATE = 50.0
"""Largest number of pictures per second of a gif: viewers show shorter delays than 0.02 s as 0.1 s."""


def frames_of(time: np.ndarray, fps: float, speed: float) -> np.ndarray:
    """Frames of a run at times (T,) in a film of `fps` pictures per second: at every instant the nearest in time.

    speed: simulated time over film time."""
    count = max(min(len(time) - 1, 1), round(float(time[-1] - time[0]) / speed * fps)) + 1
    wanted = time[0] + np.arange(count) * (speed / fps)
    return np.ceil(np.interp(wanted, time, np.arange(len(time))) - 0.5).astype(int)


class Studio:
    """Draws frames of a run, which all fit into the picture, with joints and contacts if requested.

    shown: number of pictures that show a body, a joint or an arrow."""

    def __init__(
        self, run: Recorded, frames: np.ndarray, view: CameraSpec, size: tuple[int, int], joints=True, contacts=True
    ):
        self.run, self.frames, self.joints = run, frames, joints
        moments = run.moments(evenly_spaced(frames, CAMERA_FRAMES))
        self.camera = Camera(view, run.cast, moments, size)
        self.scale = force_scale(run.cast, moments) if contacts else None
        self._own = threading.local()
        self.shown = 0

    def draw(self, moment: Moment, progress: float = 0.0) -> np.ndarray:
        """(height, width, 3), 8 bits per channel; thread-safe."""
        if not hasattr(self._own, "rasterizer"):
            self._own.rasterizer = Rasterizer(self.run.cast, self.camera, self.joints, self.scale)
        picture = self._own.rasterizer.picture(moment, progress)
        self.shown += self._own.rasterizer.item_count() > 0
        return picture

    def film(self, report: Callable[[int], None] | None = None) -> Iterator[np.ndarray]:
        """Pictures of all frames in order, drawn in parallel by one thread per processor."""
        threads = threads_available()
        waiting: deque[Future] = deque()
        last = max(len(self.frames) - 1, 1)
        with ThreadPoolExecutor(threads, "abd-picture") as pool:
            for k, frame in enumerate(self.frames):
                # one thread reads the file
                waiting.append(pool.submit(self.draw, self.run.moment(int(frame)), k / last))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
                if report is not None:
                    report(k + 1)
            while waiting:
                yield waiting.popleft().result()


def write(path: Path, studio: Studio, kind: str, fps: float, report: Callable[[int], None] | None = None) -> None:
    """Write an "mp4", a "gif", or a "png" of the first frame; on failure no file remains.

    Raises `MissingLibrary` without the library for mp4, `PictureError` if the size or the rate is not possible."""
    writer = {"mp4": _write_mp4, "gif": _write_gif, "png": _write_png}[kind]
    with replacing(path) as part:
        writer(part, studio, fps, report)


def _write_png(path: Path, studio: Studio, fps: float, report) -> None:
    from PIL import Image

    Image.fromarray(next(studio.film(report))).save(path, format="PNG", optimize=True)


def _write_mp4(path: Path, studio: Studio, fps: float, report) -> None:
    size = studio.camera.size
    if any(extent % 2 for extent in size):
        raise PictureError(f"mp4 needs even sizes, not {size[0]}x{size[1]}")
    imageio_ffmpeg = required("imageio_ffmpeg", "film", "imageio-ffmpeg", "mp4 (not gif, not png)")
    writer = imageio_ffmpeg.write_frames(
        str(path), size, fps=fps, codec="libx264", quality=None, macro_block_size=1,
        ffmpeg_log_level="error", output_params=["-crf", "19", "-preset", "medium", "-movflags", "+faststart"],
    )  # fmt: skip
    writer.send(None)
    try:
        for one in studio.film(report):
            writer.send(one)
    finally:
        writer.close()


def _write_gif(path: Path, studio: Studio, fps: float, report) -> None:
    """Write a gif with one palette, of its first, middle and last picture; one palette per picture would flicker."""
    from PIL import Image

    if fps > GIF_RATE:
        raise PictureError(f"gif has at most {GIF_RATE:g} pictures per second, not {fps:g}: use --fps {GIF_RATE:g}, or mp4")
    frames = studio.frames
    some = [frames[0], frames[len(frames) // 2], frames[-1]]
    chosen = np.concatenate([studio.draw(studio.run.moment(int(k)), 0.5 * place) for place, k in enumerate(some)])
    colors = Image.fromarray(chosen).quantize(GIF_COLORS, method=Image.Quantize.MEDIANCUT)
    dither = Image.Dither.FLOYDSTEINBERG
    pictures = (Image.fromarray(one).quantize(palette=colors, dither=dither) for one in studio.film(report))
    # delays are in hundredths of a second, which their sums round
    pauses = (10 * np.diff(np.round(np.arange(len(frames) + 1) * (100.0 / fps)))).astype(int).tolist()
    next(pictures).save(path, format="GIF", save_all=True, append_images=pictures, duration=pauses, loop=0)
