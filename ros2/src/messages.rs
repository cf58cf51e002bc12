//! Supported ROS 2 messages, field for field as in their definitions (Jazzy); CDR has no names, so
//! the order counts.
//!
//! | module | packages |
//! |---|---|
//! | [`basic`] | builtin_interfaces, std_msgs |
//! | [`geometry`] | geometry_msgs, nav_msgs, tf2_msgs |
//! | [`sensor`] | sensor_msgs, diagnostic_msgs |
//! | [`trajectory`] | trajectory_msgs, control_msgs |
//! | [`action`] | action_msgs, unique_identifier_msgs |
//! | [`service`] | std_srvs, ethercat_msgs, type_description_interfaces |
//! | [`controller_manager`] | controller_manager_msgs, lifecycle_msgs |
//! | [`parameter`] | rcl_interfaces |

pub(crate) mod action;
pub(crate) mod basic;
pub(crate) mod controller_manager;
pub(crate) mod geometry;
pub(crate) mod parameter;
pub(crate) mod sensor;
pub(crate) mod service;
pub(crate) mod trajectory;

#[cfg(test)]
mod golden;
