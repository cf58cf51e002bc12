//! The bus of a running cycle asked by other programs, in virtual time: one service frame a cycle
//! at most, and events with the cycles they happened in.
use crate::support;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ethercat_linux::link::{DirectLink, Link};
use ipc::bus::{Backend, Bytes, Event, Happening, Outcome, Service, Ticket};
use onbeat_control::bus::{self, BusBackend, BusPoll, PartNames, WriteProtection};
use onbeat_control::controller::{Controller, CycleInfo, Io};
use onbeat_control::cycle::{CycleConfiguration, Ended, FrameOrder};
use onbeat_control::stop::StopHandle;
use rt::clock::VirtualClock;
use simulator::Segment;
use simulator::application::servo::SIMULATION;
use support::{PERIOD, Servant, axes, cycle_of, segment};

const DRIVES: usize = 3;

/// Number of drives with process data that fits into one frame, and error counters that do not.
const MANY: usize = 48;

/// Cycles in Op.
const IN_OP: u64 = 3000;

/// Cycles in which the wire takes nothing: the first, and the first afterwards. And one in which
/// frames to SubDevice 1 are damaged; 0 for none.
#[derive(Clone, Default)]
struct Cut(Arc<(AtomicU64, AtomicU64, AtomicU64)>);

impl Cut {
    fn set(&self, cycles: std::ops::Range<u64>) {
        self.0.0.store(cycles.start, Ordering::Relaxed);
        self.0.1.store(cycles.end, Ordering::Relaxed);
    }

    fn damage(&self, cycle: u64) {
        self.0.2.store(cycle, Ordering::Relaxed);
    }

    fn damages(&self, cycle: u64) -> bool {
        cycle > 0 && self.0.2.load(Ordering::Relaxed) == cycle
    }

    fn cycles(&self) -> std::ops::Range<u64> {
        self.0.0.load(Ordering::Relaxed)..self.0.1.load(Ordering::Relaxed)
    }
}

/// Counts the frames of each cycle, and loses the frames of some.
struct Counting {
    link: DirectLink<Segment, VirtualClock>,
    cycle: Arc<AtomicU64>,
    frames: Arc<Mutex<BTreeMap<u64, u32>>>,
    cut: Cut,
}

impl Link for Counting {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        let cycle = self.cycle.load(Ordering::Relaxed);
        *self.frames.lock().unwrap().entry(cycle).or_default() += 1;
        if self.cut.damages(cycle) {
            self.link.segment().disturb(1, 0);
        }
        if self.cut.cycles().contains(&cycle) { Ok(()) } else { self.link.transmit(frame) }
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        self.link.receive(buffer, timeout)
    }
}

/// Holds the axes, and speaks for the server between two cycles: `visit` with the number of the
/// cycle, in Op.
struct Visited<F> {
    servant: Servant,
    cycle: Arc<AtomicU64>,
    ends: Option<(BusBackend, BusPoll)>,
    hand_over: std::sync::mpsc::Receiver<(BusBackend, BusPoll)>,
    visit: F,
}

impl<F: FnMut(u64, &mut BusBackend, &mut BusPoll) + Send> Controller for Visited<F> {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        self.servant.update(info, io);
        self.cycle.store(info.cycle, Ordering::Relaxed);
        self.ends = self.ends.take().or_else(|| self.hand_over.try_recv().ok());
        if let Some((backend, poll)) = self.ends.as_mut().filter(|_| !info.stopping) {
            (self.visit)(info.cycle, backend, poll);
        }
    }
}

struct Played {
    frames: BTreeMap<u64, u32>,
    events: Vec<Event>,
    ended: Ended<Counting>,
}

fn play(
    order: FrameOrder,
    drives: usize,
    cut: &Cut,
    mut visit: impl FnMut(u64, &mut BusBackend) + Send + 'static,
) -> Played {
    play_polled(order, drives, cut, move |cycle, backend, _| visit(cycle, backend))
}

