//! Hashes of types (RIHS01, REP 2016), which ROS 2 carries in the USER_DATA of readers and writers.
//! Its tools report two ends with different hashes, and warn of an end without one.
//!
//! ROS 2's own generator makes the hashes: `lab/peers/ros_hashes.py` writes the list, and a
//! conformance check compares it.

/// Lines of a type's name in ROS 2 and its hash.
pub(super) const HASHES: &str = include_str!("../messages/hashes.txt");

/// USER_DATA of a reader or writer of a type, by its name in DDS.
pub(super) fn user_data(dds_type: &str) -> Vec<u8> {
    let hash = of(dds_type);
    debug_assert!(
        hash.is_some(),
        "{dds_type}: expected a line in messages/hashes.txt (lab/peers/ros_hashes.py)"
    );
    hash.map_or_else(Vec::new, |hash| format!("typehash={hash};").into_bytes())
}

/// Hash of a type, by its name in DDS: `geometry_msgs::msg::dds_::Twist_`.
fn of(dds_type: &str) -> Option<&'static str> {
    let name = dds_type.strip_suffix('_')?.replace("::dds_::", "/").replace("::", "/");
    let mut lines = HASHES.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(known, _)| *known == name).map(|(_, hash)| hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_has_the_hash_that_ros_gives_it() {
        // `ros2 topic info -v` of a genuine publisher.
        let twist = "RIHS01_9c45bf16fe0983d80e3cfe750d6835843d265a9a6c46bd2e609fcddde6fb8d2a";
        assert_eq!(of("geometry_msgs::msg::dds_::Twist_"), Some(twist));
        let user_data = String::from_utf8(user_data("geometry_msgs::msg::dds_::Twist_")).unwrap();
        assert_eq!(user_data, format!("typehash={twist};"));
        assert!(of("std_srvs::srv::dds_::Trigger_Request_").is_some());
        assert_eq!(of("geometry_msgs::msg::dds_::Twis_"), None);
    }
}
