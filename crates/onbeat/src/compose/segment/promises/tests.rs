#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::fs;
use std::path::{Path, PathBuf};

use ethercat::pdo::PdoMapping;
use simulator::application::servo::default_mapping;
use simulator::application::sii::{SiiDescription, digital_inputs, digital_outputs, with_coe};

use super::*;
use crate::compose::segment::segment;

const NOBODY: sii::Identity =
    sii::Identity { vendor_id: 0xFFFF_0B01, product_code: 1, revision: 1, serial: 0 };

/// The sentence for one SubDevice of this kind with this image, if both contradict each other.
fn refusal(kind: &str, image: &Path) -> Option<String> {
    let text = format!(
        "name = \"bench\"\n[cycle]\nperiod = \"1ms\"\n[[bus.sub_device]]\nname = \"it\"\n\
         simulate = {{ {kind}, sii = \"{}\" }}\n",
        image.display()
    );
    let robot = RobotConfig::parse(&text, "bench.toml").unwrap();
    let of_check = check_images(&robot).err().map(|it| it.to_string());
    let of_segment = segment(&robot).err().map(|it| it.to_string());
    assert_eq!(of_check, of_segment);
    of_check
}

/// An image in a file.
fn file(name: &str, description: &SiiDescription) -> PathBuf {
    let path = std::env::temp_dir().join(format!("onbeat-promises-{}-{name}.bin", std::process::id()));
    fs::write(&path, description.image().emit()).unwrap();
    path
}

// feature(simulator): `check` and `simulate` refuse a simulated kind that contradicts its SII image, and say why
#[test]
fn a_kind_that_contradicts_its_image_is_refused() {
    let drive = file("drive", &with_coe(NOBODY, "drive", default_mapping()));
    let bare = file("bare", &with_coe(NOBODY, "bare", PdoMapping::default()));
    let outputs = file("outputs", &digital_outputs(NOBODY, "outputs", 12));
    let inputs = file("inputs", &digital_inputs(NOBODY, "inputs", 4));
    let at = |path: &Path, kind: &str, rest: &str| {
        Some(format!(
            "bench: SubDevice 0 \"it\": kind \"{kind}\" contradicts its SII image {}: the image {rest}: choose another \
             kind, or leave sii out",
            path.display()
        ))
    };
    let coe = "promises the mailbox protocol CoE, but this kind has no mailbox";
    assert_eq!(
        refusal("kind = \"digital_inputs\", channels = 4", &drive),
        at(&drive, "digital_inputs", coe)
    );
    assert_eq!(refusal("kind = \"coupler\"", &bare), at(&bare, "coupler", coe));
    let no_pdos = "has no PDOs, but this kind takes its process data from the image's PDOs";
    assert_eq!(refusal("kind = \"servo_drive\"", &bare), at(&bare, "servo_drive", no_pdos));
    let direction = "has PDOs of 2 bytes of outputs and 0 bytes of inputs, but this kind has 0 bytes of outputs and 2 bytes of inputs";
    assert_eq!(
        refusal("kind = \"digital_inputs\", channels = 12", &outputs),
        at(&outputs, "digital_inputs", direction)
    );
    assert_eq!(refusal("kind = \"servo_drive\"", &drive), None);
    assert_eq!(refusal("kind = \"digital_outputs\", channels = 12", &outputs), None);
    assert_eq!(refusal("kind = \"digital_inputs\", channels = 4", &inputs), None);
    for path in [drive, bare, outputs, inputs] {
        fs::remove_file(path).unwrap();
    }
}

/// Images of real devices, next to the workspace.
#[test]
fn real_images_are_refused_where_the_kind_contradicts_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/real/sii");
    if !folder.is_dir() {
        return;
    }
    let inputs = "kind = \"digital_inputs\", channels = 4";
    for (name, kind, told) in [
        ("akd", inputs, Some("promises the mailbox protocol CoE")),
        ("ni9144-rev1", inputs, Some("promises the mailbox protocol CoE")),
        ("kickcat-foot", inputs, Some("promises the mailbox protocol CoE")),
        ("easercat-3000", "kind = \"servo_drive\"", Some("has no PDOs")),
        ("el2004", inputs, Some("has PDOs of 1 byte of outputs")),
        ("akd", "kind = \"servo_drive\"", None),
        ("ek1100", "kind = \"coupler\"", None),
        ("el2004", "kind = \"digital_outputs\", channels = 4", None),
        ("el2828", "kind = \"digital_outputs\", channels = 8", None),
        ("el2889", "kind = \"digital_outputs\", channels = 16", None),
    ] {
        let refusal = refusal(kind, &folder.join(name).with_extension("bin"));
        match told {
            None => assert_eq!(refusal, None, "{name} as {kind}"),
            Some(told) => assert!(refusal.unwrap().contains(told), "{name} as {kind}"),
        }
    }
}
