//! Timing model of the bus: frame durations, the shortest period of a network, and the latency from
//! a SubDevice's input through the controller to a SubDevice's output.

pub use types::FrameOrder;

/// Data rate of the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkRate {
    /// 100 Mbit/s: EtherCAT.
    #[default]
    Mbit100,
    /// 1 Gbit/s: EtherCAT G.
    Gbit1,
}

impl LinkRate {
    /// Time of one byte, ns.
    #[must_use]
    pub const fn byte_ns(self) -> u64 {
        match self {
            Self::Mbit100 => 80,
            Self::Gbit1 => 8,
        }
    }
}

/// Bytes of an Ethernet frame with this many bytes of EtherCAT datagrams (each with its 10 bytes of
/// header and 2 of working counter): from the destination address to the frame check sequence,
/// padded to 64 (IEEE 802.3).
#[must_use]
pub const fn frame_bytes(datagrams: usize) -> usize {
    let content = ETHERNET_HEADER + ETHERCAT_HEADER + datagrams;
    (if content < SHORTEST { SHORTEST } else { content }) + FRAME_CHECK
}

/// Time for which such a frame occupies the wire, with preamble, start delimiter and inter-frame
/// gap, ns.
#[must_use]
pub const fn wire_time_ns(datagrams: usize, rate: LinkRate) -> u64 {
    ((PREAMBLE + frame_bytes(datagrams) + GAP) as u64) * rate.byte_ns()
}

/// Frames of a cycle, and the line they pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Data rate of the wire.
    pub rate: LinkRate,
    /// Bytes of datagrams in each frame of a cycle, in order.
    pub frames: Vec<usize>,
    /// SubDevices in the line.
    pub sub_devices: u32,
    /// Delay of a frame by one SubDevice, there and back together, ns.
    pub forward_ns: u64,
    /// Delay of all cables, there and back, ns; about 5 ns per metre of copper.
    pub cables_ns: u64,
}

impl Network {
    /// Time for which the frames of a cycle occupy the wire, ns.
    #[must_use]
    pub fn occupied_ns(&self) -> u64 {
        self.frames.iter().map(|&frame| wire_time_ns(frame, self.rate)).fold(0, u64::saturating_add)
    }

    /// Time from the first bit of the first frame sent to the last bit of the last one received,
    /// ns, without the gap after it.
    #[must_use]
    pub fn round_trip_ns(&self) -> u64 {
        let gap = if self.frames.is_empty() { 0 } else { GAP as u64 * self.rate.byte_ns() };
        let line = self.forward_ns.saturating_mul(self.sub_devices.into()).saturating_add(self.cables_ns);
        (self.occupied_ns() - gap).saturating_add(line)
    }

    /// Shortest period at which every reply arrives in time, ns, for a MainDevice with this
    /// computing time in a cycle.
    ///
    /// Either order needs round trip and computing one after the other in each period:
    /// [`FrameOrder::WaitForReply`] waits, [`FrameOrder::ReplyOfLastCycle`] sends after computing
    /// and takes the reply at the next release.
    #[must_use]
    pub fn shortest_period_ns(&self, computing_ns: u64) -> u64 {
        self.round_trip_ns().saturating_add(computing_ns).max(self.occupied_ns())
    }

    /// Path of an event through this network, for a MainDevice with this period, order and
    /// computing time in a cycle.
    #[must_use]
    pub fn way(&self, period_ns: u64, order: FrameOrder, computing_ns: u64, sampling: Sampling) -> Way {
        let frame_ns = match order {
            FrameOrder::ReplyOfLastCycle => computing_ns.min(period_ns.saturating_sub(1)),
            FrameOrder::WaitForReply => 0,
        };
        Way { period_ns, order, frame_ns, return_ns: self.round_trip_ns().min(period_ns), sampling }
    }
}

/// Instants at which a SubDevice samples its inputs and sets its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// Free run, with these longest times, ns; 0 for at once.
    Free {
        /// Longest time between two samples of the input.
        input_ns: u64,
        /// Longest time from the frame to the output.
        output_ns: u64,
    },
    /// Synchronised to SYNC0.
    Synchronised {
        /// From the release to SYNC0, ns, less than a period.
        shift_ns: u64,
        /// Periods from SYNC0 until the output changes: the computing time of the SubDevice.
        output_periods: u32,
    },
}

/// Path of an event from an input to an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Period of the cycle, ns.
    pub period_ns: u64,
    /// Reply that a cycle works with.
    pub order: FrameOrder,
    /// Time from the release to the frame at the SubDevice, ns, less than a period.
    pub frame_ns: u64,
    /// Time from the SubDevice back to the MainDevice, ns. Counts only with
    /// [`FrameOrder::WaitForReply`].
    pub return_ns: u64,
    /// Sampling of the SubDevices.
    pub sampling: Sampling,
}

