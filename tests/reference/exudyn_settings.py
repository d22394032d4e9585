"""Exudyn's second-order integrator, without its files and messages, for trajectories that are compared with ours."""


def settings_of(exudyn, steps: int, duration: float):
    """Settings of `SolveDynamic`: generalized-alpha in `steps` steps over `duration` [s], Newton to 1e-11."""
    settings = exudyn.SimulationSettings()
    settings.timeIntegration.numberOfSteps = steps
    settings.timeIntegration.endTime = duration
    settings.timeIntegration.verboseMode = 0
    settings.timeIntegration.newton.useModifiedNewton = False
    settings.timeIntegration.newton.relativeTolerance = 1e-11
    settings.timeIntegration.generalizedAlpha.spectralRadius = 0.9
    settings.timeIntegration.generalizedAlpha.computeInitialAccelerations = True
    settings.solutionSettings.writeSolutionToFile = False
    return settings
