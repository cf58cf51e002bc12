//! Record of one cycle: instants, phase durations, errors.

/// Phases of a cycle, in their order where a cycle works with the reply of the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Received frames from the link to the process image.
    Receive,
    /// Process image to feedback in SI units.
    Read,
    /// Reading the newest command.
    Command,
    /// The controller.
    Update,
    /// Set-points to the process image.
    Write,
    /// Process image to frames, and frames to the link.
    Transmit,
    /// Wait for the reply of this cycle: time of the wire, not of the processor.
    Wait,
    /// Publication of feedback and records.
    Publish,
}

impl Phase {
    /// All phases.
    pub const ALL: [Self; 8] = [
        Self::Receive,
        Self::Read,
        Self::Command,
        Self::Update,
        Self::Write,
        Self::Transmit,
        Self::Wait,
        Self::Publish,
    ];
}

/// Record of one cycle: its ideal and actual start, the duration of each phase, and its errors.
///
/// The real-time side makes one with [`CycleRecord::begin`], calls [`CycleRecord::finish`] after
/// each phase, and copies it out; nothing here allocates or can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleRecord {
    /// Number of the release on the grid; skipped releases have numbers too.
    pub cycle: u64,
    /// Ideal release, ns of the cycle's clock.
    pub release_ns: u64,
    /// First instant after the wake-up, ns of the cycle's clock.
    pub start_ns: u64,
    /// Last instant stamped, ns of the cycle's clock.
    pub end_ns: u64,
    /// Releases skipped just before this one.
    pub skipped: u32,
    /// Frames of this cycle, or of the previous one, that never came back.
    pub lost_frames: u32,
    /// True if every process data datagram came back with its expected working counter.
    pub working_counter_ok: bool,
    /// True if the cycle ended after the next release, without simulated SubDevices.
    pub overrun: bool,
    /// Duration of each phase, indexed by [`Phase`], ns.
    pub durations_ns: [u32; Phase::ALL.len()],
    /// Time that went into SubDevices simulated in the cycle's own thread, ns. No phase has it, and
    /// no computed time.
    pub simulation_ns: u32,
}

impl CycleRecord {
    /// A cycle that has just woken up, without errors so far.
    #[must_use]
    pub const fn begin(cycle: u64, release_ns: u64, start_ns: u64) -> Self {
        Self {
            cycle,
            release_ns,
            start_ns,
            end_ns: start_ns,
            skipped: 0,
            lost_frames: 0,
            working_counter_ok: true,
            overrun: false,
            durations_ns: [0; Phase::ALL.len()],
            simulation_ns: 0,
        }
    }

    /// Adds the time since the last stamp to `phase`, and stamps `now_ns`. A phase may come in
    /// several pieces; one of more than 4.29 s reads as 4.29 s.
    pub fn finish(&mut self, phase: Phase, now_ns: u64) {
        self.finish_without(phase, now_ns, 0);
    }

    /// The same without the part of that time that simulated SubDevices took.
    pub fn finish_without(&mut self, phase: Phase, now_ns: u64, simulation_ns: u64) {
        let passed = now_ns.saturating_sub(self.end_ns);
        let simulation_ns = simulation_ns.min(passed);
        let small = |duration: u64| u32::try_from(duration).unwrap_or(u32::MAX);
        let duration = &mut self.durations_ns[phase as usize];
        *duration = duration.saturating_add(small(passed - simulation_ns));
        self.simulation_ns = self.simulation_ns.saturating_add(small(simulation_ns));
        self.end_ns = self.end_ns.max(now_ns);
    }

    /// Duration of `phase`, ns.
    #[must_use]
    pub const fn duration(&self, phase: Phase) -> u64 {
        self.durations_ns[phase as usize] as u64
    }

    /// Release to start, ns.
    #[must_use]
    pub const fn wakeup_latency(&self) -> u64 {
        self.start_ns.saturating_sub(self.release_ns)
    }

    /// C, collect: receive and read, ns.
    #[must_use]
    pub const fn collect_time(&self) -> u64 {
        self.duration(Phase::Receive) + self.duration(Phase::Read)
    }

