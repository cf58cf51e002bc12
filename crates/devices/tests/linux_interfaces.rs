//! Drivers on the kernel's own interfaces, where the kernel can simulate the hardware: `i2c-stub`,
//! an SPI controller on a parallel port, a GPIO chip over `uhid`. `cargo xtask rt` boots a kernel
//! that has them; elsewhere these tests report what they need.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

mod support;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use i2cdev::core::I2CDevice;
use i2cdev::linux::LinuxI2CDevice;
use ipc::sensor::{Imu, Led, LedRequest, Pattern, Sonar, WheelRequest, Wheels};
use onbeat_devices::driver::spi::{Mode, Spi, Wire};
use onbeat_devices::imu::mpu6050::{ADDRESS, SET_UP, register};
use onbeat_devices::imu::myahrs;
use onbeat_devices::motor::{self, as5045};
use onbeat_devices::pair::Stage;
use onbeat_devices::task::actuators::WheelLimits;
use onbeat_devices::{Kind, WheelDrives};
use support::cp2112::Expander;
use support::{Robot, TIMEOUT, only};

/// Bus with registers in memory: `modprobe i2c-dev; modprobe i2c-stub chip_addr=0x68,0x20`.
fn stub() -> Option<PathBuf> {
    let found = fs::read_dir("/sys/class/i2c-dev").ok()?.flatten().find(|bus| {
        fs::read_to_string(bus.path().join("name")).is_ok_and(|name| name.trim() == "SMBus stub driver")
    })?;
    Some(PathBuf::from("/dev").join(found.file_name()))
}

/// Registers of a unit, written and read in parallel to its driver.
struct Unit(LinuxI2CDevice);

impl Unit {
    fn set(&mut self, register: u8, value: u8) {
        self.0.smbus_write_byte_data(register, value).unwrap();
    }

    fn get(&mut self, register: u8) -> u8 {
        self.0.smbus_read_byte_data(register).unwrap()
    }

    /// Sets accelerations, temperature and angular velocities, in counts.
    fn measure(&mut self, counts: [i16; 7]) {
        let bytes = counts.iter().flat_map(|count| count.to_be_bytes());
        for (value, register) in bytes.zip(register::MEASURED..) {
            self.set(register, value);
        }
    }

    /// Sets the state after power-on: sleep mode, all others 0.
    fn power_on(&mut self) {
        for register in 0..=0x7f {
            self.set(register, 0);
        }
        self.set(register::POWER, 0x40);
        self.set(register::IDENTITY, 0x68);
    }
}

// feature(devices): drivers on the kernel's own I2C, GPIO (but no echo) and SPI, in `cargo xtask rt`
#[test]
fn kernel_i2c_imu_is_set_up_read_lost_and_found_again() {
    let Some(bus) = stub() else {
        return eprintln!(
            "skipped: needs an I2C bus of i2c-stub (modprobe i2c-dev; modprobe i2c-stub chip_addr=0x68,0x20)"
        );
    };
    let mut unit = Unit(LinuxI2CDevice::new(&bus, ADDRESS).unwrap());
    unit.power_on();
    let robot = Robot::start("i2c", &only(Kind::mpu6050(Some((bus.clone(), ADDRESS)))));
    robot.wait_for(|it| it.running.status()[0].stage == Stage::Working);
    for (register, value) in SET_UP {
        assert_eq!(unit.get(register), value, "register {register:#04x}");
    }
    assert!(robot.said("imu: MPU-6050"), "{:?}", robot.said.lock().unwrap());

    // 8192 counts per g, 65.5 per degree/s, 340 per kelvin from 36.53 degrees Celsius.
    unit.measure([4_096, -2_048, 8_192, -3_580, 0, 0, 0]);
    let imu = robot.ipc.port("imu").unwrap();
    let near = |found: f64, expected: f64| (found - expected).abs() < 0.01;
    let fresh = |bytes: &[u8]| Some(Imu::decode(bytes).unwrap()).filter(|it| !it.head.stale);
    let found = robot
        .until(&imu, |bytes| fresh(bytes).filter(|it| near(it.linear_acceleration[0], 9.806_65 / 2.0)));
    let [_, y, z] = found.linear_acceleration;
    // A message between two writes has some of the old numbers; the next one has all the new ones.
    let whole = || {
        robot.until(&imu, |bytes| {
            fresh(bytes)
                .filter(|it| near(it.linear_acceleration[2], 9.806_65) && near(it.temperature, 299.15))
        })
    };
    let found = if near(z, 9.806_65) && near(y, -9.806_65 / 4.0) { found } else { whole() };
    assert!(near(found.linear_acceleration[1], -9.806_65 / 4.0), "{found:?}");

    // Power loss: it sleeps, and all other registers are 0.
    unit.power_on();
    unit.set(register::IDENTITY, 0x70);
    robot.wait_for(|it| it.said("it sleeps: it must have lost its power; tried again"));
    // Another part is put in its place.
    robot.wait_for(|it| it.said("expected an MPU-6050 (register 0x75 holds 0x68), found 0x70 there"));
    let stale = robot.until(&imu, |bytes| Some(Imu::decode(bytes).unwrap()).filter(|it| it.head.stale));
    assert!(stale.head.stamp_ns >= found.head.stamp_ns);
    unit.set(register::IDENTITY, 0x68);
    let again = robot.until(&imu, fresh);
    assert!(
        again.head.stamp_ns > stale.head.stamp_ns && near(again.linear_acceleration[2], 0.0),
        "{again:?}"
    );
    assert_eq!(unit.get(register::POWER), 0x01, "set up again");
}

