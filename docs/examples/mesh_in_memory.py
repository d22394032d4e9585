"""Meshes of trimesh fall into a bowl, without mesh files."""

import trimesh

import abd


def main(count: int = 5, duration: float = 1.0, record: str | None = None) -> abd.Simulation:
    """Return the simulation after the fall; `record`: folder of the run."""
    scene = abd.Scene("bowl")
    scene.add_material("default", mu=0.3)
    outline = [(0, 0), (0.2, 0), (0.3, 0.2), (0.27, 0.2), (0.18, 0.03), (0, 0.03)]
    scene.add_body("bowl", mesh=trimesh.creation.revolve(outline, sections=24), kind="static")
    stone = trimesh.creation.icosphere(subdivisions=1, radius=0.04)
    for k in range(count):
        pose = trimesh.transformations.rotation_matrix(0.3 * k, (1, 1, 0))
        pose[:3, 3] = 0.03 * (k % 2), 0, 0.1 + 0.1 * k
        scene.add_body(f"stone_{k}", mesh=stone, transform=pose, density=2500)

    sim = abd.run(scene, duration=duration, device="cpu", progress=True, record=record)
    print(sim.contacts("bowl").to_pandas())
    return sim


if __name__ == "__main__":
    main()
