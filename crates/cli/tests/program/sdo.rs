//! `onbeat sdo`: objects of a SubDevice, read, written and listed.

use crate::common::{SIMULATED, run};

// feature(program): `sdo read`, `write`, `list`
#[test]
fn reading_takes_the_type_from_the_object_dictionary() {
    let ran = run(&["sdo", "read", "drive-1", "0x1018:1"]);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "4294904577 0xffff0b01"), "{}", ran.stderr);
}

#[test]
fn a_given_type_is_used_and_a_wrong_one_is_named() {
    let ran = run(&["sdo", "read", "0", "0x1018:2", "--type", "uint32"]);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "1026 0x00000402"), "{}", ran.stderr);
    let ran = run(&["sdo", "read", "0", "0x1018:2", "--type", "uint16"]);
    assert!(ran.sentence().contains("4 bytes, expected 2 of uint16"), "{}", ran.stderr);
    let ran = run(&["sdo", "read", "0", "0x1018:2", "--type", "octet_string"]);
    assert!(ran.stdout.contains("02 04 00 00"), "{}", ran.stdout);
}

// feature(program): `sdo read`, `write`, `list`
#[test]
fn an_abort_shows_its_code_and_its_text() {
    let ran = run(&["sdo", "read", "drive-2", "0x5FFF"]);
    let sentence = ran.sentence();
    for part in ["drive-2", "0x5fff:00", "0x06020000", "does not exist"] {
        assert!(sentence.contains(part), "{sentence}");
    }
}

#[test]
fn writing_is_answered_and_a_read_only_object_aborts() {
    let ran = run(&["sdo", "write", "drive-1", "0x6060", "9", "--type", "int8"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = run(&["sdo", "write", "drive-1", "0x1018:1", "9"]);
    assert!(ran.sentence().contains("0x06010002"), "{}", ran.stderr);
    let ran = run(&["sdo", "write", "drive-1", "0x6060", "300", "--type", "int8"]);
    assert!(ran.sentence().contains("300, expected a whole number from -128 to 127"), "{}", ran.stderr);
    let ran = run(&["sdo", "write", "drive-1", "0x6060", "1e2", "--type", "int8"]);
    let expected =
        "found \"1e2\", expected a whole number from -128 to 127 (int8), without point or exponent";
    assert!(ran.sentence().contains(expected), "{}", ran.stderr);
}

#[test]
fn the_list_shows_objects_types_and_names() {
    let ran = run(&["sdo", "list", "drive-1"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for expected in ["0x1018", "0x6040", "0x607a", "uint16", "int32"] {
        assert!(ran.stdout.contains(expected), "{expected}: {}", ran.stdout);
    }
}

// feature(program): `sdo list --json`: the object dictionary as JSON
#[test]
fn the_list_is_json_too() {
    let objects = run(&["sdo", "list", "drive-1", "--json"]).json();
    let objects = objects.as_array().expect("an array");
    let object = |index: &str| objects.iter().find(|it| it["index"] == index).expect("an object");
    let identity = object("0x1018");
    assert_eq!(
        (&identity["kind"], identity["entries"].as_array().map(Vec::len)),
        (&"record".into(), Some(5))
    );
    let controlword = &object("0x6040")["entries"][0];
    assert_eq!(
        (&controlword["type"], &controlword["bits"]),
        (&"uint16".into(), &16.into()),
        "{controlword}"
    );
    assert!(controlword["access"]["op"].as_str().is_some_and(|op| op.contains('w')), "{controlword}");
}

// feature(program): `sdo list --values`: each entry with its value
#[test]
fn the_list_shows_values_on_request() {
    let ran = run(&["sdo", "list", "drive-1", "--values"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let line = |object: &str| ran.stdout.lines().find(|line| line.contains(object)).expect("the entry");
    assert!(line("0x1018:02").ends_with(" = 1026 0x00000402"), "{}", line("0x1018:02"));
    assert!(!run(&["sdo", "list", "drive-1"]).stdout.contains(" = "));
    let objects = run(&["sdo", "list", "drive-1", "--values", "--json"]).json();
    let identity = objects.as_array().unwrap().iter().find(|it| it["index"] == "0x1018").expect("it");
    assert_eq!(identity["entries"][2]["value"], "1026 0x00000402", "{identity}");
}

#[test]
fn an_unknown_sub_device_is_reported_with_the_known_ones() {
    let ran = run(&["sdo", "read", "drive-9", "0x1018:1"]);
    assert!(ran.sentence().contains("\"drive-9\"") && ran.stderr.contains("drive-1"), "{}", ran.stderr);
    let ran = run(&["sdo", "read", "6", "0x1018:1"]);
    assert!(ran.sentence().contains("0 to 5"), "{}", ran.stderr);
}

#[test]
fn a_bus_simulated_for_one_command_is_announced() {
    for arguments in
        [&["scan"][..], &["sdo", "read", "0", "0x1018:1"], &["sdo", "write", "0", "0x2F00:1", "10"]]
    {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.starts_with(SIMULATED) && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    }
}
