//! Faults of a bad cable, a slow card or a busy machine, on purpose and repeatably.

mod control;
mod lane;

use std::io;
use std::time::Duration;

use ethercat::link::MAXIMUM_FRAME_LENGTH;
use ethercat::redundancy::Ring;
use ethercat::time::Instant;

use super::Link;
use control::Change;
use lane::Lane;
use rt::clock::{Clock, MonotonicClock};

pub use control::{FaultChanges, FaultControl};

/// Faults for the frames of one direction. Probabilities are 0 to 1 for each frame on its own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultRates {
    /// The frame vanishes.
    pub loss: f64,
    /// One bit behind the Ethernet header changes, as if the frame check sequence had missed it.
    pub corrupt: f64,
    /// A second copy follows the frame.
    pub duplicate: f64,
    /// The frame comes `delay_by` later; it is lost if 64 are already delayed.
    pub delay: f64,
    /// Delay of a delayed frame.
    pub delay_by: Duration,
    /// The frame lets the next one pass, or comes after `delay_by` (at least 2 ms) if there is
    /// none.
    pub reorder: f64,
}

/// The faults of a link: kinds, rates, and the seed that makes them repeatable.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// Frames on their way to the segment.
    pub requests: FaultRates,
    /// Frames on their way back.
    pub replies: FaultRates,
    /// The same seed and the same frames give the same faults.
    pub seed: u64,
}

/// Faults done to the frames of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultCounts {
    /// Frames seen.
    pub frames: u64,
    /// Frames that vanished.
    pub lost: u64,
    /// Frames with a changed bit.
    pub corrupted: u64,
    /// Frames of which a copy follows.
    pub duplicated: u64,
    /// Frames held back for a time.
    pub delayed: u64,
    /// Frames held back for the next one.
    pub reordered: u64,
}

/// A link with faults. It allocates nothing per frame.
///
/// Delayed requests leave during a later call, so they need a caller that keeps calling, as a cycle
/// does.
#[derive(Debug)]
pub struct Faulty<L, C = MonotonicClock> {
    link: L,
    clock: C,
    /// Frames transmitted.
    requests: Lane,
    /// Frames received.
    replies: Lane,
    changes: Option<FaultChanges>,
    /// True at the SubDevices' end of the cable, where requests are received.
    is_far_end: bool,
}

impl<L: Link> Faulty<L> {
    /// Wraps a link.
    #[must_use]
    pub fn new(link: L, faults: Faults) -> Self {
        Self::with_clock(link, faults, MonotonicClock)
    }

    /// Wraps the SubDevices' end of a cable, without faults until there are `changes`.
    pub(crate) fn at_far_end(link: L, changes: Option<FaultChanges>) -> Self {
        Self { changes, is_far_end: true, ..Self::new(link, Faults::default()) }
    }
}

impl<L: Link, C: Clock> Faulty<L, C> {
    /// Wraps a link that lives by another clock.
    #[must_use]
    pub fn with_clock(link: L, faults: Faults, clock: C) -> Self {
        let [of_requests, of_replies] = chances(faults.seed);
        let requests = Lane::new(faults.requests, of_requests);
        let replies = Lane::new(faults.replies, of_replies);
        Self { link, clock, requests, replies, changes: None, is_far_end: false }
    }

    /// Lets its faults be changed while it runs.
    #[must_use]
    pub fn changed_by(self, changes: FaultChanges) -> Self {
        Self { changes: Some(changes), ..self }
    }

    /// Faults done to frames on their way to the segment.
    #[must_use]
    pub fn requests(&self) -> FaultCounts {
        self.requests.counts()
    }

    /// Faults of frames on their way back.
    #[must_use]
    pub fn replies(&self) -> FaultCounts {
        self.replies.counts()
    }

    /// The link inside.
    #[must_use]
    pub fn into_inner(self) -> L {
        self.link
    }

    pub(crate) fn inner(&self) -> &L {
        &self.link
    }

