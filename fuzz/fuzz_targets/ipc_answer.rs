//! A controller process, in any language, may write anything into its answer region at any time.
//! The cycle's side never panics, waits beyond its time-out or reads elsewhere. An accepted answer
//! has the robot's axes and outputs, known codes and finite numbers. An answer is returned as new
//! only once.
//!
//! The input is a schedule: each byte selects the next step - publish a whole answer, store
//! anything anywhere, send a request, wait, read.
#![no_main]

#[path = "../shared/ipc_peer.rs"]
mod ipc_peer;

use std::os::fd::OwnedFd;
use std::sync::{Mutex, OnceLock};

use ipc::controller::{CycleEnd, Received, VERSION};
use ipc::description::SignalDescription;
use ipc::server::{Endpoints, Server};
use ipc::service::protocol::Request;
use ipc_peer::{ask, builder};
use libfuzzer_sys::fuzz_target;

const AXES: usize = 3;
const SIGNALS: usize = 2;

/// Words of an answer, of the header with the number of the newest, and from slot to slot.
const WORDS: usize = 16 + 2 * (AXES + SIGNALS);
const CELL: u64 = 64;
const STRIDE: u64 = 32 * 8;

static RIG: OnceLock<Mutex<Rig>> = OnceLock::new();

struct Rig {
    end: CycleEnd,
    answers: OwnedFd,
    newest: u64,
    _keep: (Endpoints, Server, OwnedFd),
}

fuzz_target!(|bytes: &[u8]| {
    let mut rig = RIG.get_or_init(|| Mutex::new(open())).lock().unwrap();
    let mut bytes = bytes.iter().copied();
    while let Some(step) = bytes.next() {
        match step % 6 {
            0 | 1 => rig.publish(&mut bytes),
            2 | 3 => rig.scribble(&mut bytes),
            4 => {
                let mut request = rig.end.blank_request();
                request.cycle = u64::from(step);
                rig.end.ask(&request);
                // Long past: it ends at once.
                rig.end.wait(1);
            }
            _ => rig.look(),
        }
    }
    rig.look();
});

impl Rig {
    fn look(&mut self) {
        let mut answer = self.end.blank_answer();
        if self.end.newest(&mut answer) == Received::Answer {
            assert_eq!((answer.axes.len(), answer.outputs.len()), (AXES, SIGNALS));
            for axis in &answer.axes {
                assert!(axis.target.is_none_or(|target| target.number().is_finite()));
            }
        }
        assert_eq!(self.end.newest(&mut answer), Received::Nothing);
        assert!(self.end.holder().is_some());
    }

    /// A whole publication, with some of the words an answer has to have.
    fn publish(&mut self, bytes: &mut impl Iterator<Item = u8>) {
        self.newest = self.newest.wrapping_add(1);
        let number = self.newest;
        let mut words = [0_u64; WORDS];
        (words[0], words[1], words[2]) = (number, AXES as u64, SIGNALS as u64);
        for _ in 0..bytes.next().unwrap_or(0) % 8 {
            let (Some(word), Some(byte), Some(value)) = (bytes.next(), bytes.next(), bytes.next()) else {
                break;
            };
            words[usize::from(word) % WORDS] ^= u64::from(value) << (byte % 8 * 8);
        }
        let slot = CELL + 64 + number % 4 * STRIDE;
        self.store(slot + 8, &words);
        self.store(slot, &[number.wrapping_mul(2)]);
        self.store(CELL, &[number]);
    }

    /// Anything anywhere behind the header.
    fn scribble(&mut self, bytes: &mut impl Iterator<Item = u8>) {
        let (Some(word), Some(value)) = (bytes.next(), bytes.next()) else { return };
        let word = u64::from(word) % ((64 + 4 * STRIDE) / 8);
        self.store(CELL + word * 8, &[u64::from(value) | u64::from(value) << 56]);
    }

    fn store(&self, offset: u64, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        rustix::io::pwrite(&self.answers, &bytes, offset).unwrap();
    }
}

fn open() -> Rig {
    let mut ipc = builder("fuzz-answer", AXES, vec![SignalDescription::default(); SIGNALS]);
    let mut end = ipc.controller();
    let (ends, server) = ipc.open().unwrap();
    let (line, mut files) = ask(server.path(), Request::Controller(VERSION));
    let answers = files.pop().unwrap();
    let mut answer = end.blank_answer();
    end.newest(&mut answer);
    Rig { end, answers, newest: 0, _keep: (ends, server, line) }
}
