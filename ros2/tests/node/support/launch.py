"""Tells the command lines that a launch file makes, where ROS 2's own launch is not there.

    launch.py FILE FOLDER NAME:=VALUE...

Stands in for the parts of `launch` and `launch_ros` that the file uses, and puts a node's command line together as launch_ros
does: its arguments, then those of ROS, with parameters that are not a file in a file of their own in FOLDER.
"""

import itertools
import json
import runpy
import sys
import types
from pathlib import Path


class Action:
    def __init__(self, *positional, **named):
        self.positional, self.named = positional, named


class LaunchDescription(Action):
    pass


class DeclareLaunchArgument(Action):
    pass


class ExecuteProcess(Action):
    def command(self, _):
        return self.named["cmd"]


class OpaqueFunction(Action):
    pass


class Shutdown(Action):
    pass


class Node(Action):
    numbers = itertools.count()

    def command(self, folder):
        it = self.named
        line = [it["executable"], *it.get("arguments", []), "--ros-args", *it.get("ros_arguments", [])]
        line += ["-r", f"__node:={it['name']}"]
        whole = it["name"]
        if namespace := it.get("namespace"):
            namespace = "/" + namespace.strip("/")
            line += ["-r", f"__ns:={namespace}"]
            whole = f"{namespace}/{it['name']}"
        for parameters in it.get("parameters", []):
            if isinstance(parameters, dict):
                path = folder / f"launch_params_{next(self.numbers)}.yaml"
                # JSON is YAML.
                path.write_text(json.dumps({whole: {"ros__parameters": parameters}}), encoding="utf-8")
                parameters = str(path)
            line += ["--params-file", parameters]
        return line


class LaunchConfiguration:
    def __init__(self, name):
        self.name = name

    def perform(self, context):
        return context[self.name]


def module(name, *members):
    made = types.ModuleType(name)
    for member in members:
        setattr(made, member.__name__, member)
    sys.modules[name] = made


def main():
    file, folder, *given = sys.argv[1:]
    module("launch", LaunchDescription)
    module("launch.actions", DeclareLaunchArgument, ExecuteProcess, OpaqueFunction, Shutdown)
    module("launch.substitutions", LaunchConfiguration)
    module("launch_ros")
    module("launch_ros.actions", Node)
    [actions] = runpy.run_path(file)["generate_launch_description"]().positional
    declared = {it.positional[0]: it.named["default_value"] for it in actions if isinstance(it, DeclareLaunchArgument)}
    given = dict(text.split(":=", 1) for text in given)
    if unknown := given.keys() - declared.keys():
        sys.exit(f"not declared: {', '.join(unknown)}")
    context = declared | given
    made = [it for action in actions if isinstance(action, OpaqueFunction) for it in action.named["function"](context)]
    print(json.dumps([it.command(Path(folder)) for it in made]))


main()
