# 64-bit ARM: doctor, the six-axis robot at the far end of a cable with its cycle alone on CPU 1, two tasks, lock-free code.
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

chmod +x /root/lock-free
/root/lock-free --test-threads 2 cell command controller ring channel >/tmp/said 2>&1
status=$?
result lock-free-exit
echo $status >&3
result lock-free
cat /tmp/said >&3
