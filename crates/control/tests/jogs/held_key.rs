//! A key that is held after its jog was ended: the axis waits for a new press.

use super::*;

/// Cause that ends the jog in the cycles from 600 on, its key still held.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cause {
    /// A request brings all axes to rest.
    Stop,
    /// Its commands are refused: they have another target.
    Refusal,
    /// The controller asks for a halt.
    Halt,
    /// The enabling switch is released.
    Switch,
}

// feature(axes): a jog that a stop or a refusal has ended does not continue while its key is held
#[test]
fn a_jog_that_was_ended_waits_for_a_new_press() {
    use Cause::{Halt, Refusal, Stop, Switch};
    for (mode, cause) in MODES.into_iter().flat_map(|it| [Stop, Refusal, Halt, Switch].map(|of| (it, of))) {
        let interlock = (cause == Switch).then_some(InterlockKind::Jog);
        let bench = Bench { interlock, ..Bench::new(mode) };
        let ran = bench.run(&format!("held-{mode:?}-{cause:?}"), 1_900, move |visit| {
            let ends = (600..850).contains(&visit.cycle);
            *visit.rests = cause == Stop && ends;
            visit.permit(!(cause == Switch && ends));
            if cause == Halt && ends {
                visit.commands[0].request = Request::Halt;
            }
            let other = Some(AxisTarget::Velocity(RadiansPerSecond(0.1)));
            match visit.cycle {
                600..850 if cause == Refusal => visit.send(vec![jog(0.1), other], TIME_TO_LIVE),
                300..1_100 => visit.jog(0.1),
                // The key was released.
                1_500..1_700 => visit.jog(0.1),
                _ => {}
            }
        });
        let moves = |from: usize, to: usize| {
            ran.states[from..to].iter().any(|it| it.axes[0].velocity.abs() > ROUNDED)
        };
        assert!(moves(350, 590), "{mode:?} {cause:?}: it was jogged");
        // A refusal counts once the last good command has expired.
        let from = 600 + ENDS + 10;
        assert!(!moves(from, 1_490), "{mode:?} {cause:?}: it went on with the same key");
        assert!(moves(1_520, 1_690), "{mode:?} {cause:?}: pressed again");
    }
}
