//! Metrics of the running cycle, for Prometheus.
//!
//! They come from the newest state, the diagnostics document and the state of the bus, on request.

use std::time::Duration;

use ipc::bus::{BusStatus, Outcome, PortErrorCounters, Service, SubDeviceStatus};
use ipc::client::Client;
use ipc::description::Description;
use ipc::diagnostics::{BOUNDS, BusDiagnosis, Diagnostics, Figures, Histogram};
use ipc::state::{Axis, State};
use types::state::{BringUpPhase, DriveState, StopReason};
use types::{LockState, Value};

use super::exposition::{Family, Page};
use crate::target::Which;

/// Page of the cycle named `which`.
///
/// # Errors
/// No cycle runs, or it does not answer: the reason.
pub(super) fn page(which: Option<&str>) -> Result<String, String> {
    let client = Which(which).find().map_err(|error| error.to_string())?;
    let state = client.state().read().map_err(|error| error.to_string())?;
    let document = client.diagnostics().map_err(|error| error.to_string())?;
    let diagnostics = serde_json::from_str(&document).map_err(|error| error.to_string())?;
    Ok(text(client.description(), &state, &diagnostics, bus_status(&client).as_ref()))
}

/// State of the SubDevices; none while the bus cannot be asked, as at its bring-up.
fn bus_status(client: &Client) -> Option<BusStatus> {
    let mut bus = client.bus().ok()?;
    bus.set_timeout(Some(LONGEST)).ok()?;
    match bus.call(Service::Status { errors: false, receive_times: false }) {
        Ok(Outcome::Status(status)) => Some(*status),
        _ => None,
    }
}

/// Longest wait for the state of the bus: each waiting request holds a thread of the server.
const LONGEST: Duration = Duration::from_secs(2);

fn text(
    description: &Description,
    state: &State,
    diagnostics: &Diagnostics,
    status: Option<&BusStatus>,
) -> String {
    let mut page = Page::default();
    let figures = &diagnostics.figures;
    page.gauge("onbeat_info", "Program and robot of the run; always 1.")
        .sample(&[("version", &description.version), ("robot", &description.robot)], 1);
    cycle(&mut page, description, state, figures);
    bus(&mut page, state, figures);
    clocks(&mut page, state);
    if let Some(status) = status {
        sub_devices(&mut page, description, &status.sub_devices);
    }
    if let Some(bus) = &diagnostics.bus_diagnosis {
        counted(&mut page, bus);
    }
    axes(&mut page, description, &state.axes, figures);
    signals(&mut page, description, state);
    let events = &figures.events;
    let mut family = page.counter("onbeat_events_total", "Events of the cycle by severity.");
    for (severity, count) in [("ok", events.ok), ("warning", events.warning), ("error", events.error)] {
        family.sample(&[("severity", severity)], count);
    }
    count(&mut page, "onbeat_emergencies_total", "Emergency messages of SubDevices.", events.emergencies);
    page.into_text()
}

fn cycle(page: &mut Page, description: &Description, state: &State, figures: &Figures) {
    let period = seconds(description.period_ns);
    page.gauge("onbeat_period_seconds", "Period of the cycle.").sample(&[], period);
    page.gauge("onbeat_cycle", "Number of the newest cycle.").sample(&[], state.cycle);
    counts(
        page,
        [
            ("onbeat_cycles_total", "Cycles measured, in Op.", figures.cycles),
            ("onbeat_overruns_total", "Cycles that ended after the next release.", figures.overruns),
            ("onbeat_skipped_releases_total", "Releases without a cycle.", figures.skipped_releases),
            ("onbeat_lost_frames_total", "Frames that did not come back in time.", figures.lost_frames),
            (
                "onbeat_working_counter_errors_total",
                "Cycles with a wrong working counter.",
                figures.working_counter_errors,
            ),
            (
                "onbeat_dropped_records_total",
                "Cycles that ran and are missing in these figures.",
                figures.dropped_records,
            ),
        ],
    );
    let times = [
        (
            "onbeat_release_jitter_seconds",
            "Distance of the actual period from the period.",
            &figures.release_jitter,
        ),
        ("onbeat_wakeup_latency_seconds", "Release to start.", &figures.wakeup_latency),
        ("onbeat_execution_time_seconds", "Start to end of a cycle's work.", &figures.execution_time),
        ("onbeat_response_time_seconds", "Release to end.", &figures.response_time),
    ];
    for (name, help, times) in times {
        histogram(page, name, help, times);
    }
}

fn histogram(page: &mut Page, name: &'static str, help: &str, times: &Histogram) {
    let up_to = BOUNDS.into_iter().map(seconds).zip(times.up_to);
    page.histogram(name, help, up_to, (times.count, times.sum_seconds));
}

