//! Messages about other users of the bus.

/// Frames of another MainDevice by the end of a run; `None` if there were none.
pub(crate) fn frames_of_others(frames: u64) -> Option<String> {
    (frames > 0).then(|| format!("frames of others        {frames} (of another MainDevice on this wire)"))
}
