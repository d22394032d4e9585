"""What it takes to view a large run: `python tools/view_speed.py [--bodies 10000] [--frames 1000] [--seconds 20] [-o FILE]`.

Makes the trajectory of bodies that tumble (as `export_speed.py`), plays it by `abd view`'s player and, where playwright and
Chromium are there, in a browser without a window. Measured are, per picture: time of the processor that the server takes to
read a frame and to send it, bytes that go over the wire, and time of the processor that the page's thread takes in
scripts (Chromium's own counter). Memory of both is read at the start and at the end of playing. The page's calls that draw
are left out (`--draw` leaves them in), since a graphics driver in software takes many times what all else takes; poses are
decoded, put into instances and handed to the driver all the same.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from time import monotonic, thread_time

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS.parent)]

from export_speed import SHAPES, make_run  # noqa: E402
from results_file import write_results  # noqa: E402

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VIEWPORT = {"width": 200, "height": 120}
"""Small: what software draws is not what is measured."""
DRAW_NOTHING = """for (const call of ["drawElements", "drawArrays", "drawElementsInstanced", "drawArraysInstanced",
    "drawRangeElements"]) WebGL2RenderingContext.prototype[call] = function () {};"""
COUNT_PICTURES = (
    """() => { window.drawn = 0; const next = () => { window.drawn += 1; requestAnimationFrame(next); }; next(); }"""
)


def resident() -> float:
    """Memory of this process [MiB]."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def served(folder: Path, pictures: int) -> dict:
    """Time of the processor for the pictures of a run, without a browser, and their bytes."""
    from abd.commands.view import serve
    from abd.io.trajectory import Trajectory
    from abd.pictures.camera import View
    from abd.pictures.cast import Recorded
    from abd.viewer.stage import Stage

    server = serve("127.0.0.1", 8600)
    try:
        with Trajectory(folder) as trajectory:
            run = Recorded(trajectory)
            stage = Stage(server, run.cast, View(), [run.moment(0)])
            stage.show(run.moment(0))
            began, read = thread_time(), 0.0
            for k in range(pictures):
                before = thread_time()
                moment = run.moment((3 * k) % len(run))
                read += thread_time() - before
                stage.show(moment)
            took = thread_time() - began
            size = sum(
                getattr(handle, name).nbytes
                for handle, _ in stage.batches.values()
                for name in ("batched_positions", "batched_wxyzs", "batched_scales")
            )
    finally:
        server.stop()
    return {
        "server_ms": round(1e3 * took / pictures, 2),
        "of_it_reading_ms": round(1e3 * read / pictures, 2),
        "bytes_per_picture": size,
    }


def browsed(folder: Path, seconds: float, draw: bool) -> dict:
    """What the page's thread takes while a run plays."""
    from playwright.sync_api import sync_playwright

    from abd.commands.view import serve
    from abd.io.trajectory import Trajectory
    from abd.pictures.camera import View
    from abd.pictures.cast import Recorded
    from abd.viewer.player import Player

    own = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    arguments = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
    server = serve("127.0.0.1", 8620)
    with Trajectory(folder) as trajectory, sync_playwright() as driver:
        player = Player(server, Recorded(trajectory), View())
        show, counted = player.stage.show, []
        player.stage.show = lambda moment: (counted.append(moment.time), show(moment))[1]
        browser = driver.chromium.launch(executable_path=own, args=arguments)
        try:
            page = browser.new_page(viewport=VIEWPORT)
            page.set_default_timeout(180_000)
            if not draw:
                page.add_init_script(DRAW_NOTHING)
            page.goto(f"http://127.0.0.1:{server.get_port()}")
            page.wait_for_selector("canvas")
            page.get_by_text("play").first.wait_for()
            page.wait_for_timeout(5000)
            page.evaluate(COUNT_PICTURES)
            session = page.context.new_cdp_session(page)
            session.send("Performance.setTimeDomain", {"timeDomain": "threadTicks"})
            session.send("Performance.enable")
            # the first pictures compile scripts and shaders
            player.play.value = True
            player._started_or_stopped()
            page.wait_for_timeout(8000)
            before, drawn = _counters(session), page.evaluate("window.drawn")
            sent, memory, began = len(counted), resident(), monotonic()
            page.wait_for_timeout(1000 * seconds)
            span = monotonic() - began
            after, drawn = _counters(session), page.evaluate("window.drawn") - drawn
            sent, memory = len(counted) - sent, (memory, resident())
            player.play.value = False
        finally:
            browser.close()
            player.close()
            server.stop()
    scripts = after["ScriptDuration"] - before["ScriptDuration"]
    return {
        "pictures_sent_per_second": round(sent / span, 1),
        "drawn_per_second": round(drawn / span, 1),
        "scripts_ms_per_picture": round(1e3 * scripts / min(sent, drawn), 2) if sent and drawn else None,
        "heap_MiB": [round(one["JSHeapUsedSize"] / 2**20, 1) for one in (before, after)],
        "server_MiB": [round(one) for one in memory],
    }


