//! The frames of a beat, as our MainDevice really makes them: the robot is simulated in virtual time.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ethercat::al::AlState;
use ethercat::link::{Link as _, MAXIMUM_FRAME_LENGTH};
use ethercat::main_device::{MainDevice, Stage};
use ethercat::wire::Frame;
use robot::Robot;
use runtime::bring_up::Pump;
use runtime::clock::{Clock as _, VirtualClock};
use runtime::link::DirectLink;

use crate::compose::{configuration::configuration, segment::segment};
use crate::failure::Failure;

/// Bytes of datagrams in each process data frame of the longest beat in Op. Mailbox frames come on top now and then.
pub(super) fn of_a_beat(robot: &Robot) -> Result<Vec<usize>, Failure> {
    let clock = VirtualClock::default();
    // A clock at 0 would be no time that a bus can be at.
    clock.advance(Duration::from_secs(1000));
    let mut link = DirectLink::new(segment(robot)?, clock.clone(), Duration::from_micros(1));
    let mut main_device = MainDevice::new(configuration(robot, AlState::Op))?;
    let stop = AtomicBool::new(false);
    Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: &stop }
        .bring_up(BRING_UP_PATIENCE, |_| ())?;
    let period = robot.cycle.period;
    // Diagnosis goes around: one SubDevice a beat.
    let mut left = robot.bus.sub_devices.len() + 1;
    let mut longest = Vec::new();
    for _ in 0..MOST_BEATS {
        let release = clock.now();
        let frames = beat(&mut main_device, &mut link, &clock)?;
        clock.sleep_until(release + period);
        if main_device.stage() == Stage::Op {
            if frames.iter().sum::<usize>() > longest.iter().sum::<usize>() {
                longest = frames;
            }
            left -= 1;
            if left == 0 {
                return Ok(longest);
            }
        }
    }
    let stage = main_device.stage();
    Err(Failure::new(format!(
        "the simulated bus does not reach Op in {MOST_BEATS} beats, it is in {stage:?}"
    )))
}

fn beat<S: ethercat::link::Segment>(
    main_device: &mut MainDevice,
    link: &mut DirectLink<S, VirtualClock>,
    clock: &VirtualClock,
) -> Result<Vec<usize>, Failure> {
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    let mut frames = Vec::new();
    main_device.begin_beat(clock.now());
    loop {
        let awaited = main_device.awaiting();
        let Some(length) = main_device.poll_transmit(clock.now(), &mut buffer) else { break };
        if main_device.awaiting() > awaited {
            frames.push(Frame::parse(&buffer[..length])?.announced_length());
        }
        link.transmit(&buffer[..length])?;
    }
    while main_device.in_flight() > 0 {
        let Some(length) = link.receive(&mut buffer, Duration::from_micros(10))? else { break };
        main_device.handle_frame(clock.now(), &buffer[..length]);
    }
    main_device.end_beat(clock.now());
    while main_device.poll_event().is_some() {}
    Ok(frames)
}

/// In virtual time.
const BRING_UP_PATIENCE: Duration = Duration::from_secs(60);

const MOST_BEATS: usize = 20_000;
