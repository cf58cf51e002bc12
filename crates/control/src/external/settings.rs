//! Priority and CPU of a controller process.

use std::fmt;
use std::io;

use machine::cpus::Cpus;
use machine::task;
use rt::scheduling::{self, Scheduling};
use thiserror::Error;

/// Scheduling of the thread that runs a controller process; unchanged by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessSettings {
    /// SCHED_FIFO priority, 1 to 99: below the cycle's, which the robot file sets.
    pub priority: Option<u8>,
    /// CPU that the thread is bound to: not the cycle's.
    pub cpu: Option<usize>,
}

/// Reason for which the thread keeps another scheduling than was requested.
#[derive(Error)]
#[error("the {what} of the controller process was refused ({source}): {remedy}")]
pub struct Refused {
    what: String,
    remedy: &'static str,
    source: io::Error,
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl ProcessSettings {
    /// Gives the calling thread this priority and CPU; unset values stay.
    ///
    /// # Errors
    /// [`Refused`]: the priority needs CAP_SYS_NICE or a limit (`ulimit -r`), and the CPU must be
    /// online and allowed.
    pub fn apply(&self) -> Result<(), Refused> {
        if let Some(cpu) = self.cpu {
            let remedy = "name a CPU that is online and that this process may use";
            task::set_affinity(task::current(), &Cpus::one(cpu)).map_err(|source| Refused {
                what: format!("CPU {cpu}"),
                remedy,
                source,
            })?;
        }
        if let Some(priority) = self.priority {
            let remedy = "use 1 to 99, and grant CAP_SYS_NICE or raise its limit (`ulimit -r`)";
            scheduling::schedule(Scheduling::Fifo { priority }).map_err(|source| Refused {
                what: format!("priority {priority}"),
                remedy,
                source,
            })?;
        }
        Ok(())
    }
}

/// True if the calling thread runs before ordinary threads.
#[must_use]
pub fn is_real_time() -> bool {
    scheduling::attributes().is_ok_and(|it| it.is_real_time())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_without_settings_stays_ordinary() {
        let found = thread::spawn(|| (ProcessSettings::default().apply().is_ok(), is_real_time())).join();
        assert_eq!(found.unwrap(), (true, false));
    }

    #[test]
    fn a_refused_setting_is_named_with_its_remedy() {
        let refused = |settings: ProcessSettings| thread::spawn(move || settings.apply()).join().unwrap();
        let priority =
            refused(ProcessSettings { priority: Some(100), ..ProcessSettings::default() }).unwrap_err();
        let sentence = priority.to_string();
        assert!(
            sentence.starts_with("the priority 100 of the controller process was refused ("),
            "{sentence}"
        );
        assert!(sentence.contains("CAP_SYS_NICE"), "{sentence}");
        let cpu = refused(ProcessSettings { cpu: Some(1000), ..ProcessSettings::default() }).unwrap_err();
        assert!(cpu.to_string().starts_with("the CPU 1000 of"), "{cpu}");
    }

    #[test]
    fn a_thread_gets_its_priority_and_its_cpu() {
        let cpu = task::affinity(task::current()).unwrap().last().unwrap();
        let found = thread::spawn(move || {
            let granted = ProcessSettings { priority: Some(5), cpu: Some(cpu) }.apply();
            (granted, task::affinity(task::current()).unwrap(), is_real_time())
        });
        let (granted, affinity, real_time) = found.join().unwrap();
        assert_eq!(affinity, Cpus::one(cpu));
        match granted {
            Ok(()) => assert!(real_time),
            Err(refused) => testkit::skip!("{refused}"),
        }
    }
}
