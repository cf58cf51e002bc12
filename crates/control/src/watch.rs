//! Changes of the SubDevices and the axes of a running cycle, and the loss of all.

use std::io;
use std::time::Duration;

use ethercat::main_device::{BringUpPhase, MainDevice, ring_break};
use ethercat::redundancy::Ring;
use ethercat::time::Instant;
use motion::Radians;
use motion::supervision::{QuickStopStep, StopReason};
use types::RingStatus;

use crate::controller::{AxisReport, IgnoredSetpoint, InterlockCause};
use crate::observer::{Cause, Happening};
use crate::status::SubDeviceExchange;

/// A bus that stayed lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Time without any answer.
    pub lasted: Duration,
    /// The network interface is not there any more.
    pub interface_gone: bool,
}

/// Compares one cycle with the one before; made beforehand, it allocates nothing.
#[derive(Debug)]
pub(crate) struct BusWatch {
    /// Consecutive cycles for which each SubDevice was lost.
    lost_for: Vec<u64>,
    /// Place of the first SubDevice on the way to each lost one that was lost too: frames end at
    /// the cable to it.
    breaks: Vec<usize>,
    quick_stops: Vec<Option<QuickStopStep>>,
    overshoots: Vec<Option<Radians>>,
    /// Stop of each axis that was reported, with the interlock that caused it.
    stops: Vec<(Option<StopReason>, Option<InterlockCause>)>,
    /// Set-point of each axis that was reported as ignored.
    ignored: Vec<Option<IgnoredSetpoint>>,
    /// Beginning of the time without any answer.
    silent_since: Option<Instant>,
    interface_gone: bool,
    gone_told: bool,
    /// Error number of the first frame of this cycle that the link refused.
    refused: Option<i32>,
    /// Consecutive cycles with a refused transmission.
    refused_for: u64,
    /// It took a frame of this cycle.
    taken: bool,
    timeout: Option<Duration>,
    lost: Option<Lost>,
    /// State of the ring as it was reported.
    ring: Option<Ring>,
}

impl BusWatch {
    pub(crate) fn new(sub_devices: usize, axes: usize, timeout: Option<Duration>) -> Self {
        Self {
            lost_for: vec![0; sub_devices],
            breaks: (0..sub_devices).collect(),
            quick_stops: vec![None; axes],
            overshoots: vec![None; axes],
            stops: vec![(None, None); axes],
            ignored: vec![None; axes],
            silent_since: None,
            interface_gone: false,
            gone_told: false,
            refused: None,
            taken: false,
            refused_for: 0,
            timeout,
            lost: None,
            ring: None,
        }
    }

    /// The bus has stayed lost for too long.
    pub(crate) fn lost(&self) -> Option<Lost> {
        self.lost
    }

