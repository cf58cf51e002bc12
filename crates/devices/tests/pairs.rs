//! Pairs of tasks with simulated devices, over a real shared-memory interface.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

mod support;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ipc::sensor::{Imu, Led, LedRequest, Pattern, Scan, Sonar, WheelRequest, Wheels};
use onbeat_devices::fake::range_finder::{Faults, RangeFinder, Settings};
use onbeat_devices::pair::Stage;
use onbeat_devices::task::actuators::WheelLimits;
use onbeat_devices::{DeviceStatus, Kind, Peripheral, WheelDrives};
use support::{Robot, TIMEOUT, only, ordinary};

fn range_finder_at(path: PathBuf) -> Vec<Peripheral> {
    only(Kind::RangeFinder { serial: Some((path, 115_200)), watched: 0.5 })
}

fn fresh_scan(bytes: &[u8]) -> Option<Scan> {
    Some(Scan::decode(bytes).unwrap()).filter(|scan| !scan.head.head.stale)
}

// feature(devices): five pairs of a real-time and an ordinary task over an IPC
#[test]
fn the_five_pairs_tell_the_world_what_their_devices_measure() {
    let mut robot = Robot::start("five", &ordinary());
    let port = |name| robot.ipc.port(name).unwrap();
    let (imu, scan, sonar, led, wheels) =
        (port("imu"), port("scan"), port("sonar"), port("led"), port("wheels"));

    let found = robot.until(&imu, |it| Some(Imu::decode(it).unwrap()).filter(|it| !it.head.stale));
    // A level unit: the vertical is along its z axis.
    assert!(found.orientation[0].abs() < 0.05 && found.orientation[1].abs() < 0.05, "{found:?}");
    assert!((found.linear_acceleration[2] - 9.8).abs() < 0.5, "{found:?}");
    assert!(found.head.stamp_ns > 0 && found.head.stamp_ns <= found.head.sent_ns);

    // The room's wall is 3 m ahead, its post 1.43 m away to the left.
    let found = robot.until(&scan, fresh_scan);
    assert_eq!(found.ranges.len(), 682);
    assert!((found.ranges[340] - 3.0).abs() < 0.02, "{}", found.ranges[340]);
    assert!((found.head.obstacle_distance - 1.43).abs() < 0.02, "{:?}", found.head);
    assert!((found.head.obstacle_angle - 0.197).abs() < 0.08, "{:?}", found.head);

    let found = robot.until(&sonar, |it| {
        Some(Sonar::decode(it).unwrap()).filter(|it| !it.head.stale && it.range.is_finite())
    });
    // The post is at the edge of the beam; otherwise the wall is measured.
    assert!((1.3..3.1).contains(&found.range), "{found:?}");

    let mut request = [0; LedRequest::SIZE];
    LedRequest { pattern: Pattern::Blink, colour: [1, 2, 3], round_ms: 100 }.encode(&mut request);
    led.send_timeout(&request, TIMEOUT).unwrap();
    let found = robot.until(&led, |it| {
        Some(Led::decode(it).unwrap()).filter(|it| it.pattern == Pattern::Blink && !it.head.stale)
    });
    assert_eq!((found.colour, found.leds), ([1, 2, 3], 60));
    let later =
        robot.until(&led, |it| Some(Led::decode(it).unwrap()).filter(|it| it.frames > found.frames + 3));
    assert!(later.head.sequence > found.head.sequence);

    let mut request = [0; WheelRequest::SIZE];
    WheelRequest { velocities: [2.0, -1.0], holds_ms: 60_000 }.encode(&mut request);
    wheels.send_timeout(&request, TIMEOUT).unwrap();
    robot.until(&wheels, |it| {
        let it = Wheels::decode(it).unwrap();
        let turns = near(it.velocities, 2.0, -1.0);
        (turns && it.positions[0] > 0.0 && it.positions[1] < 0.0).then_some(())
    });

    // Where the machine stalls the motors are stopped, which counts as a failure, and then
    // continue.
    let works =
        |it: &DeviceStatus| it.stage == Stage::Working && (it.failures == 0 || it.name == "actuators");
    robot.wait_for(|it| it.running.status().iter().all(works));
    assert!(robot.running.tasks().iter().all(|task| task.live().jobs > 0));
    assert!(robot.running.records().iter_mut().all(|records| records.next_record().is_some()));
    assert!(robot.running.exchanges().iter().all(|exchanges| !exchanges.is_empty()));
}

/// True if the wheels turn at these velocities, rad/s.
fn near(found: [f64; 2], left: f64, right: f64) -> bool {
    (found[0] - left).abs() < 0.4 && (found[1] - right).abs() < 0.4
}

/// A myAHRS+, and DC motors with the left motor and the right encoder wired the other way round.
fn wired_otherwise() -> Vec<Peripheral> {
    let unit = types::ImuUnit::MyAhrs;
    let mut parts = only(Kind::Imu { unit, output: types::ImuOutput::Quaternion, i2c: None });
    parts.extend(only(Kind::Actuators {
        drives: WheelDrives::DcMotors {
            spi: None,
            dac: types::DacChip::Mcp4912,
            full_scale: 25.0,
            motors_reversed: [true, false],
            encoders_reversed: [false, true],
        },
        limits: WheelLimits::default(),
    }));
    parts
}

