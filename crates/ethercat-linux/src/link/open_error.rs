//! Reasons that an interface could not be opened.

use std::io;

use thiserror::Error;

use super::lock::Owner;

/// Reason that an interface could not be opened.
#[non_exhaustive]
#[derive(Error)]
pub enum OpenError {
    /// No interface has this name.
    #[error("interface {interface}: no interface has this name; name one of: {present}")]
    NoSuchInterface {
        /// The requested name.
        interface: String,
        /// The names there are.
        present: String,
    },
    /// The name is empty.
    #[error("the name of the interface is empty, expected one of: {present}")]
    NoName {
        /// The names there are.
        present: String,
    },
    /// The loopback interface of this machine.
    #[error(
        "interface {interface}: it is this machine's loopback interface, on which there is no EtherCAT device; name the one with \
         the cable to the first SubDevice, one of: {present}"
    )]
    Loopback {
        /// The interface.
        interface: String,
        /// The names there are.
        present: String,
    },
    /// The process may not open raw sockets.
    #[error(
        "interface {interface}: sending EtherCAT frames needs the capability CAP_NET_RAW; run as \
         root, or give it once with `sudo setcap cap_net_raw,cap_sys_nice,cap_ipc_lock+ep` and the \
         program's path, after `chown root:GROUP` and `chmod 750`: every user with the right to \
         start it can control the bus"
    )]
    NotPermitted {
        /// The interface.
        interface: String,
    },
    /// Another process is the MainDevice at this interface.
    #[error("interface {interface}: {owner} has it; end that, or attach to its IPC: `onbeat top`")]
    Held {
        /// The interface.
        interface: String,
        /// The process.
        owner: Owner,
    },
    /// The interface is administratively down.
    #[error("interface {interface}: it is down; bring it up with `sudo ip link set {interface} up`")]
    InterfaceDown {
        /// The interface.
        interface: String,
    },
    /// The interface takes no frames of the greatest length.
    #[error(
        "interface {interface}: its MTU is {mtu} bytes, expected at least 1500, as of the longest EtherCAT frame; set it with \
         `sudo ip link set {interface} mtu 1500`"
    )]
    SmallMtu {
        /// The interface.
        interface: String,
        /// Its MTU, bytes.
        mtu: usize,
    },
    /// The interface is up and has no carrier.
    #[error(
        "interface {interface}: no carrier; plug the cable into the IN port of the first SubDevice and power it"
    )]
    NoCarrier {
        /// The interface.
        interface: String,
    },
    /// The kernel cannot hide a socket's own frames from it.
    #[error(
        "interface {interface}: this kernel shows a raw socket its own frames (PACKET_IGNORE_OUTGOING is \
         missing); use Linux 4.20 or later"
    )]
    KernelTooOld {
        /// The interface.
        interface: String,
    },
    /// The process may not attach XDP programs.
    #[error(
        "interface {interface}: AF_XDP needs the capabilities CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW, and this program \
         lacks one; run as root, or give them once with `sudo setcap \
         cap_net_raw,cap_net_admin,cap_bpf,cap_sys_nice,cap_ipc_lock+ep` and the program's path, or use a packet \
         socket (--link packet)"
    )]
    XdpNotPermitted {
        /// The interface.
        interface: String,
    },
    /// Another XDP program or AF_XDP socket is there.
    #[error(
        "interface {interface}: another program has an XDP program or AF_XDP socket there, \
         expected none; `ip link show {interface}` and `bpftool net` show it: end its program, or \
         use a packet socket (--link packet)"
    )]
    XdpTaken {
        /// The interface.
        interface: String,
    },
    /// The driver runs no XDP programs, or not with the interface as it is set up.
    #[error("interface {interface}: its driver takes no XDP program ({source}), expected one that does")]
    XdpNotInDriver {
        /// The interface.
        interface: String,
        /// The driver's error.
        source: io::Error,
    },
    /// The kernel has no AF_XDP, or not all of it.
    #[error(
        "interface {interface}: this kernel has no AF_XDP, or an old one ({source}), expected Linux 5.9 or later with \
         CONFIG_XDP_SOCKETS; use a packet socket (--link packet)"
    )]
    XdpUnsupported {
        /// The interface.
        interface: String,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel polls no drivers for its sockets.
    #[error(
        "interface {interface}: this kernel lets no program poll a driver, expected Linux 5.11 or later with \
         CONFIG_NET_RX_BUSY_POLL, which kernels with PREEMPT_RT and netconsole have not; wait for frames (--link xdp)"
    )]
    XdpNoPolling {
        /// The interface.
        interface: String,
    },
    /// The interface has more queues than are served.
    #[error(
        "interface {interface}: it has more than {most} queues, expected at most {most}, one \
         socket for each; `sudo ethtool -L {interface} combined 1` leaves one"
    )]
    XdpQueues {
        /// The interface.
        interface: String,
        /// The number of queues that can be served.
        most: u32,
    },
    /// The frames' memory may not be locked.
    #[error(
        "interface {interface}: the memory of AF_XDP's frames is more than this program may lock; it needs the capability \
         CAP_IPC_LOCK or a higher `ulimit -l`"
    )]
    XdpMemory {
        /// The interface.
        interface: String,
    },
    /// Anything else the operating system said of AF_XDP.
    #[error(
        "interface {interface}: the operating system refused AF_XDP: {source}; use a packet socket (--link packet)"
    )]
    XdpRefused {
        /// The interface.
        interface: String,
        /// The system's error.
        source: io::Error,
    },
    /// Anything else the operating system said.
    #[error("interface {interface}: the operating system refused a raw socket: {source}")]
    Refused {
        /// The interface.
        interface: String,
        /// The system's error.
        source: io::Error,
    },
}

