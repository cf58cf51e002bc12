//! `onbeat run` with devices next to the bus: a client of its IPC receives from them, and drives
//! its wheels through them.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use onbeat::ipc::channel::Channel;
use onbeat::ipc::sensor::{
    Head, Imu, Led, LedRequest, Pattern, Scan, SensorError, Sonar, WheelRequest, Wheels,
};
use testkit::{Side, Testbed};

use crate::common::{file, finished, onbeat, shared};
use crate::robots::Robot;

/// Other tests load the machine.
const TIMEOUT: Duration = Duration::from_secs(40);

/// Reads messages of a port until one is as wanted.
fn until<T>(channel: &Channel, what: &str, wanted: impl Fn(&[u8]) -> Option<T>) -> T {
    let (begin, mut bytes) = (Instant::now(), vec![0; 65_536]);
    while begin.elapsed() < TIMEOUT {
        let received = channel.recv_timeout(&mut bytes, Duration::from_millis(100)).expect("the port");
        if let Some(found) = received.and_then(|length| wanted(&bytes[..length])) {
            return found;
        }
    }
    panic!("never seen: {what}");
}

/// Two fresh messages of a port, the second of a later measurement.
fn two_fresh<T>(
    robot: &Robot,
    port: &str,
    read: fn(&[u8]) -> Result<T, SensorError>,
    head: fn(&T) -> Head,
) -> T {
    let channel = robot.ipc.port(port).expect("the port");
    let fresh = |bytes: &[u8]| Some(read(bytes).expect("a message")).filter(|it| !head(it).stale);
    let first = head(&until(&channel, &format!("a fresh message of {port}"), fresh));
    until(&channel, &format!("a later message of {port}"), |bytes| {
        fresh(bytes).filter(|it| head(it).stamp_ns > first.stamp_ns && head(it).sequence != first.sequence)
    })
}

// feature(devices): `onbeat run` opens its devices' ports; it names missing ports, and the cycle continues
// feature(devices): a service robot as it is published, with a myAHRS+ and DC motors: `onbeat run examples/m4k.toml`
#[test]
fn device_ports_publish_fresh_messages_to_clients() {
    let _shared = shared();
    let robot = Robot::run("devices", "examples/m4k.toml", &[]);
    let description = robot.ipc.description();
    for port in ["sonar", "scan", "led", "imu", "wheels"] {
        assert!(description.ports.iter().any(|it| it.name == port), "no {port} in {:?}", description.ports);
    }

    let imu = two_fresh(&robot, "imu", Imu::decode, |it| it.head);
    assert!((imu.linear_acceleration[2] - 9.8).abs() < 0.5, "{imu:?}");
    // Over its pty: the wall is 3 m ahead.
    let scan = two_fresh(&robot, "scan", Scan::decode, |it| it.head.head);
    assert!(scan.ranges.len() == 682 && (scan.ranges[340] - 3.0).abs() < 0.05, "{:?}", scan.head);
    let sonar = two_fresh(&robot, "sonar", Sonar::decode, |it| it.head);
    assert!((1.3..3.1).contains(&sonar.range) || sonar.range.is_infinite(), "{sonar:?}");

    let led = robot.ipc.port("led").unwrap();
    let mut request = [0; LedRequest::SIZE];
    LedRequest { pattern: Pattern::Blink, colour: [9, 8, 7], round_ms: 100 }.encode(&mut request).unwrap();
    led.send_timeout(&request, TIMEOUT).unwrap();
    let blinks = until(&led, "a strip that blinks", |bytes| {
        let it = Led::decode(bytes).expect("a message");
        (it.pattern == Pattern::Blink && !it.head.stale && it.frames > 0).then_some(it)
    });
    assert_eq!(blinks.colour, [9, 8, 7]);

    // A compass: the unit turns by 40 degrees to both sides of north, which is 90 degrees from
    // east.
    let yaw = 2.0 * imu.orientation[2].atan2(imu.orientation[3]).to_degrees();
    assert!((49.0..131.0).contains(&yaw), "{imu:?}");

    // DC motors of their own, which turn while the robot's stand.
    let wheels = robot.ipc.port("wheels").unwrap();
    let turned = ask_until(&wheels, [3.0, -2.0], |it| near(it.velocities, [3.0, -2.0]));
    assert!(turned.positions[0] > 0.0 && turned.positions[1] < 0.0, "{turned:?}");
    // At most 2 m/s on wheels of 20.32 cm; 0 once commands stop.
    let fast = ask_until(&wheels, [1e6, 1e6], |it| it.velocities.iter().all(|it| *it > 15.0));
    assert!(fast.commanded.iter().all(|it| *it <= 19.68), "{fast:?}");
    until(&wheels, "motors at rest", |bytes| {
        let it = Wheels::decode(bytes).expect("a message");
        (near(it.velocities, [0.0; 2]) && it.commanded == [0.0; 2]).then_some(())
    });
    let state = robot.until("a state", |_| true);
    assert!(state.axes.iter().all(|axis| axis.velocity.abs() < 0.1), "{state:?}");
    robot.interrupt();
}