// feature(devices): myAHRS+ over I2C: raw data, roll, pitch, yaw, or its quaternion
// feature(devices): DC motors by an SPI converter (MCP4912, MCP4922), SPI absolute encoders (AS5045)
#[test]
fn myahrs_gives_heading_and_dc_motors_stop_without_commands() {
    let robot = Robot::start("wired", &wired_otherwise());
    let (imu, wheels) = (robot.ipc.port("imu").unwrap(), robot.ipc.port("wheels").unwrap());
    let fresh = |it: &[u8]| Some(Imu::decode(it).unwrap()).filter(|it| !it.head.stale);
    let found = robot.until(&imu, fresh);
    // It turns by 40 degrees to both sides of north, level: yaw 50 to 130 degrees from east.
    let [x, y, z, w] = found.orientation;
    let yaw = 2.0 * z.atan2(w).to_degrees();
    assert!((49.0..131.0).contains(&yaw) && x.abs() < 0.01 && y.abs() < 0.01, "{yaw}: {found:?}");
    assert!((found.linear_acceleration[2] - 9.8).abs() < 0.5 && found.yaw_variance < 1e-4, "{found:?}");

    let ask = |velocities, holds_ms| {
        let mut request = [0; WheelRequest::SIZE];
        WheelRequest { velocities, holds_ms }.encode(&mut request).unwrap();
        wheels.send_timeout(&request, TIMEOUT).unwrap();
    };
    // A busy machine may stop them meanwhile: they resume by themselves.
    ask([4.0, -3.0], 60_000);
    let turned = robot.until(&wheels, |it| {
        Some(Wheels::decode(it).unwrap()).filter(|it| !it.head.stale && near(it.velocities, 4.0, -3.0))
    });
    assert!(turned.positions[0] > 0.0 && turned.positions[1] < 0.0, "{turned:?}");
    ask([4.0, -3.0], 1);
    robot.until(&wheels, |it| {
        let it = Wheels::decode(it).unwrap();
        (near(it.velocities, 0.0, 0.0) && it.commanded == [0.0; 2]).then_some(())
    });
}

#[test]
fn mpu_6050_gives_gravity_and_drives_turn_as_commanded() {
    let mut parts = only(Kind::mpu6050(None));
    parts.extend(only(Kind::Actuators { drives: WheelDrives::Simulated, limits: WheelLimits::default() }));
    let robot = Robot::start("plain", &parts);
    let (imu, wheels) = (robot.ipc.port("imu").unwrap(), robot.ipc.port("wheels").unwrap());
    let found = robot.until(&imu, |it| Some(Imu::decode(it).unwrap()).filter(|it| !it.head.stale));
    // A level unit: the vertical is along its z axis.
    assert!(found.orientation[0].abs() < 0.05 && found.orientation[1].abs() < 0.05, "{found:?}");
    assert!((found.linear_acceleration[2] - 9.8).abs() < 0.5, "{found:?}");
    let mut request = [0; WheelRequest::SIZE];
    WheelRequest { velocities: [2.0, -1.0], holds_ms: 60_000 }.encode(&mut request);
    wheels.send_timeout(&request, TIMEOUT).unwrap();
    robot.until(&wheels, |it| {
        let it = Wheels::decode(it).unwrap();
        let turns = (it.velocities[0] - 2.0).abs() < 0.01 && (it.velocities[1] + 1.0).abs() < 0.01;
        (turns && it.positions[0] > 0.0 && it.positions[1] < 0.0).then_some(())
    });
    assert!(robot.running.status().iter().all(|it| it.stage == Stage::Working && it.failures == 0));
}

// feature(devices): SCIP 2.0 over a (pseudo-)terminal: recorded replies, damage, garbage, unplugging
#[test]
fn replugged_range_finder_is_found_and_old_scans_are_stale() {
    let sensor = RangeFinder::plug_in(Settings::default()).unwrap();
    // A stable name, as udev provides one.
    let link = std::env::temp_dir().join(format!("onbeat-laser-{}", std::process::id()));
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(sensor.path(), &link).unwrap();
    let robot = Robot::start("pulled", &range_finder_at(link.clone()));
    let scans = robot.ipc.port("scan").unwrap();
    let first = robot.until(&scans, fresh_scan);

    drop(sensor);
    std::fs::remove_file(&link).unwrap();
    let stale = robot.until(&scans, |it| Some(Scan::decode(it).unwrap()).filter(|it| it.head.head.stale));
    assert!(stale.head.head.stamp_ns >= first.head.head.stamp_ns && stale.ranges.len() == 682);
    robot.wait_for(|it| it.running.status()[0].stage == Stage::Failed);
    robot.wait_for(|it| it.said("tried again"));
    // The real-time task is not affected.
    let jobs = robot.running.tasks()[0].live().jobs;
    robot.wait_for(|it| it.running.tasks()[0].live().jobs > jobs + 5);

    let sensor = RangeFinder::plug_in(Settings::default()).unwrap();
    std::os::unix::fs::symlink(sensor.path(), &link).unwrap();
    let again = robot.until(&scans, fresh_scan);
    assert!(again.head.head.stamp_ns > stale.head.head.stamp_ns);
    let status = robot.running.status()[0].clone();
    assert!(status.opened >= 2 && status.failures >= 1, "{status:?}");
    std::fs::remove_file(&link).unwrap();
}

