//! CANopen over EtherCAT on the SubDevice's side (ETG.1000.6, 5.6): the object dictionary, SDOs,
//! SDO information and emergencies.
//!
//! | module | contents |
//! |---|---|
//! | [`data_type`] | the basic data types and their codes |
//! | [`object`] | objects, entries, access rights |
//! | [`dictionary`] | the dictionary: look-up, SDO access with its abort codes |
//! | [`complete_access`] | all sub-indices of an object at once |
//! | [`mapping`] | PDO mapping and assignment, and the plan that copies process data |
//! | [`common`] | common objects of every CoE SubDevice |
//! | [`server`] | SDO transfers and emergencies |
//! | [`device`] | dictionary, server and process data together |
//! | `synchronisation` | synchronisation parameters and error settings |
//! | [`information`] | SDO information: descriptions of the objects |

pub mod common;
pub mod complete_access;
pub mod data_type;
pub mod device;
pub mod dictionary;
pub mod information;
pub mod object;
pub mod server;
mod synchronisation;

pub use common::DeviceDescription;
pub use data_type::DataType;
pub use device::CoeDevice;
pub use dictionary::mapping::{self, CopyPlan, Direction};
pub use dictionary::{EntryId, ObjectDictionary};
pub use object::{Allowed, Entry, Object, READ_WRITE};
pub use server::CoeServer;
