//! A ring of drives that is broken and healed while its axes move, in virtual time.
use crate::support;

use std::collections::VecDeque;
use std::f64::consts::TAU;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ethercat::al::AlState;
use ethercat::link::End;
use ethercat::main_device::{CableEnd, Configuration, MainDevice};
use ethercat::redundancy::Ring;
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat::wire::{Command, Frame};
use ethercat_linux::bring_up::Pump;
use ethercat_linux::link::{DirectEnd, Link, Redundant};
use onbeat_control::controller::{Controller, CycleInfo, Io};
use onbeat_control::cycle::{Cycle, CycleConfiguration, FrameOrder};
use onbeat_control::observer::Happening;
use onbeat_control::stop::StopHandle;
use proptest::prelude::*;
use rt::clock::VirtualClock;
use simulator::application::servo::{ServoDescription, ServoDrive, default_mapping};
use simulator::application::sii::with_coe;
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Oscillator, Segment, SubDevice};
use support::{PERIOD, Sway, supervised};

const DRIVES: usize = 5;

/// Logical address of the first one's outputs, and the bytes of each.
const LOGICAL: u64 = 0x1_0000;
const OUTPUTS: usize = 12;

/// Largest step of a target that supervision lets through, rad.
const STEP: f64 = 0.05;

/// Cycles for which the ring is as it is, at least.
const WHILE: u64 = 400;

/// A change in a cycle, `after` so many frames.
#[derive(Clone, Copy, Debug)]
struct Step {
    cycle: u64,
    after: u32,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// A cable is pulled, by its number from the first interface on.
    Pull(usize),
    Plug(usize),
    /// The clock of a SubDevice jumps by this, ns.
    Jump(usize, i64),
    /// A SubDevice loses its power, and has it again.
    Power(usize, bool),
    /// So many frames at the first interface are lost.
    Lose(u32),
    /// One reply of so many is spoiled at each end; 0 for none.
    Spoil([u64; 2]),
    /// The clocks are compared.
    Note,
}

/// Steps that are due, and how far the clocks were from the first one.
#[derive(Debug, Default)]
struct Shared {
    due: VecDeque<Step>,
    watched: bool,
    furthest: i64,
    notes: Vec<i64>,
    /// Frames that are lost at the first interface.
    to_lose: u32,
    /// Frames with process data that hand no time on.
    untimed: u32,
    /// Replies that are spoiled at each end: one of so many.
    rates: Vec<Arc<AtomicU64>>,
    /// Target of each drive, and the widest step to the next, in counts.
    targets: [Option<i32>; DRIVES],
    widest: u32,
}

/// A ring of drives with clocks up to 40 ppm apart.
struct Cables {
    segment: Segment,
    shared: Arc<Mutex<Shared>>,
}

impl Cables {
    fn play(&mut self, now: Instant) {
        let mut shared = self.shared.lock().unwrap();
        while let Some(step) = shared.due.front_mut() {
            if step.after > 0 {
                step.after -= 1;
                break;
            }
            let what = step.what;
            shared.due.pop_front();
            match what {
                What::Pull(cable) => assert!(self.segment.disconnect(place(cable).0, place(cable).1)),
                What::Plug(cable) => assert!(self.segment.connect(place(cable).0, place(cable).1)),
                What::Jump(position, by) => assert!(self.segment.jump_clock(position, by)),
                What::Power(position, true) => assert!(self.segment.power_on(position)),
                What::Power(position, false) => assert!(self.segment.power_off(position)),
                What::Lose(count) => shared.to_lose += count,
                What::Spoil(one_of) => {
                    let ends = shared.rates.iter().zip(one_of);
                    ends.for_each(|(rate, one_of)| rate.store(one_of, Ordering::Relaxed));
                }
                What::Note => shared.notes.push(self.furthest(now)),
            }
        }
        if shared.watched {
            shared.furthest = shared.furthest.max(self.furthest(now));
        }
    }

