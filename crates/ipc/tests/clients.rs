//! State, commands, description and diagnostics across the interface; the rights; the search.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod support;

use std::time::Duration;

use onbeat_ipc::client::{AttachError, Client, ForceError, LeaseError, PortError, Refusal};
use onbeat_ipc::command::{AxisTarget, Command, Read, SendError, Twist};
use onbeat_ipc::diagnostics::LONGEST;
use onbeat_ipc::force::Force;
use onbeat_ipc::server::Builder;
use onbeat_ipc::state::ReadError;
use onbeat_ipc::units::RadiansPerSecond;
use support::{Folder, description, eventually, state};
use types::Value;

/// `Debug` of an error, which a `main` prints that returns it, is its sentence.
// feature(ipc): a `main` that returns an error prints its sentence
#[test]
fn a_main_that_returns_an_error_prints_its_sentence() {
    let folder = Folder::new();
    let error: Box<dyn std::error::Error> = Client::open(&folder.socket("nobody")).unwrap_err().into();
    assert!(error.to_string().starts_with("no cycle answers at "), "{error}");
    assert_eq!(format!("{error:?}"), error.to_string());
    assert_eq!(format!("{:?}", ReadError::Nothing), ReadError::Nothing.to_string());
}

// feature(ipc): state, commands, description and diagnostics cross to other processes
#[test]
fn state_commands_description_and_diagnostics_cross() {
    let folder = Folder::new();
    let (mut ends, server) = folder.builder("robot").open().unwrap();
    let ipc = Client::open(&folder.socket("robot")).unwrap();
    assert_eq!(ipc.description(), &description());
    assert_eq!((ipc.name(), ipc.process()), ("robot", std::process::id()));

    assert_eq!(ipc.state().read(), Err(ReadError::Nothing));
    ends.state.publish(&state(1));
    ends.state.publish(&state(2));
    assert_eq!(ipc.state().read(), Ok(state(2)));
    assert_eq!(ipc.state().heartbeat(), 2);

    assert_eq!(ipc.diagnostics(), Err(ReadError::Nothing));
    server.diagnostics("{\"late\": \"nothing ü\"}").unwrap();
    assert_eq!(ipc.diagnostics().unwrap(), "{\"late\": \"nothing ü\"}");
    let long = "x".repeat(LONGEST);
    server.diagnostics(&long).unwrap();
    assert_eq!(ipc.diagnostics().unwrap(), long);
    assert_eq!(server.diagnostics(&"x".repeat(LONGEST + 1)).unwrap_err().found, LONGEST + 1);

    let mut command = ends.command.blank();
    assert_eq!(ends.command.newest(&mut command), Read::Nothing);
    let mut writer = ipc.command().unwrap();
    assert_eq!(ends.command.newest(&mut command), Read::Nothing);
    let given = Command {
        time_to_live_ns: 5,
        twist: Some(Twist::new(1.0, f64::NAN, -2.0)),
        axes: vec![Some(AxisTarget::Velocity(RadiansPerSecond(f64::INFINITY))), None],
        signals: vec![None, Some(Value::Real(-7.5))],
        ..Command::default()
    };
    assert_eq!(writer.send(&given), Ok(1));
    assert_eq!(ends.command.newest(&mut command), Read::New);
    assert_eq!((command.sequence, command.time_to_live_ns, &command.axes), (1, 5, &given.axes));
    assert_eq!(command.signals, given.signals);
    assert!(command.stamp_ns > 0 && command.twist.unwrap().y.0.is_nan());
    assert_eq!(ends.command.newest(&mut command), Read::Same);
    assert_eq!(writer.send(&Command::default()), Ok(2), "for no axis in particular");
    assert_eq!(ends.command.newest(&mut command), Read::New);
    assert_eq!(
        (command.sequence, &command.axes[..], command.twist),
        (2, &[None, None][..], None),
        "none is asked"
    );
    let three = Command { axes: vec![None; 3], ..Command::default() };
    assert_eq!(writer.send(&three), Err(SendError::Axes { expected: 2, found: 3 }));
    assert_eq!(command.signals, [None, None], "both stay as they are");
    assert_eq!(ipc.description().commanded().collect::<Vec<_>>(), [0, 2]);
    let one = Command { signals: vec![None], ..Command::default() };
    assert_eq!(writer.send(&one), Err(SendError::Signals { expected: 2, found: 1 }));

    assert!(!ipc.has_ended());
    drop(server);
    assert!(ipc.has_ended());
    assert_eq!(writer.send(&given), Err(SendError::Ended));
    assert_eq!(ipc.state().read(), Ok(state(2)), "the last state stays");
    assert!(!folder.socket("robot").exists());
    assert!(matches!(Client::open(&folder.socket("robot")), Err(AttachError::NoServer { .. })));
}

