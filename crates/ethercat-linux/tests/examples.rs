//! The programs of `examples/`, run against simulated SubDevices: in this process, and over a veth
//! pair.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

#[allow(dead_code, reason = "a program whose main is not called")]
#[path = "../examples/csp_sine.rs"]
mod csp_sine;
#[allow(dead_code, reason = "a program whose main is not called")]
#[path = "../examples/digital_io.rs"]
mod digital_io;
#[allow(dead_code, reason = "a program whose main is not called")]
#[path = "../examples/scan.rs"]
mod scan;
#[allow(dead_code, reason = "a program whose main is not called")]
#[path = "../examples/sdo.rs"]
mod sdo;
mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use onbeat_ethercat_linux::Bus;
use onbeat_ethercat_linux::ethercat::cia402::State;
use onbeat_ethercat_linux::serve::Server;
use simulator::SubDevice;
use simulator::application::Wires;
use support::{VENDOR, segment, servo, station};
use testkit::{Side, Testbed};

/// Runs `program` with these SubDevices: on a simulated link, and, where the machine allows it,
/// over a veth pair.
fn on_both(devices: impl Fn() -> Vec<SubDevice>, program: impl Fn(&mut Bus) + Sync) {
    program(&mut Bus::simulated(segment(devices())));
    let testbed = match Testbed::new() {
        Ok(testbed) => testbed,
        Err(skip) => return eprintln!("the cable is skipped: {skip}"),
    };
    let mut server = testbed.inside(Side::Far, || Server::open(Side::Far.interface())).unwrap();
    let (mut segment, stop) = (segment(devices()), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| server.run(&mut segment, &stop).unwrap());
        // Also where the program panics.
        let _end = End(&stop);
        testbed.inside(Side::Near, || program(&mut Bus::open(Side::Near.interface()).unwrap()));
    });
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// `Debug` of an error, which a `main` prints that returns it, is its sentence.
// feature(bus): a `main` that returns an error prints its sentence
#[test]
fn a_main_that_returns_an_error_prints_its_sentence() {
    let error = digital_io::digital_io(&mut Bus::simulated(segment(vec![servo().0]))).unwrap_err();
    assert_eq!(error.to_string(), "no SubDevice at position 1, the bus has 1");
    assert_eq!(format!("{error:?}"), error.to_string());
    let error = Bus::open("no-such-nic").unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
}

// feature(bus): scan, SDO, digital I/O and a drive in CSP, each a short program, on simulated SubDevices and over a cable
#[test]
fn scan_lists_the_subdevices_and_their_process_data() {
    let devices = || station(&Wires::new(), &Wires::new());
    on_both(devices, |bus| {
        let text = scan::scan(bus).unwrap();
        for part in ["0 \"coupler\"", "1 \"buttons\"", "in  0x6010:01 \"Input\" (1 bit)", "out 0x7030:01"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    });
}

// feature(bus): scan, SDO, digital I/O and a drive in CSP, each a short program, on simulated SubDevices and over a cable
#[test]
fn sdo_reads_and_writes_a_drive() {
    let devices = || vec![servo().0];
    on_both(devices, |bus| {
        let window = {
            bus.bring_up(&onbeat_ethercat_linux::Configuration::scan()).unwrap();
            let error = bus.subdevice(0).sdo_read::<u8>(0x6065, 0).unwrap_err().to_string();
            assert!(error.ends_with("0x6065:00: 4 bytes, which u8 does not take (1 bytes)"), "{error}");
            bus.subdevice(0).sdo_read::<u32>(0x6065, 0).unwrap()
        };
        assert_eq!(sdo::sdo(bus).unwrap(), ("servo".to_owned(), VENDOR, 2 * window));
    });
}

// feature(bus): scan, SDO, digital I/O and a drive in CSP, each a short program, on simulated SubDevices and over a cable
#[test]
fn digital_io_lights_the_lamp_while_the_button_is_held() {
    let (buttons, lamps) = (Wires::new(), Wires::new());
    on_both(
        || {
            let mut station = station(&buttons, &lamps);
            station.swap(1, 2);
            station
        },
        |bus| {
            let stop = bus.stop_handle();
            let await_lamp = |lit: bool| {
                let begin = Instant::now();
                while (lamps.levels() == 1) != lit && begin.elapsed() < Duration::from_secs(30) {
                    thread::sleep(Duration::from_millis(1));
                }
                assert_eq!(lamps.levels(), u64::from(lit));
            };
            thread::scope(|scope| {
                scope.spawn(|| {
                    let _stop = StopAtEnd(stop);
                    for lit in [true, false, true] {
                        buttons.set_levels(u64::from(lit));
                        await_lamp(lit);
                    }
                });
                digital_io::digital_io(bus).unwrap();
            });
            assert_eq!(lamps.levels(), 0, "safe");
        },
    );
}

struct StopAtEnd(onbeat_ethercat_linux::StopHandle);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}

// feature(bus): scan, SDO, digital I/O and a drive in CSP, each a short program, on simulated SubDevices and over a cable
#[test]
fn csp_sine_moves_the_drive_and_back_without_a_jump() {
    let records = std::sync::Mutex::new(Vec::new());
    let devices = || {
        let (device, record) = servo();
        records.lock().unwrap().push(record);
        vec![device]
    };
    on_both(devices, |bus| {
        // A host stall longer than the drive's watchdog time ends the run.
        let report =
            (0..5).find_map(|_| csp_sine::csp_sine(bus, 0.5).map_err(|error| eprintln!("{error}")).ok());
        let report = report.unwrap();
        assert!(report.cycles > 1000, "{report:?}");
        let record = records.lock().unwrap().last().unwrap().clone();
        let taken = record.taken();
        let followed: Vec<_> = taken.iter().filter(|it| it.follows()).collect();
        let (first, largest) = (followed[0], followed.iter().map(|it| it.target_position).max().unwrap());
        // From the drive's position to one side by the amplitude, and back.
        assert!((first.target_position - first.position).abs() <= 10, "{first:?}");
        assert!((990..=1000).contains(&(largest - first.target_position)), "{largest} from {first:?}");
        let last = followed[followed.len() - 1];
        assert!((last.target_position - first.target_position).abs() <= 10, "{last:?} from {first:?}");
        assert_ne!(taken[taken.len() - 1].state, State::OperationEnabled);
    });
}
