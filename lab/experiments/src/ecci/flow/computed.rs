//! Data flow as `onbeat analyse` computes it: frames of the bus, order of frames, steps of the
//! SubDevice.

use control::stop::StopHandle;
use ethercat::main_device::Configuration;
use schedulability::bus::{FrameOrder, Latency, LinkRate, Network, Sampling};
use simulator::sub_device::STEP;
use types::time::nanoseconds;

use super::probe;
use crate::{Error, frames};

/// Delays of the parts of an event's path, with this configuration of the bus.
pub(super) fn latency(order: FrameOrder, configuration: Configuration) -> Result<Latency, Error> {
    let period_ns = nanoseconds(configuration.period);
    let segment = probe::segment(&probe::Shared::default(), 0, &StopHandle::new());
    let network = Network {
        rate: LinkRate::Mbit100,
        frames: frames::of_a_cycle(segment, configuration)?.whole,
        sub_devices: 1,
        forward_ns: FORWARD_NS,
        cables_ns: 0,
    };
    let step = nanoseconds(STEP);
    let sampling = Sampling::Free { input_ns: step, output_ns: step };
    Ok(network.way(period_ns, order, COMPUTING_NS, sampling).latency())
}

/// Delay of a frame in the SubDevice, there and back: the default of `onbeat analyse`.
const FORWARD_NS: u64 = 1_000;

/// Computing time of the MainDevice in a cycle, likewise; a controller process's answer is within.
const COMPUTING_NS: u64 = 100_000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ethercat::al::AlState;

    use super::*;

    #[test]
    fn steps_of_the_subdevice_and_frame_order_differ() {
        let of = |order, milliseconds| {
            let period = Duration::from_millis(milliseconds);
            let configuration = Configuration { target: AlState::Op, period, ..Configuration::default() };
            latency(order, configuration).unwrap()
        };
        for period in [1, 4] {
            let period_ns = period * 1_000_000;
            let [last, wait] =
                [FrameOrder::ReplyOfLastCycle, FrameOrder::WaitForReply].map(|it| of(it, period));
            // Either takes from one to two periods, and two steps of the SubDevice at most.
            for order in [last, wait] {
                assert_eq!(order.total, (period_ns, 2 * period_ns + 500_000), "{order:?}");
            }
            // Inputs wait for a release, or outputs do.
            assert_eq!(last.command, (COMPUTING_NS, COMPUTING_NS + 250_000), "{last:?}");
            let (soonest, _) = wait.sensor;
            assert!((FORWARD_NS..COMPUTING_NS).contains(&soonest), "the frame is on the wire: {wait:?}");
            assert_eq!(wait.command.0 + soonest, period_ns, "{wait:?}");
        }
    }
}