/// The same with the view of the slow poll, which runs in both cases.
fn play_polled(
    order: FrameOrder,
    drives: usize,
    cut: &Cut,
    visit: impl FnMut(u64, &mut BusBackend, &mut BusPoll) + Send + 'static,
) -> Played {
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let (cycle, frames) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(BTreeMap::new())));
    let link = Counting {
        link: DirectLink::new(segment(drives), clock.clone(), Duration::from_micros(60)),
        cycle: Arc::clone(&cycle),
        frames: Arc::clone(&frames),
        cut: cut.clone(),
    };
    let (hand, hand_over): (Sender<(BusBackend, BusPoll)>, _) = channel();
    let servant = Servant::new(drives, 1.0);
    let controller = Visited { servant, cycle, ends: None, hand_over, visit };
    let configuration =
        CycleConfiguration { cycles: Some(IN_OP), order, loss: None, ..CycleConfiguration::every(PERIOD) };
    let (cycle, mut observer) = cycle_of(link, clock, &axes(drives), controller, configuration);
    let protection =
        WriteProtection::new(cycle.main_device(), (0..drives).map(|drive| (drive, 0)).collect());
    let description =
        move || vec![serde_json::json!({ "state": "PreOp", "entry_port": 3, "kept": true }); drives].into();
    let (requests, backend) =
        bus::requests(cycle.main_device(), protection, observer.status_reader(), description);
    let (requests, poll) = requests.polling(cycle.main_device(), PERIOD, observer.status_reader());
    hand.send((backend, poll)).unwrap();
    let ended = cycle.with_bus(requests).run(&StopHandle::new());
    assert_eq!(ended.failure, None);
    let events = std::iter::from_fn(|| observer.next_event())
        .filter_map(|it| bus::event(&it, &PartNames::default()))
        .collect();
    let frames = std::mem::take(&mut *frames.lock().unwrap());
    Played { frames, events, ended }
}

fn upload(position: u16, index: u16) -> Service {
    Service::Upload { position, index, sub_index: 0, complete_access: false }
}

fn ticket(id: u64) -> Ticket {
    Ticket { session: 1, id }
}

/// Cycles in Op before the stop.
fn in_op(events: &[Event]) -> std::ops::Range<u64> {
    let is_op = |event: &&Event| matches!(&event.what, Happening::Phase { phase } if phase == "Op");
    let first = events.iter().find(is_op).unwrap().cycle + 1;
    first..first + IN_OP - 10
}

// feature(running-bus): one service frame a cycle at most, however much is asked, in both orders of frames
#[test]
fn requests_add_at_most_one_frame_to_a_cycle() {
    for order in [FrameOrder::ReplyOfLastCycle, FrameOrder::WaitForReply] {
        let asked = Arc::new(Mutex::new((0_u64, 0_u64, 0_u64)));
        let counts = Arc::clone(&asked);
        let mut begun = None;
        let played = play(order, MANY, &Cut::default(), move |cycle, backend| {
            // On the way up states are others.
            if cycle < *begun.get_or_insert(cycle) + 300 {
                return;
            }
            let mut counts = counts.lock().unwrap();
            while let Some((_, outcome)) = backend.poll() {
                match outcome {
                    Outcome::Data(Bytes(bytes)) if !bytes.is_empty() => counts.1 += 1,
                    Outcome::Status(status) => {
                        counts.2 += 1;
                        let all = status.sub_devices.iter();
                        assert!(
                            all.clone().all(|it| it.errors.is_some() && it.state == "Op"),
                            "{status:?}"
                        );
                        assert!(status.working_counters.iter().all(|it| it.received == Some(it.expected)));
                    }
                    other => panic!("{other:?}"),
                }
            }
            // As many as fit, all the time.
            loop {
                let id = counts.0;
                let service = match id % 40 {
                    0 => Service::Status { errors: true, receive_times: false },
                    1 => Service::ObjectList { position: 1, list: 1 },
                    _ => upload((id % MANY as u64) as u16, 0x1008),
                };
                if !backend.submit(ticket(id), &service, None) {
                    break;
                }
                counts.0 += 1;
            }
        });
        let (_, read, pictures) = *asked.lock().unwrap();
        assert!(read > 100 && pictures > 2, "{order:?}: {read} objects, {pictures} pictures");
        let cycles = in_op(&played.events);
        let counts: Vec<u32> = played.frames.range(cycles).map(|(_, &count)| count).collect();
        assert!(counts.len() > 2000);
        assert!(counts.iter().all(|count| matches!(count, 1 | 2)), "{order:?}: {:?}", counts.iter().max());
        assert!(counts.iter().filter(|&&count| count == 2).count() > 1000, "{order:?}: nothing was sent");
        assert_eq!((played.ended.overruns.count, played.ended.status.reception.lost), (0, 0));
    }
}

