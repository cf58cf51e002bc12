//! Losses of drives and frames, and their return.

use std::sync::{Arc, Mutex};

use ethercat::time::Instant;
use simulator::Segment;

/// Supply of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    #[default]
    Nothing,
    SafeTorqueOff,
    MainPower,
    /// The drive reports a fault until it is reset.
    Fault(u16),
}

/// Losses of the bus: a script sets them, the bus has them in its next frame.
#[derive(Clone, Debug)]
pub struct Losses(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    wanted: Vec<Loss>,
    had: Vec<Loss>,
    frames: bool,
}

impl Losses {
    pub fn of(axes: usize) -> Self {
        let nothing = vec![Loss::Nothing; axes];
        Self(Arc::new(Mutex::new(State { wanted: nothing.clone(), had: nothing, frames: false })))
    }

    pub fn set(&self, axis: usize, loss: Loss) {
        self.0.lock().unwrap().wanted[axis] = loss;
    }

    /// All frames are lost, or none.
    pub fn lose_frames(&self, lost: bool) {
        self.0.lock().unwrap().frames = lost;
    }
}

/// A bus with losses.
pub struct LossySegment {
    pub segment: Segment,
    pub losses: Losses,
}

impl LossySegment {
    fn act(&mut self, state: &mut State) {
        for (axis, (wanted, had)) in state.wanted.iter().zip(&mut state.had).enumerate() {
            if wanted == had {
                continue;
            }
            let drive = self.segment.sub_device_mut(axis).unwrap().servo_mut().unwrap();
            drive.set_safe_torque_off(0, *wanted == Loss::SafeTorqueOff);
            drive.set_main_power(*wanted != Loss::MainPower);
            if let Loss::Fault(code) = *wanted {
                drive.raise_fault(0, code);
            }
            *had = *wanted;
        }
    }
}

impl ethercat::link::Segment for LossySegment {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        let losses = self.losses.clone();
        let mut state = losses.0.lock().unwrap();
        self.act(&mut state);
        let lost = state.frames;
        drop(state);
        self.segment.process_frame(now, frame) && !lost
    }

    fn advance(&mut self, now: Instant) {
        self.segment.advance(now);
    }
}
