//! The workspace, as cargo describes it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The folder of the crates.
pub(crate) fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates folder").to_owned()
}

/// Folder of a crate of ours: below `crates/`, below `lab/`, or a separate workspace.
#[allow(dead_code, reason = "not every test program looks into folders")]
pub(crate) fn folder_of(name: &str) -> PathBuf {
    let root = crates().join("..");
    let places = [crates().join(name), root.join("lab").join(name), root.join(name)];
    places
        .into_iter()
        .find(|it| it.join("Cargo.toml").exists())
        .unwrap_or_else(|| panic!("no crate {name}"))
}

/// The packages of the workspace, and the ROS 2 node: `cargo metadata`.
pub(crate) fn packages() -> Vec<Value> {
    [crates(), folder_of("ros2")].iter().flat_map(|folder| packages_in(folder)).collect()
}

fn packages_in(folder: &Path) -> Vec<Value> {
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--format-version=1", "--no-deps", "--offline"]).current_dir(folder);
    let output = metadata.output().expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    metadata["packages"].as_array().expect("a list of packages").clone()
}

/// The text at `key`.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("`{key}` is text"))
}
