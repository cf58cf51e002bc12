//! Checks of the bus's interface for other users.

use super::nic::{file, interface};
use super::{Area, Check, Finding, Subject};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "nic-addresses",
        area: Area::Nic,
        wanted: "no IPv4",
        why: "An interface with an address is part of a network: the kernel sends ARP and the \
            traffic of programs between the bus's frames.",
        look: addresses,
    },
    Check {
        name: "nic-ipv6",
        area: Area::Nic,
        wanted: "no IPv6",
        why: "An interface with IPv6 sends its own multicast (router and neighbour solicitation), \
            which SubDevices pass on through the whole ring.",
        look: ipv6,
    },
    Check {
        name: "nic-network-manager",
        area: Area::Nic,
        wanted: "unmanaged",
        why: "NetworkManager and systemd-networkd request addresses (DHCP) on every interface they \
            manage, repeatedly, and take the link down to do so.",
        look: managers,
    },
    Check {
        name: "nic-bridge",
        area: Area::Nic,
        wanted: "in no bridge or bond",
        why: "A bridge sends other stations' frames onto the bus, and the bus's into the network.",
        look: bridge,
    },
    Check {
        name: "nic-other-sockets",
        area: Area::Nic,
        wanted: "none",
        why: "A program with a raw socket gets a copy of each frame, or sends its own: a second MainDevice, a sniffer, \
              LLDP, DHCP.",
        look: sockets,
    },
];

fn addresses(check: &Check, subject: &Subject) -> Finding {
    let name = interface(subject);
    // An address adds a route to its own network (proc_net(5)): name, destination, gateway.
    let routes = subject.root.text("/proc/net/route").unwrap_or_default();
    let route = routes.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next()? == name).then(|| words.next().unwrap_or_default().to_owned())
    });
    match route {
        None => check.ok("none"),
        Some(route) => check.warning(
            format!("routes, as to {}", dotted(&route)),
            format!("ip address flush dev {name}, and take {name} out of the network's configuration."),
        ),
    }
}

/// Dotted notation of an IPv4 address: the kernel writes it as a hexadecimal number in the
/// machine's byte order.
fn dotted(address: &str) -> String {
    u32::from_str_radix(address, 16).map_or_else(
        |_| address.to_owned(),
        |number| std::net::Ipv4Addr::from(number.to_ne_bytes()).to_string(),
    )
}

fn ipv6(check: &Check, subject: &Subject) -> Finding {
    let name = interface(subject);
    let text = subject.root.text("/proc/net/if_inet6").unwrap_or_default();
    // Fields: address, interface number, prefix, scope (20: link-local), flags, name.
    let scopes: Vec<&str> = text
        .lines()
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>())
        .filter(|words| words.len() >= 6 && words[5] == name)
        .map(|words| words[3])
        .collect();
    if scopes.is_empty() {
        return check.ok("none");
    }
    let switch = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
    let finding = check.warning(
        match scopes.len() {
            1 => "an address".to_owned(),
            count => format!("{count} addresses"),
        },
        format!("sysctl net.ipv6.conf.{name}.disable_ipv6=1"),
    );
    // Link-local addresses come back by themselves; others would be lost by switching the interface
    // off and on.
    match scopes.iter().all(|scope| *scope == "20") {
        true => finding.writing(switch, "1"),
        false => finding,
    }
}

fn managers(check: &Check, subject: &Subject) -> Finding {
    let name = interface(subject);
    let Some(index) = subject.root.number(file(subject, "ifindex")) else {
        return check.ok("none to be seen");
    };
    let says = |path: String, words: &[&str]| {
        let text = subject.root.text(path).unwrap_or_default();
        text.lines().any(|line| words.contains(&line.trim()))
    };
    if says(format!("/run/NetworkManager/devices/{index}"), &["managed=true", "managed=full", "managed=1"])
    {
        return check.warning(
            "managed by NetworkManager",
            format!(
                "nmcli device set {name} managed no; for good, in /etc/NetworkManager/conf.d/onbeat.conf: [keyfile] \
                 unmanaged-devices=interface-name:{name}"
            ),
        );
    }
    let states = ["ADMIN_STATE=configured", "ADMIN_STATE=configuring", "ADMIN_STATE=pending"];
    if says(format!("/run/systemd/netif/links/{index}"), &states) {
        return check.warning(
            "managed by systemd-networkd",
            format!("In /etc/systemd/network/05-onbeat.network: [Match] Name={name}, [Link] Unmanaged=yes"),
        );
    }
    check.ok("unmanaged")
}

fn bridge(check: &Check, subject: &Subject) -> Finding {
    let name = interface(subject);
    match subject.root.link_name(file(subject, "master")) {
        None => check.ok("in none"),
        Some(master) => check.critical(format!("in {master}"), format!("ip link set {name} nomaster")),
    }
}

fn sockets(check: &Check, subject: &Subject) -> Finding {
    let Some(index) = subject.root.number(file(subject, "ifindex")) else {
        return check.ok("none to be seen");
    };
    let text = subject.root.text("/proc/net/packet").unwrap_or_default();
    // Fields: sk RefCnt Type Proto Iface R Rmem User Inode; interface 0 means all.
    let others = text.lines().skip(1).filter(|line| {
        let at = line.split_ascii_whitespace().nth(4).and_then(|word| word.parse::<i64>().ok());
        at.is_some_and(|at| at == index || at == 0)
    });
    match others.count() {
        0 => check.ok("none"),
        count => check.warning(
            match count {
                1 => "a raw socket".to_owned(),
                _ => format!("{count} raw sockets"),
            },
            "List these programs (ss -0 -p) and stop them: LLDP and DHCP daemons, sniffers, \
             another MainDevice.",
        ),
    }
}
