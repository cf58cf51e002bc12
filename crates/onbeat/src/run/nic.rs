//! Network interfaces of a run, prepared for its cycle on request, and restored at its end.

use machine::check::Subject;
use machine::cpus::Cpus;
use machine::ethtool::Ethtool;
use machine::nic::PreparedNic;
use machine::root::Root;
use onbeat_ethercat_linux::link::{LinkKind, owner};
use robot::RobotConfig;
use rt::profile;

use crate::compose::link::Wire;
use crate::{Notice, Reporter};

/// Interfaces that are prepared.
pub(super) struct Nics {
    prepared: Vec<PreparedNic>,
    /// Sentences on refused changes.
    refused: Vec<String>,
}

impl Nics {
    /// Prepares both ends of the wire. A missing interface, or one with another owner, is left
    /// unchanged: opening it reports the reason.
    pub(super) fn prepare(robot: &RobotConfig, wire: &Wire, reporter: &mut dyn Reporter) -> Self {
        let mut nics = Self { prepared: Vec::new(), refused: Vec::new() };
        if !robot.cycle.prepares_nic() {
            return nics;
        }
        for interface in [&wire.interface, &wire.second_interface].into_iter().flatten() {
            let free = owner(interface).is_ok_and(|owner| owner.is_none());
            let Some(ethtool) = Ethtool::read(interface).ok().filter(|_| free) else { continue };
            match PreparedNic::prepare(&subject(robot, wire.link, interface, ethtool)) {
                Ok(nic) => {
                    reporter.notice(&Notice::Prepared(format!("interface {interface}: {}", nic.report())));
                    let refused = nic.report().refused.iter();
                    nics.refused.extend(refused.map(|it| format!("not prepared: {it}")));
                    nics.prepared.push(nic);
                }
                Err(error) => nics.refused.push(format!(
                    "interface {interface} was not prepared: what is changed is remembered below /run/onbeat, which cannot be \
                     written ({error}); it needs root"
                )),
            }
        }
        nics
    }

    /// Line of the conditions; `None` where nothing was prepared.
    pub(super) fn words(&self) -> Option<String> {
        let words: Vec<String> = self.prepared.iter().map(|nic| nic.report().to_string()).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// Sentences on refused changes.
    pub(super) fn refused(&self) -> &[String] {
        &self.refused
    }

    /// Puts all of them back.
    pub(super) fn put_back(self, reporter: &mut dyn Reporter) {
        let failures = self.prepared.into_iter().rev().flat_map(PreparedNic::put_back);
        failures.for_each(|failure| reporter.notice(&Notice::NotPutBack(failure.to_string())));
    }
}

/// Interface as the cycle uses it. Its interrupts go to the cycle's CPU, or to another one if a
/// shield keeps all interrupts off that.
fn subject(robot: &RobotConfig, link: LinkKind, interface: &str, ethtool: Ethtool) -> Subject {
    let asked = robot.cycle.real_time_profile();
    let mut subject = Subject::new(Root::machine(), profile::cpu(&asked))
        .with_priority(robot.cycle.priority())
        .with_interface(interface, ethtool);
    let cpu = subject.cpu();
    let beside = || Cpus::online().without(&Cpus::one(cpu)).iter().next();
    if let Some(cpu) = robot.cycle.nic_cpu.or_else(|| asked.shield.then(beside).flatten()) {
        subject = subject.with_interrupt_cpu(cpu);
    }
    if link == LinkKind::XdpPolled {
        subject = subject.with_polling(robot.cycle.period);
    }
    subject
}
