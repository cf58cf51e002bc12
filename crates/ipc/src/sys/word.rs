//! Loads from memory that is mapped read-only.
//!
//! The page of [`std::sync::atomic`], "Atomic accesses to read-only memory", allows such a load if
//! it is relaxed and at most as wide as a table there says: 8 bytes on 64-bit targets, 4 bytes on
//! 32-bit ARM. A load with a stronger order, or a wider one, may be compiled to a compare-exchange,
//! which faults. An Acquire fence after the relaxed load gives the order.

use std::sync::atomic::AtomicU64;

/// Loads a word with relaxed order and without a write of any kind.
#[cfg(target_pointer_width = "64")]
#[inline]
pub(crate) fn load(word: &AtomicU64) -> u64 {
    word.load(std::sync::atomic::Ordering::Relaxed)
}

/// The same on ARMv6K and later, by the only instruction with an atomic 64-bit access on all of
/// them.
#[cfg(target_arch = "arm")]
#[inline]
pub(crate) fn load(word: &AtomicU64) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the address points to a valid word, aligned for 8 bytes. LDREXD reads it as one
    // access (single-copy atomic, ARM ARM A3.5.3) and writes nothing; the exclusive monitor that it
    // sets is local to the CPU and needs no STREXD after it. The block has no `readonly`: the
    // compiler must not merge two loads of a word that another process changes.
    unsafe {
        std::arch::asm!(
            "ldrexd r0, r1, [{word}]",
            word = in(reg) word.as_ptr(),
            out("r0") low,
            out("r1") high,
            options(nostack, preserves_flags)
        );
    }
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(not(any(target_pointer_width = "64", target_arch = "arm")))]
compile_error!("onbeat-ipc: no load of 64 bits from read-only memory is known for this target");
