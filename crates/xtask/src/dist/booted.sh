# Runs as a unit of a booted Debian in which the package is: a robot as a service, from its start to its stop. Prints what is wrong.
set -eu

robot=onbeat@robot
fail() { echo "$1"; journalctl --no-pager --lines 40 --unit "$robot"; exit 1; }
is() { # WHAT FOUND EXPECTED
    [ "$2" = "$3" ] || fail "$1: expected $3, found $2"
}
of() { systemctl show --value --property "$1" "$robot"; }
in_op() { onbeat top --json 2>/dev/null | grep -q '"phase": "Op"' || fail "$1: expected the bus in Op"; }
await() { # WHAT COMMAND...
    what=$1
    shift
    for _ in $(seq 600); do
        "$@" && return
        sleep 0.05
    done
    fail "not $what within 30 s"
}
tells_enabled() { of StatusText | grep -q ' cycles, .* Operation enabled'; }
is_again() { [ "$(of MainPID)" != "$1" ] && [ "$(of ActiveState)" = active ]; }
is_enabled_or_held() { onbeat top --json 2>/dev/null | grep -q '"state": "Operation enabled"\|"stop": "'; }
is_moving_or_held() { onbeat top --json >/state 2>/dev/null && grep -q '"velocity": .*[1-9]\|"stop": "' /state; }

mkdir -p /etc/onbeat "/run/systemd/system/$robot.service.d"
cp /usr/share/doc/onbeat/examples/first-drive.toml /etc/onbeat/robot.toml
# Times in which a test can wait; all else is the unit's.
cat >"/run/systemd/system/$robot.service.d/test.conf" <<END
[Unit]
StartLimitIntervalSec=0
[Service]
WatchdogSec=2
TimeoutAbortSec=2
RestartSec=100ms
LimitCORE=0
# Lines of two streams may change places in the journal: the JSON of the last run has a file of its own.
StandardOutput=truncate:/summary.json
StandardError=journal
END
systemctl daemon-reload

# The command line cannot be read: a start that fails, and is not tried again.
echo 'OPTIONS="--no-such-option"' >/etc/onbeat/robot.env
systemctl start "$robot" 2>/dev/null && fail 'a start with a wrong option: expected an error'
is 'exit code of a wrong option' "$(of ExecMainStatus)" 2
is 'restarts after a wrong option' "$(of NRestarts)" 0
systemctl reset-failed "$robot"

# `systemctl start` returns when the bus is in Op, and says how it goes.
echo 'OPTIONS="--json --events events.jsonl"' >/etc/onbeat/robot.env
systemctl start "$robot"
in_op 'when the start is done'
of StatusText | grep -q ' cycles, ' || fail "status: $(of StatusText)"
await 'told in its status to be enabled' tells_enabled
is 'folder of the interface' "$(stat -c '%a %U:%G' /run/onbeat/robot)" '750 onbeat:onbeat'
test -S /run/onbeat/robot/first-drive.sock || fail "no socket in $(ls -la /run/onbeat/robot)"
first=$(of MainPID)
is 'restarts' "$(of NRestarts)" 0

# Killed, it is there again; so it is when its cycle stands still, and the watchdog has ended it.
kill -KILL "$first"
await 'started again after a kill' is_again "$first"
in_op 'started again after a kill'
second=$(of MainPID)
kill -STOP "$second"
await 'started again by the watchdog' is_again "$second"
is 'restarts after a kill and a standstill' "$(of NRestarts)" 2
in_op 'started again by the watchdog'

# Stopped in the middle of a motion: the axis comes to rest, the exit code is 0, and that is the end. Once more where this machine
# stood still for so long that the axis was held.
for _ in 1 2 3 4 5 6; do
    await 'enabled' is_enabled_or_held
    onbeat control move --by shaft 900 --degrees >/moved 2>&1 &
    await 'in motion' is_moving_or_held
    grep -q '"stop": "' /state || moving=yes
    systemctl stop "$robot"
    ended="$(of ActiveState) $(of Result) $(of ExecMainStatus)"
    wait || true
    [ "$ended" = 'inactive success 0' ] && [ -n "${moving:-}" ] && break
    journalctl --no-pager "_SYSTEMD_INVOCATION_ID=$(of InvocationID)" | grep -q '(outage)' || break
    echo 'held by a standstill of this machine: once more'
    systemctl reset-failed "$robot" || true
    systemctl start "$robot"
done
is 'state after the stop' "$ended" 'inactive success 0'
[ -n "${moving:-}" ] || fail "stopped without a motion: $(cat /moved)"

journalctl --no-pager --output json --unit "$robot" >/journal.jsonl
cp /var/lib/onbeat/events.jsonl /events.jsonl
rm -r /var/lib/onbeat /etc/onbeat /run/systemd/system/"$robot".service.d
echo 0 >/outcome
