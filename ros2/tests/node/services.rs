//! Services and messages of the running bus.

use std::time::Duration;

use ipc::bus::{Bytes, CableEnd, Event, Happening, Severity};
use ipc::state::{Axis, DriveState, StopReason};

use super::support::{Cycle, Folder, Node, Peer, until};
use super::{Header, domain};

// feature(ros2): `~/get_sdo`, `~/set_sdo`, `~/al_states` of the running bus
#[test]
fn services_read_and_write_objects_and_report_states() {
    let (folder, domain) = (Folder::new("objects"), domain(5));
    let cycle = Cycle::start(&folder.0);
    let _node = Node::start(&folder.0, cycle.path(), domain);
    let peer = Peer::join(domain);
    let types = |service: &str| {
        let (package, name) = service.split_once('/').unwrap();
        ["Request_", "Response_"].map(|part| format!("{package}::srv::dds_::{name}_{part}"))
    };
    let (get, set, trigger) =
        (types("ethercat_msgs/GetSdo"), types("ethercat_msgs/SetSdo"), types("std_srvs/Trigger"));
    let gets = peer.client::<(Header, (i16, u16, u16, u8, String))>("rq/onbeat/get_sdoRequest", &get[0]);
    let mut got = peer.reader::<(Header, bool, String, String, f64)>("rr/onbeat/get_sdoReply", &get[1]);
    let sets =
        peer.client::<(Header, (i16, u16, u16, u8, String, String))>("rq/onbeat/set_sdoRequest", &set[0]);
    let mut done = peer.reader::<(Header, bool, String)>("rr/onbeat/set_sdoReply", &set[1]);
    let asks = peer.client::<(Header, u8)>("rq/onbeat/al_statesRequest", &trigger[0]);
    let mut told = peer.reader::<(Header, bool, String)>("rr/onbeat/al_statesReply", &trigger[1]);

    let write = |kind: &str, value: &str| (0, 0, 0x6065, 0, kind.to_owned(), value.to_owned());
    sets.write(((7, 1), write("uint32", "4000")), None).unwrap();
    let written = until("it is written", || done.take_next_sample().ok().flatten());
    assert_eq!(written.into_value(), ((7, 1), true, String::new()));
    gets.write(((7, 2), (0, 0, 0x6065, 0, "uint32".into())), None).unwrap();
    let read = until("it is read", || got.take_next_sample().ok().flatten());
    assert_eq!(read.into_value(), ((7, 2), true, String::new(), "4000".into(), 4000.0));
    gets.write(((7, 3), (0, 0, 0x5FFF, 0, "uint32".into())), None).unwrap();
    let failed = until("it is refused", || got.take_next_sample().ok().flatten().map(|it| it.into_value()));
    assert_eq!((failed.1, failed.2.as_str()), (false, "object does not exist"));
    sets.write(((7, 4), write("uint8", "4000")), None).unwrap();
    let failed =
        until("it is refused", || done.take_next_sample().ok().flatten().map(|it| it.into_value()));
    assert!(!failed.1 && failed.2.contains("expected a whole number from 0 to 255"), "{failed:?}");
    sets.write(((7, 6), write("uint24", "4000")), None).unwrap();
    let failed =
        until("it is refused", || done.take_next_sample().ok().flatten().map(|it| it.into_value()));
    assert!(!failed.1 && failed.2.contains("found type \"uint24\""), "{failed:?}");
    asks.write(((7, 5), 0), None).unwrap();
    let states = until("states", || told.take_next_sample().ok().flatten());
    assert_eq!(states.into_value(), ((7, 5), true, "drive: Op".into()));
}

// feature(ros2): enable and reset name each axis that is still stopped, and are no success then
#[test]
fn services_report_an_axis_that_stays_stopped() {
    let fault = Axis { drive_state: DriveState::Fault as u8, error_code: 0x7305, ..Axis::default() };
    let enabled = Axis { drive_state: DriveState::OperationEnabled as u8, ..Axis::default() };
    let not_homed = Axis { stop: StopReason::NotHomed as u8, ..enabled };
    let faulted = "right: its drive is in Fault, error code 0x7305";
    for (number, after, succeeds, part) in [(0, fault, false, faulted), (1, not_homed, true, "right: ")] {
        let (folder, domain) = (Folder::new("stopped"), domain(18 + number));
        let cycle = Cycle::with_axis(&folder.0, after);
        let _node = Node::start(&folder.0, cycle.path(), domain);
        let peer = Peer::join(domain);
        let kind = |part: &str| format!("std_srvs::srv::dds_::Trigger_{part}_");
        for name in ["enable", "reset_faults"] {
            let asks = peer.client::<(Header, u8)>(&format!("rq/onbeat/{name}Request"), &kind("Request"));
            let reply = format!("rr/onbeat/{name}Reply");
            let mut told = peer.reader::<(Header, bool, String)>(&reply, &kind("Response"));
            asks.write(((7, 1), 0), None).unwrap();
            let (_, success, message) = until(name, || told.take_next_sample().ok().flatten()).into_value();
            assert_eq!(success, succeeds, "{name}: {message}");
            assert!(message.contains(part), "{name}: {message}");
        }
    }
}

