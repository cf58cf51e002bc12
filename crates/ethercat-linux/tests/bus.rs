//! The bus as its users see it, on simulated SubDevices.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use onbeat_ethercat_linux::bring_up::BringUpError;
use onbeat_ethercat_linux::ethercat::al::{AlState, AlStatus};
use onbeat_ethercat_linux::ethercat::al_status_code::AlStatusCode;
use onbeat_ethercat_linux::ethercat::main_device::{BringUpPhase, Event, MailboxError};
use onbeat_ethercat_linux::ethercat::pdo::FieldError;
use onbeat_ethercat_linux::link::{Link, SegmentControl, SimulatedLink};
use onbeat_ethercat_linux::{Bus, Configuration, Error, Io, RunFinding, RunReport, SdoError, StopHandle};
use simulator::application::Wires;
use simulator::{Segment, SubDevice};
use support::{Outputs, recorder, recorder_of, segment, servo, station};

const PERIOD: Duration = Duration::from_millis(2);

/// A bus, and the control of its segment.
fn bus(devices: Vec<SubDevice>) -> (Bus, SegmentControl<Segment>) {
    let link = SimulatedLink::new(segment(devices));
    let control = link.control();
    (Bus::on(link), control)
}

/// True if all SubDevices are in this state, without an error.
fn are_all(state: AlState, control: &SegmentControl<Segment>) -> bool {
    let wanted = AlStatus::in_state(state);
    control.run(move |segment| segment.sub_devices().iter().all(|it| it.al_status() == wanted)).unwrap()
}

/// So many cycles, then the end.
fn cycles(count: u64) -> impl FnMut(&mut Io<'_>) {
    let mut left = count;
    move |io| {
        left -= 1;
        if left == 0 {
            io.stop();
        }
    }
}

// feature(bus): two runs after each other, two buses at once, one request to stop for each run
#[test]
fn each_run_takes_one_stop_request() {
    let (buttons, lamps) = (Wires::new(), Wires::new());
    let (mut bus, control) = bus(station(&buttons, &lamps));
    for round in 0..3_u8 {
        bus.bring_up(&Configuration::scan()).unwrap();
        assert!(are_all(AlState::PreOp, &control));
        let button = bus.subdevice(1).input::<bool>(0x6000 + 0x10 * u16::from(round), 1).unwrap();
        let lamp = bus.subdevice(2).output::<bool>(0x7000 + 0x10 * u16::from(round), 1).unwrap();
        buttons.set_levels(1 << round);
        let stop = bus.stop_handle();
        let mut lit = 0;
        let report = bus.run(PERIOD, |io| {
            assert_eq!(io.main_device().phase(), BringUpPhase::Op);
            io.set(lamp, io.get(button));
            lit += u32::from(lamps.levels() == 1 << round);
            if lit == 20 {
                stop.stop();
            }
        });
        assert!(report.unwrap().cycles >= 20);
        assert!(are_all(AlState::Init, &control));
        assert_eq!(lamps.levels(), 0);
        assert!(matches!(bus.run(PERIOD, |_| ()), Err(Error::NotUp)));
    }
    // Asked before it begins.
    bus.bring_up(&Configuration::scan()).unwrap();
    bus.stop_handle().stop();
    assert_eq!(bus.run(PERIOD, |_| ()).unwrap().cycles, 0);
    bus.bring_up(&Configuration::scan()).unwrap();
    assert!(bus.run(PERIOD, cycles(5)).unwrap().cycles == 5);
}

/// A link that requests a stop and fails, once for each handle it gets.
struct Asking(SimulatedLink<Segment>, Arc<Mutex<Option<StopHandle>>>);

impl Link for Asking {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        let Some(stop) = self.1.lock().unwrap().take() else { return self.0.transmit(frame) };
        stop.stop();
        Err(io::Error::other("as the test wants it"))
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        self.0.receive(buffer, timeout)
    }
}

/// The next bring-up is stopped, the one after it is not.
fn assert_one_request_is_left(bus: &mut Bus) {
    let stopped = bus.bring_up(&Configuration::scan());
    assert!(matches!(stopped, Err(Error::BringUp(BringUpError::Stopped))), "{stopped:?}");
    bus.bring_up(&Configuration::scan()).unwrap();
}