#[test]
fn partial_lines_wrong_sums_and_latency_cost_single_scans() {
    let faults = Faults {
        in_pieces: true,
        wrong_sum_in: 4,
        half_in: 5,
        latency: Duration::from_millis(30),
        ..Faults::default()
    };
    let turn = Duration::from_millis(60);
    let sensor = RangeFinder::plug_in(Settings { faults, turn, noise: 0, ..Settings::default() }).unwrap();
    let robot = Robot::start("faults", &range_finder_at(sensor.path().to_owned()));
    let scans = robot.ipc.port("scan").unwrap();
    let mut stamps = std::collections::BTreeSet::new();
    let begin = Instant::now();
    while stamps.len() < 20 {
        assert!(begin.elapsed() < TIMEOUT);
        let scan = robot.until(&scans, fresh_scan);
        // No wrong range is published.
        assert!((scan.ranges[340] - 3.0).abs() < 0.002, "{}", scan.ranges[340]);
        stamps.insert(scan.head.head.stamp_ns);
    }
    robot.wait_for(|it| it.said("wrong replies so far"));
    assert_eq!(robot.running.status()[0].failures, 0);
}

#[test]
fn silence_and_garbage_are_reported_once_until_recovery() {
    let mute = Faults { mute: true, ..Faults::default() };
    let sensor = RangeFinder::plug_in(Settings { faults: mute, ..Settings::default() }).unwrap();
    let robot = Robot::start("mute", &range_finder_at(sensor.path().to_owned()));
    robot.wait_for(|it| it.said("no reply to SCIP2.0 for 1500 ms: is it the right port"));
    sensor.misbehave(Faults { garbage: true, ..Faults::default() });
    robot.wait_for(|it| it.running.status()[0].failures >= 2);
    let said = robot.said.lock().unwrap().len();
    assert!(said <= 2, "the same trouble is said once: {:?}", robot.said.lock().unwrap());
    sensor.misbehave(Faults::default());
    let scans = robot.ipc.port("scan").unwrap();
    robot.until(&scans, fresh_scan);
    assert!(robot.said("Double of a URG-04LX"));
}

// feature(devices): devices this machine does not have
#[test]
fn missing_devices_are_named_and_their_tasks_continue_stale() {
    let nowhere = PathBuf::from("/dev/onbeat-no-such-device");
    let mut peripherals = range_finder_at(nowhere.clone());
    peripherals.extend(only(Kind::mpu6050(Some((nowhere.clone(), 0x68)))));
    peripherals.extend(only(Kind::Sonar { gpio: Some((nowhere.clone(), 1, 2)), temperature: 293.15 }));
    let chip = types::LedChip::Ws2812;
    let spi = Some(nowhere.clone());
    peripherals.extend(only(Kind::LedStrip { spi, chip, leds: 3, brightness: 1 }));
    peripherals.extend(only(Kind::Actuators {
        drives: WheelDrives::DcMotors {
            spi: Some([nowhere.clone(), nowhere.clone(), nowhere]),
            dac: types::DacChip::Mcp4922,
            full_scale: 10.0,
            motors_reversed: [false; 2],
            encoders_reversed: [false; 2],
        },
        limits: WheelLimits::default(),
    }));
    let robot = Robot::start("nowhere", &peripherals);
    robot.wait_for(|it| it.running.status().iter().all(|status| status.stage == Stage::Failed));
    for name in ["range_finder", "imu", "sonar", "led_strip", "actuators"] {
        assert!(
            robot.said(&format!("{name} (/dev/onbeat-no-such-device")),
            "{:?}",
            robot.said.lock().unwrap()
        );
    }
    let sonar = robot.ipc.port("sonar").unwrap();
    let found = robot.until(&sonar, |it| Some(Sonar::decode(it).unwrap()));
    assert!(found.head.stale && found.head.stamp_ns == 0 && found.range.is_infinite());
}

#[test]
fn a_terminal_that_is_none_is_refused_with_a_reason() {
    let file = std::env::temp_dir().join(format!("onbeat-no-terminal-{}", std::process::id()));
    std::fs::write(&file, "no terminal").unwrap();
    let robot = Robot::start("file", &range_finder_at(file.clone()));
    robot.wait_for(|it| it.said("it is no serial port"));
    std::fs::remove_file(file).unwrap();
}
