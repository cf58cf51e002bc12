# Links on true drivers: two cards of each driver, with a cable between them.

result kernel
uname -srv >&3

for module in /root/card-*.ko; do insmod "$module"; done
result drivers
for card in eth0 eth1 eth2 eth3; do
    ip link set $card up
    echo "$card $(basename "$(readlink /sys/class/net/$card/device/driver)")" >&3
done

chmod +x /root/cards
on() {
    result "$1"
    ONBEAT_TEST_CARDS="$2" timeout 180 /root/cards --test-threads 1 --nocapture >&3 2>&1
}
on virtio_net "eth0 eth1"
on e1000e "eth2 eth3"
