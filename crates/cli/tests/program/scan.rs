//! `onbeat scan`: lists the SubDevices on the bus.

use crate::common::{run, six_axis_with};

// feature(program): `scan`
#[test]
fn json_has_one_object_for_each_sub_device() {
    let found = run(&["scan", "--json"]).json();
    let found = found.as_array().expect("an array");
    assert_eq!(found.len(), 6);
    for (position, sub_device) in found.iter().enumerate() {
        assert_eq!(sub_device["position"], position);
        assert_eq!(sub_device["vendor_id"], 0xFFFF_0B01_u32);
        assert_eq!(sub_device["product_code"], 0x0402);
        assert_eq!(sub_device["revision"], 0x0001_0000);
        assert_eq!(sub_device["name"], format!("drive-{}", position + 1));
        assert_eq!(sub_device["state"], "PreOp");
    }
}

// feature(program): `scan`
#[test]
fn the_tree_shows_branches_where_the_cable_branches() {
    let ran = run(&["scan", "examples/humanoid-59.toml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines = ran.stdout.lines().filter(|line| line.contains("port")).count();
    assert_eq!(lines, 6, "{}", ran.stdout);
    assert!(ran.stdout.contains("left-foot"), "{}", ran.stdout);
}

#[test]
fn details_show_the_process_data() {
    let ran = run(&["scan", "examples/io-station.toml", "-v"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for expected in ["coupler", "0x044c2c52", "lamps", "0x7000:01", "0x607a:00", "target position"] {
        assert!(ran.stdout.contains(expected), "{expected}: {}", ran.stdout);
    }
}

#[test]
fn fewer_sub_devices_than_described_name_the_first_missing() {
    let fewer = six_axis_with("fewer.toml", EVERY_DRIVE, "name = \"drive-{}\"\ncount = 4");
    let fewer = keep_bus_only(&fewer);
    for command in ["scan", "run"] {
        let ran = run(&[command, "examples/six-axis.toml", "--segment", &fewer]);
        let sentence = ran.sentence();
        for part in ["4", "6", "\"drive-5\""] {
            assert!(sentence.contains(part), "{sentence}");
        }
    }
}

#[test]
fn surplus_sub_devices_are_named() {
    let more = six_axis_with("more.toml", EVERY_DRIVE, "name = \"drive-{}\"\ncount = 7");
    let more = keep_bus_only(&more);
    let ran = run(&["scan", "examples/six-axis.toml", "--segment", &more]);
    let sentence = ran.sentence();
    assert!(sentence.contains("7 SubDevices") && sentence.contains("0xffff0b01"), "{sentence}");
}

#[test]
fn another_sub_device_than_described_shows_both_identities() {
    let other = six_axis_with("other.toml", "product_code = 0x0000_0402", "product_code = 0x0000_0777");
    let ran =
        run(&["run", "examples/six-axis.toml", "--segment", other.to_str().unwrap(), "--cycles", "10"]);
    let sentence = ran.sentence();
    for part in ["SubDevice 0", "drive-1", "0x00000402", "0x00000777"] {
        assert!(sentence.contains(part), "{sentence}");
    }
}

const EVERY_DRIVE: &str = "name = \"drive-{}\"\ncount = 6";

/// A segment needs no axes: axes of the file would lack their drives.
fn keep_bus_only(path: &std::path::Path) -> String {
    let text = std::fs::read_to_string(path).expect("the file just written");
    let axes = text.find("[[axis]]").expect("axes");
    std::fs::write(path, &text[..axes]).expect("a file in the target folder");
    path.to_str().expect("UTF-8").to_owned()
}