/// Both within what drives in CSV have of noise.
fn near(found: [f64; 2], expected: [f64; 2]) -> bool {
    found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 0.1)
}

/// Asks for velocities of the wheels again and again, until what they tell is as wanted.
fn ask_until(wheels: &Channel, velocities: [f64; 2], wanted: impl Fn(&Wheels) -> bool) -> Wheels {
    let (begin, mut bytes) = (Instant::now(), [0; 256]);
    let mut last = None;
    while begin.elapsed() < TIMEOUT {
        let mut request = [0; WheelRequest::SIZE];
        WheelRequest { velocities, holds_ms: 300 }.encode(&mut request).unwrap();
        wheels.send_timeout(&request, TIMEOUT).unwrap();
        let heard = Instant::now();
        while heard.elapsed() < Duration::from_millis(50) {
            let received = wheels.recv_timeout(&mut bytes, Duration::from_millis(20)).expect("the port");
            let told = received.map(|length| Wheels::decode(&bytes[..length]).expect("a message"));
            if let Some(told) = told.as_ref().filter(|it| !it.head.stale && wanted(it)) {
                return *told;
            }
            last = told.or(last);
        }
    }
    panic!("the wheels were asked for {velocities:?} and tell {last:?}");
}

/// The service robot with one device: actuators that drive its own wheels.
fn robot_with_actuators() -> String {
    let text = include_str!("../../../../examples/m4k.toml");
    let (robot, _) = text.split_once("[[peripheral]]").expect("peripherals");
    let base = "[[controller]]\nname = \"base\"\nkind = \"diff_drive\"\n";
    assert!(robot.contains(base), "the service robot's controllers");
    let actuators = "[[peripheral]]\nkind = \"actuators\"\naxes = [\"left-wheel\", \"right-wheel\"]\n\
                     velocity = 6.0\nacceleration = 20.0\n";
    let path = file("actuators.toml", &(robot.replace(base, "") + actuators));
    path.to_str().unwrap().to_owned()
}

