//! Every invalid robot file gives one sentence: the place, the content found, the content expected,
//! the remedy.

mod bus;
use crate::support;

use onbeat_robot::RobotConfig;
use support::spoiled;

/// A valid file, of which each test spoils one part.
const GOOD: &str = r#"
[cycle]
period = "1ms"
priority = 80

[device.servo]
dc = {}
simulate = { kind = "servo_drive", encoder_counts = 4096 }

[device.servo.pdos]
outputs = [{ index = 0x1600, entries = [{ index = 0x6040, bits = 16 }, { index = 0x607A, bits = 32 }] }]
inputs = [{ index = 0x1A00, entries = [{ index = 0x6041, bits = 16 }, { index = 0x6064, bits = 32 }] }]

[bus]
distributed_clocks = true

[[bus.sub_device]]
name = "hub"
simulate = { kind = "coupler" }

[[bus.sub_device]]
name = "drive-{}"
count = 2
device = "servo"
startup = [{ index = 0x2000, type = "int8", value = -3 }]

[[axis]]
name = "joint-{}"
count = 2
sub_device = "drive-{}"
mode = "csp"
counts_per_revolution = 4096
rated_torque = 1.0
limits = { velocity = 10.0, torque = 2.0 }

[controller]
kind = "sinusoid"
amplitude = 1.0
frequency = 1.0
"#;

/// Error of [`GOOD`] with `good` replaced by `bad`.
fn sentence(good: &str, bad: &str) -> String {
    spoiled(GOOD, good, bad).to_string()
}

#[test]
fn the_good_file_is_good() {
    let robot = RobotConfig::parse(GOOD, "r.toml").unwrap();
    assert_eq!((robot.bus.sub_devices.len(), robot.axes.len()), (3, 2));
}

#[test]
fn an_unknown_key_names_the_nearest_known_one() {
    assert_eq!(
        sentence("period", "perod"),
        "r.toml:3:1: unknown key \"perod\", expected one of period, profile, priority, \
         deadline_runtime, cpu, spin_margin, prepare_nic, nic_cpu, overrun, frame_order, clock, outage_time, after_outage, reset_faults, reset_codes, loss_time: did you mean \"period\"?"
    );
    assert_eq!(
        sentence("[controller]", "[controler]"),
        "r.toml:36:2: unknown key \"controler\", expected one of name, cycle, device, bus, axis, \
         interlock, signal, sensor, controller, base, arm, frame, ipc, peripheral: did you mean \"controller\"?"
    );
    assert_eq!(
        sentence("bits = 32", "bit = 32"),
        "r.toml:11:90: unknown key \"bit\", expected one of index, sub_index, bits, name: \
         did you mean \"bits\"?"
    );
}

// feature(program): an unknown key that another table has names this table
#[test]
fn a_key_of_another_table_names_that_table() {
    for (good, bad, key, remedy) in [
        (
            "mode = \"csp\"",
            "mode = \"csp\"\nafter_outage = \"resume\"",
            "after_outage",
            "move it to [cycle]",
        ),
        (
            "priority = 80",
            "priority = 80\ndistributed_clocks = true",
            "distributed_clocks",
            "move it to [bus]",
        ),
        ("torque = 2.0 }", "torque = 2.0, gear_ratio = 2.0 }", "gear_ratio", "move it to [[axis]]"),
        (
            "amplitude = 1.0",
            "amplitude = 1.0\nencoder_counts = 4096",
            "encoder_counts",
            "move it to [bus.sub_device.simulate] or [device.NAME.simulate]",
        ),
        ("[bus]\n", "[bus]\njerk = 1.0\n", "jerk", "move it to [axis.limits] or [base.limits]"),
    ] {
        let found = sentence(good, bad);
        assert!(found.contains(&format!("unknown key \"{key}\", expected one of ")), "{found}");
        assert!(found.ends_with(&format!(": {remedy}")), "{found}");
    }
    // A key that is nearly right, and one that many tables have.
    let found = sentence("priority = 80", "priority = 80\nrecovery = true");
    assert!(found.ends_with(": move it to [bus]"), "{found}");
    let found = sentence("priority = 80", "priority = 80\nname = \"x\"");
    assert!(found.contains(": move it to ") && found.ends_with(", ..."), "{found}");
    let found = sentence("priority = 80", "priority = 80\nzzz = 1");
    assert!(found.ends_with(": correct or remove the key"), "{found}");
}

