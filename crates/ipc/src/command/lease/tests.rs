// Set by `cargo xtask proofs` for ThreadSanitizer: `sanitize` itself is not to be had with a stable
// compiler.
#![allow(unexpected_cfgs)]

// One thread without unsafe code: Miri and ThreadSanitizer would find nothing in it, and build its
// library for that.
#[cfg(not(any(miri, sanitized)))]
mod property;

use std::sync::atomic::AtomicU64;

use super::*;
use crate::cell::{Shape, Writer};

type Memory = Arc<[AtomicU64]>;

const SHAPE: Shape = match Shape::new(4, 2) {
    Some(shape) => shape,
    None => panic!("4 slots of 2 words"),
};

/// Holder with the mapping it keeps.
struct Holder {
    writer: Writer<Memory>,
    /// True if it has only written as its own code does.
    honest: bool,
    /// Number of its newest command when its lease ended.
    last: Option<u64>,
    /// True if the cycle has looked since.
    is_past: bool,
}

struct Bench {
    leases: Leases<Memory>,
    hearing: Hearing<Memory>,
    holders: Vec<Holder>,
    /// Holder and number of the last command taken.
    taken: (u64, u64),
}

impl Bench {
    fn new() -> Self {
        let (leases, hearing) = pair();
        Self { leases, hearing, holders: Vec::new(), taken: (0, 0) }
    }

    fn grant(&mut self) -> bool {
        let memory: Memory = (0..SHAPE.total()).map(|_| AtomicU64::new(0)).collect();
        let reader = Reader::new(Arc::clone(&memory), SHAPE).unwrap();
        self.mark_end();
        let granted = self.leases.grant(reader, AtomicU64::new(0));
        if granted {
            let writer = Writer::new(memory, SHAPE).unwrap();
            self.holders.push(Holder { writer, honest: true, last: None, is_past: false });
        }
        granted
    }

    fn mark_end(&mut self) {
        if let Some(holder) = self.holders.last_mut() {
            let newest = holder.writer.memory()[0].load(Ordering::Relaxed);
            holder.last.get_or_insert(newest);
        }
    }

    fn write(&mut self, who: usize, count: u64) {
        let Some(index) = who.checked_rem(self.holders.len()) else { return };
        let writer = &mut self.holders[index].writer;
        for _ in 0..count {
            writer.publish(&[index as u64, writer.newest() + 1]);
        }
    }

    /// Looks as the cycle does, and checks all that must hold.
    fn look(&mut self) {
        let mut heard = Vec::new();
        let read = self.hearing.newest(&mut [0; 2], |words| {
            heard.push((words[0], words[1]));
            true
        });
        assert_eq!(read == Read::New, !heard.is_empty());
        for (who, number) in heard {
            let holder = &self.holders[who as usize];
            assert!(!holder.is_past, "{who} is heard though the cycle has gone over");
            if holder.honest {
                assert!(holder.last.is_none_or(|last| number == last), "{who} is heard after its end");
                assert!(self.taken < (who, number), "{:?} after {:?}", (who, number), self.taken);
            }
            self.taken = (who, number);
        }
        // The current holder is never blocked.
        if let Some((who, holder)) = self.holders.iter().enumerate().next_back() {
            if holder.honest && holder.last.is_none() && holder.writer.newest() > 0 {
                assert_eq!(self.taken, (who as u64, holder.writer.newest()));
            }
        }
        for holder in &mut self.holders {
            holder.is_past |= holder.last.is_some();
        }
    }
}

#[test]
fn server_waits_only_for_a_cycle_that_does_not_poll() {
    let mut bench = Bench::new();
    let granted = (0..1_000).take_while(|_| bench.grant()).count();
    assert_eq!(granted, WAITING);
    for _ in 0..10 {
        bench.look();
        // The current lease stays out.
        for _ in 1..WAITING {
            assert!(bench.grant());
            bench.write(bench.holders.len() - 1, 1);
        }
    }
}

#[test]
fn memory_that_the_cycle_has_left_goes_back_to_the_door() {
    let mut bench = Bench::new();
    bench.grant();
    bench.write(0, 1);
    bench.look();
    let memory = Arc::downgrade(bench.holders[0].writer.memory());
    bench.holders.clear();
    bench.leases.end();
    assert!(bench.leases.held.is_none() && memory.strong_count() == 1);
    bench.look();
    assert_eq!(memory.strong_count(), 1, "nothing is freed by the cycle");
    bench.leases.collect();
    assert_eq!((memory.strong_count(), bench.leases.out), (0, 0));
}