// feature(signals): rights to force inputs and outputs
#[test]
fn force_needs_no_lease_and_may_be_refused() {
    let folder = Folder::new();
    let (mut ends, _door) = folder.builder("robot").open().unwrap();
    let ipc = Client::open(&folder.socket("robot")).unwrap();
    let _held_by_another = ipc.command().unwrap();
    let time = Duration::from_secs(5);
    ipc.force(1, Value::Bool(true), time).unwrap();
    ipc.force(2, Value::Signed(-3), time).unwrap();
    ipc.release(Some(1)).unwrap();
    ipc.release(None).unwrap();
    let expected = [
        Force::Hold { signal: 1, value: Value::Bool(true), time },
        Force::Hold { signal: 2, value: Value::Signed(-3), time },
        Force::Release(1),
        Force::ReleaseAll,
    ];
    for force in expected {
        let (taken, by) = ends.forces.poll().unwrap();
        assert_eq!((taken, by.process), (force, std::process::id()));
    }
    let error = ipc.force(2, Value::Real(40_000.0), time).unwrap_err().to_string();
    assert_eq!(error, "40000 for the signal \"valve\", expected -32768 to 32767");
    assert!(ipc.release(Some(3)).unwrap_err().to_string().contains("there is no signal 3"));
    assert_eq!(ends.forces.poll(), None);
    // A cycle that permits no force.
    let mut builder = Builder::new("closed", &description());
    builder.folder(&folder.0);
    let (_ends, _door) = builder.open().unwrap();
    let closed = Client::open(&folder.socket("closed")).unwrap();
    let error = closed.force(1, Value::Bool(true), time).unwrap_err();
    assert!(
        matches!(&error, ForceError::NotPermitted { why } if why.contains("does not permit forced signals")),
        "{error}"
    );
}

// feature(ipc): one commands at a time
#[test]
fn one_client_commands_and_its_last_command_counts() {
    let folder = Folder::new();
    let (mut ends, _door) = folder.builder("robot").open().unwrap();
    let ipc = Client::open(&folder.socket("robot")).unwrap();
    let mut command = ends.command.blank();
    for round in 0..40_u64 {
        let mut writer = ipc.command().unwrap();
        match ipc.command() {
            Err(LeaseError::Taken { process }) => assert_eq!(process, std::process::id()),
            other => panic!("the lease was given twice: {other:?}"),
        }
        for _ in 0..=round % 3 {
            writer.send(&Command { time_to_live_ns: round + 1, ..Command::default() }).unwrap();
        }
        drop(writer);
        // The last command of a holder that gave the lease back is read, even if the next one has
        // it already.
        let next = ipc.command().unwrap();
        assert_eq!(ends.command.newest(&mut command), Read::New);
        assert_eq!((command.time_to_live_ns, command.sequence), (round + 1, round % 3 + 1));
        assert_eq!(ends.command.newest(&mut command), Read::Same);
        assert_eq!(ends.command.newest(&mut command), Read::Same);
        drop(next);
    }
}

#[test]
fn ports_that_are_not_there_or_in_use_are_refused_by_name() {
    let folder = Folder::new();
    let mut builder = folder.builder("robot");
    let mut port = builder.port("imu", onbeat_ipc::channel::Kind::Message { size: 16, depth: 4 }).unwrap();
    let (_ends, _door) = builder.open().unwrap();
    let ipc = Client::open(&folder.socket("robot")).unwrap();
    assert_eq!(ipc.description().ports[0].name, "imu");
    match ipc.port("sonar") {
        Err(error @ PortError::NoSuchPort { .. }) => {
            assert_eq!(error.to_string(), "there is no port `sonar`; there are: imu");
        }
        other => panic!("{other:?}"),
    }
    assert!(
        matches!(ipc.port("imu"), Err(PortError::Refused { source: Refusal::NotReady(_), .. })),
        "it is not bound"
    );
    port.bind();
    let channel = ipc.port("imu").unwrap();
    assert!(
        matches!(ipc.port("imu"), Err(PortError::Taken { process, .. }) if process == std::process::id())
    );
    drop(channel);
    drop(ipc.port("imu").unwrap());
    eventually("the port is closed", || (!port.is_open()).then_some(()));
    assert_eq!(port.times_opened(), 2);
}
