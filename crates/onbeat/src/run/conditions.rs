//! Conditions of a run: machine, bus, and real-time settings with their grants.

use ethercat::main_device::MainDevice;
use machine::conditions::{self, Conditions};
pub use record::conditions::SIMULATED;
use record::{RequestedAndGranted, RunConditions};
use robot::RobotConfig;
use rt::profile::{Grants, Scheduling};

use super::nic::Nics;

/// The bus of a run.
pub(super) struct Bus {
    sub_devices: usize,
    output_bytes: usize,
    input_bytes: usize,
    link: String,
}

impl Bus {
    /// Bus of a MainDevice in PreOp.
    pub(super) fn of(main_device: &MainDevice, link: String) -> Self {
        let sub_devices = main_device.sub_devices();
        Self {
            sub_devices: sub_devices.len(),
            output_bytes: sub_devices.iter().map(|it| it.output_bytes()).sum(),
            input_bytes: sub_devices.iter().map(|it| it.input_bytes()).sum(),
            link,
        }
    }
}

/// Conditions that a run is measured under.
pub(super) fn conditions(robot: &RobotConfig, granted: &Grants, nics: &Nics, bus: Bus) -> RunConditions {
    let common = conditions::read().of_robot(&robot.name, robot.sha256());
    let warnings = warnings(&common, granted, nics);
    let fifo = |scheduling| match scheduling {
        Scheduling::Fifo { priority } => Some(priority),
        Scheduling::Deadline { .. } => None,
    };
    let reserved = |scheduling| match scheduling {
        Scheduling::Deadline { runtime, .. } => u64::try_from(runtime.as_nanos()).ok(),
        Scheduling::Fifo { .. } => None,
    };
    let priority = granted.scheduling.requested().and_then(fifo);
    let runtime = granted.scheduling.requested().and_then(reserved);
    let cpu = granted.cpu.requested();
    let memory_lock = granted.memory.requested().is_some();
    RunConditions {
        common,
        cpu: RequestedAndGranted { requested: cpu, granted: cpu.filter(|_| granted.cpu.is_granted()) },
        priority: RequestedAndGranted {
            requested: priority,
            granted: priority.filter(|_| granted.scheduling.is_granted()),
        },
        deadline_runtime_ns: RequestedAndGranted {
            requested: runtime,
            granted: runtime.filter(|_| granted.scheduling.is_granted()),
        },
        profile: RequestedAndGranted {
            requested: granted.requested().to_string(),
            granted: granted.letters().to_string(),
        },
        shield: granted.shield_report.as_ref().map(ToString::to_string),
        memory_lock: RequestedAndGranted {
            requested: memory_lock,
            granted: memory_lock && granted.memory.is_granted(),
        },
        sub_devices: bus.sub_devices,
        output_bytes: bus.output_bytes,
        input_bytes: bus.input_bytes,
        link: bus.link,
        nic: nics.words(),
        frame_order: robot.cycle.frame_order.name().to_owned(),
        warnings,
    }
}

/// Conditions that make the numbers worse than they could be, each with its remedy.
fn warnings(machine: &Conditions, granted: &Grants, nics: &Nics) -> Vec<String> {
    let mut warnings: Vec<String> = granted.refusals().chain(granted.scheduled.note()).collect();
    warnings.extend_from_slice(nics.refused());
    if !machine.preempt_rt {
        warnings.push("the kernel is not a PREEMPT_RT one; install one for bounded latencies".to_owned());
    }
    if let Some(governor) = machine.governor.as_deref().filter(|&governor| governor != "performance") {
        warnings.push(format!("the CPU frequency governor is {governor}; set it to performance"));
    }
    warnings
}