#[test]
fn a_wrong_type_names_both_types() {
    assert_eq!(
        sentence("priority = 80", "priority = \"high\""),
        "r.toml:4:12: string \"high\", expected a whole number: correct the file here"
    );
    assert_eq!(
        sentence("priority = 80", "priority = 8e1"),
        "r.toml:4:12: 8e1, expected a whole number, without point or exponent: correct the file here"
    );
    assert_eq!(
        sentence("index = 0x6040", "index = 0x16040"),
        "r.toml:11:51: integer `90176`, expected a whole number from 0 to 65535: correct the file here"
    );
    assert_eq!(
        sentence("distributed_clocks = true", "distributed_clocks = \"on\""),
        "r.toml:15:22: string \"on\", expected true or false: correct the file here"
    );
    assert_eq!(
        sentence("distributed_clocks = true", "replies = \"unchanged\""),
        "r.toml:15:11: unknown value \"unchanged\", expected one of processed_source, unchanged_source: correct \
         or remove the value"
    );
    assert_eq!(
        sentence("mode = \"csp\"", "mode = \"cps\""),
        "r.toml:31:8: unknown value \"cps\", expected one of csp, csv, cst, ip, pp, pv, tq: did you mean \"csp\"?"
    );
}

#[test]
fn what_is_no_toml_is_shown_where_it_stops_being_it() {
    let found = sentence("period = \"1ms\"", "period = \"1ms");
    assert!(found.starts_with("r.toml:3:14: invalid basic string"), "{found}");
    let found = sentence("priority = 80", "priority = ");
    assert!(found.starts_with("r.toml:4:12: "), "{found}");
    let found = sentence("priority = 80", "period = 80");
    assert!(found.starts_with("r.toml:4:1: duplicate key"), "{found}");
}

#[test]
fn durations_say_their_units() {
    let expected = "expected a number and a unit (ns, us, ms, s, min, h) in quotes, as in \"500us\": \
                    correct the file here";
    assert_eq!(sentence("\"1ms\"", "\"1 hour\""), format!("r.toml:3:10: string \"1 hour\", {expected}"));
    assert_eq!(sentence("\"1ms\"", "1"), format!("r.toml:3:10: integer `1`, {expected}"));
    assert_eq!(
        sentence("\"1ms\"", "\"0ms\""),
        "r.toml:3:10: period 0ns, expected 50us to 1s: choose a period the bus and the machine can hold, \
         as \"1ms\""
    );
}

// feature(program): errors with place, expected, found
#[test]
fn limits_of_an_axis_have_a_largest_number() {
    let keys = ["velocity", "acceleration", "jerk", "stop_deceleration", "torque", "maximum_step"];
    for (key, number) in keys.iter().flat_map(|key| [(key, "1.1e12"), (key, "1e308")]) {
        let other = if *key == "velocity" { "torque = 1.0" } else { "velocity = 2.0" };
        let second =
            if ["velocity", "torque"].contains(key) { other } else { "velocity = 2.0, torque = 1.0" };
        let found = sentence(LIMITS, &format!("limits = {{ {second}, {key} = {number} }}"));
        let expected =
            format!("{key} = {}, expected a number above 0, at most 1e12: correct {key}", shown(number));
        assert!(found.ends_with(&expected), "{found}");
    }
    for ends in ["[-1.7e308, 1.7e308]", "[0.0, 1e13]", "[-1e13, 0.0]"] {
        let found =
            sentence(LIMITS, &format!("limits = {{ position = {ends}, velocity = 2.0, torque = 1.0 }}"));
        let expected = ", expected two positions between -1e12 and 1e12 rad: correct position";
        assert!(found.ends_with(expected), "{found}");
    }
    let range = format!("{LIMITS}\nencoder = \"multi_turn\"\nencoder_range = 1e308");
    let found = sentence(LIMITS, &range);
    let expected = "encoder_range = 1e308, expected a number above 0, at most 1e12: correct encoder_range";
    assert!(found.ends_with(expected), "{found}");
}

