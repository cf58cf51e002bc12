//! Six servo drives: actual period, jitter, and execution time (servo paper, Table 3 and Figure 8).

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use record::{CycleRecord, cycles};
use report::{Report, Row, Section, Table, cycle};
use serde::Serialize;
use serde_json::{Value, json};

use crate::distribution::{self, Durations};
use crate::onbeat_run::OnbeatRun;
use crate::paper::Paper;
use crate::surroundings::Surroundings;
use crate::{Context, Error, runner};

/// Settings of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servo {
    /// Robot file; `None` for the built-in six drives at 1 ms.
    pub robot: Option<PathBuf>,
    /// Period in place of the robot file's.
    pub period: Option<Duration>,
    /// Duration of the measurement.
    pub duration: Duration,
    /// Additional options of `onbeat run`: profile, priority, CPU.
    pub options: Vec<OsString>,
}

impl Default for Servo {
    /// The paper's settings: six drives for 60 s.
    fn default() -> Self {
        Self { robot: None, period: None, duration: Duration::from_secs(60), options: Vec::new() }
    }
}

impl Servo {
    /// Runs the experiment.
    ///
    /// # Errors
    /// A run failed, or a recording cannot be read.
    pub fn run(&self, context: &Context) -> Result<Report, Error> {
        let surroundings = Surroundings::begin(context).of_robot(self.robot.as_deref());
        let run =
            OnbeatRun { robot: self.robot.clone(), period: self.period, options: self.options.clone() };
        context.progress.plan(NAME, vec![self.duration]);
        let cell = format!("{} s of cycles", self.duration.as_secs_f64());
        let outcome = match context.kept(NAME)? {
            Some(outcome) => {
                context.pass_over_cell(cell);
                outcome
            }
            None => {
                context.begin_cell(cell);
                self.measure(&run, context)?
            }
        };
        let path = context.path(NAME);
        let recording = runner::read(&path)?;
        let (period, cycles) = cycles::cycles(&recording)
            .map_err(|why| Error::other(format_args!("{}: {why}", path.display())))?;
        let summary = cycle::summary(&cycles, period);
        let mut report = self.report(&outcome, period);
        surroundings.end(&mut report);
        report.warnings.extend(refusals(&outcome));
        if summary.dropped_records.count > 0 {
            let count = summary.dropped_records.count;
            report.warn(format!("{count} cycles are missing in the numbers: the recorder did not keep up"));
        }
        report.condition("samples", cycles.len().to_string());
        report.sections.push(Section::Table(cycle::servo_table(&summary)));
        Paper::Servo.append(&["Table 3"], &mut report);
        report.sections.push(parts(&cycles));
        report.sections.push(Section::Table(cycle::percentiles(&summary)));
        report.sections.push(Section::Table(cycle::health(&summary)));
        report.sections.extend(reference_clock(&outcome["clock_lock"], period).map(Section::Text));
        let signals = sync_signals(&outcome["sub_devices"]);
        report.sections.extend(phase_in_words(&signals).map(Section::Text));
        report.sections.extend(phase_table(&signals).map(Section::Table));
        report.sections.extend(cycle::plots(&cycles, period));
        if let Ok(Value::Object(values)) = serde_json::to_value(&summary) {
            report.values.extend(values);
        }
        report.values.insert("clock_lock".to_owned(), outcome["clock_lock"].clone());
        report.values.insert("sync_signals".to_owned(), json!(signals));
        Ok(report)
    }

    /// Runs the bus; its final JSON.
    fn measure(&self, run: &OnbeatRun, context: &Context) -> Result<Value, Error> {
        let mut running = run.start(context, &context.fresh_path(NAME)?, self.duration)?;
        if running.wait_until_measuring(context)? {
            while !running.is_over() && context.wait(Duration::from_millis(100)) {}
        }
        let outcome = running.finish()?;
        if !context.stopped() {
            context.keep(NAME, &outcome)?;
        }
        Ok(outcome)
    }

