//! Parameter services, the topic of parameter changes, and the other services of every node:
//! descriptions of types, and the logger's level.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Endpoints, Moment};
use crate::clock::{WallClock, monotonic_ns};
use crate::dds::service::Service;
use crate::dds::{DdsError, Quality, Writer, type_description};
use crate::messages::parameter::{
    ListParametersRequest, ListParametersResult, ListResponse, NamesRequest, Parameter,
    ParameterDescriptor, ParameterEvent, ParameterValue, SetLoggerLevelsRequest, SetParametersRequest,
    SetParametersResult,
};
use crate::messages::service::{GetTypeDescriptionRequest, GetTypeDescriptionResponse};
use crate::settings::{self, Settings};

/// Parameters of a node.
pub(crate) trait Store: Clone {
    /// Value; "not set" for an unknown name.
    fn get(&self, name: &str) -> ParameterValue;

    /// Description; only the name for an unknown one.
    fn describe(&self, name: &str) -> ParameterDescriptor;

    /// Names that equal one of `prefixes` or are below it; all if there are none.
    fn list(&self, prefixes: &[String]) -> ListParametersResult;

    /// Changes one.
    ///
    /// # Errors
    /// Reason against the new value.
    fn set(&mut self, parameter: &Parameter) -> Result<(), String>;
}

/// Services of the parameters and of the logger's level of this node.
pub(crate) struct Parameters {
    parameters: ParameterServices,
    get_levels: Service,
    set_levels: Service,
}

/// Services and topic of the parameters of a node, and the service that describes its types.
pub(crate) struct ParameterServices {
    get: Service,
    types: Service,
    set: Service,
    set_atomically: Service,
    list: Service,
    describe: Service,
    describe_type: Service,
    events: Writer,
}

impl ParameterServices {
    /// Services of the node that the next readers and writers belong to.
    pub(crate) fn new(endpoints: &mut Endpoints<'_>) -> Result<Self, DdsError> {
        let mut serve = |name: &str, kind: &str| {
            endpoints.serve(&format!("~/{name}"), &format!("rcl_interfaces/srv/{kind}"))
        };
        Ok(Self {
            get: serve("get_parameters", "GetParameters")?,
            types: serve("get_parameter_types", "GetParameterTypes")?,
            set: serve("set_parameters", "SetParameters")?,
            set_atomically: serve("set_parameters_atomically", "SetParametersAtomically")?,
            list: serve("list_parameters", "ListParameters")?,
            describe: serve("describe_parameters", "DescribeParameters")?,
            describe_type: endpoints
                .serve("~/get_type_description", "type_description_interfaces/srv/GetTypeDescription")?,
            events: endpoints.publish(
                "/parameter_events",
                "rcl_interfaces/ParameterEvent",
                Quality::Reliable,
            )?,
        })
    }

    pub(crate) fn poll(&self, store: &mut impl Store, node: &str) {
        answer(&self.get, |request: NamesRequest| ListResponse {
            values: request.names.iter().map(|name| store.get(name)).collect(),
        });
        answer(&self.types, |request: NamesRequest| ListResponse {
            values: request.names.iter().map(|name| store.get(name).kind).collect(),
        });
        answer(&self.describe, |request: NamesRequest| ListResponse {
            values: request.names.iter().map(|name| store.describe(name)).collect(),
        });
        answer(&self.list, |request: ListParametersRequest| -> ListParametersResult {
            store.list(&request.prefixes)
        });
        answer(&self.describe_type, |request: GetTypeDescriptionRequest| {
            match type_description::of(&request.type_name, &request.type_hash) {
                Ok(type_description) => GetTypeDescriptionResponse {
                    successful: true,
                    type_description,
                    ..GetTypeDescriptionResponse::default()
                },
                Err(failure_reason) => {
                    GetTypeDescriptionResponse { failure_reason, ..GetTypeDescriptionResponse::default() }
                }
            }
        });
        let mut changed = Vec::new();
        answer(&self.set, |request: SetParametersRequest| {
            let set = request.parameters.into_iter().map(|parameter| {
                let outcome = store.set(&parameter);
                if outcome.is_ok() {
                    changed.push(parameter);
                }
                result(outcome)
            });
            ListResponse { values: set.collect() }
        });
        answer(&self.set_atomically, |request: SetParametersRequest| {
            let outcome = set_all(store, &request.parameters);
            if outcome.is_ok() {
                changed.extend(request.parameters);
            }
            result(outcome)
        });
        if !changed.is_empty() {
            let stamp = WallClock::now().stamp(monotonic_ns());
            self.events.send(&ParameterEvent {
                stamp,
                node: node.to_owned(),
                changed_parameters: changed,
                ..ParameterEvent::default()
            });
        }
    }

