//! Models of the cell, and of successive holders of the lease: loom tries every order of the
//! threads' loads and stores, and every value the memory model lets a load return, up to a bounded
//! number of preemptions.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use loom::model::Builder;
use loom::sync::atomic::{AtomicU64, fence};
use loom::thread;
use onbeat_ipc::cell::{Found, Reader, Shape, Word, Writer};
use onbeat_ipc::command::lease::{self, Hearing};

/// Word as used in production.
struct Right(AtomicU64);

impl Word for Right {
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }

    fn fence(order: Ordering) {
        fence(order);
    }
}

/// Variant without fences: the words of a slot may be seen before or after the sequence that guards
/// them.
struct Unfenced(AtomicU64);

impl Word for Unfenced {
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }

    fn fence(_: Ordering) {}
}

/// Variant without any ordering.
struct Unordered(AtomicU64);

impl Word for Unordered {
    fn load(&self, _: Ordering) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn store(&self, value: u64, _: Ordering) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn fence(order: Ordering) {
        fence(order);
    }
}

/// Word with a writer that dies: stores take effect only while it lives.
struct Mortal(AtomicU64, Arc<std::sync::atomic::AtomicU64>);

impl Word for Mortal {
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        // Relaxed, and not loom's: only the writer reads its own count.
        let left = self.1.load(Ordering::Relaxed);
        if left > 0 {
            self.1.store(left - 1, Ordering::Relaxed);
            self.0.store(value, order);
        }
    }

    fn fence(order: Ordering) {
        fence(order);
    }
}

/// Fewest slots possible: the writer laps the reader soonest.
const SHAPE: Shape = match Shape::new(2, 2) {
    Some(shape) => shape,
    None => panic!("2 slots of 2 words"),
};

fn models() -> Builder {
    let mut builder = Builder::new();
    builder.preemption_bound = None;
    builder
}

fn memory<W: Word>(word: impl Fn(u64) -> W) -> Arc<[W]> {
    (0..SHAPE.total()).map(|_| word(0)).collect()
}

/// Words of a publication.
fn words(number: u64) -> [u64; 2] {
    [number * 10, number * 10 + 1]
}

/// Reads once; returns the number of the publication if it was whole.
fn read<W: Word>(reader: &Reader<Arc<[W]>>, attempts: u32) -> Option<u64> {
    let mut copy = [0; 2];
    match reader.read(&mut copy, attempts) {
        Found::Whole(number) => {
            assert_eq!(copy, words(number), "torn");
            Some(number)
        }
        Found::Nothing | Found::Torn(_) => None,
    }
}

/// Model of a writer that comes round to the slot a reader copies from.
fn lapped<W: Word + Send + Sync + 'static>(word: fn(u64) -> W) {
    models().check(move || {
        let memory = memory(word);
        let reader = Reader::new(Arc::clone(&memory), SHAPE).unwrap();
        let mut writer = Writer::new(memory, SHAPE).unwrap();
        writer.publish(&words(1));
        let writes = thread::spawn(move || {
            writer.publish(&words(2));
            writer.publish(&words(3));
        });
        let first = read(&reader, 1);
        writes.join().unwrap();
        // One attempt is enough while the writer is idle.
        assert_eq!(read(&reader, 1), Some(3));
        assert!(first.is_none_or(|number| (1..=3).contains(&number)));
    });
}

// feature(ipc): a whole publication or none, in every interleaving; wrong variants are rejected
#[test]
fn a_reader_that_is_lapped_sees_one_publication_or_none() {
    lapped(|value| Right(AtomicU64::new(value)));
}

// feature(ipc): a whole publication or none, in every interleaving; wrong variants are rejected
#[test]
#[should_panic(expected = "torn")]
fn without_fences_a_reader_is_torn_and_loom_says_so() {
    lapped(|value| Unfenced(AtomicU64::new(value)));
}

// feature(ipc): a whole publication or none, in every interleaving; wrong variants are rejected
#[test]
#[should_panic(expected = "torn")]
fn loom_finds_torn_reads_without_acquire_and_release() {
    lapped(|value| Unordered(AtomicU64::new(value)));
}

// feature(ipc): a reader that looks in time gets the state of every cycle, whole and in order; what was overwritten before is known by its number
#[test]
fn publication_by_number_is_exact_or_none() {
    models().check(|| {
        let memory = memory(|value| Right(AtomicU64::new(value)));
        let reader = Reader::new(Arc::clone(&memory), SHAPE).unwrap();
        let mut writer = Writer::new(memory, SHAPE).unwrap();
        writer.publish(&words(1));
        let writes = thread::spawn(move || {
            writer.publish(&words(2));
            writer.publish(&words(3));
        });
        for number in [1, 2] {
            let mut copy = [0; 2];
            assert!(!reader.read_number(number, &mut copy) || copy == words(number), "torn: {copy:?}");
        }
        writes.join().unwrap();
        assert!(!reader.read_number(1, &mut [0; 2]), "publication 3 is in its slot");
    });
}

#[test]
fn what_a_reader_sees_never_goes_back() {
    models().check(|| {
        let memory = memory(|value| Right(AtomicU64::new(value)));
        let reader = Reader::new(Arc::clone(&memory), SHAPE).unwrap();
        let mut writer = Writer::new(memory, SHAPE).unwrap();
        let writes = thread::spawn(move || {
            writer.publish(&words(1));
            writer.publish(&words(2));
        });
        let (first, second) = (read(&reader, 2), read(&reader, 2));
        assert!(first.is_none() || second.is_none() || first <= second, "{second:?} after {first:?}");
        writes.join().unwrap();
    });
}

