//! Counters of the kernel for the calling thread (getrusage(2)).

/// Voluntary and involuntary context switches of the calling thread so far.
pub(crate) fn switches() -> [u64; 2] {
    // SAFETY: an all-zero rusage is valid: it holds integers only.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid to write to; with a known first argument the call cannot fail.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    [usage.ru_nvcsw, usage.ru_nivcsw].map(|count| u64::try_from(count).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_sleep_is_a_voluntary_switch() {
        let [before, _] = super::switches();
        std::thread::sleep(std::time::Duration::from_millis(1));
        let [after, _] = super::switches();
        assert!(after > before, "{before} {after}");
    }
}