// feature(devices): myAHRS+ over I2C: raw data, roll, pitch, yaw, or its quaternion
#[test]
fn kernel_i2c_myahrs_gives_orientation_and_skips_invalid_data() {
    let Some(bus) = stub() else {
        return eprintln!(
            "skipped: needs an I2C bus of i2c-stub (modprobe i2c-dev; modprobe i2c-stub chip_addr=0x68,0x20)"
        );
    };
    let mut unit = Unit(LinuxI2CDevice::new(&bus, myahrs::ADDRESS).unwrap());
    let mut put = |first: u8, numbers: &[i16]| {
        for (byte, register) in numbers.iter().flat_map(|it| it.to_le_bytes()).zip(first..) {
            unit.set(register, byte);
        }
    };
    put(0x00, &[0; 64]);
    let (unit_kind, output) = (types::ImuUnit::MyAhrs, types::ImuOutput::Quaternion);
    let kind = Kind::Imu { unit: unit_kind, output, i2c: Some((bus.clone(), myahrs::ADDRESS)) };
    let robot = Robot::start("myahrs", &only(kind));
    let place = format!("imu ({} address 0x20): ", bus.display());
    robot.wait_for(|it| {
        it.said(&format!("{place}expected a myAHRS+ (register 0x01 holds 0xb1), found 0x00"))
    });
    // Level, its front to the east; 1 g; 25 degrees Celsius; running.
    put(0x22, &[0, 0, -2_048, 0, 0, 0]);
    put(0x34, &[4_096, 0, 0, 16_384, 0, 0, 23_170, 23_170]);
    put(0x01, &[0x01b1]);
    robot.wait_for(|it| it.said(&format!("{place}expected a myAHRS+ that measures (status 0x80), found")));
    put(0x03, &[i16::from_le_bytes([4, 0x80])]);
    let imu = robot.ipc.port("imu").unwrap();
    let fresh = |bytes: &[u8]| Some(Imu::decode(bytes).unwrap()).filter(|it| !it.head.stale);
    let found = robot.until(&imu, fresh);
    assert!(robot.said("imu: myAHRS+ of revision 1.4, quaternion"), "{:?}", robot.said.lock().unwrap());
    let near = |found: f64, expected: f64| (found - expected).abs() < 0.01;
    let [x, y, z, w] = found.orientation;
    assert!(near(x, 0.0) && near(y, 0.0) && near(z, 0.0) && near(w.abs(), 1.0), "{found:?}");
    assert!(near(found.linear_acceleration[2], 9.806_65) && near(found.temperature, 298.15), "{found:?}");
    // A quaternion that is none: the last orientation grows old.
    put(0x3c, &[0; 4]);
    let stale = robot.until(&imu, |bytes| Some(Imu::decode(bytes).unwrap()).filter(|it| it.head.stale));
    assert!(near(stale.orientation[3].abs(), 1.0), "{stale:?}");
    robot.wait_for(|it| it.said("imu: a quaternion that is no orientation, not used, "));
    // Its back to the east: half a turn.
    put(0x3c, &[0, 0, -23_170, 23_170]);
    let turned = robot.until(&imu, |bytes| fresh(bytes).filter(|it| near(it.orientation[2].abs(), 1.0)));
    assert!(turned.head.stamp_ns > found.head.stamp_ns);
}

