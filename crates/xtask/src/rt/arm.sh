# 64-bit ARM: doctor, the six-axis robot at the far end of a cable with its cycle alone on CPU 1, two tasks, GPIO edges, lock-free code.
cable

result kernel
uname -srvm >&3

doctor

simulate
onbeat run /robot.toml --iface near --profile PMCS --cpu 1 --json --cycles 500 >/tmp/run.json 2>/tmp/said
status=$?
result run-exit
echo $status >&3
result run
cat /tmp/run.json >&3
result run-said
cat /tmp/said >&3
kill $simulator
wait $simulator
echo "run: $(cat /proc/uptime)" >/dev/console

onbeat measure tasks --duration 10s --out /tmp/tasks --json >/tmp/report 2>/tmp/said
result tasks-said
cat /tmp/said >&3
result tasks
cat /tmp/report >&3
echo "tasks: $(cat /proc/uptime)" >/dev/console

# The board's chip: output 1 is wired to input 2, 6 to 7, and a sonar is at 4 and 5, all by the host.
chmod +x /root/interfaces
ONBEAT_TEST_SONAR=/dev/gpiochip0:4:5 /root/interfaces --nocapture echo_is_measured >/tmp/said 2>&1
result echo
cat /tmp/said >&3
onbeat measure interrupt --idle --samples 400 --interval 10ms --gpio-output gpiochip0:1 --gpio-input gpiochip0:2 --gpio-answer gpiochip0:6 \
    --gpio-observe gpiochip0:7 --out /tmp/interrupt --json >/tmp/report 2>/tmp/said
result interrupt
cat /tmp/report >&3
cat >/tmp/tasks.toml <<TASKS
[[task]]
name = "quick"
period = "100ms"
wcet = "10ms"
priority = 60

[[task]]
name = "slow"
period = "300ms"
wcet = "60ms"
priority = 50
TASKS
onbeat measure tasks /tmp/tasks.toml --busy processor-time --duration 12s --toggle gpiochip0:1,gpiochip0:6 --observe gpiochip0:2,gpiochip0:7 \
    --out /tmp/toggled --json >/tmp/report 2>>/tmp/said
result toggled
cat /tmp/report >&3
result edges-said
cat /tmp/said >&3
echo "edges: $(cat /proc/uptime)" >/dev/console

chmod +x /root/lock-free
/root/lock-free --test-threads 2 cell command controller ring channel >/tmp/said 2>&1
status=$?
result lock-free-exit
echo $status >&3
result lock-free
cat /tmp/said >&3
