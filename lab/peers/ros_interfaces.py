"""Interfaces of ROS 2 whose packages PyPI lacks, as their packages for Jazzy define them.

    ros_interfaces.py     makes Python packages of them in this environment (lab/peers/ros.txt), unless they are there

The generators are those of ROS 2 itself, which the environment has; a C and a C++ compiler are needed. The fields are the
definitions' own, comments and constants left out.
"""

import contextlib
import hashlib
import io
import logging
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from rosidl_adapter.action import convert_action_to_idl
from rosidl_adapter.msg import convert_msg_to_idl
from rosidl_adapter.srv import convert_srv_to_idl

DEFINITIONS = {
    "tf2_msgs/msg/TFMessage": "geometry_msgs/TransformStamped[] transforms",
    "control_msgs/msg/InterfaceValue": "string[] interface_names, float64[] values",
    "control_msgs/msg/DynamicInterfaceGroupValues": """std_msgs/Header header, string[] interface_groups,
        InterfaceValue[] interface_values""",
    "control_msgs/msg/DynamicJointState": "std_msgs/Header header, string[] joint_names, InterfaceValue[] interface_values",
    "control_msgs/msg/JointTolerance": "string name, float64 position, float64 velocity, float64 acceleration",
    "control_msgs/msg/JointComponentTolerance": """string joint_name, uint16 component, float64 position, float64 velocity,
        float64 acceleration""",
    "control_msgs/action/FollowJointTrajectory": """trajectory_msgs/JointTrajectory trajectory,
        trajectory_msgs/MultiDOFJointTrajectory multi_dof_trajectory, JointTolerance[] path_tolerance,
        JointComponentTolerance[] component_path_tolerance, JointTolerance[] goal_tolerance,
        JointComponentTolerance[] component_goal_tolerance, builtin_interfaces/Duration goal_time_tolerance, ---,
        int32 error_code, string error_string, ---, std_msgs/Header header, string[] joint_names,
        trajectory_msgs/JointTrajectoryPoint desired, trajectory_msgs/JointTrajectoryPoint actual,
        trajectory_msgs/JointTrajectoryPoint error, string[] multi_dof_joint_names,
        trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_desired,
        trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_actual,
        trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_error""",
    "control_msgs/msg/JointTrajectoryControllerState": """std_msgs/Header header, string[] joint_names,
        trajectory_msgs/JointTrajectoryPoint reference, trajectory_msgs/JointTrajectoryPoint feedback,
        trajectory_msgs/JointTrajectoryPoint error, trajectory_msgs/JointTrajectoryPoint output, string[] multi_dof_joint_names,
        trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_reference,
        trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_feedback,
        trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_error,
        trajectory_msgs/MultiDOFJointTrajectoryPoint multi_dof_output, float64 speed_scaling_factor""",
    "control_msgs/srv/QueryTrajectoryState": """builtin_interfaces/Time time, ---, bool success, string message, string[] name,
        float64[] position, float64[] velocity, float64[] acceleration""",
    "controller_manager_msgs/msg/ChainConnection": "string name, string[] reference_interfaces",
    "controller_manager_msgs/msg/ControllerState": """string name, string state, string type, bool is_async, uint16 update_rate,
        string[] claimed_interfaces, string[] required_command_interfaces, string[] required_state_interfaces,
        bool is_chainable, bool is_chained, string[] exported_state_interfaces, string[] reference_interfaces,
        ChainConnection[] chain_connections""",
    "controller_manager_msgs/msg/NamedLifecycleState": "string name, lifecycle_msgs/State state",
    "controller_manager_msgs/msg/ControllerManagerActivity": """std_msgs/Header header, NamedLifecycleState[] controllers,
        NamedLifecycleState[] hardware_components""",
    "controller_manager_msgs/msg/HardwareInterface": "string name, bool is_available, bool is_claimed",
    "controller_manager_msgs/msg/HardwareComponentState": """string name, string type, bool is_async, uint16 rw_rate,
        string class_type, string plugin_name, lifecycle_msgs/State state, HardwareInterface[] command_interfaces,
        HardwareInterface[] state_interfaces""",
    "controller_manager_msgs/srv/CleanupController": "string name, ---, bool ok",
    "controller_manager_msgs/srv/ConfigureController": "string name, ---, bool ok",
    "controller_manager_msgs/srv/ListControllers": "---, ControllerState[] controller",
    "controller_manager_msgs/srv/ListControllerTypes": "---, string[] types, string[] base_classes",
    "controller_manager_msgs/srv/ListHardwareComponents": "---, HardwareComponentState[] component",
    "controller_manager_msgs/srv/ListHardwareInterfaces": """---, HardwareInterface[] command_interfaces,
        HardwareInterface[] state_interfaces""",
    "controller_manager_msgs/srv/LoadController": "string name, ---, bool ok",
    "controller_manager_msgs/srv/ReloadControllerLibraries": "bool force_kill, ---, bool ok",
    "controller_manager_msgs/srv/SetHardwareComponentState": """string name, lifecycle_msgs/State target_state, ---, bool ok,
        lifecycle_msgs/State state""",
    "controller_manager_msgs/srv/UnloadController": "string name, ---, bool ok",
    "controller_manager_msgs/srv/SwitchController": """string[] activate_controllers, string[] deactivate_controllers,
        int32 strictness, bool activate_asap, builtin_interfaces/Duration timeout, ---, bool ok, string message""",
    "ethercat_msgs/srv/GetSdo": """int16 master_id, uint16 slave_position, uint16 sdo_index, uint8 sdo_subindex,
        string sdo_data_type, ---, bool success, string sdo_return_message, string sdo_return_value_string,
        float64 sdo_return_value""",
    "ethercat_msgs/srv/SetSdo": """int16 master_id, int16 slave_position, int16 sdo_index, int16 sdo_subindex,
        string sdo_data_type, string sdo_value, ---, bool success, string sdo_return_message""",
}

