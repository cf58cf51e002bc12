//! Forms of a fault, for help texts.

/// Forms of a fault, and their effects. SUBDEVICE is a name, in quotes if it has spaces, or a
/// position.
pub const GRAMMAR: [(&str, &str); 30] = [
    ("power off|on|cycle SUBDEVICE", "power of a SubDevice; frames do not pass one without"),
    ("cable pull|plug SUBDEVICE:PORT", "cable at a port; 0:0 is that of the MainDevice"),
    ("crc SUBDEVICE:PORT [COUNT]", "invalid frames, with a wrong check sequence, in the port's counter"),
    ("mailbox stuck|free SUBDEVICE", "stuck: a request stays in the mailbox without an answer"),
    ("application stop|run SUBDEVICE", "stop: a crashed microcontroller behind a working ESC"),
    ("state refuse SUBDEVICE PreOp|SafeOp|Op [CODE]", "refuse a state, with this AL status code"),
    ("state allow SUBDEVICE", "refuse no state any more"),
    ("watchdog expire SUBDEVICE", "the process data watchdog expires, whatever outputs come"),
    (
        "identity SUBDEVICE vendor=N product=N revision=N serial=N",
        "another identity in its SII; any of the four",
    ),
    (
        "sii blank|spoil|restore SUBDEVICE",
        "an erased SII, or a wrong checksum; restore: as it was, identity too",
    ),
    ("sii cut SUBDEVICE BYTES", "an SII that ends after so many bytes"),
    ("clock jump SUBDEVICE +TIME|-TIME", "the local clock jumps"),
    (
        "clock stale|latches SUBDEVICE:PORT",
        "stale: the receive time of the port does not change; latches: normal",
    ),
    ("latch high|low SUBDEVICE INPUT", "level of a latch input, 0 or 1: an edge latches the time"),
    (
        "input SUBDEVICE:CHANNEL high|low|free",
        "level of a digital input; free: as at the start, or as the output of its number",
    ),
    (
        "drive fault SUBDEVICE[:AXIS] CODE",
        "an axis of a servo drive has a fault, with this error code (0x603F)",
    ),
    ("drive power off|on SUBDEVICE", "main power of a servo drive; its ESC keeps its supply"),
    ("drive load SUBDEVICE[:AXIS] TORQUE", "load on the shaft of an axis of a servo drive, as 0.5Nm"),
    (
        "drive motor reversed|forward SUBDEVICE[:AXIS]",
        "reversed: two phases of the motor are exchanged, and it turns against its torque; forward: normal",
    ),
    (
        "brake stuck-closed|stuck-open|free SUBDEVICE[:AXIS]",
        "the brake of an axis with brake.feedback sticks; free: it works",
    ),
    (
        "encoder SUBDEVICE[:AXIS] off|turned by NUMBER turns",
        "off: the count of an axis of a servo drive changes; turned: its shaft is turned by hand; as `off by 1 turn`",
    ),
    ("frames lose SHARE", "lose this share of the frames, there and back, as 2.5%"),
    ("frames lose COUNT", "lose the next frames, this many"),
    ("frames delay TIME [SHARE]", "hold back replies: all, or this share"),
    ("frames duplicate SHARE", "replies come twice"),
    ("frames reorder SHARE", "replies are overtaken by the next"),
    ("frames corrupt SHARE", "one bit of a reply is another"),
    (
        "seed NUMBER",
        "new seed for the random faults of frames: the same seed and frames give the same faults",
    ),
    ("clear", "end all faults that last"),
    ("FAULT for TIME", "end FAULT after this time, if it lasts"),
];