/// Limits of [`GOOD`].
const LIMITS: &str = "limits = { velocity = 10.0, torque = 2.0 }";

/// A number as a sentence shows it.
fn shown(number: &str) -> String {
    if number == "1.1e12" { "1100000000000".to_owned() } else { number.to_owned() }
}

#[test]
fn numbers_have_ranges() {
    assert_eq!(
        sentence("priority = 80", "priority = 100"),
        "r.toml:4:12: priority = 100, expected 1 to 99: correct priority"
    );
    assert_eq!(
        sentence("encoder_counts = 4096", "encoder_counts = 0"),
        "r.toml:8:53: encoder_counts = 0, expected 1 to 4294967295: correct encoder_counts"
    );
    assert_eq!(
        sentence("rated_torque = 1.0", "rated_torque = nan"),
        "r.toml:33:16: rated_torque = NaN, expected a finite number above 0: correct rated_torque"
    );
}

#[test]
fn a_missing_key_is_named() {
    assert_eq!(
        sentence("mode = \"csp\"", ""),
        "r.toml:27:1: the key \"mode\" is missing from this table, expected mode = ...: add it"
    );
}

#[test]
fn impossible_mappings_are_refused() {
    assert_eq!(
        sentence("0x1600", "0x1A00"),
        "r.toml:11:22: PDO 0x1a00, expected 0x1600 to 0x17ff for outputs: correct the index"
    );
    assert_eq!(
        sentence("{ index = 0x607A, bits = 32 }", "{ index = 0x6040, bits = 16 }"),
        "r.toml:11:72: object 0x6040:00 mapped again in PDO 0x1600, expected every object once: \
         remove one of the two"
    );
    assert_eq!(
        sentence("index = 0x6064, bits = 32", "index = 0x6064, bits = 16"),
        "r.toml:12:96: 16 bits for object 0x6064:00, expected the 32 that CiA 402 gives it: correct bits"
    );
    assert_eq!(
        sentence("bits = 16", "bits = 256"),
        "r.toml:11:66: bits = 256, expected 1 to 255: correct bits"
    );
    let large: String =
        (0..60).map(|object| format!(", {{ index = {}, bits = 200 }}", 0x3000 + object)).collect();
    let found = sentence("bits = 32 }] }]\ninputs", &format!("bits = 32 }}{large}] }}]\ninputs"));
    assert!(
        found.ends_with(
            "1506 bytes of outputs up to PDO 0x1600, expected at most 1486, what one datagram carries: map less"
        ),
        "{found}"
    );
}

#[test]
fn an_axis_needs_the_objects_of_its_mode() {
    assert_eq!(
        sentence("mode = \"csp\"", "mode = \"csv\""),
        "r.toml:31:8: axis \"joint-1\" in mode csv without object 0x60ff, expected target velocity among \
         the outputs of \"drive-1\": map it, or choose another mode"
    );
    assert_eq!(
        sentence(
            "index = 0x2000, type = \"int8\", value = -3",
            "index = 0x6060, type = \"int8\", value = 9"
        ),
        "r.toml:31:8: axis \"joint-1\" in mode csp, expected the mode that start-up writes to 0x6060 ([9]): \
         remove that start-up SDO: the axis sets its mode itself"
    );
}

