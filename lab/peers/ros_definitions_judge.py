"""Holds the messages that Onbeat and the Cyclone DDS judge speak against ROS 2's own definitions.

    ros_definitions_judge.py ros2/src/messages/golden.txt

Onbeat's messages and those of the Cyclone DDS judge were both written by us, so that the same misreading could be in both.
The PyPI package `rosbags` carries the definitions of ROS 2's releases as their packages publish them, and a reader and
writer of its own. Every message of golden.txt is read with them, compared field by field, and written again.

A definition in no release's common interfaces (control_msgs, controller_manager_msgs, ethercat_msgs) is named as not judged.
"""

import sys
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from math import isclose

from cyclone_golden import MESSAGES
from rosbags.typesys import Stores, get_typestore

RELEASES = [Stores.ROS2_HUMBLE, Stores.ROS2_JAZZY, Stores.ROS2_KILTED]

# Everything else has to be known to every release, but for what a later one added.
BEYOND = ("control_msgs/", "controller_manager_msgs/", "ethercat_msgs/")
ADDED_AFTER = {Stores.ROS2_HUMBLE: ("rcl_interfaces/msg/LoggerLevel", "type_description_interfaces/")}

# Some numbers have 24 bits.
FLOAT32 = 2.0**-24


def definition(message):
    """The name of its definition: of `geometry_msgs::msg::dds_::Twist_`, `geometry_msgs/msg/Twist`."""
    package, kind, _, name = message.__idl_typename__.split("::")
    return f"{package}/{kind}/{name.removesuffix('_')}"


def differences(store, place, ours, theirs):
    """Where what was read with ROS 2's definition is not what we meant."""
    if is_dataclass(ours):
        names = [field.name for field in fields(ours)]
        known = [name for name, _ in store.fielddefs[theirs.__msgtype__][1]]
        if definition(ours) != theirs.__msgtype__ or names != known:
            yield f"{place}: {definition(ours)} with {names}, expected {theirs.__msgtype__} with {known}"
            return
        for name in names:
            yield from differences(store, f"{place}.{name}", getattr(ours, name), getattr(theirs, name))
    elif isinstance(ours, (list, bytes)):
        if len(ours) != len(theirs):
            yield f"{place}: {len(theirs)} elements, expected {len(ours)}"
            return
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(store, f"{place}[{index}]", one, other)
    elif ours != theirs and not (isinstance(ours, float) and isclose(ours, theirs, rel_tol=FLOAT32)):
        yield f"{place}: {theirs!r}, expected {ours!r}"


def judge(release, store, name, message, raw):
    kind = definition(message)
    if kind not in store.fielddefs:
        excused = kind.startswith(BEYOND) or kind.startswith(ADDED_AFTER.get(release, ()))
        return [] if excused else [f"{name}: this release has no {kind}"]
    try:
        theirs = store.deserialize_cdr(raw, kind)
    except Exception as error:  # whatever a reader says of bytes it cannot read
        return [f"{name}: cannot be read as {kind}: {error!r}"]
    found = list(differences(store, name, message, theirs))
    again = bytes(store.serialize_cdr(theirs, kind, little_endian=True))
    # The first four bytes tell the encoding; what pads the end is told there, and is not part of the message.
    padding = raw[3] & 3
    if not found and again[4:] != raw[4 : len(raw) - padding]:
        found.append(f"{name}: {again[4:].hex()} written again, expected {raw[4:].hex()}")
    return found


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = [line.split() for line in file if not line.startswith("#")]
    golden = {name: bytes.fromhex(text) for name, text in lines}
    if missing := MESSAGES.keys() ^ golden.keys():
        sys.exit(f"{sys.argv[1]} and cyclone_golden.py differ in {', '.join(sorted(missing))}")
    findings = []
    for release in RELEASES:
        store = get_typestore(release)
        judged = [name for name in golden if definition(MESSAGES[name]) in store.fielddefs]
        for name, raw in golden.items():
            findings += [f"{release.value}: {found}" for found in judge(release, store, name, MESSAGES[name], raw)]
        others = ", ".join(name for name in golden if name not in judged)
        print(f"{release.value}: {len(judged)} messages judged by rosbags {version('rosbags')}; not in it: {others}")
    if findings:
        sys.exit("\n".join(findings))


main()