def lived(name: str, seconds: float, forces: bool) -> dict:
    """Share of the stepping thread's time that a live view takes while somebody looks, with forces of contacts or without."""
    import abd
    from abd.commands.view import serve
    from abd.pictures.camera import View
    from abd.viewer.live import LiveView

    server = serve("127.0.0.1", 8640)
    try:
        simulation = abd.Simulation(abd.load(name), device="cpu")
        simulation.step()
        # nobody is there, but pictures are made as if: what is sent to is a queue
        server.get_clients = lambda: {0: object()}
        view = LiveView(server, View(), patient=False)
        view.begin(simulation, 0, 1)
        view.stage._follow = lambda moment: None
        view.forces.value = forces
        view.cost, began, end, steps = 0.0, thread_time(), monotonic() + seconds, 0
        while monotonic() < end:
            view.waits()
            view.step(simulation.step(), None)
            steps += 1
        took = thread_time() - began
        view.close()
    finally:
        server.stop()
    return {
        "scene": name,
        "contact_forces": forces,
        "steps": steps,
        "share_of_the_step": round(view.cost / (took - view.cost), 4),
    }


def _counters(session) -> dict[str, float]:
    return {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}


def main() -> int:
    """Print what was measured, and write it if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bodies", type=int, default=10_000)
    parser.add_argument("--frames", type=int, default=1_000)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="box")
    parser.add_argument("--pictures", type=int, default=100, help="of the server by itself")
    parser.add_argument("--seconds", type=float, default=20.0, help="of playing in the browser; 0 for none")
    parser.add_argument("--draw", action="store_true", help="draw in the browser, on this machine in software or not")
    parser.add_argument("--keep", type=Path, help="folder of the run that is made; one that is there is taken")
    parser.add_argument(
        "--live", metavar="SCENE", action="append", help="share of a live view in the steps of a scene instead"
    )
    parser.add_argument("-o", "--output", type=Path, help="JSON file to write")
    options = parser.parse_args()
    if options.live:
        rows = [lived(name, options.seconds, forces) for name in options.live for forces in (False, True)]
        return _told(rows, options.output)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "trajectory.h5").is_file():
            make_run(folder, options.shape, options.bodies, options.frames)
        row = {"bodies": options.bodies, "frames": options.frames, "shape": options.shape}
        row |= served(folder, options.pictures)
        if options.seconds:
            row |= browsed(folder, options.seconds, options.draw)
    return _told([row], options.output)


def _told(rows: list[dict], output: Path | None) -> int:
    for row in rows:
        print(" ".join(f"{name}: {value}" for name, value in row.items()))
    if output:
        known = json.loads(output.read_text())["rows"] if output.is_file() else []
        write_results(output, "cpu", known + rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
