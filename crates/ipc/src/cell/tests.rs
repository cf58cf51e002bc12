use std::cell::Cell as Counter;
use std::sync::Arc;

use super::*;

const SHAPE: Shape = match Shape::new(4, 3) {
    Some(shape) => shape,
    None => panic!("4 slots of 3 words"),
};

fn memory() -> Arc<[AtomicU64]> {
    (0..SHAPE.total()).map(|_| AtomicU64::new(0)).collect()
}

thread_local! {
    /// Stores a writer still makes before it dies.
    static LIFE: Counter<usize> = const { Counter::new(usize::MAX) };
}

/// Word with a writer that dies between two stores.
struct Mortal(AtomicU64);

impl Word for Mortal {
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        let left = LIFE.get();
        if left > 0 {
            LIFE.set(left - 1);
            self.0.store(value, order);
        }
    }

    fn fence(order: Ordering) {
        atomic::fence(order);
    }
}

/// Word of memory that is mapped read-only: no store, and no load with an order.
struct ReadOnly(AtomicU64);

impl Word for ReadOnly {
    fn load(&self, order: Ordering) -> u64 {
        assert_eq!(order, Ordering::Relaxed, "may be compiled to a store");
        self.0.load(order)
    }

    fn store(&self, _: u64, _: Ordering) {
        panic!("a store ends the process");
    }

    fn fence(order: Ordering) {
        atomic::fence(order);
    }
}

// feature(ipc): readers of read-only memory use only loads that cannot be compiled to a store
#[test]
fn a_reader_needs_no_more_than_read_only_memory_allows() {
    let shape = Shape::new(2, 2).unwrap();
    let memory: Arc<[AtomicU64]> = (0..shape.total()).map(|_| AtomicU64::new(0)).collect();
    let mut writer = Writer::new(Arc::clone(&memory), shape).unwrap();
    writer.publish(&[10, 11]);
    let same: Arc<[ReadOnly]> =
        memory.iter().map(|word| ReadOnly(AtomicU64::new(word.load(Ordering::Relaxed)))).collect();
    let reader = Reader::new(same, shape).unwrap();
    let mut copy = [0; 2];
    assert_eq!((reader.newest(), reader.read(&mut copy, 1)), (1, Found::Whole(1)));
    assert!(copy == [10, 11] && reader.read_number(1, &mut copy));
}

// feature(ipc): a writer killed at any store leaves the last whole publication
#[test]
fn killed_writer_leaves_the_last_publication_and_the_next_works() {
    // Stores of a publication: sequence, three words, sequence, newest.
    const STORES: usize = 6;
    for before in 0..6_u64 {
        for life in 0..=STORES {
            let memory: Arc<[Mortal]> = (0..SHAPE.total()).map(|_| Mortal(AtomicU64::new(0))).collect();
            LIFE.set(usize::MAX);
            let mut writer = Writer::new(Arc::clone(&memory), SHAPE).unwrap();
            for number in 1..=before {
                writer.publish(&[number; 3]);
            }
            LIFE.set(life);
            writer.publish(&[before + 1; 3]);
            LIFE.set(usize::MAX);

            let reader = Reader::new(Arc::clone(&memory), SHAPE).unwrap();
            let survived = if life == STORES { before + 1 } else { before };
            let mut copy = [0; 3];
            let found = reader.read(&mut copy, 1);
            match survived {
                0 => assert_eq!(found, Found::Nothing, "{before} whole ones, died after {life} stores"),
                _ => {
                    assert_eq!(
                        found,
                        Found::Whole(survived),
                        "{before} whole ones, died after {life} stores"
                    );
                    assert_eq!(copy, [survived; 3]);
                }
            }
            let mut next = Writer::new(memory, SHAPE).unwrap();
            for number in survived + 1..survived + 10 {
                next.publish(&[number * 100; 3]);
                assert_eq!(reader.read(&mut copy, 1), Found::Whole(number));
                assert_eq!(copy, [number * 100; 3]);
            }
        }
    }
}

#[test]
fn a_reader_of_arbitrary_words_ends() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..if cfg!(miri) { 40 } else { 20_000 } {
        let any = |random: &mut fastrand::Rng| match random.u8(0..6) {
            0 => random.u64(0..16),
            1 => u64::MAX - random.u64(0..4),
            _ => random.u64(..),
        };
        let words: Arc<[AtomicU64]> =
            (0..SHAPE.total()).map(|_| AtomicU64::new(any(&mut random))).collect();
        let newest = words[0].load(Ordering::Relaxed);
        let reader = Reader::new(Arc::clone(&words), SHAPE).unwrap();
        let mut copy = [0; 3];
        match reader.read(&mut copy, 3) {
            Found::Nothing => assert_eq!(newest, 0),
            Found::Whole(number) | Found::Torn(number) => assert_eq!(number, newest),
        }
        // A writer continues, whatever the words contain.
        let mut writer = Writer::new(words, SHAPE).unwrap();
        writer.publish(&[1, 2, 3]);
        if newest != u64::MAX {
            assert_eq!(reader.read(&mut copy, 1), Found::Whole(newest + 1));
            assert_eq!(copy, [1, 2, 3]);
        }
    }
}

#[test]
fn a_cell_that_does_not_fit_is_refused() {
    assert_eq!(Shape::new(1, 1), None);
    assert_eq!(Shape::new(65, 1), None);
    assert_eq!(Shape::new(2, 0), None);
    assert_eq!(Shape::new(2, (1 << 20) + 1), None);
    let short: Arc<[AtomicU64]> = (1..SHAPE.total()).map(|_| AtomicU64::new(0)).collect();
    assert!(Writer::new(Arc::clone(&short), SHAPE).is_none());
    assert!(Reader::new(short, SHAPE).is_none());
}

#[test]
fn readers_never_see_two_publications_in_one() {
    let rounds = if cfg!(miri) { 60 } else { 200_000 };
    let memory = memory();
    let mut writer = Writer::new(Arc::clone(&memory), SHAPE).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let reader = Reader::new(Arc::clone(&memory), SHAPE).unwrap();
            scope.spawn(move || {
                let (mut copy, mut last) = ([0; 3], 0);
                while last < rounds {
                    match reader.read(&mut copy, 64) {
                        Found::Whole(number) => {
                            assert_eq!(copy, [number, number ^ 0x55, !number]);
                            assert!(number >= last, "{number} after {last}");
                            last = number;
                        }
                        Found::Nothing | Found::Torn(_) => std::thread::yield_now(),
                    }
                }
            });
        }
        for number in 1..=rounds {
            writer.publish(&[number, number ^ 0x55, !number]);
        }
    });
}

// feature(ipc): a reader that looks in time gets the state of every cycle, whole and in order; what was overwritten before is known by its number
#[test]
fn publications_are_readable_until_overwritten() {
    let memory = memory();
    let mut writer = Writer::new(Arc::clone(&memory), SHAPE).unwrap();
    let reader = Reader::new(memory, SHAPE).unwrap();
    let mut copy = [0; 3];
    assert!(!reader.read_number(0, &mut copy) && !reader.read_number(1, &mut copy));
    for newest in 1..=20_u64 {
        writer.publish(&[newest; 3]);
        for number in 0..newest + 9 {
            let kept =
                number > newest.saturating_sub(SHAPE.slots() as u64) && (1..=newest).contains(&number);
            assert_eq!(reader.read_number(number, &mut copy), kept, "{number} of {newest}");
            assert!(!kept || copy == [number; 3], "{copy:?} for {number}");
        }
    }
}
