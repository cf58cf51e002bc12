//! SII images of real devices.

use std::fs;
use std::path::PathBuf;

use ethercat::sii::Image;

/// The image of a real device, or `None` with a message if the files are missing.
pub(crate) fn real(name: &str) -> Option<Image> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/real/sii");
    let path = folder.join(name).with_extension("bin");
    let Ok(bytes) = fs::read(&path) else {
        testkit::skip!("needs {}", path.display());
        return None;
    };
    Some(Image::parse(&bytes).expect("a real device's image parses"))
}
