//! `onbeat sii`: EEPROM contents of a SubDevice of a simulator in another process, which keeps
//! them.

use std::fs;
use std::path::Path;

use ethercat::sii::{Image, crc8};

use crate::common::{Ran, folder, run, six_axis_with};
use crate::wire::{SIX_AXIS, Wire};

fn identity(path: &Path) -> (u32, u16) {
    let image = Image::parse(&fs::read(path).expect("the image")).expect("an image");
    (image.header.identity().revision, image.header.alias())
}

fn refused(ran: &Ran, words: &str) {
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
}

// feature(program): `onbeat sii read`, `write`: an SII image from a SubDevice, and into it; the alias stays, and nothing goes by accident
#[test]
fn an_image_is_read_and_written_and_the_alias_stays() {
    let Some(wire) = Wire::with(SIX_AXIS) else { return };
    let folder = folder("sii");
    let file = |name: &str| folder.join(name).to_str().expect("UTF-8").to_owned();
    let (was, other, now) = (file("was.bin"), file("other.bin"), file("now.bin"));
    let ran = wire.onbeat(&["sii", "read", "2", &was]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("0xffff0b01"), "{}", ran.stdout);
    refused(&wire.onbeat(&["sii", "read", "2", &was]), "--force replaces it");
    let ran = wire.onbeat(&["sii", "write", "2", &was]);
    assert!(
        ran.code == Some(0) && ran.stdout.starts_with("nothing to write"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    // Another revision, and an alias that is not the SubDevice's.
    let mut bytes = fs::read(&was).expect("the image");
    bytes[8..10].copy_from_slice(&77_u16.to_le_bytes());
    bytes[24..28].copy_from_slice(&0x0002_0005_u32.to_le_bytes());
    fs::write(&other, &bytes).expect("a file");
    refused(&wire.onbeat(&["sii", "write", "2", &other]), "SII checksum");
    bytes[14] = crc8(&bytes[..14]);
    fs::write(&other, &bytes).expect("a file");
    refused(&wire.onbeat(&["sii", "write", "2", &other]), "--force writes them");
    let read = || {
        let ran = wire.onbeat(&["sii", "read", "2", &now, "--force"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        identity(Path::new(&now))
    };
    let before = identity(Path::new(&was));
    assert_eq!(read(), before, "nothing was written");
    let ran = wire.onbeat(&["sii", "write", "2", &other, "--force"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(read(), (0x0002_0005, before.1));
    // The others are as they were.
    let found = wire.onbeat(&["scan", "--json"]).json();
    assert_eq!((&found[1]["revision"], &found[2]["revision"]), (&0x0001_0000.into(), &0x0002_0005.into()));
}

#[test]
fn what_is_no_image_is_refused_before_the_bus() {
    let esi = crate::common::file("sii-esi.xml", "<EtherCATInfo/>");
    refused(&run(&["sii", "write", "0", esi.to_str().expect("UTF-8"), "--force"]), "an ESI file (XML)");
    let short = crate::common::file("sii-short.bin", "short");
    refused(&run(&["sii", "write", "0", short.to_str().expect("UTF-8"), "--force"]), "cut short");
    // One without an end.
    refused(&run(&["sii", "write", "0", "/dev/zero", "--force"]), "no regular file");
}

// feature(program): a FIFO or a device in the place of an SII image is refused, not waited for
#[test]
fn an_image_that_is_no_regular_file_is_refused_by_a_robot_file() {
    let kind = "kind = \"servo_drive\"";
    let robot = six_axis_with("sii-device.toml", kind, &format!("{kind}\nsii = \"/dev/zero\""));
    refused(
        &run(&["check", robot.to_str().expect("UTF-8")]),
        "/dev/zero: cannot be read (no regular file)",
    );
}
