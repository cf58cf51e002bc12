//! A controller process across the interface: requests, answers, the role, and whatever else is
//! written.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod support;

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use onbeat_ipc::client::{Client, ControllerError};
use onbeat_ipc::command::AxisTarget;
use onbeat_ipc::controller::{
    Answer, AxisAnswer, CycleEnd, DriveRequest, Received, Request as Question, VERSION, Wrong,
};
use onbeat_ipc::service::protocol::Request;
use onbeat_ipc::units::Radians;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketType,
};
use rustix::time::{ClockId, clock_gettime};
use support::Folder;

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Asks, and waits for an answer for five seconds.
fn exchange(end: &mut CycleEnd, request: &Question, answer: &mut Answer) -> Received {
    end.ask(request);
    let deadline = now_ns() + 5_000_000_000;
    loop {
        match end.newest(answer) {
            Received::Nothing if now_ns() < deadline => end.wait(deadline),
            heard => return heard,
        }
    }
}

// feature(ipc): one controller process of the same version; what is no answer is refused; a hostile one keeps no wait beyond its time
#[test]
fn requests_answers_and_the_end_of_the_cycle_arrive() {
    let folder = Folder::new();
    let mut builder = folder.builder("robot");
    let mut end = builder.controller();
    let (_ends, server) = builder.open().unwrap();
    let ipc = Client::open(&folder.socket("robot")).unwrap();
    let mut answer = end.blank_answer();
    assert_eq!((end.newest(&mut answer), end.holder()), (Received::Nothing, None));
    let process = thread::spawn(move || {
        let mut controller = ipc.controller().unwrap();
        let mut seen = Vec::new();
        while let Some(turn) = controller.wait() {
            assert_eq!(*turn.answer, Answer { cycle: turn.request.cycle, ..blank() });
            seen.push(turn.request.clone());
            turn.answer.axes[0].target = Some(AxisTarget::Position(Radians(turn.request.axes[0].position)));
            turn.answer.axes[1].request = Some(DriveRequest::Halt);
            turn.send();
        }
        seen
    });
    support::eventually("a holder", || {
        end.newest(&mut answer);
        end.holder()
    });
    let mut asked = Vec::new();
    for cycle in 1..=200 {
        let mut request = end.blank_request();
        (request.cycle, request.period_ns, request.stopping) = (cycle, 1_000_000, cycle % 7 == 0);
        request.axes[0].position = cycle as f64;
        assert_eq!(exchange(&mut end, &request, &mut answer), Received::Answer);
        assert_eq!(answer.cycle, cycle);
        assert_eq!(answer.axes[0].target, Some(AxisTarget::Position(Radians(cycle as f64))));
        assert_eq!(answer.axes[1].request, Some(DriveRequest::Halt));
        asked.push(request);
    }
    assert_eq!(u64::from(std::process::id()), end.counters().read().process);
    assert_eq!(server.controller().unwrap(), end.counters().read());
    drop(server);
    assert_eq!(process.join().unwrap(), asked);
    assert_eq!((end.newest(&mut answer), end.holder()), (Received::Nothing, None));
}

fn blank() -> Answer {
    Answer { axes: vec![AxisAnswer::default(); 2], outputs: vec![None; 3], ..Answer::default() }
}

// feature(ipc): one controller process of the same version; what is no answer is refused; a hostile one keeps no wait beyond its time
#[test]
fn role_has_one_holder_of_the_same_version() {
    let folder = Folder::new();
    let mut builder = folder.builder("robot");
    let mut end = builder.controller();
    let (_ends, _door) = builder.open().unwrap();
    let ipc = Client::open(&folder.socket("robot")).unwrap();
    let holder = ipc.controller().unwrap();
    let taken = ipc.controller().unwrap_err();
    assert!(
        matches!(taken, ControllerError::Taken { process } if process == std::process::id()),
        "{taken}"
    );
    drop(holder);
    let again = ipc.controller().unwrap();
    let mut answer = end.blank_answer();
    end.newest(&mut answer);
    assert_eq!(end.holder(), Some(2), "another holder has another number");
    drop(again);

    let (_line, status, reply, files) = ask(&folder.socket("robot"), Request::Controller(VERSION + 1));
    let other = VERSION + 1;
    let sentence = format!(
        "the cycle uses version {VERSION} with controllers, this one {other}: use programs of the \
         same version of Onbeat on both sides"
    );
    assert_eq!((status, reply, files.len()), (OTHER_VERSION, sentence, 0));

    let (_ends, _door) = folder.builder("plain").open().unwrap();
    let error = Client::open(&folder.socket("plain")).unwrap().controller().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the cycle takes no controller process: its controllers run in its own thread: give the robot file a [controller] \
         of kind \"external\", or run with --controller external"
    );
}