#[test]
fn silent_address_is_named_with_its_bus() {
    let Some(bus) = stub() else {
        return eprintln!(
            "skipped: needs an I2C bus of i2c-stub (modprobe i2c-dev; modprobe i2c-stub chip_addr=0x68,0x20)"
        );
    };
    let robot = Robot::start("i2c-nobody", &only(Kind::mpu6050(Some((bus.clone(), ADDRESS + 1)))));
    let named = format!("imu ({} address 0x69): reading register 0x75: ", bus.display());
    robot.wait_for(|it| it.said(&named));
    let status = robot.running.status()[0].clone();
    assert!(status.opened == 0 && status.samples == 0 && status.failures > 0, "{status:?}");
}

/// Tests lines and trigger only: the kernel samples this chip's inputs every tenth tick, too rarely
/// for an echo.
// feature(devices): drivers on the kernel's own I2C, GPIO (but no echo) and SPI, in `cargo xtask rt`
#[test]
fn sonar_lines_are_triggered_and_missing_echo_is_reported() {
    let expander = match Expander::plug_in() {
        Ok(expander) => expander,
        Err(why) => return testkit::skip!("needs a GPIO chip over uhid, {why}"),
    };
    let begin = Instant::now();
    let chip = loop {
        if let Some(chip) = Expander::chip() {
            break chip;
        }
        if begin.elapsed() > Duration::from_secs(10) {
            return testkit::skip!("needs the kernel's driver hid-cp2112");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let (trigger, echo) = (3, 5);
    let place = format!("sonar ({} lines 3 and 5): ", chip.display());
    let sonar = Kind::Sonar { gpio: Some((chip.clone(), trigger, echo)), temperature: 293.15 };
    let robot = Robot::start("gpio", &only(sonar));
    let lines = gpiocdev::chip::Chip::from_path(&chip).unwrap();
    let taken =
        |line: u32, by: &str| lines.line_info(line).is_ok_and(|info| info.used && info.consumer == by);
    robot.wait_for(|_| taken(trigger, "onbeat sonar trigger") && taken(echo, "onbeat sonar echo"));
    robot.wait_for(|it| it.said(&format!("{place}no answer to a ping")));
    let found = expander.lines();
    assert_eq!(
        found.outputs & (1 << trigger | 1 << echo),
        1 << trigger,
        "the trigger alone is an output: {found:?}"
    );
    // Low from the start, then high and low for each ping; the echo line is never set.
    assert_eq!(found.set[..3], [(trigger, false), (trigger, true), (trigger, false)], "{found:?}");
    assert!(found.set.iter().all(|(line, _)| *line == trigger), "{found:?}");
    // Released, and requested again.
    robot.wait_for(|it| it.running.status()[0].failures > 1);
    let ups = expander.lines().set.iter().filter(|(_, up)| *up).count();
    assert!(ups > 1, "{ups} pings");
    // A line in use by another process is named.
    let others = gpiocdev::Request::builder().on_chip(&chip).with_line(7).as_input().request().unwrap();
    let sonar = Kind::Sonar { gpio: Some((chip, 1, 7)), temperature: 293.15 };
    let second = Robot::start("gpio-taken", &only(sonar));
    second.wait_for(|it| it.said("lines 1 and 7): line 7: ") && it.said("busy"));
    drop(others);
}

/// Sonar on lines with edges that raise interrupts, and with a wall that moves away.
// feature(devices): an echo of a sonar measured by the kernel's edges, in `cargo xtask rt --arch aarch64`
#[test]
fn an_echo_is_measured_by_the_kernels_edges_near_and_far() {
    let lines = std::env::var("ONBEAT_TEST_SONAR").ok();
    let lines = lines.as_deref().and_then(|lines| {
        let mut parts = lines.split(':');
        let (chip, trigger, echo) = (parts.next()?, parts.next()?, parts.next()?);
        Some((PathBuf::from(chip), trigger.parse().ok()?, echo.parse().ok()?))
    });
    let Some(lines) = lines else {
        return eprintln!(
            "skipped: needs lines of a sonar that answers, its wall first near and then far (ONBEAT_TEST_SONAR=/dev/gpiochipN:TRIGGER:ECHO)"
        );
    };
    let robot = Robot::start("echo", &only(Kind::Sonar { gpio: Some(lines), temperature: 293.15 }));
    robot.wait_for(|it| it.said("sonar: a sonar that answers"));
    let sonar = robot.ipc.port("sonar").unwrap();
    // A stamp may be late: only several consecutive messages count.
    let wall = |is_it: fn(f64) -> bool| {
        let in_a_row = std::cell::Cell::new(0);
        robot.until(&sonar, |bytes| {
            let told = Sonar::decode(bytes).unwrap();
            let is_it = !told.head.stale && told.range.is_finite() && is_it(told.range);
            in_a_row.set(if is_it { in_a_row.get() + 1 } else { 0 });
            (in_a_row.get() == 5).then_some(told)
        })
    };
    // 3 ms and 15 ms there and back.
    let near = wall(|range| range < 1.5);
    let far = wall(|range| range > 1.5);
    assert!(far.head.stamp_ns > near.head.stamp_ns, "{near:?} {far:?}");
    assert_eq!(robot.running.status()[0].failures, 0);
}

/// The controller exists, with nothing connected: the sender cannot notice.
// feature(devices): drivers on the kernel's own I2C, GPIO (but no echo) and SPI, in `cargo xtask rt`
#[test]
fn a_strip_behind_the_kernels_spi_takes_frame_after_frame() {
    let Some(bus) = std::env::var_os("ONBEAT_TEST_SPI").map(PathBuf::from) else {
        return testkit::skip!("needs an SPI bus without a device (ONBEAT_TEST_SPI=/dev/spidevB.C)");
    };
    let strip =
        Kind::LedStrip { spi: Some(bus.clone()), chip: types::LedChip::Apa102, leds: 30, brightness: 8 };
    let robot = Robot::start("spi", &only(strip));
    let led = robot.ipc.port("led").unwrap();
    let mut request = [0; LedRequest::SIZE];
    LedRequest { pattern: Pattern::Chase, colour: [9, 8, 7], round_ms: 200 }.encode(&mut request).unwrap();
    led.send_timeout(&request, TIMEOUT).unwrap();
    let runs = |bytes: &[u8]| Some(Led::decode(bytes).unwrap()).filter(|it| it.pattern == Pattern::Chase);
    let first = robot.until(&led, |bytes| runs(bytes).filter(|it| !it.head.stale));
    robot.until(&led, |bytes| runs(bytes).filter(|it| it.frames > first.frames + 5));
    let status = robot.running.status()[0].clone();
    assert!(status.stage == Stage::Working && status.failures == 0, "{status:?}");
    assert_eq!(status.device, bus.display().to_string());
}

/// Without a connection. The controller has the converter's mode only, and its driver in Linux 6.1
/// does not survive another: encoders in their own mode are not tried.
// feature(devices): DC motors by an SPI converter (MCP4912, MCP4922), SPI absolute encoders (AS5045)
#[test]
fn kernel_spi_carries_words_and_no_encoder_means_no_motion() {
    let Some(bus) = std::env::var_os("ONBEAT_TEST_SPI").map(PathBuf::from) else {
        return testkit::skip!("needs an SPI bus without a device (ONBEAT_TEST_SPI=/dev/spidevB.C)");
    };
    let mut wire = Spi::new(&bus);
    wire.open(motor::MCP49X2_SPEED, Mode::RestsLow).unwrap();
    for channel in [0, 1] {
        wire.send(&motor::mcp49x2_word(types::DacChip::Mcp4912, channel, 0.0)).unwrap();
    }
    let mut reading = [0x55; as5045::LENGTH];
    wire.receive(&mut reading).unwrap();
    assert!(as5045::angle(reading).is_err(), "nobody answers, and that is no angle: {reading:?}");
    drop(wire);

    let nowhere = PathBuf::from("/dev/onbeat-no-such-device");
    let spi = Some([bus.clone(), nowhere.clone(), nowhere.clone()]);
    let drives = WheelDrives::DcMotors {
        spi,
        dac: types::DacChip::Mcp4912,
        full_scale: 20.0,
        motors_reversed: [false; 2],
        encoders_reversed: [false; 2],
    };
    let robot = Robot::start("motors", &only(Kind::Actuators { drives, limits: WheelLimits::default() }));
    let (bus, nowhere) = (bus.display(), nowhere.display());
    let place = format!("actuators ({bus}, encoders {nowhere} and {nowhere}): ");
    robot.wait_for(|it| it.said(&format!("{place}the left encoder ({nowhere}): opening: ")));
    let wheels = robot.ipc.port("wheels").unwrap();
    let mut request = [0; WheelRequest::SIZE];
    WheelRequest { velocities: [3.0; 2], holds_ms: 60_000 }.encode(&mut request).unwrap();
    wheels.send_timeout(&request, TIMEOUT).unwrap();
    robot.wait_for(|it| it.running.status()[0].failures > 1);
    let told = robot.until(&wheels, |bytes| Some(Wheels::decode(bytes).unwrap()));
    assert!(told.head.stale && told.commanded == [0.0; 2], "{told:?}");
}