    /// Counts a frame at the first interface; true if it is lost there.
    fn is_lost(&self, frame: &[u8]) -> bool {
        let has = |wanted| Frame::parse(frame).unwrap().datagrams().any(|it| it.header.command == wanted);
        let is_cyclic = has(Command::Lrw) || has(Command::Lwr);
        let mut shared = self.shared.lock().unwrap();
        shared.untimed += u32::from(shared.watched && is_cyclic && !has(Command::Frmw));
        let is_lost = is_cyclic && shared.to_lose > 0;
        shared.to_lose -= u32::from(is_lost);
        is_lost
    }

    /// Notes the targets that the drives are sent: outputs of 12 bytes each, with the target behind
    /// the controlword.
    fn note_targets(&self, frame: &[u8]) {
        let mut shared = self.shared.lock().unwrap();
        for datagram in Frame::parse(frame).unwrap().places() {
            let header = &datagram.header;
            let first = u64::from(header.address).saturating_sub(LOGICAL) as usize / OUTPUTS;
            if !matches!(header.command, Command::Lrw | Command::Lwr) {
                continue;
            }
            for (place, outputs) in frame[datagram.data()].chunks_exact(OUTPUTS).enumerate() {
                let target = i32::from_le_bytes(outputs[2..6].try_into().unwrap());
                let Some(last) = shared.targets.get_mut(first + place) else { break };
                let step = last.replace(target).map_or(0, |last| target.wrapping_sub(last).unsigned_abs());
                shared.widest = shared.widest.max(if shared.watched { step } else { 0 });
            }
        }
    }

    /// Furthest of a clock from the first one.
    fn furthest(&self, now: Instant) -> i64 {
        let time = |it: &SubDevice| it.system_time(now) as i64;
        let first = time(&self.segment.sub_devices()[0]);
        self.segment.sub_devices().iter().map(|it| (time(it) - first).abs()).max().unwrap()
    }
}

impl ethercat::link::Segment for Cables {
    fn process_frame(&mut self, _: Instant, _: &mut [u8]) -> bool {
        unreachable!("a ring has two ends")
    }

    fn process_frame_at(&mut self, end: End, now: Instant, frame: &mut [u8]) -> Option<End> {
        self.play(now);
        if end == End::First && self.is_lost(frame) {
            return None;
        }
        if end == End::First {
            self.note_targets(frame);
        }
        self.segment.process_frame_at(end, now, frame)
    }

    fn advance(&mut self, now: Instant) {
        self.segment.advance(now);
    }
}

fn ring() -> Segment {
    let drive = |position: usize| {
        let identity = Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };
        let sii = with_coe(identity, "Servo", default_mapping()).image().emit();
        let description = ServoDescription {
            initial_position: position as f64,
            ..ServoDescription::new(DeviceDescription::new(identity, "Servo"))
        };
        let drift_ppm = [0.0, 20.0, -20.0][position % 3];
        let oscillator = Oscillator {
            drift_ppm,
            initial_time: position as u64 * 1_000_000_007,
            ..Oscillator::default()
        };
        let esc = EscDescription { oscillator, ..EscDescription::default() };
        SubDevice::new(esc, sii, Box::new(ServoDrive::new(&description).unwrap()))
    };
    let mut segment = Segment::new((0..DRIVES).map(drive).collect());
    segment.close_ring(DRIVES - 1, 1).unwrap();
    segment
}

/// Sways the axes, plays the steps, and looks at all of it.
struct Player {
    sway: Sway,
    shared: Arc<Mutex<Shared>>,
    steps: VecDeque<Step>,
    cycles: u64,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Least and greatest position of each axis.
    reach: Vec<(f64, f64)>,
    /// Cycles without an axis's data, and most of them in a row.
    lost: u64,
    missed: u64,
    /// Cycles without its data, by axis, and consecutive ones at the end.
    without: Vec<u64>,
    missing: Vec<u32>,
    stops: u64,
}

