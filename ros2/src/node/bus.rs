//! Services of the running bus: objects of SubDevices and their descriptions, AL states and
//! counters.
//!
//! The types of the SDO services come from ethercat_driver_ros2 (`ethercat_msgs`). A request may
//! take seconds: each has a separate thread and connection, and its answer is sent when it is
//! ready.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

use ipc::bus::{BusStatus, Bytes, Outcome, Service as BusService};
use ipc::client::Client;
use serde_json::json;
use types::object::{ObjectType, ObjectValue};

use super::commands::attached;
use super::{Endpoints, Moment};
use crate::dds::DdsError;
use crate::dds::service::{Origin, Service};
use crate::messages::service::{Done, GetSdoRequest, GetSdoResponse, SetSdoRequest};

/// Services, and the requests that are under way.
pub(crate) struct Bus {
    get: Service,
    set: Service,
    information: Service,
    states: Service,
    status: Service,
    answers: (Sender<Answer>, Receiver<Answer>),
    waiting: usize,
}

enum Answer {
    Get(Origin, GetSdoResponse),
    Set(Origin, Done),
    Information(Origin, GetSdoResponse),
    States(Origin, Done),
    Status(Origin, Done),
}

/// Most requests under way. The cycle serves one user at most half of the requests it can.
const MOST: usize = 8;

impl Bus {
    pub(crate) fn new(endpoints: &mut Endpoints<'_>) -> Result<Self, DdsError> {
        Ok(Self {
            get: endpoints.serve("~/get_sdo", "ethercat_msgs/GetSdo")?,
            set: endpoints.serve("~/set_sdo", "ethercat_msgs/SetSdo")?,
            information: endpoints.serve("~/sdo_information", "ethercat_msgs/GetSdo")?,
            states: endpoints.serve("~/al_states", "std_srvs/Trigger")?,
            status: endpoints.serve("~/bus_status", "std_srvs/Trigger")?,
            answers: channel(),
            waiting: 0,
        })
    }

    pub(crate) fn poll(&mut self, moment: &mut Moment<'_>) {
        while let Some(request) = self.get.take() {
            let (asked, origin) = (request.decode::<GetSdoRequest>(), request.origin());
            self.ask(moment, move |path| {
                let read = asked.and_then(|asked| read(path?, &asked));
                Answer::Get(origin, read.unwrap_or_else(GetSdoResponse::failed))
            });
        }
        while let Some(request) = self.set.take() {
            let (asked, origin) = (request.decode::<SetSdoRequest>(), request.origin());
            self.ask(moment, move |path| {
                Answer::Set(origin, done(asked.and_then(|asked| write(path?, &asked))))
            });
        }
        while let Some(request) = self.information.take() {
            let (asked, origin) = (request.decode::<GetSdoRequest>(), request.origin());
            self.ask(moment, move |path| {
                let told = asked.and_then(|asked| information(path?, &asked));
                Answer::Information(origin, told.unwrap_or_else(GetSdoResponse::failed))
            });
        }
        while let Some(request) = self.states.take() {
            let origin = request.origin();
            self.ask(moment, move |path| Answer::States(origin, done(path.and_then(states))));
        }
        while let Some(request) = self.status.take() {
            let origin = request.origin();
            self.ask(moment, move |path| Answer::Status(origin, done(path.and_then(counted))));
        }
        while let Ok(answer) = self.answers.1.try_recv() {
            self.waiting = self.waiting.saturating_sub(1);
            let _ = match answer {
                Answer::Get(origin, response) => self.get.reply(origin, &response),
                Answer::Set(origin, response) => self.set.reply(origin, &response),
                Answer::Information(origin, response) => self.information.reply(origin, &response),
                Answer::States(origin, response) => self.states.reply(origin, &response),
                Answer::Status(origin, response) => self.status.reply(origin, &response),
            };
        }
    }

    /// True while an answer is awaited.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    pub(crate) fn services(&mut self) -> Vec<&mut Service> {
        vec![&mut self.get, &mut self.set, &mut self.information, &mut self.states, &mut self.status]
    }

    /// Runs `act` on a separate thread, with the cycle's socket; without a cycle that can answer,
    /// fails at once.
    fn ask(
        &mut self,
        moment: &mut Moment<'_>,
        act: impl FnOnce(Result<&Path, String>) -> Answer + Send + 'static,
    ) {
        let answers = self.answers.0.clone();
        let path = attached(&mut moment.robot).map(|robot| robot.path().to_owned());
        let path = path.and_then(|path: PathBuf| match self.waiting {
            MOST.. => Err(format!("{MOST} requests are under way: ask again when one is answered")),
            _ => Ok(path),
        });
        self.waiting += 1;
        match path {
            Err(why) => {
                let _ = answers.send(act(Err(why)));
            }
            Ok(path) => {
                std::thread::spawn(move || answers.send(act(Ok(&path))));
            }
        }
    }
}

fn done(outcome: Result<String, String>) -> Done {
    let success = outcome.is_ok();
    Done { success, message: outcome.unwrap_or_else(|why| why) }
}

fn call(path: &Path, service: BusService) -> Result<Outcome, String> {
    let bus = Client::open(path).and_then(|client| client.bus());
    bus.map_err(|error| error.to_string())?.call(service).map_err(|error| error.to_string())
}

