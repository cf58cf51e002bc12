//! The frames of a cycle, as our MainDevice really makes them: its SubDevices are simulated in
//! virtual time.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ethercat::link::{MAXIMUM_FRAME_LENGTH, Segment};
use ethercat::main_device::{BringUpPhase, Configuration, MainDevice};
use ethercat::wire::Frame;
use ethercat_linux::bring_up::{BRING_UP_TIMEOUT, Pump};
use ethercat_linux::link::DirectLink;
use ethercat_linux::link::Link as _;
use rt::clock::{Clock as _, VirtualClock};

use crate::Error;

/// Bytes of datagrams in each process data frame of the longest cycle in Op. Mailbox frames come on
/// top now and then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frames {
    /// With all SubDevices there.
    pub whole: Vec<usize>,
    /// With a SubDevice missing: process data is spread over more datagrams.
    pub spread: Vec<usize>,
}

/// Runs these SubDevices in the simulator for some cycles.
///
/// # Errors
/// The bus does not come to Op.
pub fn of_a_cycle(segment: impl Segment, configuration: Configuration) -> Result<Frames, Error> {
    let clock = VirtualClock::default();
    // A clock at 0 would be no time that a bus can be at.
    clock.advance(Duration::from_secs(1000));
    let period = configuration.period;
    let mut link = DirectLink::new(segment, clock.clone(), Duration::from_micros(1));
    let mut main_device = MainDevice::new(configuration).map_err(Error::other)?;
    let stop = AtomicBool::new(false);
    Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: &stop }
        .bring_up(BRING_UP_TIMEOUT, |_| ())
        .map_err(Error::other)?;
    let has_process_data = main_device.process_image_bytes() != (0, 0);
    let mut cycles = 0;
    let mut longest = |missing: bool| {
        // Diagnosis goes around: one SubDevice a cycle.
        let mut left = main_device.sub_devices().len() + 1;
        let mut longest = Vec::new();
        while cycles < MOST_CYCLES {
            cycles += 1;
            let release = clock.now();
            let (frames, spread) = cycle(&mut main_device, &mut link, &clock, missing)?;
            clock.sleep_until(release + period);
            if main_device.phase() == BringUpPhase::Op && (spread || !missing) {
                if frames.iter().sum::<usize>() > longest.iter().sum::<usize>() {
                    longest = frames;
                }
                left -= 1;
                if left == 0 {
                    return Ok(longest);
                }
            }
        }
        let phase = main_device.phase();
        Err(Error::other(format_args!(
            "the simulated bus does not reach Op in {MOST_CYCLES} cycles, it is in {phase}"
        )))
    };
    let whole = longest(false)?;
    let spread = if has_process_data { longest(true)? } else { whole.clone() };
    Ok(Frames { whole, spread })
}

/// One cycle, of which one process data datagram comes back with no working counter if one is
/// `missing`. Returns the frames, and whether process data was spread.
fn cycle<S: Segment>(
    main_device: &mut MainDevice,
    link: &mut DirectLink<S, VirtualClock>,
    clock: &VirtualClock,
    missing: bool,
) -> Result<(Vec<usize>, bool), Error> {
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    let mut frames = Vec::new();
    main_device.begin_cycle(clock.now());
    loop {
        let awaited = main_device.awaiting();
        let Some(length) = main_device.poll_transmit(clock.now(), &mut buffer) else { break };
        if main_device.awaiting() > awaited {
            frames.push(Frame::parse(&buffer[..length]).map_err(Error::other)?.announced_length());
        }
        link.transmit(&buffer[..length]).map_err(Error::other)?;
    }
    while main_device.in_flight() > 0 {
        let Some(length) = link.receive(&mut buffer, Duration::from_micros(10)).map_err(Error::other)?
        else {
            break;
        };
        let reply = &mut buffer[..length];
        let logical =
            Frame::parse(reply).map_err(Error::other)?.places().find(|it| it.header.command.is_logical());
        if let Some(place) = logical.filter(|_| missing) {
            reply[place.working_counter()..place.end()].fill(0);
        }
        main_device.handle_frame(clock.now(), reply);
    }
    let report = main_device.end_cycle(clock.now());
    while main_device.poll_event().is_some() {}
    Ok((frames, report.spread))
}

const MOST_CYCLES: usize = 20_000;
