//! EtherCAT state machine as a pure step: decision on a request in AL control (ETG.1000.6, 6.4.1,
//! Tables 102 ff.; ETG.1020, 4).

use ethercat::al::{AlControl, AlState};
use ethercat::al_status_code::AlStatusCode;

/// Decision on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Do nothing: a shown error was not acknowledged.
    Ignore,
    /// Stay: the requested state is the present one; a shown error is cleared.
    Stay,
    /// Enter the state, if the entry actions agree; a shown error is cleared.
    Enter(AlState),
    /// Keep the state, and show the error.
    Refuse(AlStatusCode),
}

/// Decides on `control` in `state`; `error` is true while an error is shown.
pub(crate) fn decide(state: AlState, error: bool, control: AlControl, bootstrap: bool) -> Decision {
    use AlState::{Bootstrap, Init, Op, PreOp, SafeOp};
    // Init is always accepted, and clears an error by itself. A lower state can be requested
    // without acknowledging too.
    let init = control.state == Init.number();
    if error && !init && !control.acknowledge && control.state >= state.number() {
        return Decision::Ignore;
    }
    let Some(requested) = AlState::from_number(control.state) else {
        return Decision::Refuse(AlStatusCode::UNKNOWN_REQUESTED_STATE);
    };
    match (state, requested) {
        (from, to) if from == to => Decision::Stay,
        (Init, Bootstrap) if !bootstrap => Decision::Refuse(AlStatusCode::BOOTSTRAP_NOT_SUPPORTED),
        (Init, PreOp | Bootstrap)
        | (PreOp, SafeOp | Init)
        | (SafeOp, Op | PreOp | Init)
        | (Op, SafeOp | PreOp | Init)
        | (Bootstrap, Init) => Decision::Enter(requested),
        _ => Decision::Refuse(AlStatusCode::INVALID_REQUESTED_STATE_CHANGE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AlState::{Bootstrap, Init, Op, PreOp, SafeOp};

    const STATES: [AlState; 5] = [Init, PreOp, Bootstrap, SafeOp, Op];

    /// One row per state, one column per requested state number 0 to 15. A dot: it stays; I, P, B,
    /// S, O: it enters this state; 1: invalid change (0x0011), 2: unknown state (0x0012).
    const ROWS: [(AlState, &str); 5] = [
        (Init, "2.PB122212222222"),
        (PreOp, "2I.1S22212222222"),
        (Bootstrap, "2I1.122212222222"),
        (SafeOp, "2IP1.222O2222222"),
        (Op, "2IP1S222.2222222"),
    ];

    fn cell(state: AlState, number: u8) -> Decision {
        let row = ROWS.iter().find(|(from, _)| *from == state).unwrap().1;
        match row.as_bytes()[usize::from(number)] {
            b'.' => Decision::Stay,
            b'I' => Decision::Enter(Init),
            b'P' => Decision::Enter(PreOp),
            b'B' => Decision::Enter(Bootstrap),
            b'S' => Decision::Enter(SafeOp),
            b'O' => Decision::Enter(Op),
            b'1' => Decision::Refuse(AlStatusCode::INVALID_REQUESTED_STATE_CHANGE),
            _ => Decision::Refuse(AlStatusCode::UNKNOWN_REQUESTED_STATE),
        }
    }

    fn control(state: u8, acknowledge: bool) -> AlControl {
        AlControl { state, acknowledge, request_identification: false }
    }

    // feature(simulator): AL state machine, all states and requests
    #[test]
    fn every_state_answers_every_request_by_its_row() {
        for state in STATES {
            for number in 0..16 {
                for acknowledge in [false, true] {
                    let found = decide(state, false, control(number, acknowledge), true);
                    assert_eq!(found, cell(state, number), "{state}, request {number}");
                }
                // With an error shown the rows apply again once it is acknowledged.
                let found = decide(state, true, control(number, true), true);
                assert_eq!(found, cell(state, number), "{state} with error, request {number} + ack");
            }
        }
    }

    #[test]
    fn an_unacknowledged_error_lets_only_init_and_lower_states_pass() {
        for state in STATES {
            for number in 0..16 {
                let found = decide(state, true, control(number, false), true);
                let ignored = number >= state.number() && number != Init.number();
                let expected = if ignored { Decision::Ignore } else { cell(state, number) };
                assert_eq!(found, expected, "{state} with error, request {number}");
            }
        }
    }

    #[test]
    fn bootstrap_is_refused_where_it_is_not_supported() {
        let refused = Decision::Refuse(AlStatusCode::BOOTSTRAP_NOT_SUPPORTED);
        assert_eq!(decide(Init, false, control(3, false), false), refused);
    }
}
