//! Distributed clocks (ETG.1000.4, 6.11; ETG.1000.6, 6.5; ESC data sheet, section II, 2.22).

/// Receive time of port 0 to 3, 4 bytes each; writing port 0's latches all of them.
pub const RECEIVE_TIME: u16 = 0x0900;
/// System time, 8 bytes. A write compares the written time with the clock's and steers it.
pub const SYSTEM_TIME: u16 = 0x0910;
/// Receive time of the ECAT processing unit, in local time, 8 bytes.
pub const RECEIVE_TIME_PROCESSING_UNIT: u16 = 0x0918;
/// System time offset, 8 bytes: system time is local time plus this.
pub const SYSTEM_TIME_OFFSET: u16 = 0x0920;
/// System time delay, 4 bytes: propagation delay from the reference clock, in ns.
pub const SYSTEM_TIME_DELAY: u16 = 0x0928;
/// System time difference, 4 bytes, sign and magnitude in ns: see
/// [`difference_nanoseconds`].
pub const SYSTEM_TIME_DIFFERENCE: u16 = 0x092C;
/// Sign of the system time difference.
pub const DIFFERENCE_SIGN: u32 = 1 << 31;
/// Speed counter start, 2 bytes: bandwidth of the steering. Writing resets the filters.
pub const SPEED_COUNTER_START: u16 = 0x0930;
/// Speed counter difference, 2 bytes.
pub const SPEED_COUNTER_DIFFERENCE: u16 = 0x0932;
/// Filter depths: system time difference (low byte), speed counter (high byte).
pub const FILTER_DEPTHS: u16 = 0x0934;
/// Cyclic unit control, 1 byte: bit 0 gives SYNC0 and SYNC1 to the PDI, bits 4 and 5 the latch
/// inputs.
pub const CYCLIC_UNIT_CONTROL: u16 = 0x0980;
/// Activation, 1 byte: bit 0 cyclic operation, bit 1 SYNC0, bit 2 SYNC1.
pub const ACTIVATION: u16 = 0x0981;
/// Start time of cyclic operation, in system time, 8 bytes. On reading: the next SYNC0 pulse.
pub const START_TIME: u16 = 0x0990;
/// The next SYNC1 pulse, in system time, 8 bytes.
pub const NEXT_SYNC1: u16 = 0x0998;
/// SYNC0 cycle time in ns, 4 bytes.
pub const SYNC0_CYCLE_TIME: u16 = 0x09A0;
/// SYNC1 cycle time in ns, 4 bytes: from the SYNC0 pulse that SYNC1 depends on to SYNC1. The next
/// SYNC0 behind that is the next it depends on.
pub const SYNC1_CYCLE_TIME: u16 = 0x09A4;
/// Control of the latch inputs, 1 byte each: bit 0 of the rising edge, bit 1 of the falling one;
/// clear: the newest edge counts, set: the first one, until its time is read.
pub const LATCH_CONTROL: u16 = 0x09A8;
/// Status of the latch inputs, 1 byte each: bits 0 and 1, set while a single rising or falling edge
/// is held; bit 2, level of the pin.
pub const LATCH_STATUS: u16 = 0x09AE;
/// Latch times, in system time, 8 bytes each: of input 0 rising, falling, of input 1 rising,
/// falling. Reading the first byte releases a single edge.
pub const LATCH_TIMES: u16 = 0x09B0;

/// Activation byte for cyclic operation with SYNC0.
pub const ACTIVATE_SYNC0: u8 = 0x03;

/// The same with SYNC1.
pub const ACTIVATE_SYNC1: u8 = 0x07;

/// Latch inputs of an ESC.
pub const LATCH_INPUTS: usize = 2;

/// Speed counter start after reset.
pub const SPEED_COUNTER_START_DEFAULT: u16 = 0x1000;

/// Signed system time difference in ns from the register's sign and magnitude: positive when the
/// local copy of the system time is ahead of (greater than) the received one (bit 31 clear: greater
/// or equal).
#[must_use]
pub const fn difference_nanoseconds(register: u32) -> i32 {
    let magnitude = (register & !DIFFERENCE_SIGN) as i32;
    if register >> 31 == 0 { magnitude } else { -magnitude }
}

/// The register's sign and magnitude for a difference in ns.
#[must_use]
pub const fn difference_register(nanoseconds: i32) -> u32 {
    let magnitude = nanoseconds.unsigned_abs() & 0x7FFF_FFFF;
    if nanoseconds < 0 { magnitude | 1 << 31 } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_is_sign_and_magnitude() {
        for nanoseconds in [0, 1, -1, 12_345, -12_345, i32::MAX, -i32::MAX] {
            assert_eq!(difference_nanoseconds(difference_register(nanoseconds)), nanoseconds);
        }
        assert_eq!(difference_nanoseconds(0x8000_0005), -5);
    }
}
