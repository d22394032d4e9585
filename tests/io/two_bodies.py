"""Two bodies on a ball joint over a half-space, for tests of files."""

import abd
from abd.errors import StepFailure

VERTICES = [[0, 0, 0], [3, 0, 0], [0, 2, 0], [0, 0, 1]]
TRIANGLES = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
"""A tetrahedron, which is stored in another frame than it is given in."""


def scene(every: int = 1, frames: int = 10, **solver) -> abd.Scene:
    made = abd.Scene("two", solver={"dt": 0.01, **solver}, output={"every": every, "frames": frames})
    surface = {"vertices": VERTICES, "triangles": TRIANGLES}
    for k in range(2):
        spin = {"velocity": (0.1, 0, 0.2 * k), "angular_velocity": (0.5, 1.0, -0.2)}
        made.add_body(f"body{k}", surface=surface, position=(4.0 * k, 0, 2), **spin)
    made.add_body("ground", half_space={})
    made.add_spherical("elbow/left", "body0", "body1", anchor=(3.5, 0, 2))
    return made


class Failing(abd.Simulation):
    """A simulation whose step `fail_at` fails."""

    fail_at = -1

    def step(self):
        if self.frame + 1 == self.fail_at:
            raise StepFailure("not_converged", "on purpose", self.fail_at, self.time, ("body0",))
        return super().step()