#[test]
fn two_readers_do_not_interfere() {
    models().check(|| {
        let memory = memory(|value| Right(AtomicU64::new(value)));
        let [mine, other] = [(); 2].map(|()| Reader::new(Arc::clone(&memory), SHAPE).unwrap());
        let mut writer = Writer::new(memory, SHAPE).unwrap();
        writer.publish(&words(1));
        let writes = thread::spawn(move || writer.publish(&words(2)));
        let reads = thread::spawn(move || read(&other, 1).is_some());
        // One publication does not lap the reader: the first attempt gives a whole one.
        assert!(matches!(read(&mine, 1), Some(1 | 2)));
        writes.join().unwrap();
        reads.join().unwrap();
    });
}

/// Direction of commands: the writer is killed between any two stores while the cycle reads with
/// few attempts.
#[test]
fn dying_writer_leaves_a_consistent_command() {
    // Two whole publications of five stores each: sequence, two words, sequence, newest.
    for life in 0..=10 {
        models().check(move || {
            let life = Arc::new(std::sync::atomic::AtomicU64::new(life));
            let memory = memory(|value| Mortal(AtomicU64::new(value), Arc::clone(&life)));
            let reader = Reader::new(Arc::clone(&memory), SHAPE).unwrap();
            let mut writer = Writer::new(Arc::clone(&memory), SHAPE).unwrap();
            let survives = life.load(Ordering::Relaxed) / 5;
            let writes = thread::spawn(move || {
                writer.publish(&words(1));
                writer.publish(&words(2));
            });
            let during = read(&reader, 2);
            assert!(during.unwrap_or(0) <= survives);
            writes.join().unwrap();
            assert_eq!(read(&reader, 1).unwrap_or(0), survives, "the last whole one stays");
            // The next writer continues at the point of death.
            life.store(u64::MAX, Ordering::Relaxed);
            let mut next = Writer::new(memory, SHAPE).unwrap();
            next.publish(&words(survives + 1));
            assert_eq!(read(&reader, 1), Some(survives + 1));
        });
    }
}

/// Word with correct ordering, or with none.
struct Ordered(AtomicU64, bool);

impl Word for Ordered {
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(if self.1 { order } else { Ordering::Relaxed })
    }

    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, if self.1 { order } else { Ordering::Relaxed });
    }

    fn fence(order: Ordering) {
        fence(order);
    }
}

type Holder = Writer<Arc<[Ordered]>>;

type Heard = Hearing<Arc<[Ordered]>>;

/// Two successive holders, the first of which has given a command; the server; the cycle.
fn holders(is_ordered: bool) -> ([Holder; 2], impl FnMut(usize) -> bool, Heard) {
    let memories = [(); 2].map(|()| memory(|value| Ordered(AtomicU64::new(value), true)));
    let mut writers = memories.clone().map(|memory| Writer::new(memory, SHAPE).unwrap());
    writers[0].publish(&words(1));
    let (mut leases, hearing) = lease::pair();
    // Made before any other thread: loom does not see the ring's ordering.
    let mut over = [(); 2].map(|()| Some(Ordered(AtomicU64::new(0), is_ordered)));
    let grant = move |who: usize| {
        let reader = Reader::new(Arc::clone(&memories[who]), SHAPE).unwrap();
        leases.grant(reader, over[who].take().unwrap())
    };
    (writers, grant, hearing)
}

/// Polls once; returns the numbers read, which identify the holder: numbers of the second begin at
/// 8.
fn heard(hearing: &mut Heard) -> Vec<u64> {
    let mut heard = Vec::new();
    hearing.newest(&mut [0; 2], |copy| {
        assert_eq!(copy[0] + 1, copy[1], "torn");
        heard.push(copy[0] / 10);
        true
    });
    heard
}

/// Model of a holder that gives its last command and hangs up; the next one gets the lease while
/// the cycle looks.
fn last_word(is_ordered: bool) {
    models().check(move || {
        let ([mut first, mut second], mut grant, mut hearing) = holders(is_ordered);
        assert!(grant(0));
        let hands_over = thread::spawn(move || {
            first.publish(&words(2));
            // The server learns of it through a system call, which orders it after the writes.
            assert!(grant(1));
            second.publish(&words(8));
        });
        let mut all = heard(&mut hearing);
        hands_over.join().unwrap();
        all.extend(heard(&mut hearing));
        assert!(matches!(all[..], [1, 2, 8] | [2, 8]), "lost: {all:?}");
    });
}

// feature(ipc): commands of a former lease holder are ignored at any rate; its last command expires
#[test]
fn last_command_of_a_holder_precedes_the_next_holder() {
    last_word(true);
}

#[test]
#[should_panic(expected = "lost")]
fn loom_finds_a_lost_last_command() {
    last_word(false);
}

// feature(ipc): commands of a former lease holder are ignored at any rate; its last command expires
#[test]
fn former_holder_has_at_most_one_more_effect() {
    models().check(|| {
        let ([mut first, mut second], mut grant, mut hearing) = holders(true);
        assert!(grant(0));
        // It has hung up, and continues writing.
        let writes_on = thread::spawn(move || first.publish(&words(2)));
        let hands_over = thread::spawn(move || {
            second.publish(&words(8));
            assert!(grant(1));
        });
        let mut all = heard(&mut hearing);
        hands_over.join().unwrap();
        // A look begun after the hand-over reads the next holder's command, whatever the former one
        // writes.
        all.extend(heard(&mut hearing));
        assert!(matches!(all[..], [8] | [1, 8] | [2, 8] | [1, 2, 8]), "{all:?}");
        writes_on.join().unwrap();
        assert!(heard(&mut hearing).is_empty(), "a word of a former holder");
    });
}
