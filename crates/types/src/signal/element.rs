//! Names of elements, for one signal that covers several values.

/// True if `name` belongs to an element of the signal `array`: `array[0]` and up, or `array.x`.
#[must_use]
pub fn is_element(array: &str, name: &str) -> bool {
    let rest = name.strip_prefix(array).unwrap_or("");
    rest.len() > 1 && rest.starts_with('.')
        || rest.len() > 2 && rest.starts_with('[') && rest.ends_with(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elements have the name of their signal and their own in brackets, or behind a dot.
    #[test]
    fn an_element_has_the_name_of_its_signal_in_front() {
        assert!(["force.x", "force[0]", "force[12]"].iter().all(|name| is_element("force", name)));
        let others = ["force", "forces[0]", "force.", "force[]", "force[0", "torque.x", "other.force.x"];
        assert!(!others.iter().any(|name| is_element("force", name)));
    }
}
