//! The way to process data: its layout, and the first cycles that are whole.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::al::AlState;
use crate::time::Instant;

use crate::main_device::configuration::Presence;
use crate::main_device::error::BusError;
use crate::main_device::exchange::SLOTS;
use crate::main_device::layout::Layout;
use crate::main_device::recovery::Recovery;
use crate::main_device::sub_device::late::{self, Late};
use crate::main_device::{
    EVENTS_EACH, MainDevice, SubDeviceConfiguration, bring_up, layout, limits, plan, presence,
};

use super::Phase;

impl MainDevice {
    pub(super) fn begin_process_data(&mut self) -> Result<(), BusError> {
        if let Some(described) = self.configuration.may_lack() {
            presence::take_mappings(&mut self.sub_devices, described)?;
        }
        let configured = self.configuration.sub_devices.as_deref().unwrap_or_default();
        let default = SubDeviceConfiguration::default();
        let configuration = |position: u16| configured.get(usize::from(position)).unwrap_or(&default);
        let mut in_use = Vec::with_capacity(self.sub_devices.len());
        for it in &self.sub_devices {
            let found = match it.is_absent {
                true => late::shares(it, configuration(it.position)),
                false => bring_up::sync_managers(it, configuration(it.position)),
            };
            in_use.push(found.map_err(|error| bring_up::at(it, error))?);
        }
        let shares: Vec<_> = in_use.iter().flatten().map(|(.., share)| *share).collect();
        let groups = self.configuration.groups(self.sub_devices.len());
        let period = self.configuration.period;
        let layout = Layout::new(&shares, self.configuration.packed).fitted(&groups, period);
        let layout =
            if layout.is_crowded() { Layout::new(&shares, false).fitted(&groups, period) } else { layout };
        if layout.chunks.len() > SLOTS / 2 {
            return Err(BusError::ProcessDataTooLarge { found: layout.chunks.len(), maximum: SLOTS / 2 });
        }
        for ((worker, it), in_use) in self.workers.iter_mut().zip(&mut self.sub_devices).zip(&in_use) {
            bring_up::place(it, &layout);
            let sync_managers: Vec<_> = in_use.iter().map(|(number, it, _)| (*number, *it)).collect();
            let is_own = |piece: &&layout::Piece| piece.share.position == it.position;
            let pieces: Vec<_> = layout.pieces.iter().filter(is_own).collect();
            let watchdogs = it.want_watchdogs();
            // For an absent SubDevice, its SII will give the SyncManagers.
            let mut own = match it.is_absent {
                true => Vec::new(),
                false => plan::process_data(watchdogs, &sync_managers, &pieces),
            };
            if self.configuration.recovery && it.sii_problem.is_none() {
                let is_late = it.is_absent || it.mark.presence == Presence::HotConnect;
                let configuration = configuration(it.position);
                let plans = &mut self.plans[usize::from(it.position)];
                plans.short = plan::op();
                plans.anew = if is_late {
                    let late =
                        Late::new(in_use, &pieces, configuration, self.configuration.distributed_clocks);
                    let anew = late::plan(it, &late, configuration);
                    it.late = Some(Box::new(late));
                    anew
                } else {
                    plan::anew(it, configuration, &own)
                };
            }
            if !it.is_absent {
                worker.start(&mut own);
            }
        }
        self.events.reserve(EVENTS_EACH * self.sub_devices.len());
        self.recovery = Recovery::new(&self.sub_devices, &self.strangers);
        self.lay_out(layout, &groups);
        self.phase = Phase::ProcessData;
        Ok(())
    }

    pub(super) fn await_whole_cycles(&mut self, now: Instant) -> Result<(), BusError> {
        if self.configuration.target < AlState::Op {
            return Ok(());
        }
        if self.cycle.has_been_whole(limits::WHOLE_CYCLES) {
            self.start_plans(|plans| &mut plans.op);
            self.gather(AlState::Op);
            self.phase = Phase::Op;
            return Ok(());
        }
        if self.is_late(now) { Err(self.incomplete_process_data(now)) } else { Ok(()) }
    }
}
