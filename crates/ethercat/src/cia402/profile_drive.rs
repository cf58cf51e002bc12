//! One drive in a profile mode: [`ProfileDrive`].

use types::CyclicMode;

use super::drive::{Drive, DriveCommand, DriveInput, DriveOutput, Phase, Request, fallen};
use super::mode::ModeOfOperation;
use super::profile::{ProfileMode, ProfilePosition, SetPoint, SetPointProgress};

/// One drive in a profile mode, as the MainDevice guides it: called once a cycle, no I/O, no
/// allocation.
///
/// States, faults and stops are handled as in [`Drive`]. Until Operation enabled and the mode are
/// shown, the target position is the actual one, velocity and torque are zero, and set-points are
/// forgotten. Without input, velocities and torques only fall, and the handshake pauses. A mode
/// that is not mapped ([`DriveInput::mode`]) counts as the right one.
///
/// ```
/// use onbeat_ethercat::cia402::{
///     DriveInput, ProfileDrive, ProfileMode, Request, SetPoint, Statusword,
/// };
///
/// let mut drive = ProfileDrive::new(ProfileMode::Position);
/// let mut input =
///     DriveInput { statusword: Statusword(0x0237), position: 100, ..DriveInput::default() };
/// drive.update(Some(input), Request::Enable);
/// assert!(drive.move_to(SetPoint::at(5_000)));
/// let output = drive.update(Some(input), Request::Enable);
/// assert_eq!((output.controlword.0, output.target_position), (0x1F, 5_000));
/// ```
#[derive(Clone, Debug)]
pub struct ProfileDrive {
    drive: Drive,
    mode: ProfileMode,
    position: ProfilePosition,
    velocity: i32,
    torque: i16,
    /// Bits of the mode in the controlword sent last, and the output.
    bits: u16,
    output: DriveOutput,
}

impl ProfileDrive {
    /// A drive in `mode`.
    #[must_use]
    pub fn new(mode: ProfileMode) -> Self {
        Self {
            drive: Drive::new(CyclicMode::Position, u32::MAX),
            mode,
            position: ProfilePosition::default(),
            velocity: 0,
            torque: 0,
            bits: 0,
            output: DriveOutput::default(),
        }
    }

    /// Changes the mode, also while enabled: targets of the mode before end with it.
    pub fn change_mode(&mut self, mode: ProfileMode) {
        if mode != self.mode {
            self.mode = mode;
            self.position.interrupt();
            (self.velocity, self.torque) = (0, 0);
        }
    }

    /// Value of 0x6060.
    #[must_use]
    pub fn mode_of_operation(&self) -> ModeOfOperation {
        self.mode.into()
    }

    /// Hands a set-point over. Returns `false` and does nothing in another mode, outside Operation
    /// enabled, or while the drive has not acknowledged the previous one.
    pub fn move_to(&mut self, set_point: SetPoint) -> bool {
        let hears = self.mode == ProfileMode::Position && self.drive.phase() != Phase::NotEnabled;
        hears && self.position.hand_over(set_point)
    }

    /// Sets the target velocity 0x60FF, velocity units.
    pub fn set_velocity(&mut self, velocity: i32) {
        self.velocity = velocity;
    }

    /// Sets the target torque 0x6071, 0.1 % of the rated torque.
    pub fn set_torque(&mut self, torque: i16) {
        self.torque = torque;
    }

    /// Progress of the last set-point.
    #[must_use]
    pub const fn progress(&self) -> SetPointProgress {
        self.position.progress()
    }

    /// The drive below: state, phase, last input.
    #[must_use]
    pub const fn drive(&self) -> &Drive {
        &self.drive
    }

    /// One cycle: the drive's inputs (`None` if they are not valid), the request, the outputs to
    /// send.
    pub fn update(&mut self, input: Option<DriveInput>, request: Request) -> DriveOutput {
        let command =
            DriveCommand { request, target_position: self.drive.holds_at(), ..DriveCommand::default() };
        let last = self.output;
        self.output = self.drive.update(input, command);
        let shown = input.is_none_or(|it| it.mode.is_none_or(|mode| mode == self.mode_of_operation()));
        if self.drive.phase() == Phase::NotEnabled || !shown {
            self.bits = 0;
            self.position.interrupt();
        } else {
            self.work(input, request, last);
        }
        self.output
    }

    /// Adds targets and bits of the mode to the output of a drive in Operation enabled.
    fn work(&mut self, input: Option<DriveInput>, request: Request, last: DriveOutput) {
        let output = &mut self.output;
        let runs = request == Request::Enable && !self.drive.just_enabled();
        match self.mode {
            ProfileMode::Position => {
                if let Some(input) = input {
                    self.bits = self.position.step(input.statusword);
                }
                if output.controlword.enables_operation() {
                    output.controlword.0 |= self.bits;
                }
                if !matches!(
                    self.position.progress(),
                    SetPointProgress::NotAsked | SetPointProgress::Interrupted
                ) {
                    output.target_position = self.position.target();
                }
            }
            ProfileMode::Velocity if runs && input.is_some() => output.target_velocity = self.velocity,
            ProfileMode::Velocity if runs => {
                output.target_velocity = fallen(last.target_velocity, self.velocity);
            }
            ProfileMode::Torque if runs && input.is_some() => output.target_torque = self.torque,
            ProfileMode::Torque if runs => {
                output.target_torque = fallen(last.target_torque.into(), self.torque.into()) as i16;
            }
            ProfileMode::Velocity | ProfileMode::Torque => {}
        }
    }
}

#[cfg(test)]
mod tests;
