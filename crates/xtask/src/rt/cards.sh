# Links on true drivers: two cards of each driver, with a cable between them; and a ring over the first pair and the last.

result kernel
uname -srv >&3

for module in /root/card-*.ko; do insmod "$module"; done
driver() { basename "$(readlink /sys/class/net/$1/device/driver)"; }
result drivers
cards=0
while [ -e /sys/class/net/eth$cards ]; do
    ip link set eth$cards up
    echo "eth$cards $(driver eth$cards)" >&3
    cards=$((cards + 1))
done

carrier() { tries=0; until [ "$(cat /sys/class/net/$1/carrier)" = 1 ] || [ $tries -ge 60 ]; do tries=$((tries + 1)); sleep 0.5; done; }
# Settings as the kernel's files show them: a look beside the doctor's.
settings() {
    for file in gro_flush_timeout napi_defer_hard_irqs threaded device/power/control; do
        echo "$file $(cat /sys/class/net/$1/$file)"
    done
    echo "IPv6 $(grep -c " $1\$" /proc/net/if_inet6)"
    for handler in /proc/irq/*/"$1"* /proc/irq/*/$(basename "$(readlink /sys/class/net/$1/device)")-*; do
        if [ -d "$handler" ]; then echo "$(basename "$handler") CPUs $(cat "${handler%/*}/smp_affinity_list")"; fi
    done
    awk -v name="irq/[0-9]*-$1" '$2 ~ name { print $2, "priority", $40 }' /proc/[0-9]*/stat 2>/dev/null
}
# The doctor mends the near card of each pair and puts it back. Two settings are spoiled that a fresh machine has right.
card=0
while [ $card -lt $cards ]; do
    near=eth$card
    kind=$(driver $near)
    echo 20000 >/sys/class/net/$near/gro_flush_timeout
    echo auto >/sys/class/net/$near/device/power/control
    for when in before during after; do
        carrier $near
        sleep 1
        case $when in during) fix=--fix ;; *) fix= ;; esac
        result "doctor-$when-$kind"
        onbeat doctor --iface $near --cpu 1 --nic-cpu 0 --json $fix >&3 2>>/tmp/doctor
        result "settings-$when-$kind"
        settings $near >&3
        if [ $when = during ]; then onbeat doctor --restore >>/tmp/doctor 2>&1; fi
    done
    card=$((card + 2))
done
result doctor-said
cat /tmp/doctor >&3

chmod +x /root/cards
card=0
while [ $card -lt $cards ]; do
    result "$(driver eth$card)"
    # Each time its link is lost igb takes seconds to have it again.
    ONBEAT_TEST_CARDS="eth$card eth$((card + 1))" timeout 240 /root/cards --test-threads 1 --nocapture >&3 2>&1
    card=$((card + 2))
done

# The near cards are the MainDevice's, the far ones the SubDevices'. At ordinary priorities: emulated CPUs are slow.
near=eth0
second=eth$((cards - 2))
result ring
echo "$(driver $near) and $(driver $second)" >&3
sed "s/^profile = .*/profile = \"none\"/" /robot.toml >/tmp/ring.toml
onbeat simulate /tmp/ring.toml --iface eth1 --second-iface eth$((cards - 1)) &
simulator=$!
tries=0
until onbeat scan --iface $near --second-iface $second >/tmp/scan 2>&1 || [ $tries -ge 20 ]; do
    tries=$((tries + 1))
    sleep 0.5
done
onbeat run /tmp/ring.toml --iface $near --second-iface $second --for 60s --no-ipc --json --record /tmp/record \
    >/tmp/run.json 2>/tmp/said &
run=$!
# Cycles are recorded from the first one in Op.
has_rows() { onbeat export /tmp/record /tmp/rows.csv --force 2>/dev/null | grep -q "^[1-9]"; }
while kill -0 $run && ! has_rows; do sleep 0.2; done
told() { while kill -0 $run && [ "$(grep -c "$1" /tmp/said)" -lt $2 ]; do sleep 0.2; done; }
# Both ends of the second cable are set down; that of the first is pulled by the host: see cards.rs.
set_second() { ip link set $second "$1"; ip link set eth$((cards - 1)) "$1"; }
set_second down
told "the ring is open" 1
set_second up
told "the ring is closed again" 1
# The kernel tells of a lost carrier up to a second late where another one came just before.
sleep 1
result "pull first"
told "the ring is open" 2
result "plug first"
told "the ring is closed again" 2
kill -INT $run
wait $run
status=$?
result ring-exit
echo $status >&3
result ring-run
cat /tmp/run.json >&3
result ring-said
cat /tmp/said >&3
kill $simulator
