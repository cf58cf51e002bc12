//! What a cell came to, and what must hold in every one.

use std::fmt::Write as _;
use std::time::Duration;

use ethercat::al::{AlState, AlStatus};
use ethercat::cia402::State;
use ethercat::main_device::Event;
use motion::supervision::StopReason;
use onbeat_runtime::bring_up::BringUpError;
use onbeat_runtime::cycle::Ended;
use onbeat_runtime::observer::{CycleEvent, Happening};
use simulator::application::servo::ServoRecord;

use crate::robot::{Cell, Reports};
use crate::support::PERIOD;
use crate::wire::{Fault, Phase};

const COUNTS_PER_RADIAN: f64 = (1 << 20) as f64 / std::f64::consts::TAU;
/// The limits of the axes.
const STEP: f64 = 0.05;
const VELOCITY: f64 = 10.0;

/// Whatever happens, a run is over by then.
const LONGEST: Duration = Duration::from_secs(25);

pub(crate) struct Outcome {
    name: String,
    exit_code: u8,
    digest: String,
}

impl Outcome {
    /// As the exit codes of docs/run.md.
    pub(crate) fn exit_code(&self) -> u8 {
        self.exit_code
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// All that was to be seen of it.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    pub(crate) fn not_up(cell: Cell, error: &BringUpError, took: Duration) -> Self {
        assert!(took < LONGEST, "{took:?} {cell:?}");
        let name = format!("not up: {}", kind(error));
        Self { digest: format!("{error} {took:?}"), name, exit_code: 1 }
    }

    pub(crate) fn of<L>(
        cell: Cell,
        ended: &Ended<L>,
        events: Vec<CycleEvent>,
        records: &[ServoRecord],
        reports: Vec<Reports>,
        took: Duration,
    ) -> Self {
        assert!(took < LONGEST, "{took:?} {cell:?}");
        check_set_points(cell, records);
        check_freshness(cell, records, &reports);
        check_the_others(cell, records);
        let mut words: Vec<String> = Vec::new();
        let mut exit_code = 0;
        let mut say = |code: u8, word: String| {
            if !words.contains(&word) {
                words.push(word);
            }
            exit_code = exit_code.max(code);
        };
        if let Some(error) = &ended.failure {
            say(1, format!("bus failed: {}", variant(error)));
        }
        for (number, status) in ended.status.sub_devices.iter().enumerate() {
            if let Some(state) = fallen(&events, number) {
                say(4, format!("SubDevice {number} left Op for {}", state.state_name()));
            } else if lost_at_the_end(&events, number) {
                say(4, format!("SubDevice {number} lost"));
            }
            let _ = status;
        }
        if let Some(lost) = ended.lost {
            say(4, if lost.interface_gone { "interface gone" } else { "bus lost" }.to_owned());
        }
        for (axis, stop) in last_stops(&events).into_iter().enumerate() {
            if let Some(stop) = stop.filter(|stop| stop.is_latched() && *stop != StopReason::Ending) {
                say(3, format!("axis {axis} stopped: {stop:?}"));
            }
        }
        for (axis, report) in ended.before_init.axes.iter().enumerate() {
            if matches!(report.state, Some(State::Fault | State::FaultReactionActive)) {
                say(3, format!("axis {axis} in fault"));
            }
        }
        let mut name = words.join(", ");
        if name.is_empty() {
            name = "all well".to_owned();
        }
        let mut digest = format!("{took:?} {exit_code} {name} {:?}", ended.status);
        for (now, axes) in &reports {
            let _ = write!(digest, "{now:?}{axes:?}");
        }
        Self { name, exit_code, digest }
    }
}

/// Where the others are gone, the first drive is brought to rest and disabled while it is still in Op.
fn check_the_others(cell: Cell, records: &[ServoRecord]) {
    let gone = matches!(cell.fault, Fault::CableBreak | Fault::PowerLoss);
    if !gone || !matches!(cell.phase, Phase::Op | Phase::Homing | Phase::Shutdown) {
        return;
    }
    let taken = records[0].taken();
    let last = taken.iter().rev().find(|it| it.operational).unwrap();
    let speed = last.velocity.abs() / COUNTS_PER_RADIAN;
    assert!(last.state == State::SwitchOnDisabled && speed < 0.1, "{last:?} {cell:?}");
    assert!(!last.controlword.enables_operation(), "{last:?} {cell:?}");
}