/// Bytes that a SubDevice answers with.
fn data(path: &Path, service: BusService) -> Result<Vec<u8>, String> {
    match call(path, service)? {
        Outcome::Data(Bytes(bytes)) => Ok(bytes),
        _ => Err(SOMETHING_ELSE.to_owned()),
    }
}

const SOMETHING_ELSE: &str = "the cycle answered with something else";

fn read(path: &Path, asked: &GetSdoRequest) -> Result<GetSdoResponse, String> {
    let object_type = object_type(&asked.sdo_data_type)?;
    let GetSdoRequest { slave_position: position, sdo_index: index, sdo_subindex: sub_index, .. } = *asked;
    let bytes = data(path, BusService::Upload { position, index, sub_index, complete_access: false })?;
    let value = object_type
        .decode(&bytes)
        .map_err(|error| format!("the object: {error}: choose another sdo_data_type"))?;
    let number = match value {
        ObjectValue::Bool(value) => f64::from(u8::from(value)),
        ObjectValue::Integer(value) => value as f64,
        ObjectValue::Real(value) => value,
        ObjectValue::Text(_) | ObjectValue::Octets(_) => f64::NAN,
    };
    let text = match value {
        ObjectValue::Text(text) => text,
        value => value.to_string(),
    };
    Ok(GetSdoResponse::read(text, number))
}

fn write(path: &Path, asked: &SetSdoRequest) -> Result<String, String> {
    let encoded = object_type(&asked.sdo_data_type)?.encode_text(&asked.sdo_value);
    let data = Bytes(encoded.map_err(|error| format!("sdo_value: {error}"))?);
    let SetSdoRequest { slave_position: position, sdo_index: index, sdo_subindex: sub_index, .. } = *asked;
    let service =
        BusService::Download { position, index, sub_index, complete_access: false, data, force: false };
    call(path, service).map(|_| String::new())
}

fn object_type(name: &str) -> Result<ObjectType, String> {
    name.parse().map_err(|error| format!("sdo_data_type: {error}"))
}

/// Indices of the object dictionary, or with an index an entry of it, as JSON.
fn information(path: &Path, asked: &GetSdoRequest) -> Result<GetSdoResponse, String> {
    let GetSdoRequest { slave_position: position, sdo_index: index, sdo_subindex: sub_index, .. } = *asked;
    if index == 0 {
        let list = data(path, BusService::ObjectList { position, list: 1 })?;
        // The first two bytes repeat the list type (ETG.1000.6, 5.6.3.3).
        let indices = list.get(2..).unwrap_or_default().chunks_exact(2);
        let indices: Vec<String> = indices.map(|it| format!("{:#06x}", u16_at(it, 0))).collect();
        return Ok(GetSdoResponse::read(indices.join(" "), indices.len() as f64));
    }
    let object = data(path, BusService::DescribeObject { position, index })?;
    let entry = data(path, BusService::DescribeEntry { position, index, sub_index, value_info: 0 })?;
    if object.len() < OBJECT_NAME || entry.len() < ENTRY_NAME {
        return Err(format!("the description of {index:#06x}:{sub_index:02x} is cut short"));
    }
    let name = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned();
    let data_type = u16_at(&entry, 4);
    let told = json!({
        "index": index, "object": name(&object[OBJECT_NAME..]), "last_sub_index": object[4], "object_code": object[5],
        "sub_index": sub_index, "name": name(&entry[ENTRY_NAME..]), "data_type": data_type,
        "type": ObjectType::from_data_type(data_type).map(|it| it.to_string()),
        "bits": u16_at(&entry, 6), "access": u16_at(&entry, 8),
    });
    Ok(GetSdoResponse::read(told.to_string(), data_type.into()))
}

/// Place of the name in the description of an object, and of an entry (ETG.1000.6, 5.6.3.5 and
/// 5.6.3.6).
const OBJECT_NAME: usize = 6;
const ENTRY_NAME: usize = 10;

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn status(path: &Path, errors: bool) -> Result<BusStatus, String> {
    match call(path, BusService::Status { errors, receive_times: false })? {
        Outcome::Status(status) => Ok(*status),
        _ => Err(SOMETHING_ELSE.to_owned()),
    }
}

/// States as `NAME: STATE` of all SubDevices; an error if one of them is not in Op.
fn states(path: &Path) -> Result<String, String> {
    let status = status(path, false)?;
    let client = Client::open(path).map_err(|error| error.to_string())?;
    let told = listed(&status, &client.description().sub_devices);
    all_in_op(&status, told)
}

/// State of the bus with all counters, as JSON; an error if a SubDevice is not in Op.
fn counted(path: &Path) -> Result<String, String> {
    let status = status(path, true)?;
    all_in_op(&status, serde_json::to_string(&status).map_err(|error| error.to_string())?)
}

fn all_in_op(status: &BusStatus, told: String) -> Result<String, String> {
    if status.sub_devices.iter().all(|it| it.state == "Op") { Ok(told) } else { Err(told) }
}

fn listed(status: &BusStatus, names: &[String]) -> String {
    let one = |(position, it): (usize, &ipc::bus::SubDeviceStatus)| {
        let name = names.get(position).map_or_else(|| position.to_string(), Clone::clone);
        match it.al_status_code {
            0 => format!("{name}: {}", it.state),
            code => format!("{name}: {}, {code:#06x} {}", it.state, it.al_status_text),
        }
    };
    status.sub_devices.iter().enumerate().map(one).collect::<Vec<_>>().join("; ")
}
