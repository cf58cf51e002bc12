//! Figures of a run on a page: the cycle, the bus, its SubDevices, the clocks, the axes, the events.

use std::collections::{BTreeMap, BTreeSet};

use control::bus::PartNames;
use control::controller::AxisReport;
use control::status::{Status, SubDeviceStatus};
use ipc::bus::{Event, Happening, PortErrorCounters};
use ipc::diagnostics::BusDiagnosis;
use onbeat::Progress;
use record::RunSummary;
use record::statistics::Statistics;
use types::LockState;
use types::state::{BringUpPhase, DriveState};

use super::page::{Family, Page};

/// Counts of a run that its status does not have.
pub(super) struct Counts {
    /// Events by severity.
    events: BTreeMap<&'static str, u64>,
    /// Of each axis: faults of its drive, stops by supervision.
    axes: Vec<(u64, u64)>,
    /// Emergencies of SubDevices.
    emergencies: u64,
    /// Names of the signals that are forced.
    forced: BTreeSet<String>,
}

impl Counts {
    pub(super) fn of(axes: usize) -> Self {
        let events = ["ok", "warning", "error"].map(|severity| (severity, 0)).into();
        Self { events, axes: vec![(0, 0); axes], emergencies: 0, forced: BTreeSet::new() }
    }

    /// Counts an event.
    pub(super) fn event(&mut self, event: &Event) {
        *self.events.entry(event.severity.name()).or_default() += 1;
        match &event.what {
            &Happening::DriveFault { axis, .. } => {
                self.axes.get_mut(axis).into_iter().for_each(|it| it.0 += 1)
            }
            &Happening::AxisStopped { axis, .. } => {
                self.axes.get_mut(axis).into_iter().for_each(|it| it.1 += 1)
            }
            Happening::Emergency { .. } => self.emergencies += 1,
            Happening::SignalForced { signal, .. } => {
                self.forced.insert(signal.clone());
            }
            Happening::SignalReleased { signal, .. } => {
                self.forced.remove(signal);
            }
            _ => {}
        }
    }
}

/// All figures of a run.
pub(super) fn page(robot: &str, names: &PartNames, counts: &Counts, progress: &Progress<'_>) -> String {
    let mut page = Page::default();
    let (status, timing) = (progress.status, progress.timing);
    let version = env!("CARGO_PKG_VERSION");
    page.gauge("onbeat_info", "Program and robot of the run; always 1.")
        .sample(&[("version", version), ("robot", robot)], 1);
    cycle(&mut page, status, timing);
    bus(&mut page, status);
    clocks(&mut page, status);
    sub_devices(&mut page, names, &status.sub_devices);
    progress.bus.into_iter().for_each(|bus| counted(&mut page, bus));
    axes(&mut page, names, counts, &status.axes);
    let mut events = page.counter("onbeat_events_total", "Events of the cycle by severity.");
    for (severity, count) in &counts.events {
        events.sample(&[("severity", severity)], count);
    }
    count(&mut page, "onbeat_emergencies_total", "Emergency messages of SubDevices.", counts.emergencies);
    page.gauge("onbeat_signals_forced", "Signals that are forced.").sample(&[], counts.forced.len());
    page.into_text()
}

fn cycle(page: &mut Page, status: &Status, timing: &RunSummary) {
    let period = timing.period_ns();
    page.gauge("onbeat_period_seconds", "Period of the cycle.").sample(&[], seconds(period));
    page.gauge("onbeat_cycle", "Number of the newest cycle.").sample(&[], status.cycle);
    let counts = [
        ("onbeat_cycles_total", "Cycles measured, in Op.", timing.cycles()),
        ("onbeat_overruns_total", "Cycles that ended after the next release.", timing.overruns.count),
        ("onbeat_skipped_releases_total", "Releases without a cycle.", timing.skipped_releases.count),
        ("onbeat_lost_frames_total", "Frames that did not come back in time.", timing.lost_frames.count),
        (
            "onbeat_working_counter_errors_total",
            "Cycles with a wrong working counter.",
            timing.working_counter_errors.count,
        ),
        (
            "onbeat_dropped_records_total",
            "Cycles that ran and are missing in these figures.",
            timing.dropped_records.count,
        ),
    ];
    for (name, help, value) in counts {
        count(page, name, help, value);
    }
    let times = [
        (
            "onbeat_release_jitter_seconds",
            "Distance of the actual period from the period.",
            &timing.release_jitter,
        ),
        ("onbeat_wakeup_latency_seconds", "Release to start.", &timing.wakeup_latency),
        ("onbeat_execution_time_seconds", "Start to end of a cycle's work.", &timing.execution_time),
        ("onbeat_response_time_seconds", "Release to end.", &timing.response_time),
    ];
    for (name, help, times) in times {
        histogram(page, name, help, times);
    }
}