// feature(running-bus): events with the numbers of their cycles; missed events are counted
#[test]
fn emergency_is_reported_with_its_cycle() {
    let written = Arc::new(AtomicU64::new(0));
    let at = Arc::clone(&written);
    let mut begun = None;
    let played = play(FrameOrder::ReplyOfLastCycle, DRIVES, &Cut::default(), move |cycle, backend| {
        let begun = *begun.get_or_insert(cycle);
        if cycle == begun + 1500 {
            let service = Service::Download {
                position: 1,
                index: SIMULATION,
                sub_index: 2,
                complete_access: false,
                data: Bytes(vec![0x10, 0x23]),
                force: false,
            };
            assert!(backend.submit(ticket(1), &service, None));
        }
        if let Some((_, outcome)) = backend.poll() {
            assert_eq!(outcome, Outcome::Done(true));
            at.store(cycle, Ordering::Relaxed);
        }
    });
    let written = written.load(Ordering::Relaxed);
    let cycle_of = |is: &dyn Fn(&Happening) -> bool| {
        let found: Vec<_> = played.events.iter().filter(|event| is(&event.what)).collect();
        assert_eq!(found.len(), 1, "{:?}", played.events);
        found[0].cycle
    };
    let emergency =
        cycle_of(&|what| matches!(what, Happening::Emergency { position: 1, error_code: 0x2310, .. }));
    let fault = cycle_of(&|what| {
        matches!(what, Happening::DriveFault { axis: 1, position: 1, error_code: 0x2310 })
    });
    // The mailbox is polled once in so many cycles as there are drives; then it is fetched.
    let close = written - 10..written + 10;
    assert!(close.contains(&emergency) && close.contains(&fault), "{written}: {emergency}, {fault}");
    let seen: Vec<_> = played.events.iter().map(|event| event.cycle).collect();
    assert!(seen.is_sorted(), "{seen:?}");
}

// feature(running-bus): events with the numbers of their cycles; missed events are counted
#[test]
fn loss_and_return_are_reported_and_requests_answered() {
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&outcomes);
    let cut = Cut::default();
    let (cable, mut begun) = (cut.clone(), None);
    let played = play(FrameOrder::ReplyOfLastCycle, DRIVES, &cut, move |cycle, backend| {
        let begun = *begun.get_or_insert(cycle);
        if cycle == begun + 1000 {
            // No reply to the frames sent from the next cycle on, for fifty cycles.
            cable.set(cycle + 1..cycle + 51);
        }
        if cycle == begun + 1006 {
            let status = Service::Status { errors: false, receive_times: false };
            assert!(backend.submit(ticket(10), &status, None));
        }
        if cycle == begun + 1010 {
            assert!(backend.submit(ticket(7), &upload(2, 0x1008), None));
            assert!(backend.submit(
                ticket(8),
                &Service::Status { errors: true, receive_times: false },
                None
            ));
        }
        if cycle == begun + 1500 {
            assert!(backend.submit(
                ticket(9),
                &Service::Status { errors: false, receive_times: false },
                None
            ));
        }
        heard.lock().unwrap().extend(std::iter::from_fn(|| backend.poll()).map(|outcome| (cycle, outcome)));
    });
    let first = cut.cycles().start;
    let of = |is: fn(&Happening) -> bool| {
        let cycles: Vec<_> = played.events.iter().filter(|it| is(&it.what)).map(|it| it.cycle).collect();
        cycles
    };
    // A missing reply counts one cycle after its frame; the third consecutive one is reported.
    assert_eq!(of(|what| matches!(what, Happening::SubDeviceLost { .. })), [first + 3; DRIVES]);
    assert_eq!(of(|what| matches!(what, Happening::SubDeviceBack { after: 50, .. })), [first + 51; DRIVES]);
    let outcomes = outcomes.lock().unwrap();
    let of_ticket = |id| outcomes.iter().find(|(_, (found, _))| *found == ticket(id)).unwrap();
    assert!(matches!(of_ticket(7).1.1, Outcome::Data(_)) && of_ticket(7).0 > first + 50, "{outcomes:?}");
    assert!(matches!(of_ticket(8).1.1, Outcome::Status(_)) && of_ticket(8).0 > first + 50);
    // A SubDevice that does not answer is not reported to be in Op.
    let states = |id| match &of_ticket(id).1.1 {
        Outcome::Status(status) => status.sub_devices.iter().map(|it| it.state.clone()).collect(),
        _ => Vec::new(),
    };
    assert!(of_ticket(10).0 < first + 50, "{outcomes:?}");
    assert_eq!(
        (states(10), states(9)),
        (vec!["no answer".to_owned(); DRIVES], vec!["Op".to_owned(); DRIVES])
    );
    let Outcome::Status(status) = &of_ticket(9).1.1 else { panic!("{outcomes:?}") };
    let history = &status.working_counter_history;
    assert_eq!((history.short_cycles, history.short_since), (50, None), "{history:?}");
    let [lost, .., back] = &history.changes[..] else { panic!("{history:?}") };
    assert_eq!(
        (lost.cycle, lost.received, back.cycle, back.short),
        (first + 1, None, first + 51, 0),
        "{history:?}"
    );
}

