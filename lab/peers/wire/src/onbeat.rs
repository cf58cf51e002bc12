//! Onbeat's MainDevice under measurement: one whole cycle, as the real-time cycle makes it.

use std::thread::sleep;
use std::time::Duration;

use onbeat_ethercat::al::AlState;
use onbeat_ethercat::link::MAXIMUM_FRAME_LENGTH;
use onbeat_ethercat::main_device::{BringUpPhase, Configuration, CycleReport, Event, MainDevice};
use onbeat_ethercat::time::Instant;
use onbeat_ethercat_linux::cyclic;
use onbeat_ethercat_linux::link::Link;
use onbeat_rt::clock::{Clock, MonotonicClock};

/// A MainDevice in Op on a link.
pub struct Onbeat<L> {
    link: L,
    main_device: MainDevice,
    clock: MonotonicClock,
    buffer: [u8; MAXIMUM_FRAME_LENGTH],
    bytes_sent: usize,
}

impl<L: Link> Onbeat<L> {
    /// Brings whatever is on `link` to Op, once `sub_devices` with `bytes` of outputs and of inputs each
    /// are there.
    ///
    /// # Errors
    /// The error of the link or the MainDevice.
    pub fn open(link: L, sub_devices: usize, bytes: usize) -> Result<Self, String> {
        let configuration =
            Configuration { target: AlState::Op, distributed_clocks: false, ..Configuration::default() };
        let main_device = MainDevice::new(configuration).map_err(|error| error.to_string())?;
        let buffer = [0; MAXIMUM_FRAME_LENGTH];
        let mut onbeat = Self { link, main_device, clock: MonotonicClock, buffer, bytes_sent: 0 };
        onbeat.reach_op()?;
        let expected = (sub_devices * bytes, sub_devices * bytes);
        let found = onbeat.main_device.process_image_bytes();
        if found == expected {
            return Ok(onbeat);
        }
        Err(format!("process image of {found:?} bytes (outputs, inputs), expected {expected:?}"))
    }

    /// Bytes of the frames of one cycle: besides process data, a datagram that numbers the frame, the AL
    /// status of all, and one SubDevice's mailbox status.
    pub fn frame_length(&self) -> usize {
        self.bytes_sent
    }

    /// One cycle that begins now: as in the product, where each phase of a cycle begins with the reading of the clock that has ended the one
    /// before, it reads the clock no more.
    ///
    /// # Errors
    /// The operating system's error, or a cycle that is not whole.
    pub fn exchange(&mut self, now: Instant) -> Result<(), String> {
        let report = self.cycle(now, |_| ())?;
        if report.all_fresh && self.main_device.phase() == BringUpPhase::Op {
            return Ok(());
        }
        Err(self.incomplete(report))
    }

    #[cold]
    fn incomplete(&self, report: CycleReport) -> String {
        format!("{report:?} at phase {:?}, expected a whole cycle in Op", self.main_device.phase())
    }

    #[inline(always)]
    fn cycle(&mut self, now: Instant, mut sends: impl FnMut(usize)) -> Result<CycleReport, String> {
        let failed = |error: std::io::Error| error.to_string();
        let Self { main_device, link, clock, buffer, .. } = self;
        main_device.begin_cycle(now);
        while let Some(frame) = main_device.next_frame(now) {
            link.transmit(frame).map_err(failed)?;
            sends(frame.len());
        }
        cyclic::receive(main_device, link, clock, now, buffer, now + REPLY, |_| ()).map_err(failed)?;
        Ok(main_device.end_cycle(now))
    }

    fn reach_op(&mut self) -> Result<(), String> {
        for _ in 0..30_000 {
            self.cycle(self.clock.now(), |_| ())?;
            // Bring-up frames are not awaited by the cycle: take what has come by now.
            while let Ok(Some(length)) = self.link.receive(&mut self.buffer, Duration::ZERO) {
                self.main_device.handle_frame(self.clock.now(), &self.buffer[..length]);
            }
            while let Some(event) = self.main_device.poll_event() {
                if let Event::Failed(error) = event {
                    return Err(error.to_string());
                }
            }
            if self.main_device.phase() == BringUpPhase::Op {
                let mut bytes_sent = 0;
                self.cycle(self.clock.now(), |bytes| bytes_sent += bytes)?;
                self.bytes_sent = bytes_sent;
                return Ok(());
            }
            sleep(Duration::from_millis(1));
        }
        Err(format!("still at phase {:?} after 30 s", self.main_device.phase()))
    }
}

/// Time a reply may take.
const REPLY: Duration = Duration::from_millis(2);