/// Bounds of the histograms, ns: 1, 2, 5 and so on from a microsecond to 10 ms.
const BOUNDS: [u64; 13] = [
    1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000,
    5_000_000, 10_000_000,
];

fn histogram(page: &mut Page, name: &'static str, help: &str, times: &Statistics) {
    let up_to = BOUNDS.into_iter().map(seconds).zip(times.up_to(BOUNDS));
    let sum = times.average().unwrap_or(0.0) * times.count() as f64 / 1e9;
    page.histogram(name, help, up_to, (times.count(), sum));
}

fn bus(page: &mut Page, status: &Status) {
    let mut phases = page.gauge("onbeat_bus_phase", "1 for the phase that the bus is in.");
    for phase in BringUpPhase::ALL {
        phases.sample(&[("phase", phase.words())], u8::from(phase == status.phase));
    }
    let help = "1 while the bus is in Op and axes wait to be enabled by a person.";
    page.gauge("onbeat_waits_for_enable", help).sample(&[], u8::from(status.waits_for_enable()));
    let reception = &status.reception;
    let counts = [
        ("onbeat_frames_sent_total", "Frames sent, of all kinds.", reception.sent),
        ("onbeat_frames_answered_total", "Frames that came back.", reception.accepted),
        ("onbeat_frames_given_up_total", "Frames that did not come back in time.", reception.lost),
        (
            "onbeat_link_errors_total",
            "Frames that the operating system did not take or give.",
            status.link_errors,
        ),
    ];
    for (name, help, value) in counts {
        count(page, name, help, value);
    }
    if let Some(ring) = status.ring {
        page.gauge("onbeat_ring_closed", "1 while the ring of SubDevices is closed.")
            .sample(&[], u8::from(ring.open.is_none()));
    }
}

fn clocks(page: &mut Page, status: &Status) {
    let lock = &status.lock;
    let mut states =
        page.gauge("onbeat_clock_lock", "1 for the state of the cycle's lock to the reference clock.");
    for state in LockState::ALL {
        states.sample(&[("state", state.name())], u8::from(state == lock.state));
    }
    let drift = lock.drift_ppb as f64 / 1e9;
    page.gauge(
        "onbeat_clock_phase_error_seconds",
        "Release against its place in the reference clock's period; positive is late.",
    )
    .sample(&[], lock.phase_error_ns as f64 / 1e9);
    page.gauge("onbeat_clock_drift_ratio", "Rate of the reference clock against this host's, less 1.")
        .sample(&[], drift);
    page.gauge(
        "onbeat_clock_difference_seconds",
        "Largest difference of a SubDevice's clock from the reference clock.",
    )
    .sample(&[], status.clock_difference.as_secs_f64());
    count(page, "onbeat_clock_lock_losses_total", "Times that the lock was lost.", lock.losses);
}