#[test]
fn names_are_unique_and_references_resolve() {
    assert_eq!(
        sentence("\"hub\"", "\"drive-2\""),
        "r.toml:22:8: a second SubDevice \"drive-2\"; position 0 has that name, expected every name once: \
         rename one"
    );
    assert_eq!(
        sentence("sub_device = \"drive-{}\"", "sub_device = \"drvie-{}\""),
        "r.toml:30:14: axis \"joint-1\" on the unknown SubDevice \"drvie-1\", expected the name of a \
         SubDevice on the bus: did you mean \"drive-1\"?"
    );
    assert_eq!(
        sentence("sub_device = \"drive-{}\"", "sub_device = \"drive-1\""),
        "r.toml:30:14: axis 2 of \"drive-1\" for axis \"joint-2\", expected axis 1, the only one it is \
         simulated with: name another SubDevice, or raise axes in its simulate"
    );
    assert_eq!(
        sentence("device = \"servo\"", "device = \"sevro\""),
        "r.toml:24:10: unknown device \"sevro\", expected servo: did you mean \"servo\"?"
    );
    assert_eq!(
        sentence("amplitude = 1.0\nfrequency = 1.0\n", "[controller.axis.joint-3]\n"),
        "r.toml:38:18: a movement for the unknown axis \"joint-3\", expected the name of an [[axis]]: \
         did you mean \"joint-1\"?"
    );
}

#[test]
fn devices_are_checked_though_no_sub_device_names_them() {
    let spare = |keys: &str| sentence("[bus]", &format!("[device.spare]\n{keys}\n\n[bus]"));
    assert_eq!(
        spare("alias = 3"),
        "r.toml:15:1: unknown key \"alias\", expected one of identity, pdos, startup, dc, every, lrw, latches, process_data_watchdog, \
         pdi_watchdog, simulate, group: move it to [[bus.sub_device]]"
    );
    assert_eq!(
        spare("simulate = { kind = \"servo_drive\", inertia = -1 }"),
        "r.toml:15:46: inertia = -1, expected a finite number above 0: correct inertia"
    );
    let misspelt =
        "name = \"hub\"\ndevice = \"spare\"\n\n[devise.spare]\n[[bus.sub_device]]\nname = \"other\"";
    let found = sentence("name = \"hub\"", misspelt);
    assert!(
        found.contains("unknown key \"devise\"") && found.ends_with("did you mean \"device\"?"),
        "{found}"
    );
}

#[test]
fn start_up_values_fit_their_types() {
    assert_eq!(
        sentence("value = -3", "value = 200"),
        "r.toml:25:53: the value 200 for object 0x2000:00, expected a whole number from -128 to 127 (int8): \
         correct the value or its type"
    );
    assert_eq!(
        sentence("value = -3", "value = 1e2"),
        "r.toml:25:53: the value 100.0 for object 0x2000:00, expected a whole number from -128 to 127 (int8), without \
         point or exponent: correct the value or its type"
    );
    assert_eq!(
        sentence("type = \"int8\"", "type = \"int9\""),
        "r.toml:25:37: unknown type \"int9\", expected one of bool, int8, int16, int32, int64, uint8, uint16, \
         uint32, uint64, float, double, string, octet_string: did you mean \"int8\"?"
    );
}

#[test]
fn branches_stand_in_the_order_of_the_frame() {
    let order = "expected the order in which a frame meets them: of each SubDevice port 3, then 1, then 2, \
                 each once and each with all that hangs on it: put the SubDevices into that order";
    let third = "\n[[bus.sub_device]]\nname = \"late\"\nparent = \"hub\"\nport = 3\n\n[[axis]]";
    assert_eq!(
        sentence("\n[[axis]]", third),
        format!("r.toml:30:8: port 3 of SubDevice 0 for SubDevice 3, {order}")
    );
    assert_eq!(
        sentence("device = \"servo\"", "device = \"servo\"\nparent = \"hbu\""),
        "r.toml:25:10: parent \"hbu\", expected a SubDevice described before this one: did you mean \"hub\"?"
    );
    let good = GOOD.replacen("\n[[axis]]", &third.replace("port = 3", "port = 2"), 1);
    let robot = RobotConfig::parse(&good, "r.toml").unwrap();
    let parent = robot.bus.sub_devices[3].parent.unwrap();
    assert_eq!((parent.position, parent.port), (0, 2));
}

