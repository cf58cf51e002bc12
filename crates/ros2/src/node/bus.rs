//! Services that ask the running bus: objects of SubDevices, and AL states.
//!
//! The types of the SDO services are those of ethercat_driver_ros2 (`ethercat_msgs`). A request may take seconds: each has a thread
//! and a connection of its own, and its answer is sent when it is there.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

use ipc::bus::{BusStatus, Bytes, Outcome, Service as Asked};
use ipc::client::Client;

use super::commands::attached;
use super::{Endpoints, Moment};
use crate::dds::DdsError;
use crate::dds::service::{Origin, Service};
use crate::messages::service::{Done, GetSdoRequest, GetSdoResponse, SetSdoRequest};
use crate::object::ObjectType;

/// Services, and the requests that are under way.
pub(crate) struct Bus {
    get: Service,
    set: Service,
    states: Service,
    answers: (Sender<Answer>, Receiver<Answer>),
    waiting: usize,
}

enum Answer {
    Get(Origin, GetSdoResponse),
    Set(Origin, Done),
    States(Origin, Done),
}

/// Requests under way; the cycle serves half of those it can to one user.
const MOST: usize = 8;

impl Bus {
    pub(crate) fn new(endpoints: &mut Endpoints<'_>) -> Result<Self, DdsError> {
        Ok(Self {
            get: endpoints.serve("~/get_sdo", "ethercat_msgs/GetSdo")?,
            set: endpoints.serve("~/set_sdo", "ethercat_msgs/SetSdo")?,
            states: endpoints.serve("~/al_states", "std_srvs/Trigger")?,
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
        while let Some(request) = self.states.take() {
            let origin = request.origin();
            self.ask(moment, move |path| Answer::States(origin, done(path.and_then(states))));
        }
        while let Ok(answer) = self.answers.1.try_recv() {
            self.waiting = self.waiting.saturating_sub(1);
            let _ = match answer {
                Answer::Get(origin, response) => self.get.reply(origin, &response),
                Answer::Set(origin, response) => self.set.reply(origin, &response),
                Answer::States(origin, response) => self.states.reply(origin, &response),
            };
        }
    }

    /// True while an answer is awaited.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    pub(crate) fn services(&mut self) -> Vec<&mut Service> {
        vec![&mut self.get, &mut self.set, &mut self.states]
    }

    /// Runs `act` on a thread of its own, with the cycle's socket; at once, and in vain, where it cannot be asked.
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

fn call(path: &Path, service: Asked) -> Result<Outcome, String> {
    let bus = Client::open(path).and_then(|client| client.bus());
    bus.map_err(|error| error.to_string())?.call(service).map_err(|error| error.to_string())
}

fn read(path: &Path, asked: &GetSdoRequest) -> Result<GetSdoResponse, String> {
    let object_type: ObjectType = asked.sdo_data_type.parse()?;
    let GetSdoRequest { slave_position: position, sdo_index: index, sdo_subindex: sub_index, .. } = *asked;
    let service = Asked::Upload { position, index, sub_index, complete_access: false };
    let Outcome::Data(Bytes(bytes)) = call(path, service)? else {
        return Err("the cycle answered with something else".into());
    };
    let (text, number) = object_type.decode(&bytes)?;
    Ok(GetSdoResponse {
        success: true,
        sdo_return_message: String::new(),
        sdo_return_value_string: text,
        sdo_return_value: number,
    })
}

fn write(path: &Path, asked: &SetSdoRequest) -> Result<String, String> {
    let data = Bytes(asked.sdo_data_type.parse::<ObjectType>()?.encode(&asked.sdo_value)?);
    let SetSdoRequest { slave_position: position, sdo_index: index, sdo_subindex: sub_index, .. } = *asked;
    let service =
        Asked::Download { position, index, sub_index, complete_access: false, data, force: false };
    call(path, service).map(|_| String::new())
}

/// States as `NAME: STATE` of all SubDevices; an error if one of them is not in Op.
fn states(path: &Path) -> Result<String, String> {
    let Outcome::Status(status) = call(path, Asked::Status { errors: false })? else {
        return Err("the cycle answered with something else".into());
    };
    let client = Client::open(path).map_err(|error| error.to_string())?;
    let told = listed(&status, &client.description().sub_devices);
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
