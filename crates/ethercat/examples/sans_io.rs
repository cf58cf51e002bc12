//! The MainDevice without any I/O: it takes a drive to PreOp, reads an object and exchanges process
//! data in Op. `cargo run -p onbeat-ethercat --example sans_io`.

use std::error::Error;
use std::time::Duration;

use onbeat_ethercat::al::AlState;
use onbeat_ethercat::cia402::object::{CONTROLWORD, POSITION_ACTUAL_VALUE, STATUSWORD, TARGET_POSITION};
use onbeat_ethercat::cia402::{Controlword, State, Statusword};
use onbeat_ethercat::link::{MAXIMUM_FRAME_LENGTH, Segment as _};
use onbeat_ethercat::main_device::{
    BringUpPhase, Configuration, Event, MailboxOutcome, MailboxRequest, MainDevice,
};
use onbeat_ethercat::sdo::SdoValue as _;
use onbeat_ethercat::sii::Identity;
use onbeat_ethercat::time::Instant;
use simulator::application::servo::default_mapping;
use simulator::application::sii::with_coe;
use simulator::application::{ServoDescription, ServoDrive};
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};

fn main() -> Result<(), Box<dyn Error>> {
    let Seen { vendor, states } = sans_io()?;
    println!("vendor {vendor:#010x}");
    for (cycle, state) in states.iter().enumerate() {
        println!("cycle {cycle} in Op: {state:?}");
    }
    Ok(())
}

/// The drive as it showed itself.
pub(crate) struct Seen {
    /// 0x1018:01, by an SDO.
    pub(crate) vendor: u32,
    /// By its statusword, cycle by cycle in Op.
    pub(crate) states: Vec<Option<State>>,
}

pub(crate) fn sans_io() -> Result<Seen, Box<dyn Error>> {
    let mut bus = Bus { main_device: MainDevice::new(Configuration::scan())?, wire: drive()?, now: START };
    // Up to PreOp, as fast as the wire.
    while bus.main_device.phase() != BringUpPhase::PreOp {
        bus.exchange()?;
    }

    let vendor = MailboxRequest::upload::<u32>(0, 0x1018, 1);
    bus.main_device.submit(vendor).map_err(|refused| format!("{refused:?}"))?;
    let MailboxOutcome { request, result } = loop {
        if let Some(outcome) = bus.exchange()? {
            break outcome;
        }
    };
    result?;
    let vendor = u32::from_bytes(&request.data)?;

    let found = &bus.main_device.sub_devices()[0];
    let statusword = found.input::<u16>(STATUSWORD, 0)?;
    let position = found.input::<i32>(POSITION_ACTUAL_VALUE, 0)?;
    let controlword = found.output::<u16>(CONTROLWORD, 0)?;
    let target = found.output::<i32>(TARGET_POSITION, 0)?;

    // With the first cycle the bus continues to Op.
    bus.main_device.request_state(AlState::Op);
    let mut states = Vec::new();
    while states.len() < CYCLES_IN_OP {
        bus.cycle()?;
        let main_device = &mut bus.main_device;
        if main_device.phase() == BringUpPhase::Op {
            states.push(Statusword(main_device.get(statusword)).state());
            main_device.set(controlword, Controlword::SHUTDOWN.0);
        }
        // The target is the actual position: the axis does not jump, whatever the controlword.
        main_device.set(target, main_device.get(position));
    }

    bus.main_device.request_state(AlState::Init);
    while bus.main_device.phase() != BringUpPhase::Down {
        bus.cycle()?;
    }
    Ok(Seen { vendor, states })
}

/// A MainDevice, its wire, and the time: all that a program brings.
struct Bus {
    main_device: MainDevice,
    /// Answers at once; a real wire has its replies later, and they are handed in as they come.
    wire: Segment,
    now: Instant,
}

impl Bus {
    /// Frames out, replies in, then events; the outcome of an SDO, if there is one.
    fn exchange(&mut self) -> Result<Option<MailboxOutcome>, Box<dyn Error>> {
        let mut frame = [0; MAXIMUM_FRAME_LENGTH];
        while let Some(length) = self.main_device.poll_transmit(self.now, &mut frame) {
            if self.wire.process_frame(self.now, &mut frame[..length]) {
                self.main_device.handle_frame(self.now, &frame[..length]);
            }
        }
        let mut outcome = None;
        while let Some(event) = self.main_device.poll_event() {
            match event {
                Event::Failed(error) => return Err(error.into()),
                Event::Mailbox(done) => outcome = Some(done),
                _ => {}
            }
        }
        // A program with a wire sleeps until a frame comes, or until `poll_timeout`.
        self.now = self.now + Duration::from_micros(250);
        self.wire.advance(self.now);
        Ok(outcome)
    }

    /// One period, with process data.
    fn cycle(&mut self) -> Result<(), Box<dyn Error>> {
        let release = self.now;
        self.main_device.begin_cycle(release);
        self.exchange()?;
        self.main_device.end_cycle(self.now);
        self.now = release + PERIOD;
        self.wire.advance(self.now);
        Ok(())
    }
}

/// The wire: one simulated servo drive.
fn drive() -> Result<Segment, Box<dyn Error>> {
    let identity = Identity { vendor_id: 0x4F4E, product_code: 1, ..Identity::default() };
    let image = with_coe(identity, "servo", default_mapping()).image();
    let drive = ServoDrive::new(&ServoDescription::new(DeviceDescription::from_sii(&image)))?;
    let device = SubDevice::new(EscDescription::default(), image.emit(), Box::new(drive));
    Ok(Segment::new(vec![device]))
}

/// Any instant but 0 will do.
const START: Instant = Instant::from_nanos(1);
const PERIOD: Duration = Duration::from_millis(1);
const CYCLES_IN_OP: usize = 10;