// feature(main-device): latch inputs read through the running cycle, with the right to command
#[test]
fn latch_inputs_are_read_through_the_cycle() {
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&outcomes);
    let mut begun = None;
    play(FrameOrder::ReplyOfLastCycle, DRIVES, &Cut::default(), move |cycle, backend| {
        let latches = |position| Service::Latches { position };
        match cycle - *begun.get_or_insert(cycle) {
            1000 => assert!(backend.submit(ticket(1), &latches(1), None)),
            1001 => assert!(!backend.submit(ticket(2), &latches(1), None), "one at a time"),
            1100 => assert!(backend.submit(ticket(3), &latches(1), Some("it may only look"))),
            1200 => assert!(backend.submit(ticket(4), &latches(99), None)),
            _ => {}
        }
        heard.lock().unwrap().extend(std::iter::from_fn(|| backend.poll()));
    });
    let outcomes = outcomes.lock().unwrap();
    let of_ticket = |id| &outcomes.iter().find(|(found, _)| *found == ticket(id)).unwrap().1;
    assert_eq!(*of_ticket(1), Outcome::Latches(Default::default()));
    let text = |id| match of_ticket(id) {
        Outcome::Error { text, .. } => text.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(text(3), "it may only look");
    assert!(text(4).starts_with("SubDevice 99 reports no latch times"), "{outcomes:?}");
}

// feature(diagnosis): error counters and links of a running bus; clearing them through its cycle needs the right to command
#[test]
fn error_counters_are_read_and_cleared_through_the_cycle() {
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&outcomes);
    let cut = Cut::default();
    let (cable, mut begun) = (cut.clone(), None);
    play(FrameOrder::ReplyOfLastCycle, DRIVES, &cut, move |cycle, backend| {
        let status = || Service::Status { errors: true, receive_times: false };
        match cycle - *begun.get_or_insert(cycle) {
            1000 => cable.damage(cycle + 1),
            1010 => assert!(backend.submit(ticket(1), &status(), None)),
            1100 => assert!(backend.submit(ticket(2), &Service::ClearErrors, Some("it may only look"))),
            1200 => assert!(backend.submit(ticket(3), &Service::ClearErrors, None)),
            1300 => assert!(backend.submit(ticket(4), &status(), None)),
            _ => {}
        }
        heard.lock().unwrap().extend(std::iter::from_fn(|| backend.poll()));
    });
    let outcomes = outcomes.lock().unwrap();
    let of_ticket = |id| &outcomes.iter().find(|(found, _)| *found == ticket(id)).unwrap().1;
    let errors = |id| {
        let Outcome::Status(status) = of_ticket(id) else { panic!("{outcomes:?}") };
        assert!(
            status.sub_devices.iter().all(|it| it.links.is_some_and(|links| links[0].link)),
            "{status:?}"
        );
        status.sub_devices.iter().map(|it| it.errors.unwrap()).collect::<Vec<_>>()
    };
    let found = errors(1);
    assert_eq!(
        (found[1].ports[0].invalid_frames, found[2].ports[0].forwarded_rx_errors),
        (1, 1),
        "{found:?}"
    );
    assert!(
        matches!(of_ticket(2), Outcome::Error { text, .. } if text == "it may only look"),
        "{outcomes:?}"
    );
    assert_eq!(*of_ticket(3), Outcome::Done(true));
    assert!(errors(4).iter().all(|it| *it == ipc::bus::ErrorCounters::default()), "{outcomes:?}");
}

