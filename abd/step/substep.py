"""One substep: its loads and laws, its minimum, the verdict on it, and its end.

    set loads of the end of the substep
    set schemes and modes: implicit Euler with active contacts, limits or ropes, a smooth scheme elsewhere
    set joint laws, whose weights depend on the scheme; start on the arc of the velocities; minimise (`abd.step.newton`)
    verdicts: contact began (repeat with implicit Euler), fast new contact, swept path
    store the iterate as the new state; change its velocities by impacts (`abd.step.impacts`)
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from abd.backends.device.memory import memory_watched
from abd.backends.progress import Progress
from abd.by_bodies import PerBody
from abd.energies import StepStatistics, external_work
from abd.errors import OutOfMemory, StepFailure
from abd.joints.rows.forces import released_energies
from abd.potentials.integrators import Scheme, Schemes, longest, row_weights
from abd.step.contact_parameters import relax, update_parameters
from abd.step.newton import Minimisation
from abd.step.stepper_state import StepperState
from abd.step.verdict import ContactBegan, IteratePath, contact_began, fast_contact, of_path
from abd.tables import copied
from cuda_kernels.shared import slots
from cuda_kernels.shared.bodies import RATE_OLD
from cuda_kernels.shared.step import STAY, WITH_FORCES, WITHOUT_FORCES

_log = logging.getLogger(__name__)


class Substeps:
    """Advances the `StepperState` by substeps."""

    def __init__(self, stepper: StepperState):
        self.stepper, self.settings, self.backend = stepper, stepper.settings, stepper.backend
        self.iterates = IteratePath(stepper.model)

    def attempt(self, h: PerBody, progress: Progress) -> StepFailure | None:
        """Take one substep of h [s], scalar or (n,) by worlds; return None, or why it was rejected, with the state as before."""
        stepper, self.stored, self.unfitted, self.loads = self.stepper, None, None, None
        self.drive_work, self.reactions = 0.0, []
        history = stepper.modes.history
        try:
            with memory_watched(self.backend.device.name):
                failure = self._take(h, progress)
        except OutOfMemory as error:
            failure = StepFailure("memory", str(error))
        except StepFailure as raised:  # by a backend
            failure = raised
        if failure is not None:
            self._roll_back(progress)
            stepper.modes.history = history
            if self.unfitted is not None:
                velocity, stepper.memory = self.unfitted
                stepper.set_velocity(velocity)
        return failure

    def _roll_back(self, progress: Progress) -> None:
        """Restore the state before the substep, with what a minimisation has `stored`."""
        stepper, backend = self.stepper, self.backend
        stepper.stepped = False
        backend.states.abandon()
        if self.stored is None:
            return
        own, stepper.prescribed.stride, memory, progress.tolerance = self.stored
        backend.touch.set_pair_parameters(own)
        if memory is not None:
            stepper.joints.follow_poses(stepper.previous_q)
            stepper.memory = memory

    def _take(self, h: PerBody, progress: Progress) -> StepFailure | None:
        stepper = self.stepper
        if stepper.loads is not None:
            length, bodies = longest(h), stepper.model.bodies
            if stepper.start_loads is None:
                stepper.start_loads = np.stack([bodies.force, bodies.torque])
            self.loads = stepper.loads(stepper.time + length, length)
            if self.loads is not None:
                self.backend.loads.set_loads(*self.loads)
        self.before = None
        if stepper.prescribed.any:
            mean = stepper.prescribed.with_mean_rates(*stepper.present, stepper.previous_q, stepper.previous_h)
            self.before = mean, stepper.previous_qd
        stepper.modes.restart(h, stepper.previous_h)
        rule = stepper.modes.rule(h)
        drives = stepper.rows.jumping_drives(stepper.time, h, stepper.previous_h)
        if jumping := drives + stepper.prescribed.jumping(stepper, h):
            stepper.modes.jump(jumping, constraints=True)
        contact = stepper.constrained if stepper.excluded is stepper.none else stepper.constrained | stepper.excluded
        dissipative = stepper.modes.dissipative(contact, h, stepper.fastest, lambda: stepper.present)
        changed, returning = stepper.modes.changed, stepper.modes.returning(dissipative)
        if any(one is not stepper.none and one.any() for one in (changed, returning)):
            self.unfitted = stepper.qd, stepper.memory
            rates = stepper.rows.drive_rates(stepper.time, h, stepper.previous_h)
            stiff = stepper.modes.stiff_compliances(stepper.joints)
            self.drive_work, self.reactions = stepper.rebounds.fit_velocities(changed, rates, stiff)
            stepper.rebounds.fit_velocities(returning, rates, stepper.joints.compliant)
        if (failure := stepper.rows.turns_ahead(stepper.time, h, stepper.fastest, stepper.excluded)) is not None:
            return failure
        stepper.rows.load_friction()
        while True:
            mode = stepper.modes.of(dissipative)
            if self._take_whole(rule, mode, progress):
                return None
            memory = copied(stepper.memory) if stepper.joints.followers else None
            self.stored = self.backend.pair_law.own, stepper.prescribed.stride, memory, progress.tolerance
            failure = self._solve(rule, mode, progress)
            if not isinstance(failure, ContactBegan):
                break
            self._roll_back(progress)
            dissipative = dissipative | failure.concerned
        if failure is not None:
            return failure
        with progress.time("swept path"):
            failure, is_indirect = of_path(stepper, self.iterates, self.backend.swept_paths.unproven(h), h)
        if failure is None:
            if is_indirect:
                progress.indirect_paths += 1
                stepper.path.add_iterates(self.iterates.poses, stepper.q, stepper.qd, np.where(stepper.excluded, 0.0, h))
            with progress.time("end"):
                limited = self.backend.rows.limited()
                self.backend.steps.finish()
                self._finish(h, mode, limited)
        return failure

    def _take_whole(self, rule: Scheme | Schemes, mode: np.ndarray, progress: Progress) -> bool:
        """Take a step without contacts as one record, if the backend can (`abd.backends.recorded.whole_step`).

        Returns whether it was taken."""
        stepper, backend, settings = self.stepper, self.backend, self.settings
        whole, single = backend.whole, settings.friction_iterations == 1 or not backend.friction.enabled
        if whole is None or not single or isinstance(rule, Schemes) or stepper.excluded is not stepper.none or not whole.serves():
            return False
        contacts = stepper.constrained.any() if stepper.statistics is None else stepper.statistics.contacts
        if contacts or (stepper.sleep.enabled and stepper.sleep.may_sleep(stepper.joints).any()):
            return False
        stepper.load_memory()
        with progress.time("whole step"):
            outcome = whole.run(rule, mode, stepper.time + rule.h, stepper.constrained)
        if outcome is None:
            return False
        progress.newton += outcome.newton
        progress.trials += outcome.trials
        progress.tolerance = max(progress.tolerance, outcome.worst)
        stepper.lagged_again = False
        with progress.time("end"):
            self._finish(rule.h, mode, outcome.limited, outcome.statistics)
        return True

    def _solve(self, rule: Scheme | Schemes, mode: np.ndarray, progress: Progress) -> StepFailure | None:
        """Minimise the incremental potential of a substep; return why it is rejected."""
        stepper, backend, settings, h = self.stepper, self.backend, self.settings, rule.h
        prescribed = stepper.prescribed
        target_poses = None
        if prescribed.any:  # inactive bodies stay
            poses, bodies = prescribed.target_poses(stepper.time + h), prescribed.bodies
            target_poses = np.where(stepper.excluded[bodies, None], stepper.q[bodies], poses)
        smooth = stepper.modes.smooth(mode)
        minimisation = Minimisation(stepper, h, self.iterates, smooth, progress)
        with progress.time("start"):
            stepper.load_memory()
            backend.steps.begin(rule, mode, settings.eps_v * h, target_poses)
            start_poses = backend.target_poses.read_prescribed() if prescribed.any else None
            if (failure := stepper.rows.begin(rule.ch2, stepper.time + h)) is not None:
                return failure
            may_sleep = stepper.sleep.may_sleep(stepper.joints)
            moving = np.select([may_sleep, stepper.constrained], [STAY, WITHOUT_FORCES], WITH_FORCES)
            backend.start.run(moving, may_sleep)
            relax(backend, settings.tolerance, h)
            self.iterates.poses = []
            if backend.touch.may_collide:
                self.iterates.add(backend.states.copy_positions())
        if (failure := fast_contact(stepper, h) or contact_began(stepper, smooth)) is not None:
            return failure
        if prescribed.any:
            failure = prescribed.minimise(
                backend, start_poses, target_poses, stepper.time, h, rule.penalty, minimisation.solve
            )
        else:
            failure = minimisation.solve()
        stepper.lagged_again = minimisation.lagged_again
        if failure is not None and failure.reason == "joints":
            failure.args = (f"{failure}; the largest residual is that of '{stepper.rows.most_open()}'",)
        began = contact_began(stepper, smooth)
        if failure is not None and began is not None and failure.concerned is not None:
            began = began if (began.concerned & stepper.in_worlds_of(failure.concerned)).any() else None
        return began or failure or stepper.rows.turned(stepper.excluded) or fast_contact(stepper, h)

    def _finish(
        self, h: PerBody, mode: np.ndarray, limited: np.ndarray | None, statistics: StepStatistics | None = None
    ) -> None:
        """Take the iterate as the new state, apply its impacts, and update times, work and masks.

        Args:
            limited: (n,) bodies with active limits at the end; None if nothing can have an impact.
            statistics: those of the step without impacts, if they are known.
        """
        stepper, backend, articulations = self.stepper, self.backend, self.stepper.articulations
        stepper.modes.became(mode, stepper.joints)
        stepper.forget_copies()
        stepper.stepped = True
        stepper.rebounds.forget()
        stepper.forces.forget()
        stepper.forces.changes = self.reactions
        rebound = None if limited is None else stepper.rebounds.rebound(self.before, h, limited)
        velocity = stepper.prescribed.with_rates(stepper.qd, stepper.time + h, h)
        if stepper.off is not stepper.none and stepper.off.any():
            kept = np.where(stepper.stopped[:, None], stepper.previous_qd, 0.0)
            velocity = np.where(stepper.off[:, None], kept, velocity)
        if velocity is not stepper.qd:
            stepper.set_velocity(velocity)
        if statistics is None or rebound is not None:
            statistics = backend.readings.statistics()
        if rebound is not None:
            stepper.forces.rebound = rebound
            friction, drive = statistics.friction_work + rebound.friction_work, statistics.drive_work + rebound.drive_work
            joint = statistics.joint + rebound.rotor_energy
            if limited.any():
                x, width = stepper.memory.history[[slots.VALUE, slots.BARRIER_WIDTH]]
                joint -= float(released_energies(stepper.joints, stepper.applied, x, width).sum())
            statistics = replace(statistics, friction_work=friction, drive_work=drive, joint=joint)
        if self.drive_work:
            statistics = replace(statistics, drive_work=statistics.drive_work + self.drive_work)
        if self.loads is not None:
            work = statistics.external_work - self._surplus_work(np.stack(self.loads), h, mode)
            statistics = replace(statistics, external_work=work)
        stepper.statistics = statistics
        stepper.work = stepper.work.after(stepper.statistics)
        stepper.time = stepper.time + h
        stepper.previous_h = h
        stepper.sleep.observe(backend, h)
        stepper.warnings.check_turns(stepper, h, stepper.statistics.fastest)
        stepper.warnings.check_strain(stepper, stepper.statistics.orthogonality_error)
        constrained = backend.touch.touching() != 0 if stepper.statistics.contacts else stepper.none
        if limited is not None and limited.any():
            constrained = constrained | limited
        stepper.constrained = constrained if constrained is stepper.none else articulations.containing(constrained)
        stepper.forces.own = backend.pair_law.own
        update_parameters(backend, stepper.rebounds.impact_pairs)
        if len(stepper.rebounds.impact_pairs):  # their barriers have other parameters now
            stepper.statistics = replace(stepper.statistics, contact=backend.readings.statistics().contact)

    def _surplus_work(self, loads: np.ndarray, h: PerBody, mode: np.ndarray) -> float:
        """Return the work [J] of `loads` (2, n, 3), those at the end of a substep, less the work of their mean with those at the
        start, on bodies with a step of second order (as `abd.joints.rows.forces.row_work`)."""
        stepper, n = self.stepper, len(mode)
        change = loads - stepper.start_loads
        included = ~stepper.excluded
        np.copyto(stepper.start_loads, loads, where=included[:, None])
        weights = row_weights(stepper.modes.rule(h), mode, np.full(n, -1), np.arange(n))
        changing = included & (weights[RATE_OLD] != 0.0) & change.any(axis=(0, 2)) & stepper.articulations.dynamic
        return external_work(0.5 * change, stepper.previous, stepper.present, h, changing) if changing.any() else 0.0