    /// When the first of the frames is due that are held back.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        [self.requests.next_due(), self.replies.next_due()].into_iter().flatten().min()
    }

    /// Takes the changes that have come, and sends the frames that are due.
    fn send_due_requests(&mut self) -> io::Result<()> {
        self.change();
        let now = self.clock.now();
        while let Some(frame) = self.requests.release_due(now) {
            self.link.transmit(frame)?;
        }
        Ok(())
    }

    fn change(&mut self) {
        let Some(changes) = &mut self.changes else { return };
        let (requests, replies) = match self.is_far_end {
            false => (&mut self.requests, &mut self.replies),
            true => (&mut self.replies, &mut self.requests),
        };
        while let Some(change) = changes.next() {
            match change {
                Change::Rates(faults) => {
                    requests.set_rates(faults.requests);
                    replies.set_rates(faults.replies);
                }
                Change::LoseNext(count) => requests.lose_next(count),
                Change::Seed(seed) => {
                    let [of_requests, of_replies] = chances(seed);
                    requests.set_chance(of_requests);
                    replies.set_chance(of_replies);
                }
            }
        }
    }

    /// A frame that can be received now without waiting.
    fn receive_ready(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.send_due_requests()?;
        loop {
            if let Some(length) = self.replies.take_due(self.clock.now(), buffer) {
                return Ok(Some(length));
            }
            let Some(length) = self.link.receive(buffer, Duration::ZERO)? else { return Ok(None) };
            let now = self.clock.now();
            if self.replies.passes(now, &mut buffer[..length]) {
                return Ok(Some(length));
            }
        }
    }
}

impl<L: Link, C: Clock> Link for Faulty<L, C> {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        self.send_due_requests()?;
        let mut copy = [0; MAXIMUM_FRAME_LENGTH];
        let Some(copy) = copy.get_mut(..frame.len()) else {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        };
        copy.copy_from_slice(frame);
        if self.requests.passes(self.clock.now(), copy) {
            self.link.transmit(copy)?;
        }
        self.send_due_requests()
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        let end = self.clock.now() + timeout;
        loop {
            if let Some(length) = self.receive_ready(buffer)? {
                return Ok(Some(length));
            }
            let now = self.clock.now();
            if now >= end {
                return Ok(None);
            }
            // Sleep in the link below, but not past the moment a held frame is due.
            let wake = self.next_due().map_or(end, |due| due.min(end));
            let Some(length) = self.link.receive(buffer, wake.since(now).max(Duration::from_nanos(1)))?
            else {
                continue;
            };
            if self.replies.passes(self.clock.now(), &mut buffer[..length]) {
                return Ok(Some(length));
            }
        }
    }

    fn ring(&self) -> Option<Ring> {
        self.link.ring()
    }

    fn take_simulation_time(&mut self) -> Duration {
        self.link.take_simulation_time()
    }
}

