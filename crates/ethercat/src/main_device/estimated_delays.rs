//! Delays of SubDevices with implausible receive times: from the delays of their neighbours.

use alloc::vec::Vec;

use super::clock::{ClockNode, ClockSetting, reference};
use super::sub_device::SubDevice;

/// Sets the clocks of SubDevices with implausible receive times, and returns the reference clock.
///
/// Such a SubDevice is halfway between its neighbours, or at the end of a line one average cable
/// behind the SubDevice before it. `nodes` do not have its receive times; its processing unit's
/// time is used.
pub(super) fn complete(
    sub_devices: &[SubDevice],
    nodes: &mut [ClockNode],
    settings: &mut [Option<ClockSetting>],
    system_time: u64,
    is_stranger: impl Fn(usize) -> bool,
) -> Option<usize> {
    let is_estimated = |&place: &usize| {
        let it = &sub_devices[place];
        it.implausible_port.is_some() && it.has_clock() && !is_stranger(place)
    };
    let estimated: Vec<_> = (0..nodes.len()).filter(is_estimated).collect();
    if estimated.is_empty() {
        return reference(nodes);
    }
    let measured: Vec<_> = settings.iter().flatten().map(|it| it.delay).collect();
    let longest = measured.iter().copied().max().unwrap_or(0);
    let cable = longest.checked_div(measured.len().saturating_sub(1) as u32).unwrap_or(0);
    for &place in &estimated {
        nodes[place].latched = sub_devices[place].latched();
    }
    let reference = reference(nodes);
    // Delays so far begin at the first SubDevice that was measured.
    if reference.is_some_and(|place| settings[place].is_none()) {
        for it in settings.iter_mut().flatten() {
            (it.delay, it.offset) = (it.delay.saturating_add(cable), it.offset.wrapping_add(cable.into()));
        }
    }
    let setting = |place: usize, delay: u32| {
        let here = system_time.wrapping_add(delay.into());
        let processed = sub_devices[place].latched()?.processing_unit;
        Some(ClockSetting { offset: here.wrapping_sub(processed), delay })
    };
    for place in estimated {
        let of = |place: usize| settings[place].map(|it| it.delay);
        let before = nodes[place].upstream.and_then(|up| of(up.position.into()));
        let hangs_here =
            |next: &usize| nodes[*next].upstream.is_some_and(|up| usize::from(up.position) == place);
        let behind = (0..nodes.len()).filter(hangs_here).filter_map(of).min();
        let delay = match (before, behind) {
            _ if reference == Some(place) => 0,
            (Some(before), Some(behind)) => before + behind.saturating_sub(before) / 2,
            (Some(before), None) => before.saturating_add(cable),
            (None, behind) => behind.unwrap_or(0).saturating_sub(cable),
        };
        settings[place] = setting(place, delay);
    }
    reference
}