impl Controller for Player {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        self.sway.update(info, io);
        let (reports, _) = io.split();
        if info.stopping {
            return;
        }
        let moves = reports.iter().all(|it| it.state == Some(ethercat::cia402::State::OperationEnabled));
        self.cycles += u64::from(moves || self.cycles > 0);
        let mut shared = self.shared.lock().unwrap();
        shared.watched = self.cycles > 100;
        while self.steps.front().is_some_and(|step| step.cycle <= self.cycles) {
            shared.due.extend(self.steps.pop_front());
        }
        if self.cycles == 0 {
            return;
        }
        let mut seen = self.seen.lock().unwrap();
        seen.reach.resize(reports.len(), (f64::INFINITY, f64::NEG_INFINITY));
        seen.without.resize(reports.len(), 0);
        reports
            .iter()
            .zip(&mut seen.without)
            .for_each(|(it, without)| *without += u64::from(it.missed > 0));
        seen.missing = reports.iter().map(|it| it.missed).collect();
        seen.lost += u64::from(reports.iter().any(|it| it.missed > 0));
        for (axis, report) in reports.iter().enumerate() {
            let position = report.feedback.position.0;
            let (least, greatest) = seen.reach[axis];
            seen.reach[axis] = (least.min(position), greatest.max(position));
            seen.missed = seen.missed.max(report.missed.into());
            seen.stops += u64::from(report.stop.is_some());
        }
    }
}

struct Ran {
    seen: Seen,
    /// Furthest from the first clock, in ns, and as it was noted.
    furthest: i64,
    notes: Vec<i64>,
    /// Frames with process data that handed no time on.
    untimed: u32,
    /// Reported breaks, and the number of reports that the ring is closed.
    breaks: Vec<[CableEnd; 2]>,
    healed: usize,
}

fn run(order: FrameOrder, steps: &[Step]) -> Ran {
    run_from(None, order, steps)
}

/// The same, with a cable that is pulled before the bus comes up.
fn run_from(pulled: Option<usize>, order: FrameOrder, steps: &[Step]) -> Ran {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let shared = Arc::new(Mutex::new(Shared::default()));
    let mut segment = ring();
    if let Some(cable) = pulled {
        let (position, port) = place(cable);
        assert!(segment.disconnect(position, port));
    }
    let cables = Cables { segment, shared: Arc::clone(&shared) };
    let [first, second] = DirectEnd::ring(cables, clock.clone(), Duration::from_micros(60));
    let mut link = Redundant::with_clock(first, second, clock.clone()).with_wait(PERIOD / 2);
    let open = pulled.map(|cable| Ring::Open { before: cable as u16 });
    assert_eq!(link.check(["first", "second"]).unwrap(), open.unwrap_or(Ring::Closed));
    let configuration = Configuration { target: AlState::Op, period: PERIOD, ..Configuration::default() };
    let mut main_device = MainDevice::new(configuration).unwrap();
    let stop = StopHandle::new();
    Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: stop.flag() }
        .bring_up(Duration::from_secs(20), |_| ())
        .unwrap();
    assert_eq!(main_device.sub_devices().len(), DRIVES);
    let delays: Vec<_> = main_device.sub_devices().iter().map(|it| it.clock.unwrap().delay).collect();
    assert!(delays.windows(2).all(|pair| (200..2_000).contains(&(pair[1] - pair[0]))), "{delays:?}");
    let seen = Arc::new(Mutex::new(Seen::default()));
    let player = Player {
        sway: Sway::new(DRIVES),
        shared: Arc::clone(&shared),
        steps: steps.iter().copied().collect(),
        cycles: 0,
        seen: Arc::clone(&seen),
    };
    let last = steps.last().map_or(0, |step| step.cycle);
    let configuration =
        CycleConfiguration { cycles: Some(last + 1_500), order, ..CycleConfiguration::every(PERIOD) };
    let (cycle, mut observer) =
        Cycle::new(main_device, link, clock, &supervised(DRIVES), Box::new(player), configuration).unwrap();
    let ended = cycle.run(&stop);
    assert_eq!(ended.failure, None);
    let told: Vec<_> = std::iter::from_fn(|| observer.next_event()).map(|event| event.what).collect();
    let between = |what: &Happening| match what {
        Happening::RingOpen { between } => Some(*between),
        _ => None,
    };
    let breaks = told.iter().filter_map(between).collect();
    let healed = told.iter().filter(|what| matches!(what, Happening::RingClosed { .. })).count();
    let Shared { furthest, notes, untimed, .. } = std::mem::take(&mut *shared.lock().unwrap());
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    Ran { seen, furthest, notes, untimed, breaks, healed }
}

