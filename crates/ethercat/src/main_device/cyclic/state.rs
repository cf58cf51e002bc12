//! State of the cycle: frames on their way, replies, participants.

use alloc::vec::Vec;

use types::WorkingCounter;

use super::super::exchange::ChunkPart;

/// Frames of the cycle on their way out.
#[derive(Debug, Default)]
pub(in crate::main_device) struct Sending {
    /// This cycle has datagrams to send.
    pub(in crate::main_device) is_due: bool,
    /// A frame may be built for it.
    pub(super) is_open: bool,
    pub(super) riders_due: bool,
    pub(super) next_datagram: (usize, ChunkPart),
    pub(super) frames_sent: u16,
    /// Bytes of these on the wire.
    pub(in crate::main_device) bytes_sent: usize,
    /// Service frames this cycle may still send.
    pub(in crate::main_device) services: u16,
    /// The same at the start of a cycle during bring-up.
    pub(super) services_on_the_way: u16,
}

/// Replies to the datagrams of the cycle.
#[derive(Debug, Default)]
pub(in crate::main_device) struct Replies {
    /// Data of each chunk that came back: with one LRW the first entry, else LWR and LRD. Not
    /// recorded while replies are as expected.
    pub(super) received: Vec<[Option<u16>; 2]>,
    /// All of this cycle came back, and as expected.
    pub(super) all_as_expected: bool,
    /// Datagrams of a cycle, in the one layout and spread.
    pub(super) datagrams: [usize; 2],
    /// Datagrams that came back in this cycle with the part of each SubDevice in them.
    pub(super) whole_datagrams: usize,
    /// Consecutive cycles with correct working counters since the last layout change; cycles with
    /// the expected reply do not count.
    pub(super) whole_cycles: u32,
    /// The first datagram of the last cycle in which a part was missing.
    pub(in crate::main_device) short: Option<(usize, WorkingCounter)>,
}

/// SubDevices that take part in the cycle.
#[derive(Debug, Default)]
pub(in crate::main_device) struct Participants {
    /// Part of each SubDevice in this cycle, by position, unless it is the same for all.
    pub(super) members: Vec<Member>,
    /// Of each group: inputs of all fresh, outputs of all taken, none absent.
    pub(super) groups: Vec<[bool; 3]>,
    /// Members that are not counted.
    pub(super) absent: usize,
    /// A SubDevice that is not counted yet will take part soon: the others share no datagram with
    /// it meanwhile.
    pub(in crate::main_device) joining: bool,
    /// Result of the last full participation check; false again once a SubDevice is counted since.
    pub(super) complete: bool,
    /// Inputs of all are fresh and outputs taken, or of none.
    pub(super) all: Option<bool>,
}

/// Process data that is not exchanged in every cycle.
#[derive(Debug, Default)]
pub(super) struct SlowExchanges {
    /// There is some.
    pub(super) any: bool,
    /// Number of the cycle.
    pub(super) number: u64,
    /// Chunks that are exchanged in this cycle, if not all are.
    pub(super) due: Vec<bool>,
}

/// One SubDevice's part in a cycle.
#[derive(Clone, Debug, Default)]
pub(super) struct Member {
    pub(super) group: Option<u16>,
    /// It is not on the bus, and need not be: it is not counted.
    pub(super) is_absent: bool,
    /// Cycles from one exchange to the next.
    pub(super) every: u16,
    pub(super) has_outputs: bool,
    pub(super) has_inputs: bool,
    /// Its inputs take more than one datagram.
    pub(super) is_cut: bool,
    /// Its inputs came in with right working counters.
    pub(super) is_complete: bool,
    /// With the cycle before they did too, undisturbed: its buffers were left closed.
    pub(super) closed_before: bool,
    /// Its inputs are of this cycle.
    pub(super) fresh: bool,
    /// Its outputs were taken.
    pub(super) taken: bool,
    /// It is there, and another of its group is not.
    pub(super) waits: bool,
}

/// Inputs of one SubDevice that take more than one datagram.
///
/// Reading the first byte of a SyncManager's buffer opens it, reading the last closes it. If the
/// first part was read and the last was not, the buffer stays open, and the next cycle reads old
/// data with right working counters. So such inputs are fresh only in a cycle that came back in
/// order and undisturbed, after another such cycle.
#[derive(Debug, Default)]
pub(super) struct CutInputs {
    pub(super) disturbed: bool,
    /// The chunk that came back last.
    pub(super) newest: u16,
}

impl CutInputs {
    /// A chunk with a part of them came back.
    #[cold]
    pub(super) fn came(&mut self, chunk: u16) {
        self.disturbed |= chunk < self.newest;
        self.newest = chunk;
    }
}