// feature(bus): a request to stop is not lost where a bring-up or a run ends for another reason
#[test]
fn stop_request_outlives_a_failed_bring_up() {
    let asks = Arc::new(Mutex::new(None));
    let link = SimulatedLink::new(segment(station(&Wires::new(), &Wires::new())));
    let mut bus = Bus::on(Asking(link, Arc::clone(&asks)));
    *asks.lock().unwrap() = Some(bus.stop_handle());
    assert!(matches!(bus.bring_up(&Configuration::scan()), Err(Error::Link(_))));
    assert_one_request_is_left(&mut bus);
}

// feature(bus): a request to stop is not lost where a bring-up or a run ends for another reason
#[test]
fn stop_request_outlives_a_run_ended_otherwise() {
    let (mut bus, _) = bus(station(&Wires::new(), &Wires::new()));
    let stop = bus.stop_handle();
    bus.bring_up(&Configuration::scan()).unwrap();
    let run = AssertUnwindSafe(|| {
        bus.run(PERIOD, |_| {
            stop.stop();
            resume_unwind(Box::new("as the test wants it"));
        })
    });
    assert!(catch_unwind(run).is_err());
    assert_one_request_is_left(&mut bus);
    let run = bus.run(PERIOD, |io| {
        stop.stop();
        io.stop();
    });
    assert_eq!(run.unwrap().cycles, 1);
    assert_one_request_is_left(&mut bus);
}

// feature(bus): two runs after each other, two buses at once, one request to stop for each run
#[test]
fn two_buses_run_at_once() {
    let run = |pattern: u64| {
        let (buttons, lamps) = (Wires::new(), Wires::new());
        let mut bus = Bus::simulated(segment(station(&buttons, &lamps)));
        buttons.set_levels(pattern);
        bus.bring_up(&Configuration::scan()).unwrap();
        let input = bus.subdevice(1).input::<[bool; 4]>(0x6000, 1).unwrap();
        let output = bus.subdevice(2).output::<[bool; 4]>(0x7000, 1).unwrap();
        let (mut same, mut other) = (0, 0);
        let ended = bus.run(PERIOD, |io| {
            io.set(output, io.get(input));
            same += u32::from(lamps.levels() == pattern);
            other += u32::from(lamps.levels() & !pattern != 0);
            if same == 200 {
                io.stop();
            }
        });
        ended.unwrap();
        other
    };
    thread::scope(|scope| {
        let both = [5, 10].map(|pattern| scope.spawn(move || run(pattern)));
        assert_eq!(both.map(|it| it.join().unwrap()), [0, 0]);
    });
}

#[test]
fn a_handle_of_another_bus_reads_zero_and_writes_nothing() {
    let (buttons, lamps) = (Wires::new(), Wires::new());
    let mut other = Bus::simulated(segment(station(&buttons, &lamps)));
    other.bring_up(&Configuration::scan()).unwrap();
    let button = other.subdevice(1).input::<[bool; 4]>(0x6000, 1).unwrap();
    let lamp = other.subdevice(2).output::<bool>(0x7000, 1).unwrap();
    let (device, seen) = recorder();
    let mut bus = Bus::simulated(segment(vec![device]));
    bus.bring_up(&Configuration::scan()).unwrap();
    bus.set_safe(lamp, true);
    let run = bus.run(PERIOD, |io| {
        assert_eq!((io.get(button), io.is_fresh(button)), ([false; 4], false));
        io.set(lamp, true);
        if io.cycle() > 50 {
            io.stop();
        }
    });
    run.unwrap();
    assert!(seen.lock().unwrap().iter().flatten().all(|&outputs| outputs == 0), "{seen:?}");
}