/// One end of a ring at which replies are spoiled, behind a right frame check sequence: by a
/// switch, or the host.
struct Spoiled<L> {
    link: L,
    /// Spoils one reply of so many; 0 for none.
    one_of: Arc<AtomicU64>,
    random: fastrand::Rng,
    /// A reply of before.
    old: Vec<u8>,
}

impl<L: Link> Link for Spoiled<L> {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        self.link.transmit(frame)
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        let Some(length) = self.link.receive(buffer, timeout)? else { return Ok(None) };
        let random = &mut self.random;
        let one_of = self.one_of.load(Ordering::Relaxed);
        if one_of == 0 || random.u64(..one_of) > 0 {
            if random.u8(..8) == 0 {
                self.old.clear();
                self.old.extend(&buffer[..length]);
            }
            return Ok(Some(length));
        }
        match random.u8(..6) {
            // Bytes of headers, data and working counters.
            0 => (0..random.usize(1..9)).for_each(|_| buffer[random.usize(6..length)] = random.u8(..)),
            1 => random.fill(&mut buffer[26..length]),
            2 => return Ok(Some(random.usize(..length))),
            // Numbers of the frame, and lengths.
            3 => random.fill(&mut buffer[14..26]),
            // A whole reply of before.
            4 if self.old.len() == length => buffer[..length].copy_from_slice(&self.old),
            // Its data under the number of this one.
            _ if self.old.len() == length => buffer[26..length].copy_from_slice(&self.old[26..]),
            _ => buffer[length - 2..length].fill(random.u8(..)),
        }
        Ok(Some(length))
    }
}

// feature(redundancy): replies that are spoiled at one end of a ring move no axis, and all is well once they end
#[test]
fn replies_that_are_spoiled_at_one_end_move_no_axis() {
    for seed in 0..3 {
        for (first, second, cable) in
            [(3, 0, None), (0, 3, None), (1, 0, Some(2)), (0, 2, Some(3)), (2, 2, None)]
        {
            let what = format!("seed {seed}, one of {first} and {second}, open at {cable:?}");
            let clock = VirtualClock::default();
            clock.advance(Duration::from_secs(1000));
            let shared = Arc::new(Mutex::new(Shared::default()));
            let cables = Cables { segment: ring(), shared: Arc::clone(&shared) };
            let ends = DirectEnd::ring(cables, clock.clone(), Duration::from_micros(60));
            let rates = [Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0))];
            let mut number = 0;
            let [first_end, second_end] = ends.map(|link| {
                number += 1;
                Spoiled {
                    link,
                    one_of: Arc::clone(&rates[number - 1]),
                    random: fastrand::Rng::with_seed(seed * 2 + number as u64),
                    old: Vec::new(),
                }
            });
            let mut link =
                Redundant::with_clock(first_end, second_end, clock.clone()).with_wait(PERIOD / 2);
            assert_eq!(link.check(["first", "second"]).unwrap(), Ring::Closed);
            let configuration =
                Configuration { target: AlState::Op, period: PERIOD, ..Configuration::default() };
            let mut main_device = MainDevice::new(configuration).unwrap();
            let stop = StopHandle::new();
            Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: stop.flag() }
                .bring_up(Duration::from_secs(20), |_| ())
                .unwrap();
            let seen = Arc::new(Mutex::new(Seen::default()));
            let mut steps: Vec<_> =
                cable.map(|cable| break_of(cable, 600, 0)).into_iter().flatten().collect();
            steps.push(Step { cycle: 500, after: 0, what: What::Spoil([first, second]) });
            steps.push(Step { cycle: 1_500, after: 0, what: What::Spoil([0, 0]) });
            steps.sort_by_key(|step| step.cycle);
            shared.lock().unwrap().rates = rates.to_vec();
            let player = Player {
                sway: Sway::new(DRIVES),
                shared: Arc::clone(&shared),
                steps: steps.into(),
                cycles: 0,
                seen: Arc::clone(&seen),
            };
            let configuration =
                CycleConfiguration { cycles: Some(4_000), ..CycleConfiguration::every(PERIOD) };
            let (cycle, _observer) =
                Cycle::new(main_device, link, clock, &supervised(DRIVES), Box::new(player), configuration)
                    .unwrap();
            let ended = cycle.run(&stop);
            assert_eq!(ended.failure, None, "{what}");
            let shared = shared.lock().unwrap();
            let widest = f64::from(shared.widest) * TAU / f64::from(1 << 20);
            assert!(widest > 0.0 && widest < 1.01 * STEP, "{what}: a target {widest} rad from the last");
            assert_eq!(seen.lock().unwrap().missing, [0; DRIVES], "{what}");
        }
    }
}