fn sub_devices(page: &mut Page, names: &PartNames, sub_devices: &[SubDeviceStatus]) {
    let help = "AL status, low four bits: 1 Init, 2 PreOp, 4 SafeOp, 8 Op; 0 without an answer.";
    of_each(page.gauge("onbeat_sub_device_al_state", help), names, sub_devices, |it| match it.gone {
        true => 0,
        false => it.al_status.state.into(),
    });
    let help = "1 with the error bit of the AL status.";
    of_each(page.gauge("onbeat_sub_device_al_error", help), names, sub_devices, |it| {
        it.al_status.error.into()
    });
    let help = "AL status code; 0 without an error.";
    let code = |it: &SubDeviceStatus| it.al_status_code.0.into();
    of_each(page.gauge("onbeat_sub_device_al_status_code", help), names, sub_devices, code);
    let help = "1 while its process data comes and goes.";
    of_each(page.gauge("onbeat_sub_device_exchanges", help), names, sub_devices, |it| it.exchanges.into());
    let help = "1 while it is not on the bus, and need not be.";
    of_each(page.gauge("onbeat_sub_device_absent", help), names, sub_devices, |it| it.absent.into());
}

/// Errors that SubDevices have counted, and working counters.
fn counted(page: &mut Page, bus: &BusDiagnosis) {
    let short = bus.working_counter_history.short_cycles;
    let help = "Cycles in which a working counter was short, since all were complete once.";
    count(page, "onbeat_short_working_counter_cycles_total", help, short);
    if let Some(spread) = bus.clock_spread_ns {
        let help = "Largest less smallest difference of a SubDevice's clock from the reference clock.";
        page.gauge("onbeat_clock_spread_seconds", help).sample(&[], spread as f64 / 1e9);
    }
    let help = "Error counter of a port, as the slow poll has read it; it stays at 255.";
    let mut ports = page.gauge("onbeat_sub_device_port_errors", help);
    for it in &bus.sub_devices {
        let position = it.position.to_string();
        for (port, errors) in it.used_ports() {
            let number = port.to_string();
            for (kind, value) in port_counters(&errors) {
                let labels = [
                    ("sub_device", it.name.as_str()),
                    ("position", &position),
                    ("port", &number),
                    ("counter", kind),
                ];
                ports.sample(&labels, value);
            }
        }
    }
    let help = "Error counter of a SubDevice, as the slow poll has read it; it stays at 255.";
    let mut errors = page.gauge("onbeat_sub_device_errors", help);
    for it in &bus.sub_devices {
        let position = it.position.to_string();
        for (kind, value) in [("processing_unit", it.processing_unit_errors), ("pdi", it.pdi_errors)] {
            let labels = [("sub_device", it.name.as_str()), ("position", &position), ("counter", kind)];
            errors.sample(&labels, value);
        }
    }
}

