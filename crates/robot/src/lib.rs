//! The robot file: one description of bus, axes and tasks, read and checked.