// feature(signals): simulated terminals: analogue outputs and inputs, encoders on shafts, a force-torque sensor
#[test]
fn simulations_get_what_they_need_and_nothing_else() {
    assert_eq!(
        sentence("kind = \"coupler\"", "kind = \"coupler\", inertia = 1.0"),
        "r.toml:19:42: inertia for another kind of application, expected inertia only with a \
         servo_drive: remove it"
    );
    assert_eq!(
        sentence("{ kind = \"coupler\" }", "{ kind = \"digital_inputs\" }"),
        "r.toml:19:12: a simulated terminal without channels, expected channels = 1 to 64: add channels"
    );
    for (simulate, problem) in [
        ("kind = \"encoder\", channels = 3", "channels = 3, expected 1 to 2: correct channels"),
        (
            "kind = \"encoder\", channels = 1, follows = \"drive-9\"",
            "follows = \"drive-9\", expected the name of a SubDevice simulated as servo_drive: did you mean \"drive-1\"?",
        ),
        (
            "kind = \"encoder\", channels = 1, follows = \"drive-1\", rate = 5.0",
            "rate together with follows = \"drive-1\", expected either its own rate, or the shaft \
             that it follows: remove one of the two",
        ),
        (
            "kind = \"encoder\", channels = 1, encoder_counts = 5",
            "encoder_counts of an encoder that follows no shaft, expected rate, or encoder_counts with follows: add follows",
        ),
        (
            "kind = \"force_torque_sensor\", channels = 6",
            "channels for another kind of application, expected channels only with digital or \
             analogue channels, or encoders: remove it",
        ),
        (
            "kind = \"analogue_output\", channels = 4, amplitude = 1.0",
            "amplitude for another kind of application, expected amplitude only with an \
             analogue_input or a force_torque_sensor: remove it",
        ),
        (
            "kind = \"analogue_input\", channels = 4, source = \"outputs\", offset = 1.0",
            "offset together with source = \"outputs\", expected offset only with source = \
             \"sine\" or \"ramp\": remove one of the two",
        ),
        (
            "kind = \"analogue_input\", channels = 4, frequency = -1.0",
            "frequency = -1, expected a finite number, 0 or above: correct frequency",
        ),
        (
            "kind = \"digital_inputs\", channels = 4, rate = 1.0",
            "rate for another kind of application, expected rate only with an encoder: remove it",
        ),
    ] {
        let found = sentence("kind = \"coupler\"", simulate);
        assert!(
            found.starts_with("r.toml:19:") && found.ends_with(problem),
            "{found}\n expected {problem}"
        );
    }
}

#[test]
fn a_controller_asks_no_more_than_the_limits_allow() {
    assert_eq!(
        sentence("amplitude = 1.0", "amplitude = 2.0"),
        "r.toml:38:13: a swing of axis \"joint-1\" at up to 16.316 rad/s, expected at most its velocity \
         limit, 10 rad/s: lower amplitude or frequency"
    );
    assert_eq!(
        sentence("velocity = 10.0", "maximum_step = 0.001, velocity = 10.0"),
        "r.toml:34:27: maximum_step = 0.001, expected at least 0.010000 rad, a period at the velocity \
         limit: raise it, or lower the velocity limit"
    );
}

// feature(program): limits with which an axis cannot move are refused, with the line of the file
#[test]
fn limits_of_an_axis_have_a_smallest_number() {
    let found = sentence("velocity = 10.0", "velocity = 1e-300");
    let expected = "velocity = 1e-300, expected at least 1e-6 rad/s: slower axes do not move: raise it";
    assert_eq!(found, format!("r.toml:34:23: {expected}"));
    let found = sentence("velocity = 10.0", "position = [0.0, 0.0], velocity = 10.0");
    let expected = "position = [0, 0], expected a lowest position below the highest, in rad; an axis without limits \
                    has no position: correct position";
    assert!(found.ends_with(expected), "{found}");
    for window in ["1e300", "1.1e12"] {
        let with_window = format!("{LIMITS}\nfollowing_error = {{ window = {window} }}");
        let found = sentence(LIMITS, &with_window);
        assert!(found.starts_with("r.toml:35:30: window = "), "{found}");
    }
}

