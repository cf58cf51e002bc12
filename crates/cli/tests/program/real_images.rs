//! A bench simulated from the SII images of real devices, and images that are damaged.

use std::path::{Path, PathBuf};

use crate::common::{file, run};

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
    let whole = std::fs::read(folder.join("ek1100.bin")).expect("an image");
    let mut wrong_checksum = whole.clone();
    wrong_checksum[0] ^= 1;
    for (name, bytes, expected) in [
        ("cut-in-header.bin", &whole[..100], "100 bytes"),
        ("cut-in-category.bin", &whole[..200], "categor"),
        ("wrong-checksum.bin", &wrong_checksum[..], "checksum"),
    ] {
        let image = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&image, bytes).expect("a file in the target folder");
        let text = format!(
            "[cycle]\nperiod = \"1ms\"\n[[bus.sub_device]]\nname = \"coupler\"\n\
             simulate = {{ kind = \"coupler\", sii = \"{name}\" }}\n"
        );
        let ran = run(&["scan", file(&format!("{name}.toml"), &text).to_str().expect("UTF-8")]);
        let sentence = ran.sentence();
        assert!(sentence.contains(name) && sentence.contains(expected), "{sentence}");
    }
}
