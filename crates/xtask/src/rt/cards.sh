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

chmod +x /root/cards
card=0
while [ $card -lt $cards ]; do
    result "$(driver eth$card)"
    ONBEAT_TEST_CARDS="eth$card eth$((card + 1))" timeout 180 /root/cards --test-threads 1 --nocapture >&3 2>&1
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
sleep 1
onbeat run /tmp/ring.toml --iface $near --second-iface $second --for 60s --no-ipc --json --record /tmp/record \
    >/tmp/run.json 2>/tmp/said &
run=$!
# Cycles are recorded from the first one in Op.
while kill -0 $run && ! grep -qs "^[0-9]" /tmp/record; do sleep 0.2; done
told() { while kill -0 $run && [ "$(grep -c "$1" /tmp/said)" -lt $2 ]; do sleep 0.2; done; }
times=0
# The host does it: see cards.rs.
for cable in second first; do
    times=$((times + 1))
    result "pull $cable"
    told "the ring is open" $times
    result "plug $cable"
    told "the ring is closed again" $times
done
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
