//! `onbeat sii`: EEPROM contents of a SubDevice of a simulator in another process, which keeps
//! them.
//!
//! A bench simulated from the SII images of real devices, and images that are damaged.

use std::fs;
use std::path::{Path, PathBuf};

use ethercat::sii::{Image, crc8};

use crate::common::{Ran, file, folder, run, six_axis_with};
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
    let esi = file("sii-esi.xml", "<EtherCATInfo/>");
    refused(&run(&["sii", "write", "0", esi.to_str().expect("UTF-8"), "--force"]), "an ESI file (XML)");
    let short = file("sii-short.bin", "short");
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

/// The folder of the images; `None` with a message if it is missing.
fn images() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/real/sii");
    if folder.join("akd.bin").exists() {
        return folder.canonicalize().ok();
    }
    testkit::skip!("needs the SII images of real devices in {}", folder.display());
    None
}

/// A coupler, three terminals and a servo drive, each from its image in `folder`.
fn bench(folder: &Path) -> String {
    let image = |name: &str| format!("sii = \"{}\"", folder.join(name).display());
    let terminal = |name: &str, channels: u8| {
        format!(
            "[[bus.sub_device]]\nname = \"{name}\"\n\
             simulate = {{ kind = \"digital_outputs\", channels = {channels}, {} }}\n\n",
            image(&format!("{name}.bin"))
        )
    };
    format!(
        "[cycle]\nperiod = \"1ms\"\n\n[bus]\ndistributed_clocks = true\n\n\
         [[bus.sub_device]]\nname = \"ek1100\"\nsimulate = {{ kind = \"coupler\", {} }}\n\n{}{}{}\
         [[bus.sub_device]]\nname = \"akd\"\nidentity = {{ vendor_id = 0x6A, product_code = 0x0041_4B44 }}\n\
         simulate = {{ kind = \"servo_drive\", {} }}\n\n{DRIVE}",
        image("ek1100.bin"),
        terminal("el2004", 4),
        terminal("el2828", 8),
        terminal("el2889", 16),
        image("akd.bin")
    )
}

const DRIVE: &str = r#"
[bus.sub_device.pdos]
outputs = [{ index = 0x1724, fixed = true, entries = [
    { index = 0x607A, bits = 32 }, { index = 0x6040, bits = 16 }, { index = 0x60B2, bits = 16 },
] }]
inputs = [{ index = 0x1B24, fixed = true, entries = [
    { index = 0x6064, bits = 32 }, { index = 0x6041, bits = 16 },
] }]

[[axis]]
name = "spindle"
sub_device = "akd"
mode = "csp"
counts_per_revolution = 1_048_576
rated_torque = 2.4
limits = { velocity = 50.0, torque = 4.8 }

[controller]
kind = "sinusoid"
amplitude = 1.0
frequency = 0.5
"#;

// feature(program): segments of real SII images
#[test]
fn a_bench_of_real_images_is_found_and_its_drive_runs() {
    let Some(folder) = images() else { return };
    let path = file("real-images.toml", &bench(&folder));
    let path = path.to_str().expect("UTF-8");
    let found = run(&["scan", path, "--json"]).json();
    let products: Vec<_> =
        found.as_array().expect("an array").iter().map(|it| &it["product_code"]).collect();
    assert_eq!(products, [0x044C_2C52, 0x07D4_3052, 0x0B0C_3052, 0x0B49_3052, 0x0041_4B44]);
    let end = run(&["run", path, "--cycles", "500", "--json"]).json();
    assert_eq!(end["working_counter_errors"], 0);
    assert_eq!(end["axes"][0]["state"], "Operation enabled");
}

#[test]
fn a_damaged_image_is_named_with_what_is_wrong_with_it() {
    let Some(folder) = images() else { return };
    let whole = fs::read(folder.join("ek1100.bin")).expect("an image");
    let mut wrong_checksum = whole.clone();
    wrong_checksum[0] ^= 1;
    for (name, bytes, expected) in [
        ("cut-in-header.bin", &whole[..100], "100 bytes"),
        ("cut-in-category.bin", &whole[..200], "categor"),
        ("wrong-checksum.bin", &wrong_checksum[..], "checksum"),
    ] {
        let image = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&image, bytes).expect("a file in the target folder");
        let text = format!(
            "[cycle]\nperiod = \"1ms\"\n[[bus.sub_device]]\nname = \"coupler\"\n\
             simulate = {{ kind = \"coupler\", sii = \"{name}\" }}\n"
        );
        let ran = run(&["scan", file(&format!("{name}.toml"), &text).to_str().expect("UTF-8")]);
        let sentence = ran.sentence();
        assert!(sentence.contains(name) && sentence.contains(expected), "{sentence}");
    }
}