    pub(crate) fn services(&mut self) -> [&mut Service; 7] {
        [
            &mut self.get,
            &mut self.types,
            &mut self.set,
            &mut self.set_atomically,
            &mut self.list,
            &mut self.describe,
            &mut self.describe_type,
        ]
    }
}

impl Parameters {
    pub(crate) fn new(endpoints: &mut Endpoints<'_>) -> Result<Self, DdsError> {
        Ok(Self {
            parameters: ParameterServices::new(endpoints)?,
            get_levels: endpoints.serve("~/get_logger_levels", "rcl_interfaces/srv/GetLoggerLevels")?,
            set_levels: endpoints.serve("~/set_logger_levels", "rcl_interfaces/srv/SetLoggerLevels")?,
        })
    }

    pub(crate) fn poll(&self, moment: &mut Moment<'_>) {
        self.parameters.poll(moment.settings, &moment.node.to_string());
        let voice = moment.voice;
        answer(&self.get_levels, |request: NamesRequest| ListResponse {
            values: request.names.into_iter().map(|name| voice.level_of(name)).collect(),
        });
        answer(&self.set_levels, |request: SetLoggerLevelsRequest| ListResponse {
            values: request.levels.iter().map(|level| result(voice.set_level(level))).collect(),
        });
    }

    pub(crate) fn services(&mut self) -> impl Iterator<Item = &mut Service> {
        self.parameters.services().into_iter().chain([&mut self.get_levels, &mut self.set_levels])
    }
}

impl Store for Settings {
    fn get(&self, name: &str) -> ParameterValue {
        self.get(name)
    }

    fn describe(&self, name: &str) -> ParameterDescriptor {
        settings::describe(name)
    }

    fn list(&self, prefixes: &[String]) -> ListParametersResult {
        settings::list(prefixes)
    }

    fn set(&mut self, parameter: &Parameter) -> Result<(), String> {
        self.set(parameter)
    }
}

/// Sets all parameters or none.
fn set_all<S: Store>(settings: &mut S, parameters: &[Parameter]) -> Result<(), String> {
    let mut changed = settings.clone();
    parameters.iter().try_for_each(|parameter| changed.set(parameter))?;
    *settings = changed;
    Ok(())
}

fn result(outcome: Result<(), String>) -> SetParametersResult {
    SetParametersResult { successful: outcome.is_ok(), reason: outcome.err().unwrap_or_default() }
}

/// Answers every request that can be decoded; the client of any other could not decode an answer
/// either.
pub(super) fn answer<Q: DeserializeOwned, R: Serialize>(
    service: &Service,
    mut respond: impl FnMut(Q) -> R,
) {
    while let Some(request) = service.take() {
        if let Ok(asked) = request.decode() {
            service.reply(request.origin(), &respond(asked));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::parameter::kind;

    #[test]
    fn parameters_set_together_are_set_all_or_none() {
        let number = |name: &str, double_value| Parameter {
            name: name.into(),
            value: ParameterValue { kind: kind::DOUBLE, double_value, ..ParameterValue::default() },
        };
        let mut settings = Settings::default();
        assert!(set_all(&mut settings, &[number("odom_rate", 10.0), number("odom_rate", -1.0)]).is_err());
        assert_eq!(settings, Settings::default());
        set_all(&mut settings, &[number("odom_rate", 10.0), number("joint_states_rate", 20.0)]).unwrap();
        assert_eq!((settings.odom_rate, settings.joint_states_rate), (10.0, 20.0));
    }
}
