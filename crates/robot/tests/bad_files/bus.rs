//! SubDevices that are repeated, in groups, in slow groups, or may be missing; and their clocks.

use super::*;

#[test]
fn repeated_entries_need_a_place_for_their_number() {
    assert_eq!(
        sentence("\"drive-{}\"", "\"drive\""),
        "r.toml:22:8: the name \"drive\" for every one of count, expected {} where the number goes: \
         write it as \"joint-{}\""
    );
    assert_eq!(
        sentence("count = 2", ""),
        "r.toml:22:8: {} in the name \"drive-{}\" without a count, expected {} only with count: \
         add count or remove the {}"
    );
    assert_eq!(
        sentence("count = 2", "count = 0"),
        "r.toml:23:9: count = 0, expected 1 to 4096: correct count"
    );
}

// feature(main-device): no axis, brake or interlock on a SubDevice without process data in every cycle
#[test]
fn axis_and_its_safety_inputs_are_exchanged_every_cycle() {
    let expected = "with process data every 4 cycles, expected a SubDevice with process data in every cycle: \
                    remove every there, or name another SubDevice";
    assert_eq!(
        sentence("dc = {}", "dc = {}\nevery = 4"),
        format!("r.toml:31:14: axis \"joint-1\" on \"drive-1\" {expected}")
    );
    let terminal = "\n[[bus.sub_device]]\nname = \"io\"\nevery = 4\n\
                    simulate = { kind = \"digital_outputs\", channels = 8 }\n";
    let with_terminal = |kind: &str| {
        GOOD.replacen("\n[[axis]]", &format!("{}\n[[axis]]", terminal.replace("digital_outputs", kind)), 1)
    };
    assert!(RobotConfig::parse(&with_terminal("digital_outputs"), "r.toml").is_ok());
    let brake = "limits = { velocity = 10.0, torque = 2.0 }\nbrake = { release = \"10ms\", engage = \"10ms\", output = { sub_device = \"io\", channel = 1 } }";
    let braked =
        spoiled(&with_terminal("digital_outputs"), "limits = { velocity = 10.0, torque = 2.0 }", brake)
            .to_string();
    assert!(braked.contains(&format!("the brake of axis \"joint-1\" on \"io\" {expected}")), "{braked}");
    let interlock = "\n[[interlock]]\nname = \"door\"\nkind = \"stop\"\nsub_device = \"io\"\nchannel = 1\n\n[controller]";
    let locked = spoiled(&with_terminal("digital_inputs"), "\n[controller]", interlock).to_string();
    assert!(locked.contains(&format!("interlock \"door\" on \"io\" {expected}")), "{locked}");
    let watchdog = terminal.replace("every = 4", "every = 60\nprocess_data_watchdog = \"100ms\"");
    let watched =
        RobotConfig::parse(&GOOD.replacen("\n[[axis]]", &format!("{watchdog}\n[[axis]]"), 1), "r.toml")
            .unwrap_err()
            .to_string();
    assert!(
        watched.contains("process_data_watchdog = 100ms, expected two periods of 60ms to 2min, or \"off\""),
        "{watched}"
    );
    let robot = RobotConfig::parse(
        &with_terminal("digital_outputs").replace("every = 4", "every = 60\nlrw = false"),
        "r.toml",
    )
    .unwrap();
    let io = &robot.bus.sub_devices[3];
    let watchdog = io.process_data_watchdog.time();
    assert_eq!((io.every, io.lrw, watchdog), (60, false, Some(std::time::Duration::from_millis(240))));
}

