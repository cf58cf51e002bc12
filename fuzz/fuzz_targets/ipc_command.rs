//! A present or former holder of the command lease, in any language, may write anything into its
//! region at any time. The cycle's side never panics, waits or reads elsewhere. An accepted command
//! has no more axes and signals than the robot. No command of a holder is accepted after the cycle
//! has seen the end of its lease.
//!
//! The input is a schedule of several holders: each byte selects the next step - return the lease,
//! give it to the next holder, write a whole command, store anything anywhere, read as the cycle.
#![no_main]

#[path = "../shared/ipc_peer.rs"]
mod ipc_peer;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use ipc::command::{Command, Read};
use ipc::description::{OUTSIDE, SignalDescription};
use ipc::server::{Endpoints, Server};
use ipc::service::protocol::Request;
use ipc_peer::{ask, builder, connect, receive, send};
use libfuzzer_sys::fuzz_target;

const AXES: usize = 3;

/// Outputs that are set from outside.
const SIGNALS: usize = 2;

/// Words before the axes.
const FIXED: usize = 17;

/// Former holders that keep their regions.
const REMEMBERED: usize = 4;

/// Hand-overs of the lease that an input has at most: each waits for the server's thread.
const HAND_OVERS: usize = 4;

/// The interface, and a connection that stays over all inputs.
static IPC: OnceLock<Mutex<(Endpoints, Server, OwnedFd)>> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    let mut ipc = IPC.get_or_init(|| Mutex::new(open())).lock().unwrap();
    let (ends, server, visitor) = &mut *ipc;
    let regions = VecDeque::new();
    let mut schedule =
        Schedule { path: server.path(), visitor, regions, line: None, is_past: true, left: HAND_OVERS };
    let mut command = ends.command.blank();
    // Commands of the previous schedule, after the end of its lease.
    ends.command.newest(&mut command);
    let mut bytes = bytes.iter().copied();
    while let Some(step) = bytes.next() {
        match step % 8 {
            0 => schedule.give_back(),
            1 => schedule.take(),
            2 | 3 => schedule.publish(bytes.next(), &mut bytes),
            4 | 5 => schedule.scribble(bytes.next(), &mut bytes),
            _ => look(&mut schedule, ends, &mut command),
        }
    }
    look(&mut schedule, ends, &mut command);
    schedule.give_back();
});

fn look(schedule: &mut Schedule<'_>, ends: &mut Endpoints, command: &mut Command) {
    let before = command.clone();
    let read = ends.command.newest(command);
    assert!(command.axes.len() <= AXES && command.signals.len() <= SIGNALS);
    if read != Read::New && *command != before {
        // Compared as text: NaN is no equal of itself.
        assert_eq!(format!("{command:?}"), format!("{before:?}"), "{read:?} changed the command");
    }
    if schedule.line.is_none() {
        assert!(
            !schedule.is_past || matches!(read, Read::Nothing | Read::Same),
            "a former holder is heard"
        );
        schedule.is_past = true;
    }
    // A command is returned as new only once.
    assert!(matches!(ends.command.newest(command), Read::Nothing | Read::Same));
}

/// Holder of the lease, now or before.
struct Schedule<'a> {
    path: &'a Path,
    /// A connection that has no lease.
    visitor: &'a OwnedFd,
    /// The newest last; that of the holder, while there is one.
    regions: VecDeque<Region>,
    line: Option<OwnedFd>,
    /// The cycle has looked since the lease was given back.
    is_past: bool,
    /// Hand-overs that may still be.
    left: usize,
}

struct Region {
    file: OwnedFd,
    length: u64,
    newest: u64,
}

impl Schedule<'_> {
    /// Returns once the server has seen it.
    fn give_back(&mut self) {
        if self.line.take().is_some() {
            self.is_past = false;
            self.await_server();
        }
    }

    /// Returns once the server has seen all that was done before.
    fn await_server(&self) {
        // In the round of the first request it may have looked at the holder before. The server
        // takes one request of a connection in each of its rounds.
        for _ in 0..2 {
            send(self.visitor, Request::Port("none"));
        }
        for _ in 0..2 {
            receive(self.visitor);
        }
    }

    fn take(&mut self) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        self.line = None;
        let (line, mut files) = ask(self.path, Request::Lease);
        // Without a look for long the server waits for the cycle.
        let Some(file) = files.pop() else { return self.await_server() };
        let length = rustix::fs::fstat(&file).unwrap().st_size as u64;
        self.regions.push_back(Region { file, length, newest: 0 });
        if self.regions.len() > REMEMBERED {
            self.regions.pop_front();
        }
        self.line = Some(line);
        self.is_past = false;
    }

    fn region(&mut self, who: Option<u8>) -> Option<&mut Region> {
        let who = usize::from(who?).checked_rem(self.regions.len())?;
        self.regions.get_mut(who)
    }

    /// A whole command, as the holder's own code writes it.
    fn publish(&mut self, who: Option<u8>, bytes: &mut impl Iterator<Item = u8>) {
        let Some(region) = self.region(who) else { return };
        let number = region.newest + 1;
        let words = (region.length / 8 - 16) / 4;
        let slot = 128 + (number % 4) * words * 8;
        let payload: Vec<u8> = bytes.take(48).collect();
        let mut written = [0_u8; (1 + FIXED + 2 * AXES + 2 * SIGNALS) * 8];
        let (version, publication) = written.split_at_mut(8);
        // The version is even at once: no reader looks in between.
        version.copy_from_slice(&(2 * number).to_ne_bytes());
        publication[..8].copy_from_slice(&number.to_ne_bytes());
        publication[24] = 1;
        publication[56] = AXES as u8;
        publication[64] = SIGNALS as u8;
        // The twist, the first axis, the kind of the first signal's value.
        let parts = [(0, 4, 3), (3, FIXED, 2), (5, FIXED + 2 * AXES, 1)];
        for (from, to, words) in parts {
            let part = payload.get(from * 8..).unwrap_or_default();
            let part = &part[..part.len().min(words * 8)];
            publication[to * 8..to * 8 + part.len()].copy_from_slice(part);
        }
        region.store(slot, &written);
        region.store(64, &number.to_ne_bytes());
        region.newest = number;
    }

    /// Anything anywhere behind the header; what reaches beyond the end is refused by the seal.
    fn scribble(&mut self, who: Option<u8>, bytes: &mut impl Iterator<Item = u8>) {
        let Some(region) = self.region(who) else { return };
        let (Some(word), Some(count)) = (bytes.next(), bytes.next()) else { return };
        let data: Vec<u8> = bytes.take(usize::from(count)).collect();
        let offset = (64 + u64::from(word) * 8).min(region.length);
        let room = usize::try_from(region.length - offset).unwrap();
        region.store(offset, &data[..data.len().min(room)]);
    }
}

impl Region {
    fn store(&self, offset: u64, bytes: &[u8]) {
        rustix::io::pwrite(&self.file, bytes, offset).unwrap();
    }
}

fn open() -> (Endpoints, Server, OwnedFd) {
    let signal = SignalDescription { writer: Some(OUTSIDE.into()), ..SignalDescription::default() };
    let (ends, server) = builder("fuzz", AXES, vec![signal; SIGNALS]).open().unwrap();
    let visitor = connect(server.path());
    (ends, server, visitor)
}