// feature(ros2): `~/sdo_information`, `~/bus_status` of the running bus
#[test]
fn services_report_the_object_dictionary_and_all_counters() {
    let (folder, domain) = (Folder::new("information"), domain(6));
    let cycle = Cycle::start(&folder.0);
    let _node = Node::start(&folder.0, cycle.path(), domain);
    let peer = Peer::join(domain);
    let kind = |part: &str| format!("ethercat_msgs::srv::dds_::GetSdo_{part}_");
    let asks = peer.client::<(Header, (i16, u16, u16, u8, String))>(
        "rq/onbeat/sdo_informationRequest",
        &kind("Request"),
    );
    let mut told = peer
        .reader::<(Header, bool, String, String, f64)>("rr/onbeat/sdo_informationReply", &kind("Response"));
    let mut ask = |number: u64, index: u16| {
        asks.write(((7, number), (0, 0, index, 0, String::new())), None).unwrap();
        until("information", || told.take_next_sample().ok().flatten()).into_value()
    };
    assert_eq!(ask(1, 0), ((7, 1), true, String::new(), "0x1018 0x6065".into(), 2.0));
    let (_, success, _, text, number) = ask(2, 0x6065);
    let entry: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(success && number == 7.0, "{text}");
    assert_eq!((entry["name"].as_str(), entry["type"].as_str()), (Some("Window"), Some("uint32")));
    assert_eq!((entry["bits"].as_u64(), entry["access"].as_u64()), (Some(32), Some(0xBF)));
    assert_eq!((entry["object"].as_str(), entry["object_code"].as_u64()), (Some("Window"), Some(7)));
    let (_, success, why, ..) = ask(3, 0x5FFF);
    assert_eq!((success, why.as_str()), (false, "object does not exist"));

    let trigger = |part: &str| format!("std_srvs::srv::dds_::Trigger_{part}_");
    let asks = peer.client::<(Header, u8)>("rq/onbeat/bus_statusRequest", &trigger("Request"));
    let mut told = peer.reader::<(Header, bool, String)>("rr/onbeat/bus_statusReply", &trigger("Response"));
    asks.write(((7, 4), 0), None).unwrap();
    let (_, success, text) =
        until("the state of the bus", || told.take_next_sample().ok().flatten()).into_value();
    let status: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(success && status["sub_devices"][0]["state"] == "Op", "{text}");
    assert_eq!(status["sub_devices"][0]["errors"]["pdi_errors"], 3, "{text}");
}

// feature(ros2): a client is answered that has called before the service knew its reader of replies
#[test]
fn a_reply_waits_until_the_client_can_hear_it() {
    let (folder, domain) = (Folder::new("early"), domain(13));
    let cycle = Cycle::start(&folder.0);
    let _node = Node::start(&folder.0, cycle.path(), domain);
    let peer = Peer::join(domain);
    let kind = |part: &str| format!("std_srvs::srv::dds_::Trigger_{part}_");
    let asks = peer.client::<(Header, u8)>("rq/onbeat/al_statesRequest", &kind("Request"));
    asks.write(((7, 1), 0), None).unwrap();
    // Time for an answer that no client receives.
    std::thread::sleep(Duration::from_millis(300));
    let mut told = peer.reader::<(Header, bool, String)>("rr/onbeat/al_statesReply", &kind("Response"));
    let told = until("the answer", || told.take_next_sample().ok().flatten());
    assert_eq!(told.into_value(), ((7, 1), true, "drive: Op".into()));
}

/// diagnostic_msgs/DiagnosticArray.
type EventArray = (((i32, u32), String), Vec<(u8, String, String, String, Vec<(String, String)>)>);

// feature(ros2): `~/events`: state changes, emergencies, losses, returns, stops, with the numbers of their cycles
#[test]
fn bus_events_are_messages_with_cycle_numbers() {
    let (folder, domain) = (Folder::new("events"), domain(7));
    let cycle = Cycle::start(&folder.0);
    let _node = Node::start(&folder.0, cycle.path(), domain);
    let peer = Peer::join(domain);
    let mut events =
        peer.reader::<EventArray>("rt/onbeat/events", "diagnostic_msgs::msg::dds_::DiagnosticArray_");
    let mut number = 0;
    let ((stamp, _), mut told) = until("an event", || {
        number += 1;
        let what = Happening::Emergency {
            position: 0,
            error_code: 0x2310,
            error_register: 2,
            data: Bytes(vec![0; 5]),
        };
        let sentence = "SubDevice 0 \"drive\" sends an emergency".to_owned();
        let end = |position| CableEnd { position, port: Some(1) };
        let between = Some([None, Some(4)].map(end));
        cycle.publish(Event {
            cycle: number,
            at_ns: 1,
            severity: Severity::Error,
            sentence,
            between,
            what,
        });
        events.take_next_sample().ok().flatten()
    })
    .into_value();
    let (level, name, message, robot, values) = told.remove(0);
    assert_eq!((level, name.as_str(), robot.as_str()), (2, "onbeat: emergency", "base"));
    assert_eq!(message, "SubDevice 0 \"drive\" sends an emergency");
    let value = |key: &str| values.iter().find(|(it, _)| it == key).map(|(_, value)| value.as_str());
    let cycle: u64 = value("cycle").unwrap().parse().unwrap();
    assert!((1..=number).contains(&cycle), "{values:?}");
    assert_eq!((value("error_code"), value("position")), (Some("8976"), Some("0")), "{values:?}");
    assert_eq!(
        (value("between.1.position"), value("between.1.port")),
        (Some("4"), Some("1")),
        "{values:?}"
    );
    assert_eq!(value("between.0.position"), Some("null"), "{values:?}");
    assert!(stamp.0 > 0, "{stamp:?}");
}
