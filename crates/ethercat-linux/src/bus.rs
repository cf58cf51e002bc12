//! A bus to read, write and run, without a robot file.

mod error;
mod report;
mod run;
mod sub_device;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ethercat::link::Segment;
use ethercat::main_device::{CableEnd, Configuration, MainDevice, Output, SubDevice, ring_break};
use ethercat::pdo::{Pdo, ProcessValue};
use ethercat::redundancy::Ring;
use ethercat::sii::Identity;
use rt::clock::MonotonicClock;

use crate::bring_up::{BRING_UP_TIMEOUT, BringUpError, Pump};
use crate::link::{InterfaceLink, Link, LinkKind, PacketLink, Redundant, RingError, SimulatedLink};

pub use error::{Error, SdoError};
pub use report::{RunFinding, RunReport};
pub use run::Io;
pub use sub_device::SubDeviceOnBus;

/// An EtherCAT segment and its MainDevice, for programs that block: [`Bus::bring_up`] takes it to
/// PreOp, [`Bus::run`] to Op.
///
/// | state | available calls |
/// |---|---|
/// | Init | [`Bus::bring_up`] |
/// | PreOp | [`Bus::sub_devices`], SDOs and process data by [`Bus::subdevice`], [`Bus::set_safe`] |
/// | Op | within [`Bus::run`]: process data by [`Io`] |
///
/// The bus goes back to Init at the end of each run and on drop. Any number of buses can exist in
/// parallel, each on a separate link, and each runs on the thread that calls it. The bus creates no
/// thread but its link's, and no signal handler or global. The caller sets the scheduling of that
/// thread before [`Bus::run`]. Without a real-time priority a run is late by milliseconds; a
/// dedicated CPU and locked memory are set the same way ([`rt::scheduling`]):
///
/// ```no_run
/// use onbeat_ethercat_linux::rt::scheduling::{Scheduling, schedule};
/// if let Err(refused) = schedule(Scheduling::Fifo { priority: 80 }) {
///     eprintln!("without real-time priority: {refused}");
/// }
/// ```
pub struct Bus {
    link: Box<dyn Link + Send>,
    /// True if other MainDevices can reach the SubDevices.
    public: bool,
    main_device: Option<MainDevice>,
    /// Outputs of each SubDevice for the time after the last cycle.
    safe: Vec<Vec<u8>>,
    /// The SubDevices and outputs that `safe` is for.
    safe_for: Vec<(Identity, Vec<Pdo>)>,
    stop: StopHandle,
    /// Runs continue while SubDevices stay out of Op.
    continues: bool,
}

impl Bus {
    /// A bus at a network interface, which no other program of Onbeat may have. Needs CAP_NET_RAW.
    ///
    /// # Errors
    /// [`Error::Open`], with a remedy.
    pub fn open(interface: &str) -> Result<Self, Error> {
        Self::open_by(interface, LinkKind::Packet)
    }

    /// The same, by another kind of link; AF_XDP needs CAP_BPF and CAP_NET_ADMIN, too.
    ///
    /// # Errors
    /// [`Error::Open`], with a remedy.
    pub fn open_by(interface: &str, kind: LinkKind) -> Result<Self, Error> {
        let link = InterfaceLink::open_as_owner(interface, kind, PacketLink::CARRIER_TIMEOUT, DOING)?;
        let mut bus = Self::on(link);
        bus.public = true;
        Ok(bus)
    }

    /// A bus that is a ring: its first IN at one interface, its last OUT at a second one. Any one
    /// cable may break and heal while it runs, and may be broken at the start ([`Link::ring`]).
    ///
    /// ```no_run
    /// use onbeat_ethercat_linux::{Bus, Configuration};
    ///
    /// let mut bus = Bus::open_ring("enp2s0", "enp3s0")?;
    /// bus.bring_up(&Configuration::scan())?;
    /// println!("{} SubDevices; {:?}", bus.sub_devices().len(), bus.ring_break());
    /// # Ok::<(), onbeat_ethercat_linux::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Open`], with a remedy; [`Error::Ring`] if the interfaces are not the ends of one
    /// ring.
    pub fn open_ring(first: &str, second: &str) -> Result<Self, Error> {
        Self::open_ring_by(first, second, LinkKind::Packet)
    }

    /// The same, by another kind of link.
    ///
    /// # Errors
    /// The errors of [`Bus::open_ring`].
    pub fn open_ring_by(first: &str, second: &str, kind: LinkKind) -> Result<Self, Error> {
        if first == second {
            return Err(RingError::SameInterface { interface: first.to_owned() }.into());
        }
        let timeout = PacketLink::CARRIER_TIMEOUT;
        let (one, other) = InterfaceLink::open_ring([first, second], kind, timeout, DOING)?;
        let mut ring = Redundant::new(one, other);
        ring.check([first, second])?;
        let mut bus = Self::on(ring);
        bus.public = true;
        Ok(bus)
    }

    /// Both ends of the cable at which its ring is open; `None` if the ring is closed, or the bus
    /// is no ring or not up.
    #[must_use]
    pub fn ring_break(&self) -> Option<[CableEnd; 2]> {
        match self.link.ring()? {
            Ring::Open { before } if !self.sub_devices().is_empty() => {
                Some(ring_break(self.sub_devices(), before))
            }
            Ring::Open { .. } | Ring::Closed | Ring::Turned => None,
        }
    }