/// Random numbers for requests and replies: two sources, so that the faults of one direction do not
/// depend on the traffic of the other.
fn chances(seed: u64) -> [fastrand::Rng; 2] {
    let mut random = fastrand::Rng::with_seed(seed);
    [random.fork(), random.fork()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use rt::clock::VirtualClock;
    use std::collections::VecDeque;

    /// Gives every frame back.
    #[derive(Default)]
    struct Loopback(VecDeque<Vec<u8>>);

    impl Link for Loopback {
        fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
            self.0.push_back(frame.to_vec());
            Ok(())
        }

        fn receive(&mut self, buffer: &mut [u8], _: Duration) -> io::Result<Option<usize>> {
            Ok(self.0.pop_front().map(|frame| {
                buffer[..frame.len()].copy_from_slice(&frame);
                frame.len()
            }))
        }
    }

    /// Sends `count` numbered frames a millisecond apart; returns the frames that came back, with
    /// their milliseconds.
    fn run(faults: Faults, count: u32) -> (Vec<(u64, u32)>, FaultCounts, FaultCounts) {
        let clock = VirtualClock::default();
        let mut link = Faulty::with_clock(Loopback::default(), faults, clock.clone());
        let mut received = Vec::new();
        let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
        for number in 0..count + 100 {
            if number < count {
                let mut frame = [0; 60];
                frame[20..24].copy_from_slice(&number.to_be_bytes());
                link.transmit(&frame).unwrap();
            }
            while let Some(length) = link.receive(&mut buffer, Duration::ZERO).unwrap() {
                assert_eq!(length, 60);
                let number = u32::from_be_bytes(buffer[20..24].try_into().unwrap());
                received.push((clock.now().as_nanos() / 1_000_000, number));
            }
            clock.advance(Duration::from_millis(1));
        }
        let counts = (link.requests(), link.replies());
        (received, counts.0, counts.1)
    }

    fn replies(rates: FaultRates) -> Faults {
        Faults { replies: rates, seed: 42, ..Faults::default() }
    }

    /// A control of both ends of a ring reaches either: frames that enter there are lost, and
    /// frames that leave are delayed.
    // feature(simulator): faults of frames on both ways round a ring, closed and open
    #[test]
    fn both_ends_of_a_ring_have_the_faults_that_are_set() {
        let (mut control, changes) = FaultControl::of(2);
        let mut ends: Vec<_> = changes
            .into_iter()
            .map(|changes| Faulty::at_far_end(Loopback::default(), Some(changes)))
            .collect();
        let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
        control.lose_next(2);
        for end in &mut ends {
            (0..3).for_each(|_| end.transmit(&[0; 60]).unwrap());
            assert_eq!(end.receive(&mut buffer, Duration::ZERO).unwrap(), Some(60));
            assert_eq!(end.receive(&mut buffer, Duration::ZERO).unwrap(), None);
        }
        let delay = FaultRates { delay: 1.0, delay_by: Duration::from_secs(3600), ..FaultRates::default() };
        control.set_rates(replies(delay));
        for end in &mut ends {
            end.transmit(&[0; 60]).unwrap();
            assert_eq!(end.receive(&mut buffer, Duration::ZERO).unwrap(), None);
            assert!(end.next_due().is_some());
        }
    }

    #[test]
    fn no_faults_change_nothing() {
        let (received, requests, replies) = run(Faults::default(), 1_000);
        assert_eq!(received, (0..1_000).map(|number| (u64::from(number), number)).collect::<Vec<_>>());
        let counts = FaultCounts { frames: 1_000, ..FaultCounts::default() };
        assert_eq!((requests, replies), (counts, counts));
    }

    // feature(cycle): seeded faults
    #[test]
    fn the_same_seed_gives_the_same_faults_and_another_one_others() {
        let rates = FaultRates {
            loss: 0.1,
            corrupt: 0.1,
            duplicate: 0.1,
            delay: 0.1,
            delay_by: Duration::from_millis(3),
            reorder: 0.1,
        };
        let faults = Faults { requests: rates, replies: rates, seed: 7 };
        assert_eq!(run(faults, 2_000), run(faults, 2_000));
        assert_ne!(run(faults, 2_000), run(Faults { seed: 8, ..faults }, 2_000));
    }

    #[test]
    fn losses_match_the_configured_rate() {
        let (received, _, counts) =
            run(replies(FaultRates { loss: 0.01, ..FaultRates::default() }), 100_000);
        // 1000 expected, standard deviation 31.
        assert!((850..1150).contains(&counts.lost), "{counts:?}");
        assert_eq!(received.len() as u64, 100_000 - counts.lost);
        let (received, counts, _) = run(
            Faults { requests: FaultRates { loss: 1.0, ..FaultRates::default() }, ..Faults::default() },
            100,
        );
        assert_eq!((received.len(), counts.lost), (0, 100));
    }

    #[test]
    fn delay_is_as_configured_in_both_directions() {
        let rates = FaultRates { delay: 1.0, delay_by: Duration::from_millis(5), ..FaultRates::default() };
        let late: Vec<_> = (0..50).map(|number| (u64::from(number) + 5, number)).collect();
        assert_eq!(run(replies(rates), 50).0, late);
        assert_eq!(run(Faults { requests: rates, ..Faults::default() }, 50).0, late);
    }

    #[test]
    fn duplicates_follow_at_once() {
        let (received, _, counts) =
            run(replies(FaultRates { duplicate: 1.0, ..FaultRates::default() }), 50);
        let twice: Vec<_> = (0..50).flat_map(|number| [(u64::from(number), number); 2]).collect();
        assert_eq!((received, counts.duplicated), (twice, 50));
    }

    #[test]
    fn reordered_frames_let_the_next_one_pass_and_none_is_missing() {
        let (received, _, counts) =
            run(replies(FaultRates { reorder: 0.2, ..FaultRates::default() }), 5_000);
        let swaps = received.windows(2).filter(|pair| pair[0].1 > pair[1].1).count();
        assert!(counts.reordered > 800 && swaps > 500, "{counts:?}, {swaps} swaps");
        let mut numbers: Vec<_> = received.iter().map(|(_, number)| *number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..5_000).collect::<Vec<_>>());
    }

    #[test]
    fn corruption_changes_one_bit_behind_the_ethernet_header() {
        let mut lane =
            Lane::new(FaultRates { corrupt: 1.0, ..FaultRates::default() }, fastrand::Rng::with_seed(1));
        let mut hit = [false; 60];
        for _ in 0..5_000 {
            let mut frame = [0_u8; 60];
            assert!(lane.passes(Instant::EPOCH, &mut frame));
            assert_eq!(frame.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
            hit[frame.iter().position(|&byte| byte != 0).unwrap()] = true;
        }
        assert_eq!(hit.iter().position(|&hit| hit), Some(14));
        assert!(hit[14..].iter().all(|&hit| hit));
    }

    /// Frames of a link with new faults after every ten: numbers of the frames that come back.
    fn changed(far_end: bool) -> Vec<u8> {
        let (mut control, changes) = FaultControl::pair();
        let mut link = match far_end {
            false => Faulty::new(Loopback::default(), Faults::default()).changed_by(changes),
            true => Faulty::at_far_end(Loopback::default(), Some(changes)),
        };
        let mut back = Vec::new();
        let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
        for number in 0..40 {
            match number {
                10 => control.lose_next(3),
                20 => control.set_rates(replies(FaultRates { loss: 1.0, ..FaultRates::default() })),
                30 => control.set_rates(Faults::default()),
                _ => {}
            }
            link.transmit(&[number; 60]).unwrap();
            while link.receive(&mut buffer, Duration::ZERO).unwrap().is_some() {
                back.push(buffer[0]);
            }
        }
        let counts =
            if far_end { [link.replies(), link.requests()] } else { [link.requests(), link.replies()] };
        assert_eq!(counts.map(|counts| counts.lost), [3, 10], "each in its direction");
        back
    }

    // feature(cycle): faults of a link that change while it runs, seen from either end
    #[test]
    fn faults_change_between_two_frames_at_either_end() {
        let expected: Vec<u8> = (0..10).chain(13..20).chain(30..40).collect();
        assert_eq!(changed(false), expected);
        assert_eq!(changed(true), expected);
    }

    #[test]
    fn seed_restarts_the_random_numbers() {
        let (mut control, changes) = FaultControl::pair();
        let rates = FaultRates { loss: 0.5, ..FaultRates::default() };
        let mut link = Faulty::new(Loopback::default(), replies(rates)).changed_by(changes);
        let mut fates = || {
            control.set_seed(7);
            let mut buffer = [0; 60];
            [(); 64].map(|()| {
                link.transmit(&[1; 60]).unwrap();
                link.receive(&mut buffer, Duration::ZERO).unwrap().is_some()
            })
        };
        assert_eq!(fates(), fates());
    }

    #[test]
    fn changes_wait_for_space() {
        let (mut control, changes) = FaultControl::pair();
        for loss in 0..=100 {
            let rates = FaultRates { loss: f64::from(100 - loss), ..FaultRates::default() };
            control.set_rates(replies(rates));
        }
        let mut link = Faulty::new(Loopback::default(), Faults::default()).changed_by(changes);
        let mut lost = || {
            control.flush();
            link.transmit(&[1; 60]).unwrap();
            link.receive(&mut [0; 60], Duration::ZERO).unwrap().is_none()
        };
        assert_eq!([lost(), lost()], [true, false], "the last one comes when there is room");
    }

    #[test]
    fn a_receive_that_waits_wakes_for_a_held_frame() {
        /// Nothing arrives; waiting takes its time.
        struct Silence(VirtualClock, Option<Vec<u8>>);
        impl Link for Silence {
            fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
                self.1 = Some(frame.to_vec());
                Ok(())
            }
            fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
                self.0.advance(timeout);
                Ok(self.1.take().map(|frame| {
                    buffer[..frame.len()].copy_from_slice(&frame);
                    frame.len()
                }))
            }
        }
        let clock = VirtualClock::default();
        let rates = FaultRates { delay: 1.0, delay_by: Duration::from_millis(5), ..FaultRates::default() };
        let mut link = Faulty::with_clock(Silence(clock.clone(), None), replies(rates), clock.clone());
        link.transmit(&[1; 60]).unwrap();
        let mut buffer = [0; 100];
        assert_eq!(link.receive(&mut buffer, Duration::from_secs(1)).unwrap(), Some(60));
        assert_eq!(clock.now().as_nanos(), 5_000_000);
        assert_eq!(link.receive(&mut buffer, Duration::from_millis(2)).unwrap(), None);
        assert_eq!(clock.now().as_nanos(), 7_000_000);
    }
}