    /// A link that failed: for good, if its interface was removed (packet(7): ENXIO, ENODEV).
    pub(crate) fn note_link_error(&mut self, error: &io::Error) {
        self.interface_gone |= matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV));
        self.refused.get_or_insert(error.raw_os_error().unwrap_or(0));
    }

    /// A link that took a frame.
    pub(crate) fn note_taken(&mut self) {
        self.taken = true;
    }

    /// Reports that the link refuses frames, and that it takes them again; at the end of a cycle.
    pub(crate) fn look_at_link(&mut self, tell: &mut impl FnMut(Happening)) {
        let before = self.refused_for;
        let taken = std::mem::take(&mut self.taken);
        match self.refused.take() {
            Some(code) => {
                self.refused_for += 1;
                let newly_gone = self.interface_gone && !std::mem::replace(&mut self.gone_told, true);
                if newly_gone || self.refused_for == TOLD_AFTER && !self.interface_gone {
                    tell(Happening::LinkFailed { code });
                }
            }
            // Where nothing is sent there is nothing to refuse.
            None if !taken => {}
            None => {
                self.refused_for = 0;
                if before >= TOLD_AFTER {
                    tell(Happening::LinkWorks { after: before });
                }
            }
        }
    }

    /// Reports where the ring is open, and that it is closed again; `status` is its last one.
    pub(crate) fn look_at_ring(
        &mut self,
        cycle: u64,
        ring: Option<Ring>,
        main_device: &MainDevice,
        status: &mut Option<RingStatus>,
        tell: &mut impl FnMut(Happening),
    ) {
        let before = std::mem::replace(&mut self.ring, ring);
        if ring == before {
            return;
        }
        let was_open_since = status.filter(|it| it.open.is_some()).map(|it| it.since);
        let open = match ring {
            Some(Ring::Open { before }) => Some(ring_break(main_device.sub_devices(), before)),
            _ => None,
        };
        *status = ring.map(|_| RingStatus { open, since: cycle });
        match (open, was_open_since) {
            (Some(between), _) => tell(Happening::RingOpen { between }),
            (None, Some(since)) => tell(Happening::RingClosed { after: cycle - since }),
            (None, None) => {}
        }
    }

    /// Notes the status of the SubDevices; reports losses and returns while the bus is in Op, with
    /// the place of the SubDevice at whose cable frames end.
    pub(crate) fn look_at_sub_devices(
        &mut self,
        now: Instant,
        main_device: &MainDevice,
        statuses: &mut [SubDeviceExchange],
        tell: &mut impl FnMut(Happening, usize),
    ) {
        let in_op = main_device.phase() == BringUpPhase::Op;
        let (mut answers, mut silent) = (!in_op, false);
        // No frame comes back: no SubDevice can be distinguished.
        let mut counters = main_device.working_counters().peekable();
        let all_silent = counters.peek().is_some() && counters.all(|it| it.received.is_none());
        let sub_devices = main_device.sub_devices().iter().zip(statuses);
        for (position, (sub_device, status)) in sub_devices.enumerate() {
            let has_process_data = sub_device.input_bytes() + sub_device.output_bytes() > 0;
            let exchanges = main_device.exchanged(position);
            // A SubDevice with fresh process data answers: with a thousand of them, none is
            // checked further in a cycle.
            let is_unanswered =
                !(exchanges && has_process_data) && main_device.does_not_answer(sub_device.position);
            // A SubDevice without process data is lost, too, with all that is behind it.
            let takes_part = exchanges && (has_process_data || !all_silent && !is_unanswered);
            let before = self.lost_for[position];
            let waits = main_device.waits_for_its_group(position);
            let absent = sub_device.is_absent() && !main_device.could_not_join(position);
            let lost_for = match before {
                _ if takes_part || !in_op => 0,
                // A SubDevice that was reported lost is reported back, if it returns.
                _ if (absent || waits) && before < TOLD_AFTER => 0,
                _ => before.saturating_add(1),
            };
            self.lost_for[position] = lost_for;
            *status = SubDeviceExchange {
                exchanges,
                missed: if absent || waits { 0 } else { u32::try_from(lost_for).unwrap_or(u32::MAX) },
                absent,
                waits,
                gone: is_unanswered || all_silent && lost_for >= TOLD_AFTER,
                al_status: sub_device.al_status,
                al_status_code: sub_device.al_status_code,
            };
            answers |= exchanges && has_process_data;
            silent |= !exchanges && !absent && !waits;
            if lost_for == TOLD_AFTER && before < TOLD_AFTER {
                let upstream = sub_device.cable().and_then(|it| it[0].position).map(usize::from);
                let is_lost = |it: &usize| self.lost_for.get(*it).is_some_and(|&it| it >= TOLD_AFTER);
                let place = upstream.filter(is_lost).map_or(position, |it| self.breaks[it]);
                self.breaks[position] = place;
                tell(Happening::SubDeviceLost { position }, place);
            } else if before >= TOLD_AFTER && takes_part {
                tell(Happening::SubDeviceBack { position, after: before }, self.breaks[position]);
            }
        }
        self.watch_silence(now, answers || !silent);
    }

    fn watch_silence(&mut self, now: Instant, answers: bool) {
        if answers {
            self.silent_since = None;
            return;
        }
        let lasted = now.since(*self.silent_since.get_or_insert(now));
        let over = self.interface_gone || self.timeout.is_some_and(|timeout| lasted >= timeout);
        if over && self.lost.is_none() {
            self.lost = Some(Lost { lasted, interface_gone: self.interface_gone });
        }
    }

    /// Reports the axes that supervision has stopped, the released ones, and the axes with ignored
    /// set-points.
    pub(crate) fn look_at_axes(&mut self, reports: &[AxisReport], tell: &mut impl FnMut(Happening)) {
        for (axis, (report, before)) in reports.iter().zip(&mut self.ignored).enumerate() {
            if report.ignored == *before {
                continue;
            }
            *before = report.ignored;
            if let Some(what) = report.ignored {
                tell(Happening::SetpointIgnored { axis, what });
            }
        }
        for (axis, (report, before)) in reports.iter().zip(&mut self.quick_stops).enumerate() {
            let now = report.quick_stop;
            if let Some(step) = now.filter(|_| std::mem::replace(before, now) != now) {
                tell(Happening::QuickStopIgnored { axis, step });
            }
            *before = now;
        }
        for (axis, (report, before)) in reports.iter().zip(&mut self.overshoots).enumerate() {
            let now = report.overshoot;
            if let Some(by) = now.filter(|_| before.is_none()) {
                tell(Happening::Overshoot { axis, by });
            }
            *before = now;
        }
        for (axis, (report, before)) in reports.iter().zip(&mut self.stops).enumerate() {
            if report.stop == Some(StopReason::Jog) {
                // No stop: an earlier stop, or none, continues afterwards.
                continue;
            }
            // Another interlock than before is another cause of the same stop.
            let forbidding = report.interlock.filter(|it| !it.permits);
            let is_same_stop = report.stop == before.0;
            let is_same = is_same_stop && (forbidding.is_none() || forbidding == before.1);
            *before = (report.stop, forbidding.or(before.1.filter(|_| is_same_stop)));
            if is_same {
                continue;
            }
            tell(match report.stop {
                Some(reason) => Happening::AxisStopped {
                    axis,
                    reason,
                    with: report.stopped_with,
                    because: Cause::of(report),
                },
                None => Happening::AxisFreed { axis },
            });
        }
    }
}

/// Consecutive cycles after which a SubDevice, or the link, is reported as lost: two lost frames
/// are not worth an event.
const TOLD_AFTER: u64 = 3;
