//! Simulated SubDevices as a robot file says, looked at from inside.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ethercat::link::Segment as _;
use ethercat::register::{self, sii_interface};
use ethercat::time::Instant;
use ethercat::wire::{Address, Command, DatagramHeader, FrameBuilder, MacAddress};

use super::*;

const ROBOT: &str = r#"
[cycle]
period = "1ms"

[[bus.sub_device]]
name = "lamps"
alias = 7
simulate = { kind = "el2004" }

[[bus.sub_device]]
name = "arm {}"
count = 2
simulate = { kind = "servo_drive", esc = "lan9252" }

[[bus.sub_device]]
name = "force"
simulate = { kind = "force_torque_sensor" }
"#;

fn robot() -> RobotConfig {
    RobotConfig::parse(ROBOT, "r.toml").unwrap()
}

fn types(segment: &Segment) -> Vec<u8> {
    let of = |it: &simulator::SubDevice| {
        let mut byte = [0];
        it.peek(register::TYPE, &mut byte);
        byte[0]
    };
    segment.sub_devices().iter().map(of).collect()
}

// feature(simulator): ESCs by kind: ET1100, ET1200, LAN9252, ESC10, ESC20, IP core
#[test]
fn escs_come_from_the_file_or_the_image() {
    assert_eq!(types(&segment(&robot()).unwrap()), [0x12, 0xC0, 0xC0, 0x11]);
}

#[test]
fn cable_in_a_missing_port_is_reported() {
    let hangs = |esc: &str| {
        let sensor = "kind = \"force_torque_sensor\"";
        let file = ROBOT.replace(sensor, &format!("{sensor}, esc = \"{esc}\""));
        let last = "[[bus.sub_device]]\nname = \"last\"\nport = 3\nsimulate = { kind = \"coupler\" }";
        let robot = RobotConfig::parse(&format!("name = \"fork\"\n{file}{last}\n"), "r.toml").unwrap();
        segment(&robot).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(hangs("et1100"), Ok(()));
    let sentence = "fork: SubDevice 4 \"last\" on port 3 of \"force\", expected a port that the \
        ESC of \"force\" has: correct port, or the esc of \"force\"";
    assert_eq!(hangs("ip_core").unwrap_err(), sentence);
}

/// Writes `data` to `register` of the SubDevice at `position`.
fn write(segment: &mut Segment, now: Instant, position: u16, register: u16, data: &[u8]) {
    let mut buffer = [0; 128];
    let mut builder = FrameBuilder::new(&mut buffer, MacAddress::MAIN_DEVICE);
    let address = Address::at_position(position, register);
    builder.push_data(DatagramHeader::new(Command::Apwr, 0, address, data.len() as u16), data).unwrap();
    let length = builder.finish();
    assert!(segment.process_frame(now, &mut buffer[..length]));
}

/// Folder that is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

// feature(simulator): an SII that survives a restart
#[test]
fn what_a_main_device_writes_to_an_sii_is_there_after_a_restart() {
    let folder = Folder(std::env::temp_dir().join(format!("onbeat-segment-{}", std::process::id())));
    let files = SiiFiles::open(&folder.0).unwrap();
    let mut first = segment_keeping(&robot(), Some(&files)).unwrap();
    let fresh = segment(&robot()).unwrap();
    for (kept, fresh) in first.sub_devices().iter().zip(fresh.sub_devices()) {
        assert_eq!(kept.sii(), fresh.sii());
    }
    // Word 4 of the second drive, its alias, and word 7, the checksum: no check watches whether
    // they are written.
    let mut configuration = first.sub_devices()[2].sii()[..14].to_vec();
    configuration[8..10].copy_from_slice(&[0x34, 0x12]);
    let checksum = sii::crc8(&configuration);
    for (now, word, data) in [(0, 4_u32, [0x34, 0x12]), (20, 7, [checksum, 0])] {
        let now = Instant::EPOCH + Duration::from_millis(now);
        write(&mut first, now, 2, sii_interface::DATA, &data);
        let command = sii_interface::COMMAND_WRITE | sii_interface::CONTROL_WRITE_ENABLE;
        let mut request = command.to_le_bytes().to_vec();
        request.extend(word.to_le_bytes());
        write(&mut first, now, 2, sii_interface::CONTROL, &request);
    }
    first.advance(Instant::EPOCH + Duration::from_millis(40));
    drop(first);
    files.finish().unwrap();
    let files = SiiFiles::open(&folder.0).unwrap();
    let again = segment_keeping(&robot(), Some(&files)).unwrap();
    let alias = |position: usize| sii::Header::parse(again.sub_devices()[position].sii()).unwrap().alias();
    assert_eq!([0, 1, 2].map(alias), [7, 0, 0x1234]);
    assert_eq!(types(&again), [0x12, 0xC0, 0xC0, 0x11]);
    drop(again);
    files.finish().unwrap();
}