    /// A bus of simulated SubDevices, on a thread of their own.
    #[must_use]
    pub fn simulated(segment: impl Segment + 'static) -> Self {
        Self::on(SimulatedLink::new(segment))
    }

    /// A bus on a custom link: one with faults, a capture, another kind of wire. It does not listen
    /// for other MainDevices on that wire, so it can take an interface's SubDevices from them;
    /// [`Bus::open`] does not.
    #[must_use]
    pub fn on(link: impl Link + Send + 'static) -> Self {
        let (main_device, stop) = (None, StopHandle::default());
        Self {
            link: Box::new(link),
            public: false,
            main_device,
            safe: Vec::new(),
            safe_for: Vec::new(),
            continues: false,
            stop,
        }
    }

    /// Brings the bus to PreOp: counts and identifies the SubDevices, configures them, resolves
    /// their process data. A bus that is up goes to Init first. Blocks as long as the SubDevices
    /// take, which may be seconds.
    ///
    /// Sets the clocks' epoch and the first generation number if they are 0 in `configuration`.
    ///
    /// # Errors
    /// On failure the bus has been taken back to Init.
    pub fn bring_up(&mut self, configuration: &Configuration) -> Result<(), Error> {
        self.take_down();
        let mut configuration = configuration.clone();
        if configuration.system_time_at_epoch == 0 {
            configuration.system_time_at_epoch = MonotonicClock::system_time_at_epoch();
        }
        if configuration.first_generation == 0 {
            configuration.first_generation = fastrand::u32(1..);
        }
        self.main_device = Some(MainDevice::new(configuration)?);
        let public = self.public;
        let reached = self.pump(|pump| {
            if public {
                pump.listen()?;
            }
            pump.bring_up(BRING_UP_TIMEOUT, |_| ())
        });
        if let Err(error) = reached {
            self.main_device = None;
            if matches!(error, Error::BringUp(BringUpError::Stopped)) {
                self.stop.forget();
            }
            return Err(error);
        }
        self.keep_safe();
        Ok(())
    }

    /// The SubDevices found, in the order of the cable; empty before [`Bus::bring_up`].
    #[must_use]
    pub fn sub_devices(&self) -> &[SubDevice] {
        self.main_device.as_ref().map_or(&[], MainDevice::sub_devices)
    }

    /// The SubDevice at this place, from 0.
    pub fn subdevice(&mut self, position: usize) -> SubDeviceOnBus<'_> {
        SubDeviceOnBus { bus: self, position }
    }

    /// The value that an output has when a run ends, until Init takes it away. Zero unless it is
    /// set.
    ///
    /// It stays from run to run, as long as [`Bus::bring_up`] finds the same SubDevices (serial
    /// numbers included) in the same places, with the same outputs. If one of them differs, all
    /// safe values of the bus are zero again: set them after each [`Bus::bring_up`] that may find
    /// another bus.
    pub fn set_safe<T: ProcessValue>(&mut self, output: Output<T>, value: T) {
        if let Some(image) = self.safe.get_mut(output.position()) {
            output.field().set(image, value);
        }
    }

    /// Keeps the safe values on the same bus; on another one they are zero.
    fn keep_safe(&mut self) {
        let outputs = |it: &SubDevice| (it.identity, it.mapping.outputs.clone());
        let found: Vec<_> = self.sub_devices().iter().map(outputs).collect();
        if found != self.safe_for {
            self.safe = self.sub_devices().iter().map(|it| vec![0; it.output_bytes()]).collect();
            self.safe_for = found;
        }
    }

    /// The same bus; its runs continue while SubDevices stay out of Op. Otherwise [`Bus::run`] ends
    /// with [`Error::OutOfOp`] after a second.
    #[must_use]
    pub fn continue_out_of_op(mut self) -> Self {
        self.continues = true;
        self
    }

    /// A handle that ends [`Bus::run`] and [`Bus::bring_up`] from another thread.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Works on the bus without a cycle.
    fn pump<T>(
        &mut self,
        work: impl FnOnce(&mut Pump<'_, dyn Link + Send, MonotonicClock>) -> Result<T, BringUpError>,
    ) -> Result<T, Error> {
        let main_device = self.main_device.as_mut().ok_or(Error::NotUp)?;
        let stop = &self.stop.requested;
        Ok(work(&mut Pump { main_device, link: &mut *self.link, clock: &MonotonicClock, stop })?)
    }

    /// To Init, also after errors on the way.
    fn take_down(&mut self) {
        // A bus that does not answer has its watchdogs.
        let _ = self.pump(|pump| pump.take_down());
        self.main_device = None;
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.take_down();
    }
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus").field("sub_devices", &self.sub_devices().len()).finish_non_exhaustive()
    }
}

/// Shown to other programs that want the interface.
const DOING: &str = "a program with its own bus";

/// Ends a run from any thread, or from a signal handler of the program's own.
#[derive(Clone, Debug, Default)]
pub struct StopHandle {
    requested: Arc<AtomicBool>,
}

impl StopHandle {
    /// Ends the current bring-up or run, or else the next one. Each takes one request, and only if
    /// the request ended it: one that arrives as it ends, or fails for another reason, is left to
    /// the next.
    pub fn stop(&self) {
        // Relaxed here and below: nothing but the flag itself is passed through it.
        self.requested.store(true, Ordering::Relaxed);
    }

    fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    fn forget(&self) {
        self.requested.store(false, Ordering::Relaxed);
    }
}
