"""What every judge expects of examples/six-axis.toml, and what it makes the drives do."""

import struct
import subprocess
import time

SUB_DEVICES = 6
VENDOR_ID = 0xFFFF0B01
PRODUCT_CODE = 0x0402
REVISION = 0x00010000
BYTES = 12  # of outputs, and as many of inputs, each drive
CYCLES = 2000
CYCLES_AGAIN = 500  # in Op for the second time, and after faults
PERIOD = 0.001  # s
MOVE = 20_000  # counts, over the whole run
CYCLIC_SYNCHRONOUS_POSITION = 8  # CiA 402-2, modes of operation (0x6060)
FALLEN = 2  # position of the drive whose process data watchdog expires
POWERLESS = 4  # position of the drive without power; no frame passes it
BEHIND = list(range(POWERLESS, SUB_DEVICES))


class Axis:
    """Enables one drive by its statusword (CiA 402-2, device control) and then moves it slowly."""

    def __init__(self):
        self.target = None
        self.enabled_cycles = 0

    def outputs(self, inputs):
        """The drive's next outputs, from its newest inputs."""
        self.statusword, self.position, _velocity, _torque = struct.unpack("<Hiih", inputs)
        enabled = self.statusword & 0x6F == 0x27
        self.enabled_cycles += enabled
        if enabled and self.target is not None:
            self.target += MOVE // CYCLES
        else:
            self.target = self.position
        return struct.pack("<Hiih", self.controlword(), self.target, 0, 0)

    def controlword(self):
        if self.statusword & 0x4F == 0x40:  # Switch On Disabled
            return 0x06
        if self.statusword & 0x6F == 0x21:  # Ready To Switch On
            return 0x07
        if self.statusword & 0x4F == 0x08:  # Fault
            return 0x80
        return 0x0F

    def check(self, name, cycles):
        enabled = self.enabled_cycles > cycles - CYCLES // 10
        expect(f"{name}: all but {CYCLES // 10} of {cycles} cycles in Operation Enabled", enabled, True)
        lag = abs(self.target - self.position)
        expect(f"{name}: following error of {lag} counts is below {MOVE // 10}", lag < MOVE // 10, True)


class Simulator:
    """Faults on the running `onbeat simulate` of this name."""

    def __init__(self, onbeat, name):
        self.command = [onbeat, "fault", "--of", name]

    def begin(self, fault):
        """Asks for a fault without waiting: process data has to go on. What it returns ends when it has taken place."""
        return subprocess.Popen([*self.command, *fault.split()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def has_taken_place(fault):
    expect(f"exit code of `{' '.join(fault.args[1:])}`", fault.wait(LONGEST_WAIT), 0)


def await_that(what, happens):
    """Calls `happens`, which exchanges process data, until it says so."""
    deadline = time.monotonic() + LONGEST_WAIT
    while not happens():
        expect(f"{what} within {LONGEST_WAIT} s", time.monotonic() < deadline, True)
        time.sleep(PERIOD)


LONGEST_WAIT = 10  # s


def expect(what, found, expected):
    """One sentence if the two differ."""
    if found != expected:
        raise SystemExit(f"{what}: expected {shown(expected)}, found {shown(found)}")


def shown(value):
    return f"{value:#x}" if isinstance(value, int) and not isinstance(value, bool) else repr(value)
