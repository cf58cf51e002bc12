# Runs in a fresh Debian in which /onbeat.deb lies: installs it, uses it as people do, and removes it. Prints what is wrong.
set -eu
mount -t proc proc /proc

is() { # WHAT FOUND EXPECTED
    [ "$2" = "$3" ] || { echo "$1: expected $3, found $2"; exit 1; }
}
owner() { stat -c '%a %U:%G' /usr/bin/onbeat; }
as() { # USER COMMAND...
    user=$1
    shift
    # setpriv has root's rights until it has become another program.
    setpriv --reuid="$user" --regid="$(id -g "$user")" --init-groups -- sh -c '"$@"' sh "$@"
}
real_time() { grep -q '^profile .*SCHED_FIFO.*, memory locked' "$1" || { cat "$1"; exit 1; }; }
capable() { setcap -q -v cap_net_raw,cap_sys_nice,cap_ipc_lock=ep /usr/bin/onbeat; }

dpkg -i /onbeat.deb
is 'state of the package' "$(dpkg-query -W -f '${db:Status-Abbrev}' onbeat)" 'ii '
is 'files that are not as packed' "$(dpkg --verify onbeat)" ''
is 'mode and owner' "$(owner)" '750 root:onbeat'
capable
is 'shell of the user onbeat' "$(getent passwd onbeat | cut -d: -f7)" /usr/sbin/nologin

# A member of the group has a cycle with a real-time priority and locked memory; nobody else starts the program.
useradd --create-home --groups onbeat member
cd /tmp
as member onbeat --version
as member onbeat check /usr/share/doc/onbeat/examples/first-drive.toml >/dev/null
as member onbeat run --cycles 100 --period 10ms --no-ipc >table
real_time table
# And so has the service's user, with the rights that the unit gives.
rights=-all,+net_raw,+sys_nice,+ipc_lock
setpriv --reuid=onbeat --regid=onbeat --init-groups --no-new-privs --inh-caps=$rights --ambient-caps=$rights \
    --bounding-set=$rights -- sh -c 'onbeat run --cycles 100 --period 10ms --no-ipc' >table
real_time table
is 'exit code of others' "$(as nobody /usr/bin/onbeat --version >/dev/null 2>&1 || echo $?)" 126
as nobody onbeat-ros2 --version
as member onbeat measure --help >/dev/null

for page in onbeat onbeat-run onbeat-sdo-read onbeat-measure-tuning onbeat-ros2; do
    gzip --test "/usr/share/man/man1/$page.1.gz"
done
bash -n /usr/share/bash-completion/completions/onbeat
grep -q '#compdef onbeat' /usr/share/zsh/vendor-completions/_onbeat
grep -q 'complete -c onbeat' /usr/share/fish/vendor_completions.d/onbeat.fish
grep -q 'Apache-2.0' /usr/share/doc/onbeat/copyright
grep -q 'def generate_launch_description' /usr/share/onbeat/launch/onbeat.launch.py

# As at an upgrade; whoever chose a mode keeps it.
dpkg -i /onbeat.deb >/dev/null
is 'mode after an upgrade' "$(owner)" '750 root:onbeat'
capable
dpkg-statoverride --add root root 0755 /usr/bin/onbeat
dpkg -i /onbeat.deb >/dev/null
is 'mode of the administrator' "$(owner)" '755 root:root'
dpkg-statoverride --remove /usr/bin/onbeat
as nobody onbeat --version >/dev/null