    fn report(&self, outcome: &Value, period_ns: u64) -> Report {
        let period = period_ns as f64 / 1e6;
        let mut report = Report {
            experiment: "servo".to_owned(),
            title: "Servo drives: T_period, T_jitter, T_exec".to_owned(),
            source: Some("the servo paper, Table 3 and Figure 8: six drives, 60 s".to_owned()),
            measured: "for every cycle: T_period, from its start to the next; T_jitter = |T_period - period|; T_exec = \
                       C + P + T, the time to collect inputs, process and transmit outputs, without the wire"
                .to_owned(),
            good: "T_period close to the period with a small deviation, T_jitter of a few per cent of the period at \
                   most, and T_exec far below the period"
                .to_owned(),
            found: Some(
                "T_jitter of 1.4 us on average and 104 us at most under PREEMPT_RT, 1.2 and 24 us under Xenomai; T_exec of 94 and \
                 96 us, hardly different"
                    .to_owned(),
            ),
            ..Report::default()
        };
        let conditions = &outcome["conditions"];
        let text = |name: &str| conditions[name].as_str().unwrap_or("not known").to_owned();
        report.condition("sub_devices", conditions["sub_devices"].to_string());
        report.condition("link", format!("{}, {}", text("link"), text("frame_order")));
        report.condition("profile", profile(conditions));
        report.condition("period", format!("{period} ms"));
        report.condition("duration", format!("{} s", self.duration.as_secs_f64()));
        report
    }
}

/// Name of the experiment, and of its recording.
const NAME: &str = "servo";

/// C, P and T, of which T_exec is the sum.
fn parts(cycles: &[CycleRecord]) -> Section {
    let part =
        |name: &str, of: fn(&CycleRecord) -> u64| Durations::new(name, cycles.iter().map(of).collect());
    let parts = [
        part("C: collect inputs", CycleRecord::collect_time),
        part("P: process", CycleRecord::process_time),
        part("T: transmit outputs", CycleRecord::transmit_time),
        part("C + P + T", CycleRecord::execution_time),
    ];
    distribution::table("Parts of T_exec, us (the paper's Figure 6)", "part", &parts)
}

/// The cycle against the reference clock of the bus, as the run measured it; `None` where no frame
/// had its time.
fn reference_clock(told: &Value, period_ns: u64) -> Option<String> {
    let micros = |name: &str| told[name].as_f64().unwrap_or(0.0) / 1e3;
    told["frame_phase_ns"].as_u64()?;
    let lock = match told["state"].as_str()? {
        "off" => "The cycle follows its own clock".to_owned(),
        state => {
            let after = told["cycles_to_lock"].as_u64().unwrap_or(0) as f64 * period_ns as f64 / 1e9;
            let drift = micros("drift_ppb");
            let losses = match told["losses"].as_u64() {
                Some(1) => "once".to_owned(),
                losses => format!("{} times", losses.unwrap_or(0)),
            };
            format!(
                "The cycle's lock to the reference clock of the bus: {state}, found within {after:.2} s, lost {losses}, held within \
                 {:.1} us; drift {drift:+.2} ppm",
                micros("held_within_ns"),
            )
        }
    };
    Some(format!(
        "{lock}. The reference clock differs from this host's by {:+.1} us; frames pass it {:.1} us behind SYNC0 without a shift.",
        micros("difference_ns"),
        micros("frame_phase_ns"),
    ))
}

/// SYNC0 or SYNC1 of a SubDevice, and the frame of the last cycle against it.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct SyncSignal {
    sub_device: String,
    /// "SYNC0" or "SYNC1".
    signal: &'static str,
    cycle_ns: u64,
    shift_ns: u64,
    frame_phase_ns: u64,
}

/// Signals of all SubDevices, as the run reported them.
fn sync_signals(sub_devices: &Value) -> Vec<SyncSignal> {
    let signal = |of: &Value, signal, key: &str| {
        let number = |name: &str| of[key][name].as_u64();
        Some(SyncSignal {
            sub_device: of["name"].as_str()?.to_owned(),
            signal,
            cycle_ns: number("cycle_ns")?,
            shift_ns: number("shift_ns")?,
            frame_phase_ns: number("frame_phase_ns")?,
        })
    };
    let all = sub_devices.as_array().into_iter().flatten();
    all.flat_map(|of| [signal(of, "SYNC0", "sync0"), signal(of, "SYNC1", "sync1")]).flatten().collect()
}

/// Earliest and latest position of the frame after SYNC0; `None` if no SubDevice has SYNC0.
fn phase_in_words(signals: &[SyncSignal]) -> Option<String> {
    let sync0 = || signals.iter().filter(|it| it.signal == "SYNC0");
    let (first, last) =
        (sync0().min_by_key(|it| it.frame_phase_ns)?, sync0().max_by_key(|it| it.frame_phase_ns)?);
    let told = |it: &SyncSignal| {
        let (phase, cycle) = (it.frame_phase_ns as f64 / 1e3, it.cycle_ns as f64 / 1e3);
        format!("\"{}\" {phase:.1} us behind its SYNC0, which comes every {cycle} us", it.sub_device)
    };
    let rest = if first == last { String::new() } else { format!("; latest {}", told(last)) };
    let soonest = if rest.is_empty() { "" } else { "soonest " };
    Some(format!("The cycle's frame passes {soonest}{}{rest}.", told(first)))
}