/// Position and port at which a cable can be pulled.
fn place(cable: usize) -> (usize, usize) {
    if cable == 0 { (0, 0) } else { (cable - 1, 1) }
}

/// Pulls a cable and plugs it again, `after` so many frames of the cycle.
fn break_of(cable: usize, cycle: u64, after: u32) -> [Step; 2] {
    let step = |cycle, what| Step { cycle, after, what };
    [step(cycle, What::Pull(cable)), step(cycle + WHILE, What::Plug(cable))]
}

/// Both ends of a cable.
fn ends(cable: usize) -> [CableEnd; 2] {
    let end = |position: Option<usize>, port: u8| CableEnd {
        position: position.map(|position| position as u16),
        port: Some(port),
    };
    let near = if cable == 0 { end(None, 0) } else { end(Some(cable - 1), 1) };
    let far = if cable == DRIVES { end(None, 1) } else { end(Some(cable), 0) };
    [near, far]
}

fn holds(ran: &Ran) {
    assert_eq!(ran.seen.stops, 0, "no axis is stopped");
    assert!(ran.seen.reach.iter().all(|(least, greatest)| greatest - least > 0.5), "{:?}", ran.seen.reach);
    assert!(ran.furthest < 4_000, "{} ns between two clocks", ran.furthest);
}

// feature(redundancy): a ring broken and closed at every cable in operation: no cycle lost, axes continue, clocks agree, place reported
#[test]
fn ring_breaks_and_closes_without_a_lost_cycle() {
    for order in [FrameOrder::ReplyOfLastCycle, FrameOrder::WaitForReply] {
        let steps: Vec<_> =
            (0..=DRIVES).flat_map(|cable| break_of(cable, 1_000 + 3 * WHILE * cable as u64, 0)).collect();
        let ran = run(order, &steps);
        assert_eq!((ran.seen.lost, ran.seen.missed), (0, 0), "{order:?}");
        assert_eq!(ran.breaks, (0..=DRIVES).map(ends).collect::<Vec<_>>(), "{order:?}");
        assert_eq!(ran.healed, DRIVES + 1);
        holds(&ran);
    }
}

// feature(redundancy): clocks behind a break follow the reference clock, wherever it is
#[test]
fn clocks_on_both_sides_of_a_break_are_steered() {
    for cable in [0, 1, 3] {
        let step = |cycle, what| Step { cycle, after: 0, what };
        let steps = [
            step(1_000, What::Pull(cable)),
            step(1_100, What::Jump(DRIVES - 1, 20_000)),
            step(1_101, What::Note),
            step(2_100, What::Note),
            step(2_200, What::Plug(cable)),
            step(3_000, What::Note),
        ];
        let ran = run(FrameOrder::ReplyOfLastCycle, &steps);
        let [jumped, open, closed] = ran.notes[..] else { panic!("{:?}", ran.notes) };
        assert!(jumped > 15_000, "cable {cable}: {jumped} ns");
        // The time comes by another way there: off by at most the delay round the ring.
        assert!(open < 4_000, "cable {cable}: {open} ns while it is open");
        assert!(closed < 200, "cable {cable}: {closed} ns when it is closed again");
    }
}

/// The half that comes back alone shows no reference clock: that is no reason to hand no time on.
#[test]
fn lost_copy_in_an_open_ring_keeps_the_reference_clock() {
    let step = |cycle, what| Step { cycle, after: 0, what };
    for (losses, longest) in [(0, 0), (1, 1), (2, 2)] {
        let steps =
            [step(1_000, What::Pull(2)), step(1_100, What::Lose(losses)), step(1_500, What::Plug(2))];
        let ran = run(FrameOrder::ReplyOfLastCycle, &steps);
        assert!(ran.untimed <= longest, "{} cycles without a time after {losses} losses", ran.untimed);
        holds(&ran);
    }
}

