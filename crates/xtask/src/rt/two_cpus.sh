# On two CPUs: the six-axis robot at the far end of a cable, its cycle alone on CPU 1.
echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
ip link add name near type veth
ip link set near up
ip link set veth0 name far
ip link set far up

result kernel
uname -srv >&3
result realtime
cat /sys/kernel/realtime >&3

taskset 1 onbeat simulate /robot.toml --iface far &
simulator=$!
sleep 1

result run
onbeat run /robot.toml --iface near --cpu 1 --cycles 500 --json >&3 2>/tmp/said
result run-exit
echo $? >&3
result run-said
cat /tmp/said >&3
kill $simulator