/// Shortest and longest time, ns.
pub type Range = (u64, u64);

/// Latency of each part of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// From the event to the controller.
    pub sensor: Range,
    /// From the controller to the output.
    pub command: Range,
    /// Sum of both.
    pub total: Range,
}

impl Way {
    /// Latency of an event, whenever in the period it occurs.
    #[must_use]
    pub fn latency(&self) -> Latency {
        let Self { period_ns: period, order, frame_ns: frame, return_ns: back, sampling } = *self;
        // From the frame that took the input to the controller; from there to the frame with the
        // output.
        let (read, write) = match order {
            FrameOrder::ReplyOfLastCycle => (period.saturating_sub(frame), frame),
            FrameOrder::WaitForReply => (back, period.saturating_sub(back)),
        };
        let ((first, last), (soonest, latest)) = match sampling {
            Sampling::Free { input_ns, output_ns } => ((0, period + input_ns), (0, output_ns)),
            Sampling::Synchronised { shift_ns, output_periods } => {
                let sampled = (frame + period - shift_ns % period) % period;
                // An input sampled at the very instant the frame passes is too late for this frame.
                let sampled = if sampled == 0 { period } else { sampled };
                let applied =
                    (shift_ns + period - frame % period) % period + u64::from(output_periods) * period;
                ((sampled, sampled + period), (applied, applied))
            }
        };
        let sensor = (first + read, last + read);
        let command = (write + soonest, write + latest);
        Latency { sensor, command, total: (sensor.0 + command.0, sensor.1 + command.1) }
    }
}

/// Addresses and EtherType.
const ETHERNET_HEADER: usize = 14;
/// Length and type of the EtherCAT frame (ETG.1000.4, 5.3).
const ETHERCAT_HEADER: usize = 2;
/// Shortest frame before its check sequence.
const SHORTEST: usize = 60;
const FRAME_CHECK: usize = 4;
/// Preamble and start delimiter.
const PREAMBLE: usize = 8;
/// Inter-frame gap.
const GAP: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_and_the_longest_frame_take_what_ethernet_says() {
        assert_eq!((frame_bytes(0), wire_time_ns(0, LinkRate::Mbit100)), (64, 6_720));
        assert_eq!((frame_bytes(1498), wire_time_ns(1498, LinkRate::Mbit100)), (1518, 123_040));
        assert_eq!(wire_time_ns(1498, LinkRate::Gbit1), 12_304);
        assert_eq!(frame_bytes(44), 64);
        assert_eq!(frame_bytes(45), 65);
    }

    #[test]
    fn line_of_59_allows_its_round_trip_plus_computing() {
        let network = Network {
            rate: LinkRate::Mbit100,
            frames: vec![1498, 300],
            sub_devices: 59,
            forward_ns: 1_000,
            cables_ns: 500,
        };
        let occupied = (1518 + 20 + 320 + 20) * 80;
        assert_eq!(network.occupied_ns(), occupied);
        assert_eq!(network.round_trip_ns(), occupied - 960 + 59_500);
        assert_eq!(network.shortest_period_ns(50_000), occupied - 960 + 109_500);
        let empty = Network { frames: vec![], sub_devices: 0, cables_ns: 0, ..network };
        assert_eq!(empty.shortest_period_ns(0), 0);
    }

    /// With SYNC0 half a period after the frames and drives that compute for one period.
    #[test]
    fn the_humanoid_papers_cycles_come_out() {
        let sampling = Sampling::Synchronised { shift_ns: 500, output_periods: 1 };
        let way = Way {
            period_ns: 1_000,
            order: FrameOrder::ReplyOfLastCycle,
            frame_ns: 0,
            return_ns: 0,
            sampling,
        };
        let latency = way.latency();
        assert_eq!(latency.sensor, (1_500, 2_500));
        assert_eq!(latency.command, (1_500, 1_500));
        assert_eq!(latency.total, (3_000, 4_000));
    }

    #[test]
    fn terminals_react_within_two_periods_in_either_order() {
        for order in [FrameOrder::ReplyOfLastCycle, FrameOrder::WaitForReply] {
            let sampling = Sampling::Free { input_ns: 0, output_ns: 0 };
            let way = Way { period_ns: 1_000, order, frame_ns: 100, return_ns: 50, sampling };
            assert_eq!(way.latency().total, (1_000, 2_000));
        }
    }
}
