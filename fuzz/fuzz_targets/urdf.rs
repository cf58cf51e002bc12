//! Any text as a URDF: no panic, and an arm that is taken has finite joints, axes of length 1 and
//! limits in order.
#![no_main]

use libfuzzer_sys::fuzz_target;
use motion::kinematics::arm::{JointKind, SerialArm};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    let arm = match SerialArm::from_urdf(text, None, None) {
        Err(error) => return assert!(!error.to_string().is_empty()),
        Ok(arm) => arm,
    };
    assert!(!arm.joints().is_empty() && arm.base_link() != arm.tip_link());
    for joint in arm.joints() {
        assert!(joint.origin.position.is_finite() && joint.origin.rotation.is_finite(), "{joint:?}");
        assert!((joint.axis.length() - 1.0).abs() < 1e-6, "{joint:?}");
        let (lower, upper) = joint.limits;
        assert!(lower < upper, "{joint:?}");
        assert!(joint.kind == JointKind::Turns || lower.is_finite() && upper.is_finite(), "{joint:?}");
    }
    let _ = arm.forward(&vec![0.5; arm.joints().len()]);
    // The same arm by the names of its ends.
    let named = SerialArm::from_urdf(text, Some(arm.base_link()), Some(arm.tip_link()));
    assert_eq!(named.as_ref(), Ok(&arm));
});
