//! The workers of all SubDevices, and their due times in one array: with a thousand of them a frame
//! does not look into each.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut, Index, IndexMut};

use crate::time::Instant;

use super::worker::Worker;

/// The workers, by position.
#[derive(Debug, Default)]
pub(super) struct Workers {
    all: Vec<Worker>,
    /// Due times of the workers not accessed since; [`NEVER`] for workers without a datagram to
    /// send.
    due: Vec<Instant>,
    /// Progress of the workers not accessed since.
    standing: Vec<WorkerStanding>,
    /// Earliest of the due times, if it is known.
    next: Option<Instant>,
    /// Number of workers at each progress.
    count: [usize; 3],
    /// Workers accessed since.
    touched: Vec<u16>,
    is_touched: Vec<bool>,
    /// All may have been accessed.
    all_touched: bool,
    /// None has anything to send or to wait for, until one is accessed.
    at_rest: bool,
}

/// Progress of a worker with its plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WorkerStanding {
    #[default]
    Done,
    Busy,
    /// It waits for the others.
    Held,
}

/// Due time of a worker without a datagram to send.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

impl Workers {
    pub(super) fn new(all: Vec<Worker>) -> Self {
        let count = all.len();
        Self {
            all,
            due: vec![NEVER; count],
            standing: vec![WorkerStanding::Done; count],
            next: None,
            count: [count, 0, 0],
            touched: Vec::with_capacity(count),
            is_touched: vec![false; count],
            all_touched: true,
            at_rest: false,
        }
    }

    /// True if none has anything to send or to wait for: computed once, and valid until a worker is
    /// accessed.
    pub(super) fn are_at_rest(&mut self) -> bool {
        self.at_rest = self.at_rest || self.all.iter().all(|it| it.due().is_none() && it.mailbox.is_idle());
        self.at_rest
    }

    /// True if that is known.
    pub(super) fn are_known_at_rest(&self) -> bool {
        self.at_rest
    }

    /// True if all have carried out their plans.
    pub(super) fn are_done(&mut self) -> bool {
        self.learn();
        self.count[WorkerStanding::Done as usize] == self.all.len()
    }

    /// True if all wait for each other ([`Worker::hold`]), or are done.
    pub(super) fn are_held(&mut self) -> bool {
        self.learn();
        self.count[WorkerStanding::Busy as usize] == 0
    }

    /// True if one waits at `now` before it continues, as until shortly before its SYNC0.
    pub(super) fn pause(&self, now: Instant) -> bool {
        self.all.iter().any(|worker| worker.pauses(now))
    }

    /// Looks for a worker that has something to send at `now`; true if there is one.
    pub(super) fn check_due(&mut self, now: Instant) -> bool {
        self.learn();
        *self.next.get_or_insert_with(|| earliest(&self.due)) <= now
    }

    /// The first worker from `start` to `end` with a datagram to send at `now`.
    pub(super) fn due_between(&mut self, start: usize, end: usize, now: Instant) -> Option<usize> {
        self.learn();
        self.due.get(start..end)?.iter().position(|due| *due <= now).map(|further| start + further)
    }

    /// Watches the progress of the worker at `place` ([`Worker::watch_progress`]); it does not
    /// count as accessed.
    pub(super) fn watch_progress(&mut self, place: usize, now: Instant) -> bool {
        self.all[place].watch_progress(now)
    }

    /// Time of the next datagram of any worker; a little too early if one was accessed since.
    pub(super) fn next_due(&self) -> Option<Instant> {
        if self.all_touched {
            return self.all.iter().filter_map(Worker::due).min();
        }
        let touched = self.touched.iter().filter_map(|&position| self.all[usize::from(position)].due());
        let next = self.next.unwrap_or_else(|| earliest(&self.due));
        touched.chain((next < NEVER).then_some(next)).min()
    }

    /// Updates the arrays for the workers accessed since.
    fn learn(&mut self) {
        if self.all_touched {
            (0..self.all.len()).for_each(|place| self.learn_of(place));
        } else if self.touched.is_empty() {
            return;
        }
        for number in 0..self.touched.len() {
            self.learn_of(usize::from(self.touched[number]));
        }
        self.touched.clear();
        (self.all_touched, self.next) = (false, None);
    }

    fn learn_of(&mut self, place: usize) {
        let worker = &self.all[place];
        self.due[place] = worker.due().unwrap_or(NEVER);
        self.is_touched[place] = false;
        let standing = match (worker.is_done(), worker.waits_to_ask()) {
            (true, _) => WorkerStanding::Done,
            (false, true) => WorkerStanding::Held,
            (false, false) => WorkerStanding::Busy,
        };
        let before = core::mem::replace(&mut self.standing[place], standing);
        self.count[before as usize] -= 1;
        self.count[standing as usize] += 1;
    }
}

fn earliest(due: &[Instant]) -> Instant {
    due.iter().copied().min().unwrap_or(NEVER)
}

impl Deref for Workers {
    type Target = [Worker];

    fn deref(&self) -> &[Worker] {
        &self.all
    }
}

/// Turns to all of them.
impl DerefMut for Workers {
    fn deref_mut(&mut self) -> &mut [Worker] {
        (self.at_rest, self.all_touched) = (false, true);
        &mut self.all
    }
}

impl Index<usize> for Workers {
    type Output = Worker;

    fn index(&self, place: usize) -> &Worker {
        &self.all[place]
    }
}

/// Turns to one.
impl IndexMut<usize> for Workers {
    fn index_mut(&mut self, place: usize) -> &mut Worker {
        self.at_rest = false;
        if !core::mem::replace(&mut self.is_touched[place], true) {
            // As many places as workers: never full.
            self.touched.push(place as u16);
        }
        &mut self.all[place]
    }
}
