//! Another MainDevice on the same wire: ours, with another source address and a separate cycle.

use std::collections::VecDeque;
use std::time::Duration;

use ethercat::link::{MAXIMUM_FRAME_LENGTH, Segment as _};
use ethercat::main_device::{BringUpPhase, Configuration, Event, MainDevice};
use ethercat::time::Instant;
use ethercat::wire::MacAddress;
use simulator::Segment;

use super::cell::Cell;
use super::robot::configuration;
use super::wire::ROUND_TRIP;
use crate::support::PERIOD;

/// Its source address, as it sends it.
pub(crate) const SOURCE: MacAddress = MacAddress([0x20; 6]);

/// Once the bus is in PreOp it cycles, with outputs of zeros. A failure takes it down, as with the
/// program.
pub(crate) struct SecondMaster {
    main_device: MainDevice,
    cycle: Option<Instant>,
    replies: VecDeque<(Instant, Vec<u8>)>,
    now: Instant,
    came_to: BringUpPhase,
}

impl SecondMaster {
    /// About to send its first frame.
    pub(crate) fn new(now: Instant, cell: Cell) -> Self {
        let first_generation = fastrand::Rng::with_seed(cell.seed).u32(..);
        let configuration = Configuration { source: SOURCE, first_generation, ..configuration(cell) };
        Self {
            main_device: MainDevice::new(configuration).unwrap(),
            cycle: None,
            replies: VecDeque::new(),
            now,
            came_to: BringUpPhase::Scan,
        }
    }

    pub(crate) fn phase(&self) -> BringUpPhase {
        self.main_device.phase()
    }

    /// The farthest it came on the way up.
    pub(crate) fn came_to(&self) -> BringUpPhase {
        self.came_to
    }

    /// When it acts next.
    pub(crate) fn due(&self) -> Instant {
        let reply = self.replies.front().map(|(due, _)| *due);
        let service = self.main_device.poll_timeout().unwrap_or(self.now + PERIOD);
        let due = [reply, self.cycle].into_iter().flatten().fold(service, Instant::min);
        due.max(self.now + Duration::from_micros(10))
    }

    /// A reply to another's frame passes it too.
    pub(crate) fn receive(&mut self, due: Instant, bytes: &[u8]) {
        self.replies.push_back((due, bytes.to_vec()));
    }

    /// Does what is due; calls `reply` for each reply, with its time.
    pub(crate) fn act(&mut self, segment: &mut Segment, mut reply: impl FnMut(Instant, &[u8])) {
        self.now = self.due();
        while self.replies.front().is_some_and(|(due, _)| *due <= self.now) {
            self.replies.pop_front().map(|(_, bytes)| self.main_device.handle_frame(self.now, &bytes));
        }
        self.begin_cycle();
        let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
        while let Some(length) = self.main_device.poll_transmit(self.now, &mut buffer) {
            let frame = &mut buffer[..length];
            if segment.process_frame(self.now, frame) {
                self.receive(self.now + ROUND_TRIP, &buffer[..length]);
                reply(self.now + ROUND_TRIP, &buffer[..length]);
            }
        }
        if self.phase() <= BringUpPhase::Op {
            self.came_to = self.came_to.max(self.phase());
        }
        while let Some(event) = self.main_device.poll_event() {
            if let Event::Failed(_) = event {
                self.main_device.request_state(ethercat::al::AlState::Init);
            }
        }
    }

    fn begin_cycle(&mut self) {
        let cycles = (BringUpPhase::PreOp..BringUpPhase::Down).contains(&self.main_device.phase());
        if cycles && self.cycle.is_none_or(|due| due <= self.now) {
            self.main_device.end_cycle(self.now);
            self.main_device.begin_cycle(self.now);
            self.cycle = Some(self.now + PERIOD);
        }
    }
}
