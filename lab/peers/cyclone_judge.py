"""Cyclone DDS, the DDS of ROS 2, judges onbeat-ros2.

    cyclone_judge.py ONBEAT ONBEAT_ROS2 EXAMPLES

Starts `onbeat run` with simulated robots, and `onbeat-ros2` beside it, and is the ROS 2 node that watches and commands
them. Nothing of ROS is installed, and nothing of ours is imported: the messages are written from their definitions.
"""

import os
import random
import sys
import tempfile

import cyclone_arm
import cyclone_base
import cyclone_load
import cyclone_sensors

DDS = """<CycloneDDS><Domain><General>
<Interfaces><NetworkInterface name="lo" multicast="false"/></Interfaces><AllowMulticast>false</AllowMulticast>
</General><Discovery><ParticipantIndex>auto</ParticipantIndex><Peers><Peer Address="127.0.0.1"/></Peers></Discovery>
</Domain></CycloneDDS>"""


def main():
    onbeat, bridge, examples = sys.argv[1:4]
    os.environ["CYCLONEDDS_URI"] = DDS
    # Ports of domains above 100 may be those the kernel gives to others.
    os.environ["ROS_DOMAIN_ID"] = str(random.randint(1, 100))
    with tempfile.TemporaryDirectory(prefix="onbeat-cyclone-") as folder:
        cyclone_base.judge(onbeat, bridge, os.path.join(examples, "m4k.toml"), folder)
        cyclone_sensors.judge(onbeat, bridge, os.path.join(examples, "m4k.toml"), folder)
        cyclone_load.judge(onbeat, bridge, os.path.join(examples, "m4k.toml"), folder)
        cyclone_arm.judge(onbeat, bridge, os.path.join(examples, "arm.toml"), folder)
    print("Cyclone DDS finds nothing wrong")


if __name__ == "__main__":
    main()
