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
. /script
result end
exec 3>&-
sync
poweroff -f
