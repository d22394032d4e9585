"""Record a run, and plot the height of a bouncing ball from trajectory.h5 by h5py and matplotlib."""

from pathlib import Path

import h5py
from matplotlib.figure import Figure

import abd


def main(folder: str = "runs/bounce", duration: float = 1.2) -> Path:
    """Return the path of the picture."""
    scene = abd.Scene("bounce")
    scene.add_material("default", restitution=0.8)
    scene.add_body("floor", half_space={})
    scene.add_body("ball", sphere={"radius": 0.05}, position=(0, 0, 0.3))
    abd.run(scene, duration=duration, device="cpu", record=folder)
    with h5py.File(Path(folder) / "trajectory.h5") as file:
        frames = file.attrs["frames"]
        ball = list(file["bodies/name"].asstr()).index("ball")
        time, height = file["time"][:frames], file["bodies/transform"][:frames, ball, 2, 3]
    figure = Figure(figsize=(5, 3), layout="constrained")
    figure.add_subplot(xlabel="t [s]", ylabel="height of the ball [m]").plot(time, height)
    figure.savefig(Path(folder) / "height.png", dpi=120)
    return Path(folder) / "height.png"


if __name__ == "__main__":
    print(main())
