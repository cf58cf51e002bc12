//! Motion by hand: jogs, set-up mode, and conditions that block commands.

use ipc::state::Refusal;
use motion::RadiansPerSecond;
use motion::supervision::{Jog, StopReason};

use super::Manual;
use super::binding::Axis;
use crate::controller::{AxisReport, InterlockCause};

/// Commanded jog of one axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct JogRequest {
    pub(crate) axis: usize,
    pub(crate) velocity: RadiansPerSecond,
    /// Its command was refused: it moves nothing, and its key is still held.
    pub(crate) refused: bool,
}

/// Requests that a command may make of one axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gate {
    pub(crate) jog: Result<(), Refusal>,
    pub(crate) target: Result<(), Refusal>,
    /// Limit of a jog.
    pub(crate) fastest: RadiansPerSecond,
}

/// Requests that a command may make of the axes, as of the last cycle.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    pub(crate) axes: Vec<Gate>,
    /// Axis that keeps the chain of the active controller from moving, and why.
    pub(crate) chain: Option<(usize, Refusal)>,
}

/// Motion by hand of all axes.
#[derive(Debug, Default)]
pub(super) struct ManualMotion {
    request: Option<JogRequest>,
    /// Interlocks permit a jog of the axis.
    permitted: Vec<bool>,
    /// Interlock that does not permit automatic motion of the axis.
    set_up: Vec<Option<InterlockCause>>,
    /// Axes that each controller moves together; empty for a controller that moves them
    /// independently.
    chains: Vec<Vec<usize>>,
    gates: Gates,
}

impl ManualMotion {
    pub(super) fn of(axes: usize) -> Self {
        let shut = Gate { jog: Err(Refusal::JogHeld), target: Ok(()), fastest: RadiansPerSecond::ZERO };
        Self {
            request: None,
            permitted: vec![true; axes],
            set_up: vec![None; axes],
            chains: Vec::new(),
            gates: Gates { axes: vec![shut; axes], chain: None },
        }
    }

    pub(super) fn set_chains(&mut self, chains: Vec<Vec<usize>>) {
        self.chains = chains;
    }

    pub(super) fn clear(&mut self) {
        self.permitted.fill(true);
        self.set_up.fill(None);
    }

    pub(super) fn forbid_jog(&mut self, axis: usize) {
        if let Some(permitted) = self.permitted.get_mut(axis) {
            *permitted = false;
        }
    }

    pub(super) fn set_up(&mut self, axis: usize, cause: InterlockCause) {
        if let Some(set_up) = self.set_up.get_mut(axis) {
            set_up.get_or_insert(cause);
        }
    }

    /// Interlock by which an axis is in set-up mode.
    pub(super) fn set_up_by(&self, axis: usize) -> Option<InterlockCause> {
        self.set_up.get(axis).copied().flatten()
    }

    /// Commanded jog of this cycle; `rests`: all axes are to stop.
    pub(super) fn request(&mut self, request: Option<JogRequest>) {
        self.request = request;
    }

    /// Inputs of the supervision of an axis; `jogged` is the jogged axis, `rests`: all axes are to
    /// stop.
    pub(super) fn of_axis(&self, axis: usize, jogged: Option<usize>, rests: bool) -> Manual {
        let jog = self.request.filter(|it| it.axis == axis).map(|it| Jog {
            velocity: it.velocity,
            permitted: self.permitted.get(axis).copied().unwrap_or(false)
                && !(rests || it.refused)
                && jogged.is_none_or(|jogged| jogged == axis),
        });
        Manual { jog, set_up: self.set_up_by(axis).is_some() }
    }

    /// Holds the axes that the active controller moves together with one that is not ready.
    pub(super) fn hold_chain(&mut self, active: usize, axes: &mut [Axis]) {
        let chain = self.chains.get(active).map_or(&[][..], Vec::as_slice);
        let reason = |&axis: &usize| Some((axis, axes.get(axis)?.unready()?));
        let unready = chain.iter().find_map(reason);
        let in_set_up = || {
            let axis = chain.iter().copied().find(|&axis| self.set_up_by(axis).is_some())?;
            Some((axis, Refusal::SetUp))
        };
        let found = unready.map(|(axis, reason)| (axis, refusal(reason))).or_else(in_set_up);
        for (place, axis) in axes.iter_mut().enumerate() {
            let holds = unready.is_some_and(|(other, _)| other != place) && chain.contains(&place);
            axis.hold_with_chain(holds);
        }
        self.gates.chain = found;
    }

    /// Axis that a chain is held for.
    pub(super) fn chained_to(&self) -> Option<usize> {
        self.gates.chain.map(|(axis, _)| axis)
    }

    /// Notes the permitted commands for the next cycle.
    pub(super) fn note(&mut self, axes: &[Axis], reports: &[AxisReport]) {
        let jogged = axes.iter().position(Axis::is_jogged);
        for (place, ((gate, axis), report)) in self.gates.axes.iter_mut().zip(axes).zip(reports).enumerate()
        {
            let (permitted, set_up) = (self.permitted[place], self.set_up[place].is_some());
            gate.jog = match jogged {
                _ if !permitted => Err(Refusal::JogNotPermitted),
                Some(jogged) if jogged == place => Ok(()),
                Some(_) => Err(Refusal::JogMoving),
                None => axis.may_jog(report),
            };
            gate.fastest = axis.fastest_jog();
            gate.target = match axis.unready() {
                Some(reason) => Err(refusal(reason)),
                None if set_up => Err(Refusal::SetUp),
                None => Ok(()),
            };
        }
    }

    pub(super) const fn gates(&self) -> &Gates {
        &self.gates
    }
}

/// Refusal of a command for an axis that is not ready.
fn refusal(reason: StopReason) -> Refusal {
    match reason {
        StopReason::NotHomed => Refusal::NotHomed,
        StopReason::OutsideLimits => Refusal::OutsideLimits,
        _ => Refusal::Unreferenced,
    }
}
