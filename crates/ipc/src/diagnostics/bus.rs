//! The bus in the diagnostics document: SubDevices as the cycle reads them one after the other.

use serde::{Deserialize, Serialize};

use crate::bus::{BusStatus, PortErrorCounters, SubDeviceStatus, SyncStatus, WorkingCounterHistory};

/// Maximum number of SubDevices named in the document: SubDevices with something to report come
/// first.
pub const MOST_TOLD: usize = 64;

/// The bus of a running cycle, once a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BusDiagnosis {
    /// Number of the newest cycle.
    pub cycle: u64,
    /// Place of the reference clock.
    pub reference_clock: Option<u16>,
    /// Largest less smallest difference of a clock from the reference clock; none without clocks.
    pub clock_spread_ns: Option<i64>,
    /// Working counters since everybody first took part.
    pub working_counter_history: WorkingCounterHistory,
    /// SubDevices, in the order of positions.
    pub sub_devices: Vec<SubDeviceDiagnosis>,
    /// SubDevices left out. They are in Op and have counted no errors, unless more do than fit.
    pub left_out: usize,
}

/// A SubDevice in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubDeviceDiagnosis {
    /// Its place, from 0.
    pub position: usize,
    /// Its name.
    pub name: String,
    /// AL status, as `Op` or `SafeOp + error`; [`SubDeviceStatus::ABSENT`] where it is not on the
    /// bus, and need not be; [`SubDeviceStatus::NO_ANSWER`] where it should be and does not answer.
    pub state: String,
    /// AL status code; 0 without an error.
    pub al_status_code: u16,
    /// The same in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub al_status_text: String,
    /// Consecutive cycles without its process data.
    pub missed: u32,
    /// Difference of its clock from the reference clock as it was read last, ns.
    pub clock_difference_ns: Option<i32>,
    /// Its SYNC0, if it has one, and the cycle's frame against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync0: Option<SyncStatus>,
    /// The same of SYNC1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync1: Option<SyncStatus>,
    /// Receive times of ports 0 to 3 by one frame, which latches them once a second, local, ns,
    /// wrapping at 32 bits; none without a clock, where they were not read yet, and while a
    /// SubDevice is being brought up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_times_ns: Option<[u32; 4]>,
    /// Ports with a link; none where it was not read yet, or does not answer.
    pub links: Option<Vec<u8>>,
    /// Ports that have counted errors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortDiagnosis>,
    /// ECAT processing unit error counter.
    pub processing_unit_errors: u8,
    /// PDI error counter.
    pub pdi_errors: u8,
}

/// A port that has counted errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortDiagnosis {
    /// Port 0 to 3.
    pub port: u8,
    /// Its counters.
    #[serde(flatten)]
    pub errors: PortErrorCounters,
}

impl BusDiagnosis {
    /// Of this state, with the names of its SubDevices.
    #[must_use]
    pub fn of(status: &BusStatus, names: &[String]) -> Self {
        let differences = status.sub_devices.iter().filter_map(|it| it.clock_difference_ns.map(i64::from));
        let (least, most) = (differences.clone().min(), differences.max());
        let mut all: Vec<_> =
            status.sub_devices.iter().enumerate().map(|it| described(it, names)).collect();
        let count = all.len();
        if count > MOST_TOLD {
            all.sort_by_key(|it| !it.is_told_first());
            all.truncate(MOST_TOLD);
            all.sort_by_key(|it| it.position);
        }
        Self {
            cycle: status.cycle,
            reference_clock: status.reference_clock,
            clock_spread_ns: least.zip(most).map(|(least, most)| most - least),
            working_counter_history: status.working_counter_history.clone(),
            left_out: count - all.len(),
            sub_devices: all,
        }
    }
}

impl SubDeviceDiagnosis {
    /// True if it is not in Op, does not exchange, or has counted errors.
    #[must_use]
    pub fn is_told_first(&self) -> bool {
        let counts = self.processing_unit_errors > 0 || self.pdi_errors > 0 || !self.ports.is_empty();
        self.state != "Op" || self.al_status_code != 0 || self.missed > 0 || counts
    }