    /// P, process: command and update, ns.
    #[must_use]
    pub const fn process_time(&self) -> u64 {
        self.duration(Phase::Command) + self.duration(Phase::Update)
    }

    /// T, transmit: write and transmit, ns.
    #[must_use]
    pub const fn transmit_time(&self) -> u64 {
        self.duration(Phase::Write) + self.duration(Phase::Transmit)
    }

    /// `T_exec` = C + P + T, ns: without waiting for the wire and without publishing.
    #[must_use]
    pub const fn execution_time(&self) -> u64 {
        self.collect_time() + self.process_time() + self.transmit_time()
    }

    /// Release to the last stamp, ns: with the wake-up, the wire and publishing, without simulated
    /// SubDevices.
    #[must_use]
    pub const fn response_time(&self) -> u64 {
        self.end_ns.saturating_sub(self.release_ns).saturating_sub(self.simulation_ns as u64)
    }

    /// `T_period`, ns: start to start since `previous`; `None` where `previous` is not the cycle
    /// just before this one, because records between them were dropped.
    #[must_use]
    pub fn actual_period(&self, previous: &Self) -> Option<u64> {
        let expected = previous.cycle.checked_add(1)?.checked_add(u64::from(self.skipped))?;
        (self.cycle == expected).then(|| self.start_ns.saturating_sub(previous.start_ns))
    }

    /// `T_jitter`, ns: distance of the actual period since `previous` from `period_ns`; `None` as
    /// for [`CycleRecord::actual_period`].
    #[must_use]
    pub fn release_jitter(&self, previous: &Self, period_ns: u64) -> Option<u64> {
        Some(self.actual_period(previous)?.abs_diff(period_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_cycle() -> CycleRecord {
        let mut record = CycleRecord::begin(7, 1_000, 1_050);
        let mut now = 1_050;
        for (phase, took) in Phase::ALL.into_iter().zip([10, 20, 30, 40, 50, 60, 700, 80]) {
            now += took;
            record.finish(phase, now);
        }
        record
    }

    #[test]
    fn times_are_made_of_the_phases_the_papers_name() {
        let record = one_cycle();
        assert_eq!((record.collect_time(), record.process_time(), record.transmit_time()), (30, 70, 110));
        assert_eq!(record.execution_time(), 210);
        assert_eq!((record.wakeup_latency(), record.response_time()), (50, 50 + 210 + 700 + 80));
        assert_eq!(record.duration(Phase::Wait), 700);
    }

    #[test]
    fn simulated_sub_devices_are_in_no_phase_and_no_time() {
        let mut record = one_cycle();
        record.finish_without(Phase::Transmit, record.end_ns + 500, 460);
        record.finish_without(Phase::Receive, record.end_ns, 7);
        let plain = one_cycle();
        assert_eq!((record.simulation_ns, record.end_ns), (460, plain.end_ns + 500));
        assert_eq!(record.execution_time(), plain.execution_time() + 40);
        assert_eq!(record.response_time(), plain.response_time() + 40);
    }

    #[test]
    fn phase_in_two_pieces_adds_up_and_backward_time_is_ignored() {
        let mut record = CycleRecord::begin(0, 0, 100);
        record.finish(Phase::Receive, 110);
        record.finish(Phase::Transmit, 130);
        record.finish(Phase::Receive, 135);
        record.finish(Phase::Receive, 50);
        assert_eq!((record.duration(Phase::Receive), record.duration(Phase::Transmit)), (15, 20));
        assert_eq!(record.end_ns, 135);
    }

    #[test]
    fn the_actual_period_needs_the_cycle_just_before() {
        let first = CycleRecord::begin(7, 7_000, 7_010);
        let second = CycleRecord::begin(8, 8_000, 8_003);
        assert_eq!(second.actual_period(&first), Some(993));
        assert_eq!(second.release_jitter(&first, 1_000), Some(7));
        let late = CycleRecord { skipped: 2, ..CycleRecord::begin(11, 11_000, 11_000) };
        assert_eq!(late.release_jitter(&second, 1_000), Some(1_997), "an overrun shows in the period");
        let after_a_gap = CycleRecord::begin(11, 11_000, 11_000);
        assert_eq!(after_a_gap.actual_period(&second), None, "dropped records do not");
    }
}