# Packages whose types those use; `service_msgs` is in every service, the rest of action_msgs in every action.
USED = [
    "action_msgs",
    "builtin_interfaces",
    "geometry_msgs",
    "lifecycle_msgs",
    "service_msgs",
    "std_msgs",
    "trajectory_msgs",
    "unique_identifier_msgs",
]
PACKAGES = list(dict.fromkeys(name.split("/")[0] for name in DEFINITIONS))
CONVERT = {"msg": convert_msg_to_idl, "srv": convert_srv_to_idl, "action": convert_action_to_idl}


def share():
    """The folder in which the packages have their interfaces."""
    return Path(sys.prefix) / "share"


def write_idl(package, folder):
    """Writes the interfaces of a package below `folder`; returns their names as ROS 2's generators take them."""
    names = []
    for name, fields in DEFINITIONS.items():
        if not name.startswith(package + "/"):
            continue
        _, kind, short = name.split("/")
        source = folder / package / kind / f"{short}.{kind}"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text("\n".join(field.strip() for field in fields.split(",")) + "\n", encoding="utf-8")
        CONVERT[kind](folder / package, package, Path(kind) / source.name, source.parent)
        names.append(f"{folder / package}:{kind}/{short}.idl")
    return names


def generate(package, folder):
    """Has ROS 2's generators write the sources of a package; returns those to compile, by folder, and the Python package."""
    from rosidl_generator_c.cli import GenerateC
    from rosidl_generator_py.cli import GeneratePython
    from rosidl_typesupport_c.cli import GenerateCTypesupport
    from rosidl_typesupport_fastrtps_c.cli import GenerateFastRTPSCTypesupport
    from rosidl_typesupport_introspection_c.cli import GenerateIntrospectionCTypesupport

    # Those that rmw_fastrtps asks a type for.
    kinds = ["rosidl_typesupport_fastrtps_c", "rosidl_typesupport_introspection_c"]
    generators = [
        GenerateC("c"),
        GenerateFastRTPSCTypesupport("fastrtps"),
        GenerateIntrospectionCTypesupport("introspection"),
        GenerateCTypesupport("typesupport", typesupport_implementations=kinds),
        GeneratePython("python", typesupport_implementations=["rosidl_typesupport_c"]),
    ]
    interfaces = write_idl(package, folder / "idl")
    used = [str(share() / name) for name in USED] + [str(folder / "idl" / package)]
    for generator in generators:
        generator.generate(package, interfaces, used, folder / generator.name / package)
    python = folder / "python" / package
    for module in [python, *(it for it in python.iterdir() if it.is_dir())]:
        (module / "__init__.py").touch()
    return [folder / it.name / package for it in generators], python


