"""`abd warmup`: compile all kernels, so that the first run starts without delay."""

from __future__ import annotations

from abd.commands.arguments import device_argument


def add(commands) -> None:
    """Add the command and its arguments."""
    parser = commands.add_parser(
        "warmup",
        help="compile all kernels, once per machine and version",
        description="Compile all kernels of the simulation and of `abd render` into Warp's cache; `abd doctor` prints its path. "
        "Without this command, the first run of a scene compiles the kernels that it needs.",
    )
    device_argument(parser)
    parser.set_defaults(command=warm_up)


def warm_up(arguments) -> int:
    """Run the command."""
    from time import perf_counter

    from abd.backends.device.compiling import every_module, load_modules
    from abd.backends.device.cuda_support import cuda_problem
    from abd.backends.device.device import Device
    from abd.backends.device.launcher import threads_available

    name = arguments.device
    if name == "auto":
        name = "cpu" if cuda_problem() else "cuda"
    begun, device = perf_counter(), Device(name)
    count = load_modules(device.warp, every_module(), threads_available())
    print(f"{count} modules compiled for {device.name} and loaded in {perf_counter() - begun:.1f} s")
    return 0