// feature(devices): actuators turn the robot's own wheels over the IPC
#[test]
fn wheel_actuators_turn_over_the_ipc_and_stop_without_commands() {
    let _shared = shared();
    let robot = Robot::run("actuators", &robot_with_actuators(), &[]);
    let refused = robot.ipc.command().expect_err("they hold the lease").to_string();
    assert!(refused.contains("gives the commands"), "{refused}");
    let wheels = robot.ipc.port("wheels").unwrap();
    let before = robot.until("a state", |_| true);

    let told = ask_until(&wheels, [4.0, -2.5], |it| near(it.velocities, [4.0, -2.5]));
    let turning =
        robot.until("turning", |state| near([0, 1].map(|axis| state.axes[axis].velocity), [4.0, -2.5]));
    assert!(turning.command.accepted > before.command.accepted, "{:?}", turning.command);
    assert_eq!(turning.command.refused, 0, "{:?}", turning.command);
    // The robot's own wheels turned: the task reports what the drives report.
    let moved = [0, 1].map(|axis| turning.axes[axis].position - before.axes[axis].position);
    assert!(moved[0] > 0.0 && moved[1] < 0.0, "{moved:?}");
    assert!(told.positions[0] > before.axes[0].position && told.positions[1] < before.axes[1].position);

    // More than the file allows them is not asked of the drives.
    let fastest = ask_until(&wheels, [1000.0, 1000.0], |it| near(it.velocities, [6.0, 6.0]));
    assert!(fastest.commanded.iter().all(|it| *it <= 6.0), "{fastest:?}");

    // Without commands they slow down after 0.3 s, and stop.
    until(&wheels, "wheels at rest", |bytes| {
        let it = Wheels::decode(bytes).expect("a message");
        (near(it.velocities, [0.0; 2]) && it.commanded == [0.0; 2]).then_some(())
    });
    robot.until("holding at rest", |state| {
        state.axes.iter().all(|axis| axis.velocity.abs() < 0.01 && axis.phase == 2 && axis.stop == 0)
    });
    let end = robot.end();
    let said = &end.stderr;
    assert!(said.contains("actuators: the cycle of m4k") && !said.contains("tried again"), "{said}");
    end.json();
}

/// A simulator on the far end of a cable, ended with the test.
struct Simulator(Child);

impl Drop for Simulator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

// feature(devices): `onbeat run` opens its devices' ports; it names missing ports, and the cycle continues
#[test]
fn missing_devices_are_named_with_paths_and_the_cycle_continues() {
    let _shared = shared();
    let testbed = match Testbed::new() {
        Ok(testbed) => testbed,
        Err(skip) => return testkit::skip!("{skip}"),
    };
    let text = include_str!("../../../../examples/m4k.toml");
    assert_eq!(text.matches("\"/dev/").count(), 7);
    // Only with a real bus devices are real ones, too.
    let robot = file("no-devices.toml", &text.replace("\"/dev/", "\"/dev/onbeat-no-"));
    let robot = robot.to_str().unwrap();
    let mut simulate = onbeat();
    simulate.args(["simulate", robot, "--iface", Side::Far.interface()]);
    let simulate = testbed.run_in(Side::Far, simulate).stderr(Stdio::null()).stdout(Stdio::null()).spawn();
    let _simulator = Simulator(simulate.expect("the simulator"));
    let mut run = onbeat();
    // Long enough for every device to be tried; a busy machine makes cycles late, which is not what
    // is asked here.
    run.args([
        "run",
        robot,
        "--period",
        "2ms",
        "--cycles",
        "1500",
        "--json",
        "--iface",
        Side::Near.interface(),
    ]);
    let ran = finished(testbed.run_in(Side::Near, run));
    let end = ran.json();
    assert_eq!((&end["cycles"], &end["axes"][0]["state"]), (&1500.into(), &"Operation enabled".into()));
    for (name, device) in [
        ("sonar", "/dev/onbeat-no-gpiochip0 lines 17 and 27"),
        ("range_finder", "/dev/onbeat-no-ttyACM0"),
        ("led_strip", "/dev/onbeat-no-spidev0.0"),
        ("imu", "/dev/onbeat-no-i2c-1 address 0x20"),
        (
            "actuators",
            "/dev/onbeat-no-spidev1.0, encoders /dev/onbeat-no-spidev1.1 and /dev/onbeat-no-spidev1.2",
        ),
    ] {
        let says = |line: &&str| line.starts_with(&format!("{name} ({device}): "));
        let said: Vec<&str> = ran.stderr.lines().filter(says).collect();
        let [said] = said[..] else { panic!("{name} is named {} times: {}", said.len(), ran.stderr) };
        assert!(said.contains("No such file or directory") && said.ends_with("; tried again"), "{said}");
        let task = end["tasks"].as_array().unwrap().iter().find(|task| task["name"] == name);
        assert!(task.is_some_and(|task| task["jobs"].as_u64() > Some(10)), "{name}: {task:?}");
    }
}
