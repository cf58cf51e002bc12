//! Parameter services, the topic of parameter changes, and the services of the logger's level.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Endpoints, Moment};
use crate::clock::{WallClock, monotonic_ns};
use crate::dds::service::Service;
use crate::dds::{DdsError, Quality, Writer};
use crate::messages::parameter::{
    ListParametersRequest, ListParametersResult, ListResponse, NamesRequest, Parameter, ParameterEvent,
    SetLoggerLevelsRequest, SetParametersRequest, SetParametersResult,
};
use crate::settings::{self, Settings};

/// Services and topic of parameters.
pub(crate) struct Parameters {
    get: Service,
    types: Service,
    set: Service,
    set_atomically: Service,
    list: Service,
    describe: Service,
    events: Writer,
    get_levels: Service,
    set_levels: Service,
}

impl Parameters {
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
            get_levels: serve("get_logger_levels", "GetLoggerLevels")?,
            set_levels: serve("set_logger_levels", "SetLoggerLevels")?,
            events: endpoints.publish(
                "/parameter_events",
                "rcl_interfaces/ParameterEvent",
                Quality::Reliable,
            )?,
        })
    }

    pub(crate) fn poll(&self, moment: &mut Moment<'_>) {
        let settings = &mut *moment.settings;
        answer(&self.get, |request: NamesRequest| ListResponse {
            values: request.names.iter().map(|name| settings.get(name)).collect(),
        });
        answer(&self.types, |request: NamesRequest| ListResponse {
            values: request.names.iter().map(|name| settings::kind_of(name)).collect(),
        });
        answer(&self.describe, |request: NamesRequest| ListResponse {
            values: request.names.iter().map(|name| settings::describe(name)).collect(),
        });
        answer(&self.list, |request: ListParametersRequest| -> ListParametersResult {
            settings::list(&request.prefixes)
        });
        let voice = moment.voice;
        answer(&self.get_levels, |request: NamesRequest| ListResponse {
            values: request.names.into_iter().map(|name| voice.level_of(name)).collect(),
        });
        answer(&self.set_levels, |request: SetLoggerLevelsRequest| ListResponse {
            values: request.levels.iter().map(|level| result(voice.set_level(level))).collect(),
        });
        let mut changed = Vec::new();
        answer(&self.set, |request: SetParametersRequest| {
            let set = request.parameters.into_iter().map(|parameter| {
                let outcome = settings.set(&parameter);
                if outcome.is_ok() {
                    changed.push(parameter);
                }
                result(outcome)
            });
            ListResponse { values: set.collect() }
        });
        answer(&self.set_atomically, |request: SetParametersRequest| {
            let outcome = set_all(settings, &request.parameters);
            if outcome.is_ok() {
                changed.extend(request.parameters);
            }
            result(outcome)
        });
        if !changed.is_empty() {
            let stamp = WallClock::now().stamp(monotonic_ns());
            let node = moment.node.to_string();
            self.events.send(&ParameterEvent {
                stamp,
                node,
                changed_parameters: changed,
                ..ParameterEvent::default()
            });
        }
    }

    pub(crate) fn services(&mut self) -> [&mut Service; 8] {
        [
            &mut self.get,
            &mut self.types,
            &mut self.set,
            &mut self.set_atomically,
            &mut self.list,
            &mut self.describe,
            &mut self.get_levels,
            &mut self.set_levels,
        ]
    }
}

/// Sets all parameters or none.
fn set_all(settings: &mut Settings, parameters: &[Parameter]) -> Result<(), String> {
    let mut changed = settings.clone();
    parameters.iter().try_for_each(|parameter| changed.set(parameter))?;
    *settings = changed;
    Ok(())
}

fn result(outcome: Result<(), String>) -> SetParametersResult {
    SetParametersResult { successful: outcome.is_ok(), reason: outcome.err().unwrap_or_default() }
}

/// Answers every request that can be decoded; the client of any other could not decode an answer either.
fn answer<Q: DeserializeOwned, R: Serialize>(service: &Service, mut respond: impl FnMut(Q) -> R) {
    while let Some(request) = service.take() {
        if let Ok(asked) = request.decode() {
            service.reply(request.origin(), &respond(asked));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::parameter::{ParameterValue, kind};

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
