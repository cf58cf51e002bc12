//! Name of a shared-memory interface, and its place.

use std::path::{Path, PathBuf};

use robot::RobotConfig;

/// Name wished for a shared-memory interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) name: String,
    /// Place wished for its socket; `None`: where cycles' sockets are.
    pub(crate) folder: Option<PathBuf>,
    /// By default: if it is taken, another will do.
    pub(crate) may_be_another: bool,
}

/// The requested name, or a path of a socket; otherwise the robot's.
pub(crate) fn name(robot: &RobotConfig, asked: Option<&str>) -> Name {
    let Some(asked) = asked else {
        let chosen = robot.ipc.name != robot.name;
        return Name { name: fitting(&robot.ipc.name), folder: None, may_be_another: !chosen };
    };
    let path = Path::new(asked);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = path.file_name().map_or(asked.to_owned(), |name| name.to_string_lossy().into_owned());
    let name = name.strip_suffix(".sock").map_or(name.clone(), str::to_owned);
    Name { name, folder: folder.map(Path::to_owned), may_be_another: false }
}

impl Name {
    /// The name to be tried next: itself first, then with a number.
    pub(crate) fn attempt(&self, attempt: u32) -> Option<Self> {
        match attempt {
            1 => Some(self.clone()),
            _ if !self.may_be_another => None,
            number => Some(Self { name: format!("{}-{number}", self.name), ..self.clone() }),
        }
    }
}

/// A robot may be called anything; a socket may not.
fn fitting(name: &str) -> String {
    let fits = |letter: char| if letter == '/' || letter.is_control() { '-' } else { letter };
    let mut fitting: String = name.trim_start_matches('.').chars().map(fits).collect();
    while fitting.len() > LONGEST {
        fitting.pop();
    }
    if fitting.is_empty() { "robot".to_owned() } else { fitting }
}

/// Bytes, with space for a number behind it.
const LONGEST: usize = 58;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_robots_name_becomes_the_name_of_a_file() {
        for (robot, expected) in [("m4k", "m4k"), ("a/b", "a-b"), ("..", "robot"), ("", "robot")] {
            assert_eq!(fitting(robot), expected);
        }
        assert_eq!(fitting(&"ä".repeat(100)).len(), LONGEST);
    }

    #[test]
    fn a_path_names_folder_and_ipc() {
        let robot = RobotConfig::parse(include_str!("../../../../examples/six-axis.toml"), "x").unwrap();
        let of = |asked| {
            let Name { name, folder, may_be_another } = name(&robot, asked);
            (name, folder.map(|folder| folder.display().to_string()), may_be_another)
        };
        assert_eq!(of(None), ("six-axis".to_owned(), None, true));
        assert_eq!(of(Some("left")), ("left".to_owned(), None, false));
        assert_eq!(of(Some("/tmp/x/left.sock")), ("left".to_owned(), Some("/tmp/x".to_owned()), false));
    }

    #[test]
    fn only_a_default_name_gets_a_number() {
        let free = Name { name: "m4k".to_owned(), folder: None, may_be_another: true };
        assert_eq!(free.attempt(2).unwrap().name, "m4k-2");
        let chosen = Name { may_be_another: false, ..free };
        assert_eq!((chosen.attempt(1).unwrap().name, chosen.attempt(2)), ("m4k".to_owned(), None));
    }
}