/// The rule: from one set-point that a drive takes to the next no farther than the limit of velocity, and than three largest steps
/// where the one before stood for more than two cycles.
fn check_set_points(cell: Cell, records: &[ServoRecord]) {
    for (drive, record) in records.iter().enumerate() {
        let taken = record.taken();
        let cyclic = taken.iter().filter(|it| it.follows() && it.controlword.enables_operation());
        let cyclic: Vec<_> = cyclic.collect();
        let mut changed = cyclic.first().map(|it| it.now);
        for pair in cyclic.windows(2) {
            let step = f64::from(pair[1].target_position.wrapping_sub(pair[0].target_position)).abs();
            let step = step / COUNTS_PER_RADIAN;
            let homes = pair.iter().any(|it| it.mode == ethercat::cia402::ModeOfOperation::Homing);
            // Outside cyclic position the target position only follows the axis.
            if drive < 2 && !homes {
                // A set-point that stood is the last one before an outage, or during it.
                let stood = changed.is_none_or(|changed| pair[1].now.since(changed) > PERIOD * 5 / 2);
                let within = if stood { 3.0 * STEP } else { VELOCITY * 1e-3 };
                assert!(step <= within + 1e-4, "drive {drive}: {step} rad {pair:?} {cell:?}");
            }
            if step != 0.0 {
                changed = Some(pair[1].now);
            }
            let speed = f64::from(pair[1].target_velocity).abs() / COUNTS_PER_RADIAN;
            assert!(speed <= VELOCITY * 1.001, "drive {drive}: {speed} rad/s {cell:?}");
        }
    }
}

/// What is called fresh is where the drive was within the last four cycles: two of the wire, one of the drive, and the way back.
fn check_freshness(cell: Cell, records: &[ServoRecord], reports: &[Reports]) {
    // A changed bit that no check sequence has seen is what nobody can tell. A drive that homes counts anew.
    if cell.fault == Fault::Corrupt {
        return;
    }
    let homes = usize::from(cell.phase == Phase::Homing);
    for (drive, record) in records.iter().enumerate().skip(homes) {
        let taken = record.taken();
        for (now, axes) in reports {
            let report = axes[drive];
            if !report.feedback.fresh {
                continue;
            }
            let counts = report.feedback.position.0 * COUNTS_PER_RADIAN;
            // A drive whose SYNC0 stays away shows what it showed last.
            let from = taken.partition_point(|it| it.now + PERIOD * 4 < *now).saturating_sub(1);
            let recent = taken[from..].iter().take_while(|it| it.now <= *now);
            let near =
                recent.map(|it| (f64::from(it.position) - counts).abs()).fold(f64::INFINITY, f64::min);
            assert!(near < 1.5, "drive {drive}: {near} counts from where it was {cell:?} at {now:?}");
        }
    }
}

/// The state a SubDevice was told to have left Op for, if it was not seen to come back.
fn fallen(events: &[CycleEvent], number: usize) -> Option<AlStatus> {
    events.iter().rev().find_map(|event| match &event.what {
        Happening::Bus(Event::StateChanged { position, status, .. })
            if usize::from(*position) == number =>
        {
            Some(*status)
        }
        _ => None,
    })
}

fn lost_at_the_end(events: &[CycleEvent], number: usize) -> bool {
    let last = events.iter().rev().find_map(|event| match event.what {
        Happening::SubDeviceLost { position } if position == number => Some(true),
        Happening::SubDeviceBack { position, .. } if position == number => Some(false),
        _ => None,
    });
    last == Some(true)
}

/// Why supervision had each axis when the run came to its end, before the stop.
fn last_stops(events: &[CycleEvent]) -> [Option<StopReason>; 3] {
    let mut stops = [None; 3];
    for event in events {
        match event.what {
            Happening::AxisStopped { axis, reason } => stops[axis] = Some(reason),
            Happening::AxisFreed { axis } => stops[axis] = None,
            _ => {}
        }
    }
    stops
}

fn kind(error: &BringUpError) -> String {
    match error {
        BringUpError::Bus(error) => variant(error),
        error => variant(error),
    }
}

/// The names of an error and of what is in it, without its numbers.
fn variant(error: &impl std::fmt::Debug) -> String {
    let text = format!("{error:?}");
    let word = |text: &str| text.chars().take_while(|it| it.is_alphanumeric()).collect::<String>();
    let outer = word(&text);
    let position = text.split("position: ").nth(1).map(word);
    let inner = text.split("error: ").nth(1).map(word);
    match (outer.as_str(), position, inner) {
        ("SubDevice", Some(position), Some(inner)) => format!("SubDevice {position}: {inner}"),
        _ => outer,
    }
}

trait StateName {
    fn state_name(&self) -> String;
}

impl StateName for AlStatus {
    fn state_name(&self) -> String {
        let state = self.al_state().map_or("?".to_owned(), |state: AlState| state.to_string());
        if self.error { format!("{state} + error") } else { state }
    }
}