// feature(diagnosis): the description of a running bus has the states, places and delays of its SubDevices as they are, not as they were found
#[test]
fn description_has_current_states_and_positions() {
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&outcomes);
    let mut begun = None;
    play(FrameOrder::ReplyOfLastCycle, DRIVES, &Cut::default(), move |cycle, backend| {
        if cycle == *begun.get_or_insert(cycle) + 1000 {
            assert!(backend.submit(ticket(1), &Service::Describe, Some("it may only look")));
        }
        heard.lock().unwrap().extend(std::iter::from_fn(|| backend.poll()));
    });
    let outcomes = outcomes.lock().unwrap();
    let [(_, Outcome::SubDevices(found))] = &outcomes[..] else { panic!("{outcomes:?}") };
    let now = |upstream: serde_json::Value, delay: u32| serde_json::json!({ "state": "Op", "upstream": upstream, "entry_port": 0, "delay_ns": delay, "kept": true });
    // Time through a SubDevice and a cable.
    let at = |position: u16| {
        now(serde_json::json!({ "position": position, "port": 1 }), 400 * u32::from(position + 1))
    };
    assert_eq!(*found, serde_json::json!([now(serde_json::Value::Null, 0), at(0), at(1)]));
}

// feature(diagnosis): states, error counters and links of a running bus live, read by a slow poll of one SubDevice a few cycles, in the service frame; receive times latched once a second
#[test]
fn slow_poll_reads_all_counters_within_a_round() {
    for (order, drives) in [(FrameOrder::ReplyOfLastCycle, DRIVES), (FrameOrder::WaitForReply, MANY)] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&seen);
        let cut = Cut::default();
        let (cable, mut begun) = (cut.clone(), None);
        let played = play_polled(order, drives, &cut, move |cycle, _, poll| {
            let since = cycle - *begun.get_or_insert(cycle);
            // A cycle of one frame: receive times are latched with the poll, and read by then.
            if since == 1650 {
                cable.damage(cycle + 1);
            }
            if since % 100 == 0 {
                heard.lock().unwrap().extend(poll.read().map(|status| (since, status)));
            }
        });
        let seen = seen.lock().unwrap();
        assert!(seen.len() > 20, "{} looks", seen.len());
        let at = |from: u64| &seen.iter().find(|(since, _)| *since >= from).unwrap().1;
        let first = at(0);
        assert!(
            first.sub_devices.iter().any(|it| it.errors.is_none()),
            "read before the poll had come round"
        );
        // A round is 1000 cycles from Op on, and the values are from the previous poll.
        for (from, damaged) in [(1500, 0), (2800, 1)] {
            let status = at(from);
            let errors: Vec<_> = status.sub_devices.iter().map(|it| it.errors.expect("read")).collect();
            assert_eq!(errors[1].ports[0].invalid_frames, damaged, "{order:?} {from} {status:?}");
            assert!(status.sub_devices.iter().all(|it| it.state == "Op" && it.links.is_some()));
        }
        // Latched by one frame after each poll, and reported with the next.
        let times = |(since, status): &(u64, ipc::bus::BusStatus)| {
            let all = status.sub_devices.iter().map(|it| it.receive_times_ns.expect("read")[0]);
            (*since, all.collect::<Vec<_>>())
        };
        let looks = seen.iter().filter(|(_, status)| status.phase == "Op").skip(2).map(times);
        let looks: Vec<_> = looks.collect();
        assert!(looks.len() > 10, "{} looks in Op", looks.len());
        for pair in looks.windows(2) {
            let [(then, before), (since, now)] = pair else { continue };
            for (before, now) in before.iter().zip(now) {
                let passed = u64::from(now.wrapping_sub(*before));
                let expected = (since - then) * PERIOD.as_nanos() as u64;
                assert!(passed.abs_diff(expected) < 2_000_000, "{order:?} {since}: {passed}");
            }
        }
        let counts = played.frames.range(in_op(&played.events)).map(|(_, &count)| count);
        let (mut polled, mut cycles) = (0, 0);
        for count in counts {
            assert!((1..=2).contains(&count), "{order:?}: {count} frames in a cycle");
            (polled, cycles) = (polled + u64::from(count > 1), cycles + 1);
        }
        assert!((1..cycles / 3).contains(&polled), "{order:?}: {polled} service frames in {cycles} cycles");
    }
}