/// The frame against SYNC0 and SYNC1, a row for each; `None` where no SubDevice has one.
fn phase_table(signals: &[SyncSignal]) -> Option<Table> {
    let micros = |ns: u64| format!("{:.1}", ns as f64 / 1e3);
    let row = |it: &SyncSignal| {
        let times = [it.cycle_ns, it.shift_ns, it.frame_phase_ns].map(micros);
        let cells = std::iter::once(it.signal.to_owned()).chain(times).collect();
        Row { name: it.sub_device.clone(), cells, from_paper: false }
    };
    (!signals.is_empty()).then(|| Table {
        caption: "The frame of the last cycle against SYNC0 and SYNC1 of each SubDevice, us".to_owned(),
        columns: distribution::heads("SubDevice", &["signal", "cycle", "shift", "frame behind it"]),
        rows: signals.iter().map(row).collect(),
    })
}

/// Granted letters, and the requested ones if they differ.
fn profile(conditions: &Value) -> String {
    let letters = |which: &str| conditions["profile"][which].as_str().unwrap_or("not known").to_owned();
    let (asked, granted) = (letters("requested"), letters("granted"));
    if asked == granted { granted } else { format!("{granted} (requested {asked})") }
}

/// Settings requested and refused, as reported by the run.
pub(crate) fn refusals(outcome: &Value) -> Vec<String> {
    let warnings = outcome["conditions"]["warnings"].as_array().into_iter().flatten();
    warnings
        .filter_map(Value::as_str)
        .filter(|it| it.contains(" was refused ("))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // feature(measure): `servo` reports the phase of the frame against SYNC0 and SYNC1 of each SubDevice, in words and a table
    #[test]
    fn phase_is_reported_per_sub_device_with_sync0() {
        let sync = |cycle_ns: u64, shift_ns: u64, frame_phase_ns: u64| json!({ "cycle_ns": cycle_ns, "shift_ns": shift_ns, "frame_phase_ns": frame_phase_ns });
        let told = json!([
            { "name": "coupler", "answers": true },
            { "name": "drive", "sync0": sync(1_000_000, 100_000, 412_340) },
            { "name": "analogue", "sync0": sync(100_000, 0, 12_460), "sync1": sync(1_000_000, 0, 512_460) },
        ]);
        let signals = sync_signals(&told);
        let expected = "The cycle's frame passes soonest \"analogue\" 12.5 us behind its SYNC0, which comes every 100 us; \
                        latest \"drive\" 412.3 us behind its SYNC0, which comes every 1000 us.";
        assert_eq!(phase_in_words(&signals).as_deref(), Some(expected));
        let rows = phase_table(&signals).unwrap().rows;
        let rows: Vec<_> =
            rows.iter().map(|row| format!("{}: {}", row.name, row.cells.join(" "))).collect();
        let expected = [
            "drive: SYNC0 1000.0 100.0 412.3",
            "analogue: SYNC0 100.0 0.0 12.5",
            "analogue: SYNC1 1000.0 0.0 512.5",
        ];
        assert_eq!(rows, expected);
        let alone =
            "The cycle's frame passes \"drive\" 412.3 us behind its SYNC0, which comes every 1000 us.";
        assert_eq!(phase_in_words(&signals[..1]).as_deref(), Some(alone));
        assert_eq!((phase_in_words(&[]), phase_table(&sync_signals(&Value::Null))), (None, None));
    }

    // feature(measure): `servo` reports lock, difference and phase of the frame against SYNC0
    #[test]
    fn lock_is_reported_in_words_unless_no_clock() {
        let mut told = json!({
            "state": "locked", "phase_error_ns": 12, "drift_ppb": 49_980, "outliers": 3, "losses": 1, "cycles_to_lock": 812,
            "held_within_ns": 1_240, "difference_ns": -1_234_560, "frame_phase_ns": 512_340,
        });
        let expected = "The cycle's lock to the reference clock of the bus: locked, found within 0.81 s, lost once, held \
                        within 1.2 us; drift +49.98 ppm. The reference clock differs from this host's by -1234.6 us; frames \
                        pass it 512.3 us behind SYNC0 without a shift.";
        assert_eq!(reference_clock(&told, 1_000_000).as_deref(), Some(expected));
        told["state"] = "off".into();
        assert!(
            reference_clock(&told, 1_000_000).unwrap().starts_with("The cycle follows its own clock. The")
        );
        told["frame_phase_ns"] = Value::Null;
        assert_eq!(reference_clock(&told, 1_000_000), None);
    }
}
