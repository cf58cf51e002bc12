//! Arrays of bytes as a text or as hexadecimal digits: `onbeat io get`, `set` and `force`.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Running, await_cycles, file, finished, onbeat, shared};
use crate::signals::interrupt;

const ROBOT: &str = r#"
name = "serial"

[cycle]
period = "1ms"
profile = "none"

[[bus.sub_device]]
name = "lines"
simulate = { kind = "el6022" }

[[bus.sub_device]]
name = "other lines"
simulate = { kind = "serial_lines" }

[[signal]]
name = "out"
sub_device = "lines"
entry = { index = 0x7000, sub_index = 0x11 }
elements = 22
writer = "outside"

[[signal]]
name = "in"
sub_device = "lines"
entry = { index = 0x6000, sub_index = 0x11 }
elements = 22
"#;

// feature(signals): arrays of bytes as a text or as hexadecimal digits in `onbeat io`
#[test]
fn byte_strings_are_set_forced_and_shown_as_text_or_hex() {
    let _shared = shared();
    let socket = std::env::temp_dir().join(format!("onbeat-bytes-{}", std::process::id())).join("io.sock");
    let mut command = onbeat();
    command.arg("run").arg(file("byte-strings.toml", ROBOT)).args(["--for", "60s", "--ipc"]).arg(&socket);
    let cycle = Running::start(command);
    await_cycles(cycle.id(), 100);
    let io = |arguments: &[&str]| -> Command {
        let mut command = onbeat();
        command.arg("io").args(arguments).arg("--cycle").arg(&socket);
        command
    };
    let said = |arguments: &[&str]| {
        let ran = finished(io(arguments));
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
        ran.stdout.trim_end().to_owned()
    };
    let setting = Running::start(io(&["set", "out", "LOT 17", "--as", "text"]));
    let begin = Instant::now();
    while said(&["get", "out", "--as", "text"]) != "\"LOT 17\"" {
        assert!(begin.elapsed() < Duration::from_secs(20), "it is not set");
    }
    assert_eq!(said(&["get", "out[4]"]), "49", "the digit 1");
    assert_eq!(said(&["get", "other lines.0x7000:15"]), "0", "nothing is sent on those");
    assert_eq!(said(&["get", "out", "--as", "hex"]), format!("4c4f54203137{}", "00".repeat(16)));
    interrupt(setting);
    let answer = format!("{}{}", "41c3a9", "00".repeat(19));
    said(&["force", "in", &answer, "--as", "hex", "--for", "1h"]);
    // The reply of the requested cycle may be missing.
    let told = said(&["get", "in", "--as", "text"]).replace(" (old)", "");
    assert_eq!(told, "\"A\u{e9}\" (forced)");
    let json: Value = serde_json::from_str(&said(&["get", "in", "--as", "text", "--json"])).expect("JSON");
    assert_eq!((&json[0]["value"], &json[0]["forced"]), (&"A\u{e9}".into(), &true.into()));
    for (arguments, sentence) in [
        (
            &["set", "out", "a text of more than 22 bytes", "--as", "text"][..],
            "for the signal \"out\" has 28 bytes, expected 22 at most",
        ),
        (&["force", "in", "41", "--as", "hex", "--for", "1s"], "expected 44 hexadecimal digits"),
        (&["get", "lines.Status", "--as", "hex"], "no signal is called \"lines.Status\""),
        (
            &["get", "lines.0x6001:01", "--as", "hex"],
            "signal \"lines.0x6001:01\" is of type uint16, expected bytes (uint8, without a scale) for --as",
        ),
    ] {
        let ran = finished(io(arguments));
        assert!(ran.sentence().contains(sentence), "{arguments:?}: {}", ran.stderr);
    }
    interrupt(cycle);
}
