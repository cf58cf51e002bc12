//! Errors of the parts of a robot: its URDF, its simulation, its shared memory, its capture.

use std::io;
use std::path::PathBuf;

use ethercat::sii::SiiError;
use ipc::server::CreateError;
use motion::kinematics::ArmError;
use onbeat_ethercat_linux::link::CaptureError as NotWhole;
use simulator::application::DescriptionError;
use simulator::segment::TopologyError;
use thiserror::Error;

/// Reason for which a robot cannot be simulated.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SimulationError {
    /// SubDevice that the robot file does not say how to simulate.
    #[error(
        "{robot}: SubDevice {position} \"{name}\": the robot file does not say how to simulate it, expected simulate = {{ \
         kind = ... }}: add it; `onbeat run --iface` on the real bus needs none"
    )]
    NotDescribed {
        /// Name of the robot.
        robot: String,
        /// Position on the bus.
        position: usize,
        /// Name of the SubDevice.
        name: String,
    },
    /// SubDevice with an application that cannot be made.
    #[error("{robot}: SubDevice {position} \"{name}\": {source}: correct the robot file")]
    Application {
        /// Name of the robot.
        robot: String,
        /// Position on the bus.
        position: usize,
        /// Name of the SubDevice.
        name: String,
        /// Reason.
        source: DescriptionError,
    },
    /// SII image that does not match the simulated kind.
    #[error(
        "{robot}: SubDevice {position} \"{name}\": kind \"{kind}\" contradicts its SII image {}: {difference}: \
         choose another kind, or leave sii out",
        image.display()
    )]
    Contradiction {
        /// Name of the robot.
        robot: String,
        /// Position on the bus.
        position: usize,
        /// Name of the SubDevice.
        name: String,
        /// Kind of its application.
        kind: &'static str,
        /// Path of the image.
        image: PathBuf,
        /// Difference between the image and the kind.
        difference: Box<str>,
    },
    /// Cable in a port that its ESC does not have.
    #[error(
        "{robot}: SubDevice {position} \"{name}\" on port {port} of \"{parent}\", expected a port \
         that the ESC of \"{parent}\" has: correct port, or the esc of \"{parent}\""
    )]
    Port {
        /// Name of the robot.
        robot: String,
        /// Position on the bus.
        position: usize,
        /// Name of the SubDevice.
        name: String,
        /// Port of the other.
        port: u8,
        /// Name of the other.
        parent: String,
    },
    /// Cables that lead nowhere.
    #[error("{robot}: {source}")]
    Topology {
        /// Name of the robot.
        robot: String,
        /// Reason.
        source: TopologyError,
    },
    /// SII image that cannot be read.
    #[error("{}: cannot be read ({source}), expected an SII image: check the path", path.display())]
    ImageFile {
        /// Its path.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// Kept SII that is broken.
    #[error("{}: {source}: remove the file to begin with a new SII", path.display())]
    KeptImage {
        /// Its path.
        path: PathBuf,
        /// Reason.
        source: SiiError,
    },
    /// Kept SII that is longer than any.
    #[error("{}: more than {most} bytes, expected an SII: remove the file to begin with a new one", path.display())]
    KeptTooLong {
        /// Its path.
        path: PathBuf,
        /// Bytes at most.
        most: u64,
    },
    /// SII that cannot be kept.
    #[error("{}: cannot be written ({source}), expected a folder that keeps SIIs: choose another", path.display())]
    SiiNotKept {
        /// Path of the folder, or of the file in it.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// ESI file (XML) in the place of an SII image.
    #[error(
        "{}: an ESI file (XML), expected an SII image (EEPROM contents): read it from the device, or let `pdos` and `identity` describe it",
        path.display()
    )]
    EsiFile {
        /// Its path.
        path: PathBuf,
    },
    /// File that is no SII image.
    #[error("{}: {source}: read the image again", path.display())]
    Image {
        /// Its path.
        path: PathBuf,
        /// Reason.
        source: SiiError,
    },
}