/// Status of a reply to a program of another version (docs/ipc.md).
const OTHER_VERSION: u16 = 1;

/// The words of an answer region behind the header, and where its first slot's are.
const CELL: u64 = 64;
const SLOT_1: u64 = CELL + 8 * (8 + 32);

/// Writes words as a program in any language may.
fn store(file: &OwnedFd, offset: u64, words: &[u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    rustix::io::pwrite(file, &bytes, offset).unwrap();
}

// feature(ipc): one controller process of the same version; what is no answer is refused; a hostile one keeps no wait beyond its time
#[test]
fn what_is_no_answer_is_refused_once_with_its_reason() {
    let folder = Folder::new();
    let mut builder = folder.builder("robot");
    let mut end = builder.controller();
    let (_ends, _door) = builder.open().unwrap();
    let nan = f64::NAN.to_bits();
    let mut good = [0; 26];
    (good[0], good[1], good[2]) = (7, 2, 3);
    (good[16], good[18]) = (0x201, 0x201);
    let with = |index: usize, value: u64| {
        let mut words = good;
        words[index] = value;
        words
    };
    for (words, heard) in [
        (good, Received::Answer),
        (with(17, nan), Received::Wrong(Wrong::NotFinite)),
        (with(16, 0x204), Received::Wrong(Wrong::Code)),
        (with(18, 0x601), Received::Wrong(Wrong::Code)),
        (with(1, 3), Received::Wrong(Wrong::Rows)),
        (with(2, 1), Received::Wrong(Wrong::Rows)),
    ] {
        let mut answer = end.blank_answer();
        let (line, _, _, files) = ask(&folder.socket("robot"), Request::Controller(VERSION));
        let [_, answers] = &files[..] else { panic!("{files:?}") };
        end.newest(&mut answer);
        // A publication that is not whole: its sequence is odd.
        store(answers, SLOT_1, &[1]);
        store(answers, CELL, &[1]);
        assert_eq!(end.newest(&mut answer), Received::Wrong(Wrong::Torn));
        assert_eq!(end.newest(&mut answer), Received::Nothing);
        // Publication 5 goes into the same slot of four.
        store(answers, SLOT_1 + 8, &words);
        store(answers, SLOT_1, &[10]);
        store(answers, CELL, &[5]);
        assert_eq!(end.newest(&mut answer), heard, "{words:?}");
        assert_eq!(end.newest(&mut answer), Received::Nothing);
        drop(line);
        support::eventually("the role is free", || (end.counters().read().process == 0).then_some(()));
    }
}

// feature(ipc): one controller process of the same version; what is no answer is refused; a hostile one keeps no wait beyond its time
#[test]
fn busy_holder_does_not_prolong_a_wait() {
    let folder = Folder::new();
    let mut builder = folder.builder("robot");
    let mut end = builder.controller();
    let (_ends, _door) = builder.open().unwrap();
    let (_line, _, _, files) = ask(&folder.socket("robot"), Request::Controller(VERSION));
    let mut answer = end.blank_answer();
    end.newest(&mut answer);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (stop, answers) = (&stop, &files[1]);
        scope.spawn(move || {
            let mut random = fastrand::Rng::with_seed(3);
            while !stop.load(Ordering::Relaxed) {
                store(answers, CELL + random.u64(..136) * 8, &[random.u64(..)]);
                store(answers, CELL, &[random.u64(..)]);
            }
        });
        let begin = Instant::now();
        for _ in 0..2_000 {
            let until = now_ns() + 200_000;
            end.wait(until);
            end.newest(&mut answer);
            assert!(answer.axes.len() <= 2);
        }
        stop.store(true, Ordering::Relaxed);
        // 0.4 s if each of them waited to its end; a wait without one would never be over.
        assert!(begin.elapsed() < Duration::from_secs(60));
    });
}

/// Asks as a program in any language would; the connection, the reply's status, its text, and the
/// descriptors.
fn ask(path: &Path, request: Request<'_>) -> (OwnedFd, u16, String, Vec<OwnedFd>) {
    let line = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    rustix::net::connect(&line, &SocketAddrUnix::new(path).unwrap()).unwrap();
    rustix::net::send(&line, &request.emit(), SendFlags::empty()).unwrap();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut reply = vec![0; 2048];
    let mut slices = [IoSliceMut::new(&mut reply)];
    let length = rustix::net::recvmsg(&line, &mut slices, &mut control, RecvFlags::empty()).unwrap().bytes;
    let status = u16::from_le_bytes([reply[6], reply[7]]);
    let text = String::from_utf8(reply[20..length].to_vec()).unwrap();
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    (line, status, text, files.flatten().collect())
}