def build(package, folder):
    """Makes a package in this environment: one library that is all of its libraries, and its Python module."""
    import numpy

    prefix = Path(sys.prefix)
    # The generators say what they read and write, and that they find each other twice.
    logging.disable(logging.WARNING)
    with contextlib.redirect_stdout(io.StringIO()):
        sources, python = generate(package, folder)
    include = [prefix / "include", *(it for it in (prefix / "include").iterdir() if not it.name.startswith("python"))]
    include += [it.parent for it in sources] + [sysconfig.get_path("include"), numpy.get_include()]
    flags = ["-O0", "-fPIC", "-w", *(f"-I{it}" for it in include)]
    objects = folder / "objects" / package
    for index, source in enumerate(sources):
        (objects / str(index)).mkdir(parents=True)
        if c := [str(it) for it in source.rglob("*.c")]:
            run("gcc", *flags, "-c", *c, cwd=objects / str(index))
        if cpp := list(source.rglob("*.cpp")):
            # As one file: its headers are most of it.
            whole = objects / str(index) / "whole.cpp"
            whole.write_text("".join(f'#include "{it}"\n' for it in cpp), encoding="utf-8")
            run("g++", "-std=c++17", *flags, "-c", str(whole), cwd=whole.parent)
    parts = ["generator_c", "generator_py", "typesupport_c", "typesupport_fastrtps_c", "typesupport_introspection_c"]
    libraries = [f"-l{name}__rosidl_{part}" for name in USED for part in parts]
    libraries += [f"-lrosidl_{it}" for it in ["runtime_c", *parts[2:]]]
    libraries += ["-lrosidl_typesupport_fastrtps_cpp", "-lfastcdr", "-lrmw", "-lrcutils"]
    library = prefix / "lib" / f"lib{package}__rosidl_generator_c.so"
    made = [str(it) for it in objects.rglob("*.o")]
    run("g++", "-shared", "-o", str(library), *made, f"-L{library.parent}", "-Wl,--as-needed", *libraries)
    installed = Path(sysconfig.get_path("purelib")) / package
    shutil.rmtree(installed, ignore_errors=True)
    shutil.copytree(python, installed)
    for kind in ["fastrtps", "introspection"]:
        link(library, library.with_name(f"lib{package}__rosidl_typesupport_{kind}_c.so"))
    link(library, installed / f"{package}_s__rosidl_typesupport_c.so")


def link(library, name):
    name.unlink(missing_ok=True)
    name.symlink_to(library)


def run(*command, cwd=None):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command[:2])} ...: {done.stderr[:2000]}")


def main():
    made = Path(sys.prefix) / "interfaces.sha256"
    wanted = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    if made.exists() and made.read_text(encoding="utf-8") == wanted:
        return
    os.environ["AMENT_PREFIX_PATH"] = sys.prefix
    with (
        tempfile.TemporaryDirectory(prefix="onbeat-interfaces-") as folder,
        ProcessPoolExecutor(os.cpu_count()) as workers,
    ):
        list(workers.map(build, PACKAGES, [Path(folder)] * len(PACKAGES)))
    made.write_text(wanted, encoding="utf-8")
    print(f"made {', '.join(PACKAGES)} with ROS 2's generators")


if __name__ == "__main__":
    main()