/// A bus in PreOp that sets its outputs to 0x0F in Op, and has to leave them as 0xA0.
fn with_safe_outputs() -> (Bus, Outputs, impl FnMut(&mut Io<'_>)) {
    let (device, seen) = recorder();
    let mut bus = Bus::simulated(segment(vec![device]));
    bus.bring_up(&Configuration::scan()).unwrap();
    let all = bus.subdevice(0).output::<[bool; 8]>(0x7000, 1).unwrap();
    let bits = |byte: u8| std::array::from_fn(|bit| byte >> bit & 1 != 0);
    bus.set_safe(all, bits(0xA0));
    (bus, seen, move |io| io.set(all, bits(0x0F)))
}

/// It ran with its outputs, then with the safe ones, then left Op.
fn assert_made_safe(seen: &Outputs) {
    let seen = seen.lock().unwrap();
    assert_eq!(seen[seen.len() - 3..], [Some(0x0F), Some(0xA0), None], "{seen:?}");
}

// feature(bus): however a run ends: safe outputs, then Init
#[test]
fn outputs_are_safe_before_init_when_it_is_stopped() {
    let (mut bus, seen, mut control) = with_safe_outputs();
    let mut stop = cycles(20);
    let run = bus.run(PERIOD, |io| {
        control(io);
        stop(io);
    });
    run.unwrap();
    assert_made_safe(&seen);
}

// feature(bus): safe values stay from run to run on the same bus, and are zero on another
#[test]
fn safe_values_stay_from_run_to_run_on_the_same_bus() {
    let (mut bus, seen, mut control) = with_safe_outputs();
    for _ in 0..2 {
        let mut stop = cycles(20);
        let run = bus.run(PERIOD, |io| {
            control(io);
            stop(io);
        });
        run.unwrap();
        assert_made_safe(&seen);
        bus.bring_up(&Configuration::scan()).unwrap();
    }
}

// feature(bus): safe values stay from run to run on the same bus, and are zero on another
#[test]
fn safe_values_are_zero_again_on_a_changed_bus() {
    for (product_code, outputs) in [(5, 4), (6, 8)] {
        let (mut bus, control) = bus(vec![recorder().0]);
        bus.bring_up(&Configuration::scan()).unwrap();
        let four = bus.subdevice(0).output::<[bool; 4]>(0x7000, 1).unwrap();
        bus.set_safe(four, [true; 4]);
        let (device, seen) = recorder_of(product_code, outputs);
        control.run(|it| *it = segment(vec![device]));
        bus.bring_up(&Configuration::scan()).unwrap();
        bus.run(PERIOD, cycles(5)).unwrap();
        assert!(seen.lock().unwrap().iter().flatten().all(|&it| it == 0), "{seen:?}");
    }
}

// feature(bus): however a run ends: safe outputs, then Init
#[test]
fn outputs_are_safe_before_init_when_the_program_panics() {
    let (mut bus, seen, mut control) = with_safe_outputs();
    let mut left = 20;
    let run = AssertUnwindSafe(|| {
        bus.run(PERIOD, |io| {
            control(io);
            left -= 1;
            if left == 0 {
                // Without the message: its backtrace takes longer than the watchdog time.
                resume_unwind(Box::new("as the test wants it"));
            }
        })
    });
    assert!(catch_unwind(run).is_err());
    assert_made_safe(&seen);
    bus.bring_up(&Configuration::scan()).unwrap();
}

/// A link that outlives its bus.
struct Kept(Arc<Mutex<SimulatedLink<Segment>>>);

impl Link for Kept {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().transmit(frame)
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        self.0.lock().unwrap().receive(buffer, timeout)
    }
}

// feature(bus): however a run ends: safe outputs, then Init
#[test]
fn a_bus_that_is_dropped_goes_to_init() {
    let link = SimulatedLink::new(segment(station(&Wires::new(), &Wires::new())));
    let control = link.control();
    let link = Arc::new(Mutex::new(link));
    let mut bus = Bus::on(Kept(Arc::clone(&link)));
    bus.bring_up(&Configuration::scan()).unwrap();
    assert!(are_all(AlState::PreOp, &control));
    drop(bus);
    assert!(are_all(AlState::Init, &control));
}

