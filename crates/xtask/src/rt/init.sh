#!/bin/busybox sh
# First process of the guest. The results go to the virtio port, whatever programs say otherwise to the log.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir /dev/shm /dev/mqueue
mount -t tmpfs tmpfs /dev/shm
mount -t mqueue mqueue /dev/mqueue
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tracefs tracefs /sys/kernel/tracing
for module in /lib/*.ko; do insmod "$module"; done
while ! [ -e /dev/vport*p1 ]; do sleep 0.1; done
exec 3>"$(echo /dev/vport*p1)"
result() { echo "@ $1" >&3; }
# Both ends of a cable.
cable() {
    echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
    ip link set lo up
    ip link add name near type veth
    ip link set near up
    ip link set veth0 name far
    ip link set far up
}
# Report and exit code of the doctor.
doctor() {
    result doctor
    onbeat doctor --cpu 1 --iface near --json >&3
    status=$?
    result doctor-exit
    echo $status >&3
}
# The robot's SubDevices at the far end, on CPU 0. At an ordinary priority: an emulated CPU can be too slow for the far end, and would have
# time for nothing else.
simulate() {
    sed "s/^profile = .*/profile = \"none\"/" /robot.toml >/tmp/simulated.toml
    taskset 1 onbeat simulate /tmp/simulated.toml --iface far &
    simulator=$!
    sleep 1
}
. /script
result end
exec 3>&-
sync
poweroff -f
