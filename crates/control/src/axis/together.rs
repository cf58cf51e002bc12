//! Axes that are stopped together: a stop of an axis also stops, in the same cycle, the axes it
//! names, and the axes named by them.

use motion::supervision::OtherAxis;

use super::binding::Axis;
use super::{AxisConfiguration, AxisError};
use crate::controller::AxisReport;

/// Groups of axes that are stopped together.
#[derive(Debug)]
pub(super) struct Together {
    /// For each axis, the axes that stop with it.
    stopped_with: Vec<Vec<usize>>,
    /// Stop of each axis in this cycle.
    stops: Vec<OtherAxis>,
}

impl Together {
    /// Follows the names from axis to axis.
    pub(super) fn of(configurations: &[AxisConfiguration]) -> Result<Self, AxisError> {
        let count = configurations.len();
        let mut stopped_with = vec![Vec::new(); count];
        for first in 0..count {
            let mut reached = vec![false; count];
            reached[first] = true;
            let mut to_follow = vec![first];
            while let Some(axis) = to_follow.pop() {
                for &next in &configurations[axis].stops {
                    let Some(is_reached) = reached.get_mut(next) else {
                        let name = configurations[axis].name.clone();
                        return Err(AxisError::StopsNobody { axis: name, place: next, found: count });
                    };
                    if !std::mem::replace(is_reached, true) {
                        to_follow.push(next);
                    }
                }
            }
            let taken: Vec<_> = (0..count).filter(|&axis| reached[axis] && axis != first).collect();
            let unsupervised = |axis: &&usize| configurations[**axis].supervision.is_none();
            if let Some(&axis) =
                taken.iter().chain((!taken.is_empty()).then_some(&first)).find(unsupervised)
            {
                return Err(AxisError::UnsupervisedStop { axis: configurations[axis].name.clone() });
            }
            taken.into_iter().for_each(|axis| stopped_with[axis].push(first));
        }
        Ok(Self { stopped_with, stops: vec![OtherAxis::Free; count] })
    }

    /// Stops the axes that stop with a stopped axis, and notes the cause; called after the checks
    /// of all axes.
    pub(super) fn stop(&mut self, axes: &mut [Axis], reports: &mut [AxisReport]) {
        for ((axis, report), stop) in axes.iter_mut().zip(reports.iter()).zip(&mut self.stops) {
            *stop = axis.stop_for_others(report.absent);
        }
        for ((axis, report), others) in axes.iter_mut().zip(reports).zip(&self.stopped_with) {
            let most = others.iter().map(|&other| self.stops[other]).max().unwrap_or_default();
            if axis.stop_with(most) {
                report.stopped_with = others.iter().copied().find(|&other| self.stops[other] == most);
            }
        }
    }
}