#[test]
fn clocks_and_their_pulses_fit_the_period() {
    assert_eq!(
        sentence("distributed_clocks = true", ""),
        "r.toml:7:6: dc on a bus without distributed clocks, expected them on: \
         set distributed_clocks = true in [bus] or remove dc"
    );
    assert_eq!(
        sentence("dc = {}", "latches = [\"single\"]"),
        "r.toml:7:11: [\"single\"], expected two of \"single\" and \"continuous\", of inputs 0 and 1: correct latches"
    );
    assert_eq!(
        sentence("dc = {}", "latches = [\"single\", \"newest\", \"single\"]"),
        "r.toml:7:11: [\"single\", \"newest\", \"single\"], expected two of \"single\" and \"continuous\", of inputs 0 and 1: \
         correct latches"
    );
    let latches = GOOD.replace("dc = {}", "latches = [\"single\", \"continuous\"]");
    assert_eq!(
        spoiled(&latches, "distributed_clocks = true", "").to_string(),
        "r.toml:7:11: latches on a bus without distributed clocks, expected them on: set distributed_clocks = true in [bus] \
         or remove latches"
    );
    assert_eq!(
        sentence("dc = {}", "dc = { sync1 = \"1500us\" }"),
        "r.toml:7:16: sync1 = 1500us, expected a multiple of SYNC0's 1ms, up to 4s: correct sync1, \
         or leave it out for SYNC1 with every SYNC0"
    );
    assert_eq!(
        sentence("dc = {}", "dc = { sync1 = \"5s\" }"),
        "r.toml:7:16: sync1 = 5s, expected a multiple of SYNC0's 1ms, up to 4s: correct sync1, or \
         leave it out for SYNC1 with every SYNC0"
    );
    assert_eq!(
        sentence("dc = {}", "dc = { sync1_delay = \"1ms\" }"),
        "r.toml:7:22: sync1_delay = 1ms, expected less than SYNC0's 1ms: shorten it, or let SYNC1 come more seldom by \
         sync1"
    );
    assert_eq!(
        sentence("dc = {}", "dc = { sync0 = \"1500us\" }"),
        "r.toml:7:16: sync0 = 1500us, expected a multiple or a whole fraction of the period 1ms: \
         correct sync0, or leave it out to follow the period"
    );
    assert_eq!(
        sentence("dc = {}", "dc = { shift = \"1ms\" }"),
        "r.toml:7:16: shift = 1ms, expected less than SYNC0's 1ms: shorten the shift"
    );
}

/// Settings that the MainDevice would refuse are reported at their key in the robot file: pulses
/// beyond its registers, outputs too seldom for any watchdog, an invalid alias.
#[test]
fn main_device_refusals_are_reported_at_their_key() {
    assert_eq!(
        sentence("dc = {}", "dc = { sync0 = \"500ns\" }"),
        "r.toml:7:16: sync0 = 500ns, expected 1us to 4s: give another sync0, or a smaller every"
    );
    assert_eq!(
        sentence("dc = {}", "dc = { sync0 = \"4200ms\" }"),
        "r.toml:7:16: sync0 = 4200ms, expected 1us to 4s: give another sync0, or a smaller every"
    );
    let seldom = GOOD.replace("period = \"1ms\"", "period = \"1s\"").replace("dc = {}", "");
    let seldom = seldom.replacen("name = \"hub\"", "name = \"hub\"\nevery = 100", 1);
    assert_eq!(
        RobotConfig::parse(&seldom, "r.toml").unwrap_err().to_string(),
        "r.toml:19:9: outputs every 100s, expected every 1min or more often, for a watchdog of two periods: lower every, or set \
         process_data_watchdog = \"off\""
    );
    let alias = |alias: &str| sentence("count = 2", &format!("count = 2\nalias = {alias}"));
    assert_eq!(
        alias("0"),
        "r.toml:24:9: alias = 0, expected 1 to 65535: 0 is the alias of a SubDevice that has none: leave alias out, or give another"
    );
    assert_eq!(alias("65536"), "r.toml:24:9: alias = 65536, expected 1 to 65535: correct alias");
    assert_eq!(alias("-1"), "r.toml:24:9: alias = -1, expected 1 to 65535: correct alias");
    assert_eq!(
        alias("65535"),
        "r.toml:24:9: alias = 65535, counted up to 65536, expected 1 to 65535 for each of count: begin with a lower one"
    );
}

// feature(main-device): groups of SubDevices that stand and fall together
#[test]
fn a_group_has_two_members_or_more() {
    let grouped = |drives: &str, hub: &str| {
        let text = GOOD.replace("dc = {}", &format!("dc = {{}}\ngroup = \"{drives}\""));
        text.replace("name = \"hub\"", &format!("name = \"hub\"\ngroup = \"{hub}\""))
    };
    let robot = RobotConfig::parse(&grouped("beam", "beam"), "r.toml").unwrap();
    let groups: Vec<_> = robot.bus.sub_devices.iter().map(|it| it.group.as_deref()).collect();
    assert_eq!(groups, [Some("beam"); 3]);
    assert_eq!(
        RobotConfig::parse(&grouped("beam", "bean"), "r.toml").unwrap_err().to_string(),
        "r.toml:20:9: group \"bean\" of one SubDevice, expected two or more SubDevices: did you \
         mean \"beam\"?"
    );
    assert_eq!(
        sentence("name = \"hub\"", "name = \"hub\"\ngroup = \"beam\""),
        "r.toml:19:9: group \"beam\" of one SubDevice, expected two or more SubDevices: name it at \
         the others too, or remove it"
    );
}

