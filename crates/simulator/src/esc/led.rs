//! LEDs RUN and ERR as the override registers show them (ESC data sheet, section II, 2.5; ETG.1300,
//! 4).

use ethercat::al::{AlState, AlStatus};
use ethercat::al_status_code::AlStatusCode;
use ethercat::register::{ERR_LED, RUN_LED};

use super::memory::Memory;

/// Codes of a LED: 1 to 12 are that many flashes.
const OFF: u8 = 0x0;
const SINGLE_FLASH: u8 = 0x1;
const DOUBLE_FLASH: u8 = 0x2;
const BLINKING: u8 = 0xD;
const FLICKERING: u8 = 0xE;
const ON: u8 = 0xF;

/// Bit of a LED that shows what was written.
const OVERRIDE: u8 = 1 << 4;

/// Shows a new state and error. Both end the override of their LED; no error ends none.
pub(super) fn show(memory: &mut Memory, status: AlStatus, code: AlStatusCode) {
    memory.set_byte(RUN_LED, run(status));
    let overridden = memory.byte(ERR_LED) & OVERRIDE != 0;
    if code != AlStatusCode::NO_ERROR || !overridden {
        memory.set_byte(ERR_LED, error(code));
    }
}

/// Applies a write of the registers: what is not overridden shows state and error again.
pub(super) fn written(memory: &mut Memory, status: AlStatus, code: AlStatusCode) {
    for (register, shown) in [(RUN_LED, run(status)), (ERR_LED, error(code))] {
        let byte = memory.byte(register);
        memory.set_byte(register, if byte & OVERRIDE == 0 { shown } else { byte & (OVERRIDE | ON) });
    }
}

fn run(status: AlStatus) -> u8 {
    match status.al_state() {
        Some(AlState::PreOp) => BLINKING,
        Some(AlState::Bootstrap) => FLICKERING,
        Some(AlState::SafeOp) => SINGLE_FLASH,
        Some(AlState::Op) => ON,
        Some(AlState::Init) | None => OFF,
    }
}

/// Code of an error: it flashes for actions of the SubDevice itself, and blinks for refusals.
fn error(code: AlStatusCode) -> u8 {
    match code {
        AlStatusCode::NO_ERROR => OFF,
        AlStatusCode::SYNCHRONIZATION | AlStatusCode::FATAL_SYNC | AlStatusCode::NO_SYNC => SINGLE_FLASH,
        AlStatusCode::SYNC_MANAGER_WATCHDOG => DOUBLE_FLASH,
        _ => BLINKING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leds(memory: &Memory) -> (u8, u8) {
        (memory.byte(RUN_LED), memory.byte(ERR_LED))
    }

    // feature(simulator): registers of the LEDs, with their override
    #[test]
    fn leds_follow_state_and_error_until_they_are_overridden() {
        let mut memory = Memory::up_to(0x1_0000);
        let op = AlStatus::in_state(AlState::Op);
        show(&mut memory, op, AlStatusCode::NO_ERROR);
        assert_eq!(leds(&memory), (ON, OFF));
        memory.store(RUN_LED, &[OVERRIDE | FLICKERING, OVERRIDE | ON]);
        written(&mut memory, op, AlStatusCode::NO_ERROR);
        assert_eq!(leds(&memory), (OVERRIDE | FLICKERING, OVERRIDE | ON));
        // A new state takes RUN back, an error ERR.
        show(&mut memory, AlStatus::in_state(AlState::PreOp), AlStatusCode::NO_ERROR);
        assert_eq!(leds(&memory), (BLINKING, OVERRIDE | ON));
        show(&mut memory, AlStatus::in_state(AlState::SafeOp), AlStatusCode::SYNC_MANAGER_WATCHDOG);
        assert_eq!(leds(&memory), (SINGLE_FLASH, DOUBLE_FLASH));
        // Without override a write has no effect.
        memory.store(RUN_LED, &[ON, ON]);
        written(&mut memory, AlStatus::in_state(AlState::SafeOp), AlStatusCode::SYNC_MANAGER_WATCHDOG);
        assert_eq!(leds(&memory), (SINGLE_FLASH, DOUBLE_FLASH));
    }
}
