# Boots the Debian in the folder $1: systemd as process 1 of namespaces of its own, with a control group of its own. Ends when it powers off.
set -eu
root=$1

if [ -z "${GROUPED:-}" ]; then
    groups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
    # Those of others that were killed.
    for left in "$groups"/onbeat-boot-*; do
        find "$left" -depth -type d -exec rmdir {} + 2>/dev/null || true
    done
    mkdir "$groups/onbeat-boot-$$"
    echo $$ >"$groups/onbeat-boot-$$/cgroup.procs"
    GROUPED=yes setpriv --pdeathsig KILL unshare --cgroup --mount --net --uts --ipc --pid --fork --kill-child sh "$0" "$root" || true
    # Out of it again, to remove it with those that systemd has made.
    echo $$ >"$groups/cgroup.procs"
    find "$groups/onbeat-boot-$$" -depth -type d -exec rmdir {} +
    exit 0
fi

hostname onbeat-test
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null:3 zero:5 full:7 random:8 urandom:9; do
    mknod -m 666 "$root/dev/${device%:*}" c 1 "${device#*:}"
done
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
exec env -i container=onbeat PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" /lib/systemd/systemd
