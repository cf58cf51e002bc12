use super::*;

fn take(line: &[&str]) -> Result<(Vec<OsString>, RosArguments), String> {
    RosArguments::take(line.iter().map(Into::into))
}

// feature(ros2): `--ros-args`, as `ros2 run` and launch files pass them
#[test]
fn ros_arguments_are_between_their_marks() {
    let (others, ros) = take(&[
        "onbeat-ros2",
        "--quiet",
        "--ros-args",
        "-r",
        "cmd_vel:=/left/cmd_vel",
        "--remap",
        "__ns:=/left",
        "--ros-args",
        "-p",
        "odom_rate:=20",
        "--log-level",
        "onbeat:=WARN",
        "--disable-rosout-logs",
        "--enable-external-lib-logs",
        "-e",
        "/cell/left",
        "--",
        "--domain",
        "7",
        "--ros-args",
        "--disable-stdout-logs",
    ])
    .unwrap();
    assert_eq!(others, ["onbeat-ros2", "--quiet", "--domain", "7"]);
    assert_eq!((ros.rules.len(), ros.assignments.len()), (2, 1));
    assert_eq!(ros.levels, [(Some("onbeat".into()), 30)]);
    assert_eq!((ros.rosout, ros.console), (false, false));
    let (others, ros) = take(&["onbeat-ros2", "-p", "odom_rate:=20", "--"]).unwrap();
    assert_eq!((others.len(), ros), (4, RosArguments::default()), "not those outside");
}

#[test]
fn an_invalid_argument_is_reported_by_its_position() {
    for (line, words) in [
        (&["x", "--ros-args", "-q"][..], "argument 2, `-q`: unknown after --ros-args; expected -r, -p"),
        (&["x", "--ros-args", "cmd_vel:=odom"], "argument 2, `cmd_vel:=odom`: unknown"),
        (&["x", "--ros-args", "-r"], "argument 2, `-r`: expected FROM:=TO"),
        (&["x", "--ros-args", "-r", "--", "--quiet"], "argument 2, `-r`: expected FROM:=TO"),
        (
            &["x", "--ros-args", "-r", "a b:=c"],
            "argument 2, `-r a b:=c`: `a b`: expected the name of a topic",
        ),
        (&["x", "--ros-args", "-p", "rate"], "argument 2, `-p rate`: `rate`: expected NAME:=VALUE"),
        (&["x", "--ros-args", "--log-level", "loud"], "level `loud`: expected debug, info"),
        (
            &["x", "--ros-args", "--params-file", "/no/such.yaml"],
            "`--params-file /no/such.yaml`: cannot be read",
        ),
        (&["x", "--ros-args", "--log-file-name", "f"], "there is no log in a file here"),
        (&["x", "--ros-args", "-e", "cell"], "expected the name of an enclave"),
    ] {
        let why = take(line).unwrap_err();
        assert!(why.contains(words), "{line:?}: {why}");
    }
}
