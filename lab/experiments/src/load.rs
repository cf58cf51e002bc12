//! Loads during a measurement, which use the machine while the cycle runs.
//!
//! Each is a loop in a separate process (`onbeat-measure load NAME`), at ordinary priority, on any
//! CPU, until it is stopped; it never outlives the experiment that started it ([`processes`]). All
//! are part of this program, so that they are the same on every machine and need no installation.
//!
//! | load | equivalent in the papers |
//! |---|---|
//! | [`cpu::run`] | CPU: a floating-point loop, no system calls |
//! | [`kernel_lock`] | K-lock: a reader of `/proc` at full speed, inside the kernel most of the time |
//! | [`block_io`] | IRQ: `dd` of 512-byte blocks with direct I/O, an interrupt for each |
//! | [`dd`] | file written and read, block by block |
//! | [`hackbench`] | hundreds of threads that send each other messages |
//! | [`ping`] | flood of echo requests on the loopback interface |
//! | [`du`] | walk over all files |
//! | [`cpu::copy`] | memory bandwidth: copies far larger than the caches |
//! | [`gpu`] | GPU: CUDA copies of 0.5 to 2.6 MB, from pinned and from ordinary memory |

pub mod block_io;
pub mod cpu;
pub mod dd;
pub mod du;
pub mod gpu;
pub mod hackbench;
pub mod kernel_lock;
pub mod ping;
pub mod processes;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use thiserror::Error;

pub use gpu::HostMemory;
pub use processes::Loads;

/// Load of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Load [`cpu::run`].
    Cpu,
    /// Load [`kernel_lock`].
    KernelLock,
    /// Load [`block_io`].
    BlockIo,
    /// Load [`cpu::copy`].
    Memory,
    /// Load [`cpu::copy`] for so many hundredths of the time.
    MemoryPart(u8),
    /// Load [`gpu`].
    Gpu(HostMemory),
    /// Load [`gpu`] with copies of one size, the place in [`gpu::SIZES`].
    GpuCopies(HostMemory, usize),
    /// Load [`dd`].
    Dd(Weight),
    /// Load [`hackbench`].
    Hackbench(Weight),
    /// Load [`ping`].
    Ping(Weight),
    /// Load [`du`].
    Du,
}

/// Weight of a load of the humanoid paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// The paper's parameters.
    Paper,
    /// Fewer bytes, threads and echoes, for small machines and CI.
    Light,
}

