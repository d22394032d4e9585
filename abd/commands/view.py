"""`abd view`: show a run or a scene in the browser."""

from __future__ import annotations

import contextlib
import io
import sys
import time
from pathlib import Path

from abd.commands.arguments import positive
from abd.commands.render import camera_arguments, view_of
from abd.pictures import PictureError


def add(commands) -> None:
    parser = commands.add_parser(
        "view",
        help="show a run or a scene in the browser",
        description="Show a run, or the initial state of a scene, in the browser. "
        "`abd run SCENE --view` shows a run while it computes.",
    )
    parser.add_argument("source", metavar="RUN|SCENE", help="directory of a run; or path, or name of a shipped scene")
    parser.add_argument("--html", metavar="FILE", help="write a file that replays the run without a server, and exit")
    parser.add_argument("--fps", type=positive("number"), default=30.0, metavar="N", help="maximum frame rate of that file [30]")
    camera_arguments(parser)
    parser.add_argument(
        "--host", default="127.0.0.1", help="address of the server; 0.0.0.0 makes it accessible from the network [127.0.0.1]"
    )
    port_argument(parser)
    parser.set_defaults(command=view)


def port_argument(parser) -> None:
    """Add the argument that sets the port of the page."""
    parser.add_argument(
        "--port", type=int, default=8080, help="port of the page; the first free port from this number on [8080]"
    )


@contextlib.contextmanager
def serve(host: str, port: int):
    """Run a server for browsers while the context is open."""
    from abd.optional import required

    viser = required("viser", "view", "viser", "the viewer")
    with contextlib.redirect_stdout(io.StringIO()):
        server = viser.ViserServer(host=host, port=port, verbose=False)
    try:
        yield server
    finally:
        server.stop()


def view(arguments) -> int:
    from abd.io.trajectory import Trajectory, trajectory_path

    source = Path(arguments.source)
    if trajectory_path(source).is_file() and trajectory_path(source).suffix == ".h5":
        with Trajectory(source) as trajectory:
            return _view_run(arguments, trajectory)
    return _view_scene(arguments)


@contextlib.contextmanager
def live(scene, port: int):
    """Return an observer that shows a run in the browser while the context is open."""
    from abd.viewer.live import LiveView

    with serve("127.0.0.1", port) as server:
        print(f"http://{server.get_host()}:{server.get_port()}", file=sys.stderr, flush=True)
        yield LiveView(server, scene.camera)


def _view_run(arguments, trajectory) -> int:
    from abd.pictures.cast import Recorded
    from abd.viewer.player import Player, write_page

    run = Recorded(trajectory)
    seen = view_of(trajectory.camera, arguments.camera, arguments.follow)
    with serve(arguments.host, arguments.port) as server:
        if arguments.html:
            path = Path(arguments.html)
            path.parent.mkdir(parents=True, exist_ok=True)
            count = write_page(server, run, seen, path, arguments.fps)
            print(f"{path}: {count} of {len(run)} frames, {path.stat().st_size / 2**20:.1f} MiB")
            return 0
        with contextlib.closing(Player(server, run, seen)):
            return until_stopped(server)


def _view_scene(arguments) -> int:
    from abd.pictures.cast import of_model
    from abd.scene.scene import load
    from abd.viewer.stage import Stage

    if arguments.html:
        raise PictureError(f"--html needs a run, and '{arguments.source}' is a scene: run the scene first")
    scene = load(arguments.source)
    cast, moment = of_model(scene.started())
    seen = view_of(scene.camera.model_dump(exclude_defaults=True), arguments.camera, arguments.follow)
    with serve(arguments.host, arguments.port) as server:
        Stage(server, cast, seen, [moment]).show(moment)
        return until_stopped(server)


def until_stopped(server) -> int:
    """Serve the page until Ctrl-C."""
    print(f"http://{server.get_host()}:{server.get_port()}  (Ctrl-C stops the server)", file=sys.stderr, flush=True)
    try:
        while True:
            time.sleep(3600.0)
    except KeyboardInterrupt:
        return 0