    /// Ports with a link, or that have counted errors, with their counters.
    pub fn used_ports(&self) -> impl Iterator<Item = (u8, PortErrorCounters)> + '_ {
        (0..4).filter_map(|port| {
            let counted = self.ports.iter().find(|it| it.port == port).map(|it| it.errors);
            let has_link = self.links.as_ref().is_some_and(|links| links.contains(&port));
            counted.or(has_link.then(PortErrorCounters::default)).map(|errors| (port, errors))
        })
    }

    /// Errors that all its ports have counted together.
    #[must_use]
    pub fn sum(&self, counter: impl Fn(&PortErrorCounters) -> u8) -> u32 {
        self.ports.iter().map(|it| u32::from(counter(&it.errors))).sum()
    }
}

fn described((position, it): (usize, &SubDeviceStatus), names: &[String]) -> SubDeviceDiagnosis {
    let errors = it.errors.unwrap_or_default();
    let ports = (0_u8..).zip(errors.ports).map(|(port, errors)| PortDiagnosis { port, errors });
    let has_link = |(port, link): (u8, crate::bus::PortLink)| link.link.then_some(port);
    SubDeviceDiagnosis {
        position,
        name: names.get(position).cloned().unwrap_or_default(),
        state: it.state.clone(),
        al_status_code: it.al_status_code,
        al_status_text: it.al_status_text.clone(),
        missed: it.missed,
        clock_difference_ns: it.clock_difference_ns,
        sync0: it.sync0,
        sync1: it.sync1,
        receive_times_ns: it.receive_times_ns,
        links: it.links.map(|links| (0..).zip(links).filter_map(has_link).collect()),
        ports: ports.filter(|it| it.errors != PortErrorCounters::default()).collect(),
        processing_unit_errors: errors.processing_unit_errors,
        pdi_errors: errors.pdi_errors,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::{ErrorCounters, PortLink, WorkingCounterChange};
    use crate::diagnostics::{Diagnostics, LONGEST};

    /// A thousand, all of which have counted all there is, and a history as long as it gets: the
    /// longest document.
    #[test]
    fn of_a_thousand_sub_devices_the_troubled_ones_find_room() {
        let port = PortErrorCounters {
            invalid_frames: 255,
            rx_errors: 255,
            forwarded_rx_errors: 255,
            lost_links: 255,
        };
        let link = PortLink { link: true, loop_closed: false, communication: true };
        let longest =
            SyncStatus { cycle_ns: 4_000_000_000, shift_ns: 3_999_999_999, frame_phase_ns: 3_999_999_999 };
        let worst = SubDeviceStatus {
            state: "SafeOp + error".to_owned(),
            al_status_code: 0x001B,
            al_status_text: "SyncManager watchdog".to_owned(),
            missed: u32::MAX,
            clock_difference_ns: Some(i32::MIN),
            sync0: Some(longest),
            sync1: Some(longest),
            errors: Some(ErrorCounters { ports: [port; 4], processing_unit_errors: 255, pdi_errors: 255 }),
            links: Some([link; 4]),
            receive_times_ns: Some([u32::MAX; 4]),
            ..SubDeviceStatus::default()
        };
        let change = WorkingCounterChange {
            cycle: u64::MAX,
            short: 9999,
            datagram: 9999,
            expected: 9999,
            received: Some(9999),
        };
        let mut status = BusStatus { sub_devices: vec![worst.clone(); 1000], ..BusStatus::default() };
        status.working_counter_history.changes = vec![change; 32];
        let names = vec!["a name that is rather long for a SubDevice".to_owned(); 1000];
        let told = BusDiagnosis::of(&status, &names);
        assert_eq!((told.sub_devices.len(), told.left_out), (MOST_TOLD, 1000 - MOST_TOLD));
        let document = Diagnostics { bus_diagnosis: Some(told), ..Diagnostics::default() };
        let length = serde_json::to_string(&document).unwrap().len();
        assert!(length < LONGEST * 7 / 8, "{length}");

        let well = SubDeviceStatus { state: "Op".to_owned(), ..SubDeviceStatus::default() };
        status.sub_devices = vec![well; 1000];
        status.sub_devices[999] = worst;
        let told = BusDiagnosis::of(&status, &names);
        let last = told.sub_devices.last().unwrap();
        assert_eq!((last.position, last.sum(|it| it.lost_links)), (999, 1020), "{told:?}");
        assert_eq!((told.clock_spread_ns, last.links.clone()), (Some(0), Some(vec![0, 1, 2, 3])));
    }
}