impl Load {
    /// All loads.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let gpus = [HostMemory::Both, HostMemory::Pinned, HostMemory::Pageable].map(Self::Gpu);
        let mut all = vec![Self::Cpu, Self::KernelLock, Self::BlockIo];
        all.extend(Self::MEMORY_SWEEP);
        all.extend(gpus.into_iter().chain(Self::gpu_sweep()));
        all.extend(Self::HUMANOID_PAPER);
        all.extend(Self::HUMANOID_LIGHT.into_iter().filter(|it| *it != Self::Du));
        all
    }

    /// Memory bandwidth, from little of it to all.
    pub const MEMORY_SWEEP: [Self; 5] = [
        Self::MemoryPart(10),
        Self::MemoryPart(25),
        Self::MemoryPart(50),
        Self::MemoryPart(75),
        Self::Memory,
    ];

    /// Copies of the master-performance paper's Figure 6, from the smallest to the largest, from
    /// pinned memory and not.
    pub fn gpu_sweep() -> impl Iterator<Item = Self> {
        let kinds = [HostMemory::Pinned, HostMemory::Pageable].into_iter();
        kinds.flat_map(|it| (0..gpu::SIZES.len()).map(move |size| Self::GpuCopies(it, size)))
    }

    /// Loads of the humanoid paper, which run at the same time.
    pub const HUMANOID_PAPER: [Self; 4] = Self::humanoid(Weight::Paper);

    /// The same kinds, lighter.
    pub const HUMANOID_LIGHT: [Self; 4] = Self::humanoid(Weight::Light);

    const fn humanoid(weight: Weight) -> [Self; 4] {
        [Self::Dd(weight), Self::Hackbench(weight), Self::Ping(weight), Self::Du]
    }

    /// Name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::KernelLock => "k-lock",
            Self::BlockIo => "irq",
            Self::Memory => "memory",
            Self::MemoryPart(part) => match part {
                ..=10 => "memory-10",
                11..=25 => "memory-25",
                26..=50 => "memory-50",
                51.. => "memory-75",
            },
            Self::GpuCopies(HostMemory::Pinned, size) => {
                ["gpu-pinned-0.5", "gpu-pinned-1.0", "gpu-pinned-1.5", "gpu-pinned-2.0", "gpu-pinned-2.6"]
                    [size]
            }
            Self::GpuCopies(_, size) => [
                "gpu-pageable-0.5",
                "gpu-pageable-1.0",
                "gpu-pageable-1.5",
                "gpu-pageable-2.0",
                "gpu-pageable-2.6",
            ][size],
            Self::Gpu(HostMemory::Both) => "gpu",
            Self::Gpu(HostMemory::Pinned) => "gpu-pinned",
            Self::Gpu(HostMemory::Pageable) => "gpu-pageable",
            Self::Dd(Weight::Paper) => "dd",
            Self::Dd(Weight::Light) => "dd-light",
            Self::Hackbench(Weight::Paper) => "hackbench",
            Self::Hackbench(Weight::Light) => "hackbench-light",
            Self::Ping(Weight::Paper) => "ping",
            Self::Ping(Weight::Light) => "ping-light",
            Self::Du => "du",
        }
    }

    /// Load of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|it| it.name() == name)
    }

    /// Description in a few words.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Cpu => "a floating-point loop",
            Self::KernelLock => "a reader of /proc at full speed",
            Self::BlockIo => "512-byte blocks with direct I/O",
            Self::Memory => "copies of 64 MiB from memory to memory",
            Self::MemoryPart(_) => {
                "copies of 64 MiB from memory to memory, for so many hundredths of the time"
            }
            Self::GpuCopies(HostMemory::Pinned, _) => "CUDA copies of so many MB from pinned memory",
            Self::GpuCopies(..) => "CUDA copies of so many MB from memory that is not pinned",
            Self::Gpu(HostMemory::Both) => "CUDA copies of 0.5 to 2.6 MB, pinned and not, in turn",
            Self::Gpu(HostMemory::Pinned) => "CUDA copies of 0.5 to 2.6 MB from pinned memory",
            Self::Gpu(HostMemory::Pageable) => {
                "CUDA copies of 0.5 to 2.6 MB from memory that is not pinned"
            }
            Self::Dd(Weight::Paper) => {
                "1.05 GB of zeros written to a file, in 1024 blocks, again and again"
            }
            Self::Dd(Weight::Light) => "32 MiB written, brought to the disk, and read again",
            Self::Hackbench(Weight::Paper) => {
                "800 threads in 20 groups that send each other messages, restarted every 5 s"
            }
            Self::Hackbench(Weight::Light) => "400 threads that send each other messages",
            Self::Ping(Weight::Paper) => {
                "100 000 echo requests on the loopback interface at once, then as fast as they are answered"
            }
            Self::Ping(Weight::Light) => {
                "echo requests on the loopback interface as fast as they are answered"
            }
            Self::Du => "a walk over every file there is",
        }
    }

    /// Runs the load until `stop` is set; its files go below `directory`.
    ///
    /// # Errors
    /// The machine lacks a requirement of the load, which the error names.
    pub fn run(self, directory: &Path, stop: &AtomicBool) -> Result<Done, LoadError> {
        match self {
            Self::Cpu => Ok(cpu::run(stop)),
            Self::KernelLock => kernel_lock::run(stop),
            Self::BlockIo => block_io::run(directory, stop),
            Self::Memory => Ok(cpu::copy(100, stop)),
            Self::MemoryPart(part) => Ok(cpu::copy(part, stop)),
            Self::Gpu(memory) => gpu::run(memory, &gpu::SIZES, stop),
            Self::GpuCopies(memory, size) => gpu::run(memory, &gpu::SIZES[size..=size], stop),
            Self::Dd(weight) => dd::run(weight, directory, stop),
            Self::Hackbench(weight) => hackbench::run(weight, stop),
            Self::Ping(weight) => ping::run(weight, stop),
            Self::Du => Ok(du::run(stop)),
        }
    }
}

/// Amount of work done by a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Number of units.
    pub count: u64,
    /// Name of the unit, in the plural: `blocks of 512 bytes`.
    pub what: &'static str,
}

/// Reason why this machine cannot run a load.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct LoadError(pub(crate) String);

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn load_names_are_unique() {
        for load in Load::all() {
            assert_eq!(Load::named(load.name()), Some(load));
        }
        assert_eq!(Load::named("coffee"), None);
    }

    /// Work done by a load when it is stopped; more time is given to one that is still starting,
    /// for example on a busy disk.
    fn done_in_time(load: Load, directory: &Path) -> Result<Done, LoadError> {
        let mut timeout = Duration::from_millis(300);
        loop {
            let stop = AtomicBool::new(false);
            let done = thread::scope(|scope| {
                let running = scope.spawn(|| load.run(directory, &stop));
                thread::sleep(timeout);
                stop.store(true, Ordering::Relaxed);
                running.join().expect("no panic")
            });
            timeout *= 4;
            let idle = done.as_ref().is_ok_and(|done| done.count == 0);
            if !idle || timeout > Duration::from_secs(30) {
                return done;
            }
        }
    }

    // feature(measure): loads of our own
    #[test]
    fn every_load_works_until_stopped() {
        let directory = std::env::temp_dir();
        let loads = [Load::Cpu, Load::KernelLock, Load::BlockIo, Load::MemoryPart(10), Load::Memory];
        for load in loads.into_iter().chain(Load::HUMANOID_LIGHT) {
            match done_in_time(load, &directory) {
                Ok(done) => assert!(done.count > 0, "{load:?}: {done:?}"),
                // No direct I/O on the file system; no right to raw sockets.
                Err(error) if matches!(load, Load::BlockIo | Load::Ping(_)) => {
                    testkit::skip!("{error}")
                }
                Err(error) => panic!("{load:?}: {error}"),
            }
        }
        let left = std::fs::read_dir(&directory).expect("the folder").flatten();
        let left = left.filter(|it| it.file_name().to_string_lossy().starts_with("onbeat-blocks-"));
        let own = format!("-{}", std::process::id());
        assert!(!left.into_iter().any(|it| it.file_name().to_string_lossy().ends_with(&own)));
    }
}
