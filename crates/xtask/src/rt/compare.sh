# One CPU in virtual time: the papers' experiments, briefly, on a cable and a disk of their own.
cable
result kernel
uname -srv >&3
for module in /root/disk-*.ko; do insmod "$module"; done
mkdir /mnt
mke2fs /dev/vda >/dev/null
mount -t ext4 /dev/vda /mnt || mount -t tmpfs tmpfs /mnt

# An experiment by name, with its options.
measure() {
    name=$1
    onbeat measure "$@" --out "/mnt/$name" --json >/tmp/report 2>/tmp/said
    status=$?
    result "$name-said"
    cat /tmp/said >&3
    echo "exit code $status" >&3
    result "$name-report"
    cat /tmp/report >&3
    echo "$name: $(cat /proc/uptime)" >/dev/console
    rm -rf "/mnt/$name"
}

