//! Lets other programs ask the bus of the run.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use control::bus::{self, BusPoll, PartNames, Repeated, Repeats, WriteProtection};
use control::cycle::Cycle;
use control::observer::{CycleEvent, Observer};
use ipc::bus::{Backend, Counters, Guests, Outcome, Publisher, Server, Service, Ticket};
use ipc::diagnostics::{BusDiagnosis, EventCounts};
use robot::RobotConfig;
use rt::clock::{BusClock, Clock, MonotonicClock};
use types::late::LateReport;

use super::recorder::Ask;
use crate::compose::link::RobotLink;
use crate::compose::names::part_names;
use crate::sub_devices::described;

/// The server of the bus, and its events.
pub(super) struct BusServer {
    publisher: Publisher,
    server: Server,
    names: PartNames,
    repeats: Repeats,
    counts: EventCounts,
    poll: BusPoll,
    diagnosis: Option<BusDiagnosis>,
    read: Instant,
}

impl BusServer {
    /// Starts it for a cycle with the bus in PreOp; without it, if the system starts no thread,
    /// clients cannot request anything from the bus.
    pub(super) fn start(
        robot: &RobotConfig,
        interface: Option<String>,
        cycle: Cycle<RobotLink, BusClock>,
        observer: &Observer,
        guests: Guests,
        run: RunServices,
    ) -> (Cycle<RobotLink, BusClock>, Option<Self>) {
        let main_device = cycle.main_device();
        let described = described(main_device.sub_devices());
        let description = move || serde_json::to_value(described).unwrap_or_default();
        let protection = WriteProtection::new(
            main_device,
            robot.axes.iter().map(|axis| (axis.sub_device, axis.drive_axis)).collect(),
        );
        let (requests, backend) =
            bus::requests(main_device, protection, observer.status_reader(), description);
        let backend = WithRun { backend, run, done: VecDeque::new() };
        match Server::start(guests, Box::new(backend)) {
            Ok(server) => {
                let (publisher, names) = (server.publisher(), part_names(robot, interface));
                let (status, period) = (observer.status_reader(), robot.cycle.period);
                let (requests, poll) = requests.polling(main_device, period, status);
                let it = Self {
                    publisher,
                    server,
                    names,
                    repeats: Repeats::default(),
                    counts: EventCounts::of(robot.axes.len()),
                    poll,
                    diagnosis: None,
                    read: Instant::now(),
                };
                (cycle.with_bus(requests), Some(it))
            }
            Err(_) => (cycle, None),
        }
    }

    /// Counts so far.
    pub(super) fn counters(&self) -> Counters {
        self.server.counters()
    }

    /// Polls the bus once a second, as the cycle's slow poll knows it.
    pub(super) fn look(&mut self) {
        if self.read.elapsed() >= EVERY {
            self.read = Instant::now();
            if let Some(status) = self.poll.read() {
                self.diagnosis = Some(BusDiagnosis::of(&status, &self.names.sub_devices));
            }
        }
    }

    /// The same.
    pub(super) fn diagnosis(&self) -> Option<&BusDiagnosis> {
        self.diagnosis.as_ref()
    }

    /// Counts of the events since the start.
    pub(super) fn event_counts(&self) -> &EventCounts {
        &self.counts
    }

    /// Passes events on to the clients that follow them; pairs that repeat are counted.
    pub(super) fn tell(&mut self, events: &[CycleEvent]) {
        for event in events {
            let passes = self.repeats.passes(event);
            let Some(event) = bus::event(event, &self.names) else { continue };
            self.counts.add(&event);
            if passes {
                self.publisher.publish(event);
            }
        }
        let due = self.repeats.due(MonotonicClock.now());
        self.publish(&due);
    }

    /// Reports the remaining counts at the end.
    pub(super) fn tell_rest(&mut self) {
        let rest = self.repeats.rest();
        self.publish(&rest);
    }

    fn publish(&self, repeated: &[Repeated]) {
        let events = repeated.iter().filter_map(|it| it.event(&self.names));
        events.for_each(|event| self.publisher.publish(event));
    }
}

/// Polling interval of the bus.
const EVERY: Duration = Duration::from_secs(1);

/// Late cycles of the last nanoseconds, as the run knows them.
pub(super) type LateAnswers = Box<dyn Fn(u64) -> LateReport + Send>;

/// Parts of the run that clients may ask next to its bus.
pub(super) struct RunServices {
    /// The flight recorder, if it has requests.
    pub(super) record: Option<Ask>,
    pub(super) late: Option<LateAnswers>,
}

impl RunServices {
    /// Outcome of a request to the run; `None` for a request to its bus.
    fn outcome(&self, service: &Service, reads_only: Option<&str>) -> Option<Outcome> {
        Some(match service {
            Service::Record { reason } => match (&self.record, reads_only) {
                (_, Some(why)) => Outcome::error(why),
                (None, None) => Outcome::error(
                    "the run makes no recording on request, expected a run with --record FILE \
                     --trigger command",
                ),
                (Some(ask), None) => {
                    ask.keep(reason);
                    Outcome::Done(true)
                }
            },
            Service::Late { last_ns } => match &self.late {
                Some(answers) => Outcome::Late(Box::new(answers(*last_ns))),
                None => Outcome::error(
                    "the run explains no late cycles, expected a program with the feature \
                     \"diagnosis\" of onbeat",
                ),
            },
            _ => return None,
        })
    }
}

/// The bus, and the run around it.
struct WithRun<B> {
    backend: B,
    run: RunServices,
    done: VecDeque<(Ticket, Outcome)>,
}

impl<B: Backend> Backend for WithRun<B> {
    fn submit(&mut self, ticket: Ticket, service: &Service, reads_only: Option<&str>) -> bool {
        let Some(outcome) = self.run.outcome(service, reads_only) else {
            return self.backend.submit(ticket, service, reads_only);
        };
        self.done.push_back((ticket, outcome));
        true
    }

    fn poll(&mut self) -> Option<(Ticket, Outcome)> {
        self.done.pop_front().or_else(|| self.backend.poll())
    }
}