#[test]
fn a_stop_brakes_at_least_as_hard_as_a_motion() {
    assert_eq!(
        sentence("velocity = 10.0", "acceleration = 1e3, stop_deceleration = 999.0, velocity = 10.0"),
        "r.toml:34:52: stop_deceleration = 999, expected at least the acceleration limit, 1000 rad/s\u{b2}: raise it, lower \
         acceleration, or leave it out"
    );
    // A swing that would be clamped.
    let found = sentence("velocity = 10.0", "acceleration = 10.0, velocity = 10.0");
    let begins = "r.toml:38:13: a swing of axis \"joint-1\" with up to ";
    let ends = "expected at most its acceleration limit, 10 rad/s\u{b2}: lower amplitude or frequency";
    assert!(found.starts_with(begins) && found.ends_with(ends), "{found}");
    let found = sentence("velocity = 10.0", "jerk = 100.0, velocity = 10.0");
    let ends = "expected at most its jerk limit, 100 rad/s\u{b3}: lower amplitude or frequency";
    assert!(found.starts_with(begins) && found.ends_with(ends), "{found}");
}

#[test]
fn axis_at_its_speed_limit_is_plausible() {
    let limits = "limits = { velocity = 10.0, torque = 2.0 }";
    let found = sentence(limits, &format!("{limits}\nfeedback_velocity = 9.5"));
    assert_eq!(
        found,
        "r.toml:35:21: feedback_velocity = 9.5, expected at least its limit of velocity, 10 rad/s: raise it to the speed at \
         which the axis can be moved at all, or leave it out"
    );
    let found = sentence(limits, &format!("{limits}\nfeedback_velocity = 0.0"));
    assert!(found.starts_with("r.toml:35:21: feedback_velocity = 0"), "{found}");
}

// feature(ipc): `run --controller external`, `kind = "external"`
#[test]
fn controller_process_is_single_with_deadline_within_period() {
    let sinusoid = "kind = \"sinusoid\"\namplitude = 1.0\nfrequency = 1.0";
    for (bad, sentence_of_it) in [
        (
            "kind = \"external\"\ndeadline = \"800us\"",
            "r.toml:38:12: deadline 800us, expected 10us to 750us: leave the last quarter of the period to the frame, as \
             \"500us\" of \"1ms\"",
        ),
        (
            "kind = \"external\"\nmax_late = 0",
            "r.toml:38:12: max_late = 0, expected 1 to 1000: correct max_late",
        ),
        (
            "kind = \"hold\"\nmax_late = 3",
            "r.toml:38:12: max_late for hold, expected kind = \"external\": change kind or remove this",
        ),
        (
            "kind = \"external\"\namplitude = 1.0",
            "r.toml:38:13: amplitude for external, expected kind = \"sinusoid\": change kind or remove this",
        ),
    ] {
        assert_eq!(sentence(sinusoid, bad), sentence_of_it);
    }
    let two = "[[controller]]\nkind = \"external\"\n[[controller]]\nname = \"other\"\nkind = \"external\"";
    assert_eq!(
        spoiled(&GOOD.replace(sinusoid, ""), "[controller]", two).to_string(),
        "r.toml:40:8: a second controller of kind external, \"other\", expected one at most: let one process control all of \
         their axes"
    );
}

#[test]
fn a_missing_file_is_named() {
    let path = std::path::Path::new("/no/such/robot.toml");
    let error = RobotConfig::read(path, onbeat_robot::Overrides::default()).unwrap_err().to_string();
    assert_eq!(
        error,
        "/no/such/robot.toml: cannot be read (No such file or directory (os error 2)), expected a robot \
         file in TOML: check the path"
    );
}