// feature(diagnosis): receive times latched again on request, by one frame, while the bus runs and keeps its clocks
#[test]
fn receive_times_are_latched_again_on_request() {
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&outcomes);
    let mut begun = None;
    play(FrameOrder::ReplyOfLastCycle, DRIVES, &Cut::default(), move |cycle, backend| {
        let status = |receive_times| Service::Status { errors: false, receive_times };
        match cycle - *begun.get_or_insert(cycle) {
            1000 => assert!(backend.submit(ticket(1), &status(true), None)),
            1100 => assert!(backend.submit(ticket(2), &status(true), Some("it may only look"))),
            1200 => assert!(backend.submit(ticket(3), &status(false), None)),
            _ => {}
        }
        heard.lock().unwrap().extend(std::iter::from_fn(|| backend.poll()));
    });
    let outcomes = outcomes.lock().unwrap();
    let times = |id| {
        let outcome = &outcomes.iter().find(|(found, _)| *found == ticket(id)).unwrap().1;
        let Outcome::Status(status) = outcome else { panic!("{outcomes:?}") };
        assert!(
            status.sub_devices.iter().all(|it| it.clock_difference_ns.unwrap().abs() < 100),
            "{status:?}"
        );
        status.sub_devices.iter().map(|it| it.receive_times_ns).collect::<Vec<_>>()
    };
    let (first, second) = (times(1), times(2));
    for (before, now) in first.iter().zip(&second) {
        let (before, now) = (before.unwrap(), now.unwrap());
        let passed = u64::from(now[0].wrapping_sub(before[0]));
        assert!(passed.abs_diff(100 * PERIOD.as_nanos() as u64) < 2_000_000, "{first:?} {second:?}");
    }
    // Frames come back at port 1 of all but the last later than at that of the one behind.
    let back = |times: Option<[u32; 4]>| times.unwrap()[1].wrapping_sub(times.unwrap()[0]);
    assert!(back(second[0]) > back(second[1]), "{second:?}");
    assert!(times(3).iter().all(Option::is_none), "{outcomes:?}");
}

/// Returns the backend at the end of the cycle.
struct Keep(Option<BusBackend>, Sender<BusBackend>);

impl Drop for Keep {
    fn drop(&mut self) {
        if let Some(backend) = self.0.take() {
            let _ = self.1.send(backend);
        }
    }
}

// feature(running-bus): every request has an outcome, also when the bus goes down
#[test]
fn requests_at_shutdown_are_answered_and_later_refused() {
    let (give, back) = channel();
    let mut kept = Keep(None, give);
    let cut = Cut::default();
    let (cable, mut begun, mut id) = (cut.clone(), None, 0);
    play(FrameOrder::ReplyOfLastCycle, DRIVES, &cut, move |cycle, backend| {
        let begun = *begun.get_or_insert(cycle);
        if kept.0.is_some() || cycle < begun + 2500 {
            return;
        }
        // The wire is cut with as many requests under way as fit, until the end.
        cable.set(cycle..u64::MAX);
        while backend.submit(ticket(id), &upload(0, 0x1008), None) {
            id += 1;
        }
        kept.0 = Some(std::mem::replace(backend, stand_in()));
    });
    let mut backend = back.recv().unwrap();
    let outcomes: Vec<_> = std::iter::from_fn(|| backend.poll()).collect();
    assert_eq!(outcomes.len(), 16, "{outcomes:?}");
    for (_, outcome) in &outcomes {
        let Outcome::Error { text, .. } = outcome else { panic!("{outcome:?}") };
        assert!(text.contains("not in PreOp"), "{text}");
    }
    assert!(backend.submit(ticket(1_000_000), &upload(0, 0x1008), None));
    let Some((_, Outcome::Error { text, .. })) = backend.poll() else { panic!("no outcome") };
    assert!(text.contains("has ended"), "{text}");
}

/// A backend of no cycle.
fn stand_in() -> BusBackend {
    let main_device = support::main_device(PERIOD);
    let (_, reader) = onbeat_control::status::status_cell(0, 0);
    bus::requests(&main_device, WriteProtection::new(&main_device, Vec::new()), reader, || {
        serde_json::Value::Null
    })
    .1
}