fn bus(page: &mut Page, state: &State, figures: &Figures) {
    let it = &state.bus;
    let mut phases = page.gauge("onbeat_bus_phase", "1 for the phase that the bus is in.");
    for phase in BringUpPhase::ALL {
        phases.sample(
            &[("phase", phase.words())],
            u8::from(BringUpPhase::from_code(it.phase) == Some(phase)),
        );
    }
    let help = "1 while the bus is in Op and axes wait to be enabled by a person.";
    page.gauge("onbeat_waits_for_enable", help).sample(&[], u8::from(figures.waits_for_enable));
    counts(
        page,
        [
            ("onbeat_frames_sent_total", "Frames sent, of all kinds.", it.frames_sent),
            ("onbeat_frames_answered_total", "Frames that came back.", it.frames_accepted),
            ("onbeat_frames_given_up_total", "Frames that did not come back in time.", it.frames_lost),
            (
                "onbeat_link_errors_total",
                "Frames that the operating system did not take or give.",
                it.link_errors,
            ),
        ],
    );
    if let Some(closed) = figures.ring_closed {
        page.gauge("onbeat_ring_closed", "1 while the ring of SubDevices is closed.")
            .sample(&[], u8::from(closed));
    }
}

fn clocks(page: &mut Page, state: &State) {
    let clock = &state.clock;
    let mut states =
        page.gauge("onbeat_clock_lock", "1 for the state of the cycle's lock to the reference clock.");
    for (place, state) in LockState::ALL.into_iter().enumerate() {
        states.sample(&[("state", state.name())], u8::from(usize::from(clock.lock) == place));
    }
    page.gauge(
        "onbeat_clock_phase_error_seconds",
        "Release against its place in the reference clock's period; positive is late.",
    )
    .sample(&[], clock.phase_error_ns as f64 / 1e9);
    page.gauge("onbeat_clock_drift_ratio", "Rate of the reference clock against this host's, less 1.")
        .sample(&[], clock.drift_ppb as f64 / 1e9);
    page.gauge(
        "onbeat_clock_difference_seconds",
        "Largest difference of a SubDevice's clock from the reference clock.",
    )
    .sample(&[], seconds(state.bus.clock_difference_ns));
    count(page, "onbeat_clock_lock_losses_total", "Times that the lock was lost.", clock.losses);
}

fn sub_devices(page: &mut Page, description: &Description, sub_devices: &[SubDeviceStatus]) {
    let help = "AL status, low four bits: 1 Init, 2 PreOp, 4 SafeOp, 8 Op; 0 without an answer.";
    of_each(page.gauge("onbeat_sub_device_al_state", help), description, sub_devices, al_state);
    let help = "1 with the error bit of the AL status.";
    of_each(page.gauge("onbeat_sub_device_al_error", help), description, sub_devices, |it| {
        it.state.ends_with("error").into()
    });
    let help = "AL status code; 0 without an error.";
    of_each(page.gauge("onbeat_sub_device_al_status_code", help), description, sub_devices, |it| {
        it.al_status_code.into()
    });
    let help = "1 while its process data comes and goes.";
    of_each(page.gauge("onbeat_sub_device_exchanges", help), description, sub_devices, |it| {
        it.exchanges.into()
    });
    let help = "1 while it is not on the bus, and need not be.";
    of_each(page.gauge("onbeat_sub_device_absent", help), description, sub_devices, |it| {
        it.is_absent().into()
    });
}

/// AL state as the register has it; 0 for a SubDevice that is absent or does not answer.
fn al_state(status: &SubDeviceStatus) -> u32 {
    match status.state.split(' ').next() {
        Some("Init") => 1,
        Some("PreOp") => 2,
        Some("Bootstrap") => 3,
        Some("SafeOp") => 4,
        Some("Op") => 8,
        _ => 0,
    }
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
    description: &Description,
    sub_devices: &[SubDeviceStatus],
    figure: impl Fn(&SubDeviceStatus) -> u32,
) {
    for (position, it) in sub_devices.iter().enumerate() {
        let name = description.sub_devices.get(position).map_or("?", String::as_str);
        family.sample(&[("sub_device", name), ("position", &position.to_string())], figure(it));
    }
}