// feature(bus): errors to match on: SubDevice, AL status code, object, type
#[test]
fn objects_are_checked_when_they_are_resolved_and_read() {
    let (drive, _) = servo();
    let (mut bus, _) = bus(vec![drive]);
    assert!(matches!(bus.subdevice(0).sdo_read::<u32>(0x1018, 1), Err(Error::NotUp)));
    bus.bring_up(&Configuration::scan()).unwrap();
    assert!(matches!(
        bus.subdevice(1).input::<bool>(0x6000, 1),
        Err(Error::NoSubDevice { position: 1, count: 1 })
    ));
    let mut drive = bus.subdevice(0);
    let wrong = drive.input::<u32>(0x6041, 0).unwrap_err();
    assert!(
        matches!(wrong, Error::ProcessData { position: 0, error: FieldError::Width { bits: 16, .. }, .. }),
        "{wrong}"
    );
    let wrong = drive.output::<u16>(0x6041, 0).unwrap_err();
    assert_eq!(wrong.to_string(), "SubDevice 0 \"servo\": 0x6041:00 is an input, not an output");
    let wrong = drive.sdo_read::<u32>(0x6041, 0).unwrap_err();
    assert!(
        matches!(wrong, Error::Sdo { index: 0x6041, error: SdoError::Value(it), .. } if it.found == 2),
        "{wrong}"
    );
    let aborted = drive.sdo_read::<u32>(0x5FFF, 0).unwrap_err();
    assert!(
        matches!(aborted, Error::Sdo { error: SdoError::Mailbox(MailboxError::Aborted(_)), .. }),
        "{aborted}"
    );
    assert_eq!(aborted.sub_device(), Some(0));
    drive.sdo_write(0x6065, 0, 1234_u32).unwrap();
    assert_eq!(drive.sdo_read::<u32>(0x6065, 0).unwrap(), 1234);
    // It is in PreOp still, and runs; only not at any period.
    assert!(matches!(bus.run(Duration::from_micros(10), |_| ()), Err(Error::Configuration(_))));
    bus.run(PERIOD, cycles(3)).unwrap();
}

// feature(bus): errors to match on: SubDevice, AL status code, object, type
#[test]
fn refused_state_error_has_subdevice_code_and_text() {
    let mut devices = station(&Wires::new(), &Wires::new());
    devices[2].refuse_state(Some((AlState::Op, AlStatusCode::NO_VALID_OUTPUTS)));
    let (mut bus, control) = bus(devices);
    bus.bring_up(&Configuration::scan()).unwrap();
    let error = bus.run(PERIOD, |_| panic!("it never comes to Op")).unwrap_err();
    assert_eq!(error.sub_device(), Some(2));
    assert_eq!(error.al_status_code(), Some(AlStatusCode::NO_VALID_OUTPUTS));
    let code = AlStatusCode::NO_VALID_OUTPUTS.to_string();
    assert!(error.to_string().contains(&code), "{error}");
    assert!(are_all(AlState::Init, &control));
    control.run(|segment| segment.sub_device_mut(2).unwrap().refuse_state(None));
    bus.bring_up(&Configuration::scan()).unwrap();
    bus.run(PERIOD, cycles(3)).unwrap();
}

/// A link that is held up at the first frame with this flag.
struct HeldUp<L>(L, Arc<AtomicBool>);

impl<L: Link> Link for HeldUp<L> {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        if self.1.swap(false, Ordering::Relaxed) {
            thread::sleep(3 * PERIOD);
        }
        self.0.transmit(frame)
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        self.0.receive(buffer, timeout)
    }
}

// feature(bus): the counts of a run include only cycles in Op
#[test]
fn overruns_before_op_do_not_count_for_the_run() {
    let hold_up = Arc::new(AtomicBool::new(false));
    let link = SimulatedLink::new(segment(station(&Wires::new(), &Wires::new())));
    let mut bus = Bus::on(HeldUp(link, Arc::clone(&hold_up)));
    bus.bring_up(&Configuration::scan()).unwrap();
    hold_up.store(true, Ordering::Relaxed);
    let (mut first, mut left) = (None, 20);
    let report = bus.run(PERIOD, |io| {
        first.get_or_insert(io.cycle());
        left -= 1;
        if left == 0 {
            io.stop();
        }
    });
    assert!(!hold_up.load(Ordering::Relaxed));
    // A busy machine may overrun in Op too, never before it.
    let overruns = report.unwrap().overruns;
    assert!(overruns.first.is_none_or(|cycle| Some(cycle) >= first), "{overruns:?}, Op from {first:?}");
}

/// A link that can be cut.
struct Cable<L>(L, Arc<AtomicBool>);

impl<L: Link> Link for Cable<L> {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        if self.1.load(Ordering::Relaxed) { Ok(()) } else { self.0.transmit(frame) }
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        self.0.receive(buffer, timeout)
    }
}