ethercat::debug_is_sentence!(OpenError);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::link::PacketLink;

    #[test]
    fn remedies_for_missing_rights_match_the_docs() {
        let error = OpenError::NotPermitted { interface: "x".into() }.to_string();
        let readme = include_str!("../../../../README.md");
        for part in
            ["sudo setcap cap_net_raw,cap_sys_nice,cap_ipc_lock+ep ", "chown root:GROUP", "chmod 750"]
        {
            assert!(error.contains(part.trim_end()) && readme.contains(part), "{part}: {error}");
        }
        let error = OpenError::XdpNotPermitted { interface: "x".into() }.to_string();
        let page = include_str!("../../../../docs/links.md");
        let part = "sudo setcap cap_net_raw,cap_net_admin,cap_bpf,cap_sys_nice,cap_ipc_lock+ep";
        assert!(error.contains(part) && page.contains(part), "{error}");
    }

    #[test]
    fn missing_interface_error_lists_the_present_ones() {
        let error = PacketLink::open("nonesuch0", Duration::ZERO).unwrap_err().to_string();
        assert!(
            error.starts_with("interface nonesuch0: no interface has this name; name one of: "),
            "{error}"
        );
        assert!(error.contains("lo"), "{error}");
        let error = PacketLink::open("a\0b", Duration::ZERO).unwrap_err();
        assert!(matches!(error, OpenError::NoSuchInterface { .. }));
        let error = PacketLink::open("", Duration::ZERO).unwrap_err().to_string();
        assert!(error.starts_with("the name of the interface is empty, expected one of: "), "{error}");
    }

    /// The loopback interface has no cable: a MainDevice is refused there, if it may open sockets
    /// at all.
    #[test]
    fn loopback_interface_is_refused_with_a_remedy() {
        let error = PacketLink::open_as_owner("lo", Duration::ZERO, "a test").unwrap_err();
        let is_refused_before =
            matches!(error, OpenError::NotPermitted { .. } | OpenError::InterfaceDown { .. });
        let error = error.to_string();
        let told = error.contains("loopback interface, on which there is no EtherCAT device");
        assert!(is_refused_before || told, "{error}");
    }
}
