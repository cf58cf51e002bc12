"""Starts a base and its ROS 2 node, and the program around Fast DDS that judges them.

    fastdds_judge.py PROGRAM ONBEAT ONBEAT_ROS2 EXAMPLES
"""

import os
import random
import subprocess
import sys
import tempfile

from robot_processes import Robot


def main():
    program, onbeat, bridge, examples = sys.argv[1:5]
    domain = str(random.randint(1, 100))
    os.environ["ROS_DOMAIN_ID"] = domain
    with tempfile.TemporaryDirectory(prefix="onbeat-fastdds-") as folder:
        with Robot(onbeat, bridge, os.path.join(examples, "m4k.toml"), folder):
            subprocess.run([program, domain], check=True)


main()