// feature(bus): a lost bus ends the run, a lost SubDevice is an event
#[test]
fn silent_bus_is_lost_and_comes_up_again() {
    let cut = Arc::new(AtomicBool::new(false));
    let link = SimulatedLink::new(segment(station(&Wires::new(), &Wires::new())));
    let mut bus = Bus::on(Cable(link, Arc::clone(&cut)));
    bus.bring_up(&Configuration::scan()).unwrap();
    let mut in_op = 0;
    let run = bus.run(PERIOD, |_| {
        in_op += 1;
        if in_op == 10 {
            cut.store(true, Ordering::Relaxed);
        }
    });
    let error = run.unwrap_err();
    assert!(matches!(error, Error::Lost { after } if after > Duration::from_secs(1)), "{error}");
    // One second of cycles, fewer after a host stall.
    assert!((100..2000).contains(&in_op), "{in_op} cycles");
    let silent = Configuration { reply_timeout: Duration::from_millis(5), ..Configuration::scan() };
    assert!(matches!(bus.bring_up(&silent), Err(Error::Bus(_))));
    cut.store(false, Ordering::Relaxed);
    bus.bring_up(&Configuration::scan()).unwrap();
    bus.run(PERIOD, cycles(3)).unwrap();
}

/// Runs until the end or for `most` cycles in Op; the third SubDevice leaves in the 50th.
fn run_with_a_fall(continues: bool, most: u64, fall: fn(&mut Segment)) -> Result<RunReport, Error> {
    let (mut bus, control) = bus(station(&Wires::new(), &Wires::new()));
    if continues {
        bus = bus.continue_out_of_op();
    }
    bus.bring_up(&Configuration::scan()).unwrap();
    let mut cycles = 0;
    bus.run(PERIOD, |io| {
        cycles += 1;
        if cycles == 50 {
            control.run(fall).unwrap();
        }
        if cycles == most {
            io.stop();
        }
    })
}

// feature(bus): a run ends with an error when a SubDevice stays out of Op for a second, unless it is to continue
#[test]
fn a_subdevice_that_stays_out_of_op_ends_the_run() {
    let off = |segment: &mut Segment| assert!(segment.power_off(2));
    let refuses = |segment: &mut Segment| {
        let device = segment.sub_device_mut(2).unwrap();
        device.refuse_state(Some((AlState::Op, AlStatusCode::NO_VALID_OUTPUTS)));
        device.expire_watchdog();
    };
    let error = run_with_a_fall(false, 10_000, off).unwrap_err();
    assert_eq!(
        error.to_string(),
        "SubDevice 2 \"lamps\" has been out of Op for 1.0 s: it does not answer; check its power and cable, or let the run \
         continue (Bus::continue_out_of_op)"
    );
    let error = run_with_a_fall(false, 10_000, refuses).unwrap_err();
    let sentence = error.to_string();
    assert!(sentence.contains("\"lamps\" has been out of Op for 1.0 s: it is in SafeOp"), "{sentence}");
    for fall in [off, refuses] {
        let report = run_with_a_fall(true, 1_000, fall).unwrap();
        assert_eq!((report.cycles, report.period, report.out_of_op), (1_000, PERIOD, 1), "{report}");
        assert!(report.findings().any(|it| it == RunFinding::OutOfOp(1)), "{report}");
    }
}

// feature(bus): a lost bus ends the run, a lost SubDevice is an event
#[test]
fn lost_subdevice_is_reported_and_the_others_continue() {
    let (buttons, lamps) = (Wires::new(), Wires::new());
    let (mut bus, control) = bus(station(&buttons, &lamps));
    bus.bring_up(&Configuration::scan()).unwrap();
    let button = bus.subdevice(1).input::<bool>(0x6000, 1).unwrap();
    let cut = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        control.run(|segment| segment.power_off(2));
    });
    let (mut told, mut fresh_after) = (false, 0);
    let run = bus.run(PERIOD, |io| {
        assert!(io.cycle() < 10_000, "told: {told}, fresh after that: {fresh_after}");
        while let Some(event) = io.event() {
            told |= matches!(
                event,
                Event::Unreachable { position: 2 } | Event::StateChanged { position: 2, .. }
            );
        }
        fresh_after += u32::from(told && io.is_fresh(button));
        if fresh_after == 20 {
            io.stop();
        }
    });
    run.unwrap();
    cut.join().unwrap();
}
