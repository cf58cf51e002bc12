//! The way to process data: its layout, and the first cycles that are whole.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::al::AlState;
use crate::time::Instant;

use crate::main_device::configuration::Presence;
use crate::main_device::error::BusError;
use crate::main_device::exchange::SLOTS;
use crate::main_device::late::{self, Late};
use crate::main_device::layout::Layout;
use crate::main_device::recovery::Recovery;
use crate::main_device::{
    EVENTS_EACH, MainDevice, SubDeviceConfiguration, bring_up, layout, limits, plan, presence,
};

use super::Phase;

impl MainDevice {
    pub(super) fn begin_process_data(&mut self) -> Result<(), BusError> {
        if let Some(described) = self.configuration.may_lack() {
            presence::take_mappings(&mut self.sub_devices, described)?;
        }
        let mut in_use = Vec::with_capacity(self.sub_devices.len());
        let default = SubDeviceConfiguration::default();
        for (position, sub_device) in self.sub_devices.iter().enumerate() {
            let configured = self.configuration.sub_devices.as_ref().and_then(|it| it.get(position));
            let configured = configured.unwrap_or(&default);
            in_use.push(match sub_device.is_absent {
                true => late::shares(sub_device, configured),
                false => bring_up::sync_managers(sub_device, configured)
                    .map_err(|error| bring_up::at(sub_device, error))?,
            });
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
        for ((worker, sub_device), in_use) in
            self.workers.iter_mut().zip(&mut self.sub_devices).zip(&in_use)
        {
            bring_up::place(sub_device, &layout);
            let sync_managers: Vec<_> = in_use.iter().map(|(number, it, _)| (*number, *it)).collect();
            let is_own = |piece: &&layout::Piece| piece.share.position == sub_device.position;
            let pieces: Vec<_> = layout.pieces.iter().filter(is_own).collect();
            let watchdogs = sub_device.want_watchdogs();
            let is_hot = sub_device.is_absent || sub_device.mark.presence == Presence::HotConnect;
            if self.configuration.recovery && is_hot && sub_device.sii_problem.is_none() {
                let configured = self.configuration.sub_devices.as_ref();
                let configuration = configured.and_then(|it| it.get(usize::from(sub_device.position)));
                let (configuration, clocks) =
                    (configuration.unwrap_or(&default), self.configuration.distributed_clocks);
                let late = Late::new(in_use, &pieces, configuration, clocks);
                let plans = &mut self.plans[usize::from(sub_device.position)];
                plans.short = plan::op();
                plans.anew = late::plan(sub_device, &late, configuration);
                sub_device.late = Some(Box::new(late));
            }
            if sub_device.is_absent {
                continue;
            }
            let mut own = plan::process_data(watchdogs, &sync_managers, &pieces);
            if self.configuration.recovery && !is_hot && sub_device.sii_problem.is_none() {
                let configured = self.configuration.sub_devices.as_ref();
                let configuration = configured.and_then(|it| it.get(usize::from(sub_device.position)));
                let plans = &mut self.plans[usize::from(sub_device.position)];
                plans.short = plan::op();
                plans.anew = plan::anew(sub_device, configuration.unwrap_or(&default), &own);
            }
            worker.start(&mut own);
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
            self.phase = Phase::Op;
            return Ok(());
        }
        if self.is_late(now) { Err(self.incomplete_process_data(now)) } else { Ok(()) }
    }
}
