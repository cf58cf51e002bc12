# On two CPUs: the six-axis robot at the far end of a cable, its cycle alone on CPU 1, and a culprit that breaks in.

# What a shield changes: partitions, who may run where, and where interrupts and workers go.
machine_state() {
    find /sys/fs/cgroup -type d
    cat /sys/fs/cgroup/cgroup.subtree_control
    for file in /proc/irq/default_smp_affinity /proc/irq/*/smp_affinity_list \
        /sys/devices/virtual/workqueue/cpumask /sys/devices/virtual/workqueue/*/cpumask \
        /proc/sys/kernel/watchdog_cpumask /proc/sys/kernel/sched_rt_runtime_us; do
        [ -e "$file" ] && echo "$file $(cat "$file" 2>&1)"
    done
    for number in 1 2 $$; do echo "task $number $(grep Cpus_allowed_list /proc/$number/status)"; done
    echo "journals $(ls /run/onbeat/*.journal 2>/dev/null | wc -l)"
}

cable

result kernel
uname -srv >&3

doctor

simulate

result before
machine_state >&3

onbeat run /robot.toml --iface near --profile PMCS --cpu 1 --json --explain --late-above 200us \
    --record /tmp/record >/tmp/run.json 2>/tmp/said &
run=$!
# Cycles are recorded from the first one in Op, with everything granted.
# Where that takes more than a minute, the judge shows what the run has said.
looks=0
has_rows() { onbeat export /tmp/record /tmp/rows.csv --force 2>/dev/null | grep -q "^[1-9]"; }
while kill -0 $run && ! has_rows && [ $looks -lt 300 ]; do
    sleep 0.2
    looks=$((looks + 1))
done

result partition
partition=$(dirname "$(grep -l isolated /sys/fs/cgroup/*/cpuset.cpus.partition)")
cat "$partition/cpuset.cpus.partition" "$partition/cpuset.cpus" >&3
result outside
cat /sys/fs/cgroup/cpuset.cpus.effective >&3

# The partition keeps everybody out who does not ask to be let in.
sh -c "echo \$\$ > $partition/cgroup.threads; exec onbeat measure culprit --cpu 1 --busy 400us --every 5ms --for 15s --log /tmp/hits"
kill -INT $run
wait $run
status=$?
result run-exit
echo $status >&3
result run
cat /tmp/run.json >&3
result run-said
cat /tmp/said >&3
result hits
cat /tmp/hits >&3
result record
onbeat export /tmp/record /tmp/rows.csv --force >/dev/null
cut -d, -f1-3 /tmp/rows.csv >&3

kill $simulator
wait $simulator
result after
machine_state >&3