fn port_counters(it: &PortErrorCounters) -> [(&'static str, u8); 4] {
    [
        ("invalid_frames", it.invalid_frames),
        ("rx_errors", it.rx_errors),
        ("forwarded_rx_errors", it.forwarded_rx_errors),
        ("lost_links", it.lost_links),
    ]
}

/// A figure of each SubDevice.
fn of_each(
    mut family: Family<'_>,
    names: &PartNames,
    sub_devices: &[SubDeviceStatus],
    figure: impl Fn(&SubDeviceStatus) -> u32,
) {
    for (position, it) in sub_devices.iter().enumerate() {
        let name = names.sub_devices.get(position).map_or("?", String::as_str);
        family.sample(&[("sub_device", name), ("position", &position.to_string())], figure(it));
    }
}

fn axes(page: &mut Page, names: &PartNames, counts: &Counts, axes: &[AxisReport]) {
    if axes.is_empty() {
        return;
    }
    let named = || axes.iter().enumerate().map(|(place, it)| (names.axis(place), it));
    let mut states =
        page.gauge("onbeat_axis_state", "1 for the state of CiA 402 that the axis's drive is in.");
    for (name, axis) in named() {
        for state in DriveState::ALL {
            states.sample(&[("axis", name), ("state", state.words())], u8::from(axis.state == Some(state)));
        }
    }
    let mut stopped =
        page.gauge("onbeat_axis_stopped", "1 while supervision holds the axis, with the reason.");
    for (name, axis) in named() {
        let reason = axis.stop.map_or("", |reason| reason.words());
        stopped.sample(&[("axis", name), ("reason", reason)], u8::from(axis.stop.is_some()));
    }
    let mut of_each = |name, help, figure: fn(&AxisReport) -> f64| {
        let mut family = page.gauge(name, help);
        for (name, axis) in named() {
            family.sample(&[("axis", name)], figure(axis));
        }
    };
    of_each("onbeat_axis_homed", "1 if it knows its absolute position.", |it| {
        f64::from(u8::from(it.homed))
    });
    of_each("onbeat_axis_error_code", "Error code 0x603F of a drive in fault; 0 for none.", |it| {
        it.error_code.into()
    });
    of_each("onbeat_axis_position_radians", "Actual position.", |it| it.feedback.position.0);
    of_each("onbeat_axis_velocity_radians_per_second", "Actual velocity.", |it| it.feedback.velocity.0);
    of_each(
        "onbeat_axis_torque_newton_metres",
        "Actual torque; 0 where the drive does not report it.",
        |it| it.feedback.torque.0,
    );
    let mut faults = page.counter("onbeat_axis_faults_total", "Faults of the axis's drive.");
    for (place, (times, _)) in counts.axes.iter().enumerate() {
        faults.sample(&[("axis", names.axis(place))], times);
    }
    let mut stops = page.counter("onbeat_axis_stops_total", "Stops of the axis by supervision.");
    for (place, (_, times)) in counts.axes.iter().enumerate() {
        stops.sample(&[("axis", names.axis(place))], times);
    }
}

fn count(page: &mut Page, name: &'static str, help: &str, value: u64) {
    page.counter(name, help).sample(&[], value);
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use ethercat::al::{AlState, AlStatus};
    use ipc::bus::Severity;

    use super::*;

    /// The alert on another state than Op takes one that does not answer, whose state is that of before.
    // feature(program): `run --metrics` answers Prometheus: cycles, times, bus, clocks, SubDevices, axes, events
    #[test]
    fn one_that_does_not_answer_is_not_in_op() {
        let names = PartNames { sub_devices: vec!["a".to_owned(), "b".to_owned()], ..PartNames::default() };
        let in_op =
            SubDeviceStatus { al_status: AlStatus::in_state(AlState::Op), ..SubDeviceStatus::default() };
        let mut page = Page::default();
        sub_devices(&mut page, &names, &[in_op, SubDeviceStatus { gone: true, ..in_op }]);
        let text = page.into_text();
        for line in ["{sub_device=\"a\",position=\"0\"} 8", "{sub_device=\"b\",position=\"1\"} 0"] {
            assert!(text.contains(&format!("onbeat_sub_device_al_state{line}\n")), "{text}");
        }
    }

    // feature(program): systemd's status and Prometheus show that a bus in Op waits for enable
    #[test]
    fn a_bus_that_waits_for_enable_is_a_figure() {
        let mut status = Status::initial(1, 1);
        status.phase = BringUpPhase::Op;
        for (state, figure) in [(DriveState::SwitchOnDisabled, 1), (DriveState::OperationEnabled, 0)] {
            status.axes[0].state = Some(state);
            let mut page = Page::default();
            bus(&mut page, &status);
            let text = page.into_text();
            assert!(text.contains(&format!("onbeat_waits_for_enable {figure}\n")), "{text}");
        }
    }

    // feature(signals): forces and their ends are events, with who asked for them, when, and why they end
    #[test]
    fn signals_count_as_forced_until_they_are_released() {
        let mut counts = Counts::of(0);
        let mut forced = |what| {
            let sentence = String::new();
            let severity = Severity::Warning;
            counts.event(&Event { cycle: 1, at_ns: 1, severity, sentence, between: None, what });
            counts.forced.len()
        };
        let value = types::Value::Bool(true);
        let force = |signal: &str| Happening::SignalForced {
            signal: signal.into(),
            value,
            for_ns: 1,
            user: 0,
            process: 1,
        };
        assert_eq!([forced(force("a")), forced(force("b")), forced(force("a"))], [1, 2, 2]);
        let (reason, user, process) = ("released".to_owned(), None, None);
        let release = Happening::SignalReleased { signal: "a".into(), reason, after: 1, user, process };
        assert_eq!(forced(release), 1);
        assert_eq!(counts.events["warning"], 4);
    }
}