/// Reason for which the URDF of a robot file cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UrdfError {
    /// File that is no URDF of the robot's axes.
    #[error("{}: {source}; the robot file's [arm] names it as its URDF", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// Reason.
        source: UrdfFileError,
    },
    /// Links of base and tool that no row of joints joins.
    #[error("{}: {source}: correct base and tool of the robot file's [arm], or the URDF", path.display())]
    Tool {
        /// Path of the URDF.
        path: PathBuf,
        /// Reason.
        source: ArmError,
    },
}

/// Reason for which a file is no URDF of the robot's axes. Lines begin with 1.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UrdfFileError {
    /// File that cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// Folder, device or pipe.
    #[error("it is no regular file, expected a URDF")]
    NotRegular,
    /// File that is longer than any URDF.
    #[error("{found} bytes, expected a URDF of at most {most}: leave out what is no URDF")]
    TooLong {
        /// Its bytes.
        found: u64,
        /// Bytes at most.
        most: u64,
    },
    /// Bytes that are no text.
    #[error("byte {at} is no UTF-8, expected a text")]
    NotText {
        /// Bytes before the first wrong one.
        at: usize,
    },
    /// File without a word.
    #[error("it is empty, expected a URDF")]
    Empty,
    /// Text that is no XML.
    #[error("{0}, expected XML")]
    Xml(#[source] roxmltree::Error),
    /// Element with more attributes than any has: readers of XML compare each with all before it.
    #[error("line {line}, an element with more than {most} attributes, expected a URDF")]
    Attributes {
        /// Line in which it begins.
        line: usize,
        /// Attributes at most.
        most: usize,
    },
    /// XML of another format.
    #[error("its outermost element is <{found}>, expected <robot>")]
    Root {
        /// Name of its outermost element.
        found: String,
    },
    /// Two joints of one name.
    #[error("line {line}, two joints \"{joint}\", expected every name once")]
    TwoJoints {
        /// Line of the second one.
        line: u32,
        /// Their name.
        joint: String,
    },
    /// Axis without its joint.
    #[error("no joint \"{joint}\" for axis \"{axis}\", expected one of {known}: correct [arm.joints]")]
    NoJoint {
        /// Name looked for.
        joint: String,
        /// Name of the axis.
        axis: String,
        /// Names that are there, the first of them.
        known: String,
    },
    /// Axis with a fixed joint.
    #[error("line {line}, joint \"{joint}\" of axis \"{axis}\" is fixed, expected one that moves")]
    Fixed {
        /// Its line.
        line: u32,
        /// Name of the joint.
        joint: String,
        /// Name of the axis.
        axis: String,
    },
    /// Limit that is no finite number.
    #[error("line {line}, joint \"{joint}\" has {key}=\"{found}\" as a limit, expected a number")]
    Limit {
        /// Its line.
        line: u32,
        /// Name of the joint.
        joint: String,
        /// Attribute.
        key: &'static str,
        /// Value found.
        found: String,
    },
    /// Limits in the wrong order.
    #[error(
        "line {line}, joint \"{joint}\" has limits from {lower} to {upper}, expected the lower one first"
    )]
    Limits {
        /// Their line.
        line: u32,
        /// Name of the joint.
        joint: String,
        /// Lower limit as written.
        lower: f64,
        /// Upper limit as written.
        upper: f64,
    },
}

/// Settings of the shared-memory interface that cannot be.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SharedMemoryError {
    /// Port that cannot be made.
    #[error("ipc \"{port}\": {source}")]
    Port {
        /// Its name.
        port: String,
        /// Reason.
        source: CreateError,
    },
    /// Group that the machine does not have.
    #[error(
        "group \"{group}\": expected a group of /etc/group, found none: create it, or correct \
         group in the robot file's [ipc]"
    )]
    Group {
        /// Name or number in the robot file.
        group: String,
    },
}

/// Reason for a capture that cannot be begun, or is not whole.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// File that cannot be written.
    #[error(
        "{}: the capture cannot be written ({source}), expected a place for a new file: choose another path",
        path.display()
    )]
    File {
        /// Its path.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// Capture that was broken off.
    #[error("{}: {source}: free some disk space, or capture elsewhere", path.display())]
    NotWhole {
        /// Its path.
        path: PathBuf,
        /// Frames written and missing, and the reason.
        source: NotWhole,
    },
}
