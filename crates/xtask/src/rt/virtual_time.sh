# One CPU in virtual time: what each tuning is worth under a light load of the humanoid paper's kinds.
ip link set lo up
result kernel
uname -srv >&3
mkdir /tmp/tuning
onbeat measure tuning /robot.toml --columns none,PM,PMS --load light --duration 300ms --out /tmp/tuning --json \
    >/tmp/report.json 2>/tmp/said
status=$?
result exit
echo $status >&3
result said
cat /tmp/said >&3
result report
cat /tmp/report.json >&3
result uptime
cat /proc/uptime >&3