fn axes(page: &mut Page, description: &Description, axes: &[Axis], figures: &Figures) {
    if axes.is_empty() {
        return;
    }
    let name = |place: usize| description.axes.get(place).map_or("?", |it| it.name.as_str());
    let named = || axes.iter().enumerate().map(|(place, it)| (name(place), it));
    let mut states =
        page.gauge("onbeat_axis_state", "1 for the state of CiA 402 that the axis's drive is in.");
    for (name, axis) in named() {
        let now = DriveState::from_code(axis.drive_state);
        for state in DriveState::ALL {
            states.sample(&[("axis", name), ("state", state.words())], u8::from(now == Some(state)));
        }
    }
    let mut stopped =
        page.gauge("onbeat_axis_stopped", "1 while supervision holds the axis, with the reason.");
    for (name, axis) in named() {
        let reason = StopReason::from_code(axis.stop);
        let words = reason.map_or("", StopReason::words);
        stopped.sample(&[("axis", name), ("reason", words)], u8::from(reason.is_some()));
    }
    let mut of_each = |name, help, figure: fn(&Axis) -> f64| {
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
    of_each("onbeat_axis_position_radians", "Actual position.", |it| it.position);
    of_each("onbeat_axis_velocity_radians_per_second", "Actual velocity.", |it| it.velocity);
    let help = "Actual torque; 0 if the drive does not report it.";
    of_each("onbeat_axis_torque_newton_metres", help, |it| it.effort);
    for (metric, help, counts) in [
        ("onbeat_axis_faults_total", "Faults of the axis's drive.", &figures.events.axis_faults),
        ("onbeat_axis_stops_total", "Stops of the axis by supervision.", &figures.events.axis_stops),
    ] {
        let mut family = page.counter(metric, help);
        for (place, times) in counts.iter().enumerate() {
            family.sample(&[("axis", name(place))], times);
        }
    }
}

/// The signals that the robot file names.
fn signals(page: &mut Page, description: &Description, state: &State) {
    let named = || {
        let all = description.signals.iter().zip(&state.signals);
        all.filter(|(described, _)| described.named)
    };
    if named().next().is_some() {
        let mut values =
            page.gauge("onbeat_signal", "Value of a named signal in its unit; a bit is 0 or 1.");
        for (described, signal) in named() {
            let value = match signal.value(described.kind) {
                Value::Bool(value) => f64::from(u8::from(value)),
                Value::Unsigned(value) => value as f64,
                Value::Signed(value) => value as f64,
                Value::Real(value) => value,
            };
            values.sample(&[("signal", &described.name), ("unit", &described.unit)], value);
        }
        let help = "1 if the value of a named signal is of the newest cycle.";
        let mut fresh = page.gauge("onbeat_signal_fresh", help);
        for (described, signal) in named() {
            fresh.sample(&[("signal", &described.name)], u8::from(signal.fresh));
        }
    }
    let forced = state.signals.iter().filter(|signal| signal.forced).count();
    page.gauge("onbeat_signals_forced", "Signals that are forced.").sample(&[], forced);
}

fn counts<const N: usize>(page: &mut Page, counts: [(&'static str, &str, u64); N]) {
    for (name, help, value) in counts {
        count(page, name, help, value);
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
    use ipc::state::Bus;

    use super::*;

    /// An alert on another state than Op includes a SubDevice that does not answer.
    // feature(program): `/metrics` of `serve` answers Prometheus: cycles, times, bus, clocks, SubDevices, axes, signals, events
    #[test]
    fn a_silent_sub_device_is_not_in_op() {
        let description =
            Description { sub_devices: vec!["a".to_owned(), "b".to_owned()], ..Description::default() };
        let status =
            |state: &str| SubDeviceStatus { state: state.to_owned(), ..SubDeviceStatus::default() };
        let mut page = Page::default();
        sub_devices(&mut page, &description, &[status("Op"), status(SubDeviceStatus::NO_ANSWER)]);
        let text = page.into_text();
        for line in ["{sub_device=\"a\",position=\"0\"} 8", "{sub_device=\"b\",position=\"1\"} 0"] {
            assert!(text.contains(&format!("onbeat_sub_device_al_state{line}\n")), "{text}");
        }
    }

    // feature(program): systemd's status and Prometheus show that a bus in Op waits for enable
    #[test]
    fn a_bus_that_waits_for_enable_is_a_figure() {
        let state =
            State { bus: Bus { phase: BringUpPhase::Op as u8, ..Bus::default() }, ..State::default() };
        for waits_for_enable in [true, false] {
            let mut page = Page::default();
            bus(&mut page, &state, &Figures { waits_for_enable, ..Figures::default() });
            let text = page.into_text();
            let line = format!("onbeat_waits_for_enable {}\n", u8::from(waits_for_enable));
            assert!(text.contains(&line) && text.contains("onbeat_bus_phase{phase=\"Op\"} 1\n"), "{text}");
        }
    }
}