// feature(main-device): SubDevices that the bus may be without: optional, or hot-connect groups by alias or identity
#[test]
fn presences_and_groups_do_not_contradict_themselves() {
    const HUB: &str = "name = \"hub\"";
    let robot = RobotConfig::parse(
        &GOOD.replace(HUB, &format!("{HUB}\npresence = \"optional\"\nalias = 5")),
        "r.toml",
    );
    let presences: Vec<_> =
        robot.unwrap().bus.sub_devices.iter().map(|it| it.presence.to_string()).collect();
    assert_eq!(presences, ["optional", "required", "required"]);
    let hub = |lines: &str| sentence(HUB, &format!("{HUB}\n{lines}"));
    assert_eq!(
        hub("presence = \"sometimes\""),
        "r.toml:19:12: unknown value \"sometimes\", expected one of required, optional, hot_connect: correct or remove the value"
    );
    assert_eq!(
        hub("presence = \"optional\""),
        "r.toml:19:12: presence = \"optional\" without an alias or an identity, expected an alias \
         or an identity, which identifies it among the others: add an alias or an identity"
    );
    let drives = |hub: &str, drives: &str| {
        let text = GOOD.replace(HUB, &format!("{HUB}\n{hub}"));
        let text = text.replace("count = 2\ndevice", &format!("count = 2\n{drives}\ndevice"));
        RobotConfig::parse(&text, "r.toml").map(drop).map_err(|it| it.to_string())
    };
    let hot = "presence = \"hot_connect\"\ngroup = \"tool\"\nalias = 5";
    assert_eq!(drives(hot, "presence = \"hot_connect\"\ngroup = \"tool\""), Ok(()));
    assert_eq!(
        drives(hot, "group = \"tool\"").unwrap_err(),
        "r.toml:24:1: presence = \"required\" in the group \"tool\", expected \"hot_connect\", as of \"hub\", the first of that group: \
         give all of a group one presence, or take this one out of it"
    );
    let apart = "presence = \"hot_connect\"\ngroup = \"tool\"\n\n[[bus.sub_device]]\nname = \"between\"\n\n[[bus.sub_device]]\n\
                 name = \"last\"\npresence = \"hot_connect\"\ngroup = \"tool\"\n\n[[bus.sub_device]]\nname = \"drive-{}\"\ncount = 2";
    let text = GOOD.replace(HUB, &format!("{HUB}\nalias = 5\n{apart}").replace("drive-{}", "other-{}"));
    assert_eq!(
        RobotConfig::parse(&text, "r.toml").unwrap_err().to_string(),
        "r.toml:29:9: hot-connect group \"tool\" with another SubDevice in it, expected all of a group in a row, as they are plugged: \
         move this entry up"
    );
    assert_eq!(
        hub("group = \"\""),
        "r.toml:19:9: group = \"\", expected a name: name the group, or leave the key out"
    );
    let branch = "\n[[bus.sub_device]]\nname = \"first\"\npresence = \"hot_connect\"\ngroup = \"tool\"\nalias = 5\n\n\
                  [[bus.sub_device]]\nname = \"second\"\npresence = \"hot_connect\"\ngroup = \"tool\"\nparent = \"hub\"\nport = 2";
    let text = GOOD.replace(HUB, &format!("{HUB}\n{branch}"));
    assert_eq!(
        RobotConfig::parse(&text, "r.toml").unwrap_err().to_string(),
        "r.toml:29:9: hot-connect group \"tool\" with a cable to \"hub\", expected one cable to \
         the others, that of \"first\": attach it to a SubDevice of its group, or give it a \
         separate group"
    );
    let identity = "identity = { vendor_id = 2, product_code = 3 }";
    assert_eq!(
        drives(&format!("presence = \"hot_connect\"\n{identity}"), identity).unwrap_err(),
        "r.toml:23:1: the identity of \"hub\", where hot_connect has no alias, expected an alias \
         where two are alike: give each of the two a different alias"
    );
}

/// `packed` is off by default, and is true or false.
#[test]
fn bits_are_packed_where_the_file_says_so() {
    let of =
        |key: &str| RobotConfig::parse(&GOOD.replacen("[bus]\n", &format!("[bus]\n{key}"), 1), "r.toml");
    assert!(!of("").unwrap().bus.packed);
    assert!(of("packed = true\n").unwrap().bus.packed);
    let error = of("packed = 1\n").unwrap_err().to_string();
    assert!(error.contains("integer `1`, expected true or false"), "{error}");
}