// feature(redundancy): a SubDevice without power in a ring costs the SubDevices behind it no cycle, and returns to Op
#[test]
fn drive_without_power_opens_the_ring_and_comes_back() {
    let step = |cycle, what| Step { cycle, after: 0, what };
    let steps =
        [step(1_000, What::Power(2, false)), step(1_500, What::Power(2, true)), step(6_000, What::Note)];
    let ran = run(FrameOrder::ReplyOfLastCycle, &steps);
    // The first cycle does not identify the missing drive yet.
    let of_others = [0, 1, 3, 4].map(|axis| ran.seen.without[axis]);
    assert!(of_others.into_iter().all(|cycles| cycles <= 2), "{of_others:?}");
    assert!(ran.seen.without[2] > 400, "{:?}", ran.seen.without);
    assert_eq!(ran.seen.missing, [0; DRIVES], "it is back in Op");
    assert_eq!((&ran.breaks[..], ran.healed), (&[ends(2)][..], 1));
}

/// Its place is found by positions, which count on behind the break.
#[test]
fn in_an_open_ring_a_drive_behind_the_break_comes_back_too() {
    let step = |cycle, what| Step { cycle, after: 0, what };
    for (cable, position) in [(1, 1), (1, DRIVES - 1), (0, 2)] {
        let steps = [
            step(1_000, What::Pull(cable)),
            step(1_500, What::Power(position, false)),
            step(2_000, What::Power(position, true)),
            step(8_000, What::Note),
        ];
        let ran = run(FrameOrder::ReplyOfLastCycle, &steps);
        assert_eq!(ran.seen.missing, [0; DRIVES], "cable {cable}, drive {position}");
        assert!(ran.seen.without[position] > 400);
    }
}

#[test]
fn closed_ring_reports_nothing() {
    let ran = run(FrameOrder::ReplyOfLastCycle, &[]);
    assert_eq!((ran.seen.lost, ran.breaks.len(), ran.healed), (0, 0, 0));
    holds(&ran);
}

// feature(redundancy): a ring that is open at the start comes up from both ends, the gap is reported, and it is closed while axes move
/// Each cable is broken before the bus comes up: all drives are found in the order of the ring,
/// move, and lose no cycle when the cable is plugged.
#[test]
fn a_ring_that_is_open_at_the_start_comes_up_and_is_healed() {
    for cable in 0..=DRIVES {
        let steps = [
            Step { cycle: 1_500, after: 0, what: What::Note },
            Step { cycle: 1_600, after: 0, what: What::Plug(cable) },
            Step { cycle: 3_000, after: 0, what: What::Note },
        ];
        let ran = run_from(Some(cable), FrameOrder::ReplyOfLastCycle, &steps);
        assert_eq!((ran.seen.lost, ran.seen.missed, ran.seen.stops), (0, 0, 0), "cable {cable}");
        assert_eq!((&ran.breaks[..], ran.healed), (&[ends(cable)][..], 1), "cable {cable}");
        let [open, closed] = ran.notes[..] else { panic!("{:?}", ran.notes) };
        println!("cable {cable}: clocks within {open} ns open, {closed} ns closed again");
        assert!(open < 4_000 && closed < 1_000, "cable {cable}: {open} ns open, {closed} ns closed again");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// Breaks anywhere, also between the two copies of a frame: a cycle each is lost at most, that
    /// of the frames under way.
    #[test]
    fn breaks_at_any_moment_lose_the_frames_under_way_and_no_more(
        breaks in proptest::collection::vec((0..=DRIVES, 0_u32..4), 1..5),
    ) {
        let steps: Vec<_> = breaks
            .iter()
            .enumerate()
            .flat_map(|(number, &(cable, after))| break_of(cable, 1_000 + 3 * WHILE * number as u64, after))
            .collect();
        let ran = run(FrameOrder::ReplyOfLastCycle, &steps);
        prop_assert!(ran.seen.lost <= steps.len() as u64, "{} cycles lost", ran.seen.lost);
        prop_assert!(ran.seen.missed <= 1);
        prop_assert_eq!(ran.breaks.clone(), breaks.iter().map(|&(cable, _)| ends(cable)).collect::<Vec<_>>());
        holds(&ran);
    }
}
