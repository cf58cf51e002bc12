//! Error codes of drives in fault: in the process data, or requested by SDO while the cycle runs.

use ethercat::cia402::State;
use ethercat::main_device::{MailboxOutcome, MailboxRequest, MailboxService, MainDevice};

use super::Axes;
use super::binding::Axis;

/// Asks each axis's drive for its object 0x603F when it goes into fault: once at the begin of its
/// fault reaction, which may last for seconds, and once at its end. Its buffers are made
/// beforehand: nothing is allocated or freed in the cycle.
#[derive(Debug, Default)]
pub(crate) struct FaultCodes {
    axes: Vec<FaultCode>,
}

/// Error code that a drive has named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) axis: usize,
    pub(crate) code: u16,
    /// False for the code of an earlier fault: the drive is in another one.
    pub(crate) is_present: bool,
}

#[derive(Debug)]
struct FaultCode {
    /// Place of the drive, from 0.
    position: u16,
    service: MailboxService,
    /// Buffer for the answer; `None` during the request.
    buffer: Option<Vec<u8>>,
    search: Search,
}

/// Search for the error code of one axis.
#[derive(Debug, Default)]
struct Search {
    /// State of its drive in fault, as far as is known.
    fault: Option<State>,
    /// Number of its last fault, from 1.
    number: u32,
    /// Not yet requested, or the request was refused.
    is_wanted: bool,
    /// Code that its drive has named for this fault.
    named: Option<u16>,
    /// Last request.
    question: Question,
    /// Code in the process data before the fault: some drives keep it over a reset.
    before: u16,
    /// Last code in the process data during the fault, and the cycles after the reaction for which
    /// it was awaited.
    shown: u16,
    waited: u32,
}

/// Circumstances of a request.
#[derive(Clone, Copy, Debug, Default)]
struct Question {
    /// Number of the fault that it was about.
    number: u32,
    /// The drive may name the code only at the end of its reaction, and may show 0 or an older one
    /// until then.
    in_reaction: bool,
}

impl Search {
    /// Takes the state of the drive, if that is in fault. A request that was refused stays wanted,
    /// also after the reset of the fault: it may have been a fault of the position sensor.
    fn look(&mut self, fault: Option<State>) {
        let reacts = |state| state == Some(State::FaultReactionActive);
        let has_begun = fault.is_some() && (self.fault.is_none() || reacts(fault) && !reacts(self.fault));
        let reaction_ended = reacts(self.fault) && !reacts(fault);
        if has_begun {
            self.number = self.number.wrapping_add(1);
            self.named = None;
        }
        self.is_wanted |= has_begun || reaction_ended;
        self.fault = fault;
    }

    /// The drive is asked.
    fn ask(&mut self) {
        self.is_wanted = false;
        let in_reaction = self.fault == Some(State::FaultReactionActive);
        self.question = Question { number: self.number, in_reaction };
    }

    /// Takes the code in the process data. Returns the code of the fault, as soon as the drive
    /// shows another code than before it, or had the time to.
    fn show(&mut self, code: u16) -> Option<u16> {
        if !self.is_wanted {
            if self.fault.is_none() {
                self.before = code;
            }
            return None;
        }
        if code != 0 {
            self.shown = code;
        }
        let is_new = code != 0 && code != self.before;
        let in_reaction = self.fault == Some(State::FaultReactionActive);
        if !is_new && self.fault.is_some() && (in_reaction || self.waited < SETTLES) {
            self.waited += u32::from(!in_reaction);
            return None;
        }
        self.ask();
        self.waited = 0;
        let shown = std::mem::take(&mut self.shown);
        self.answer(shown).map(|(code, _)| code)
    }

    /// The drive has answered: the code, and true if it is of the present fault; `None` if that is
    /// nothing new.
    fn answer(&mut self, code: u16) -> Option<(u16, bool)> {
        let Question { number, in_reaction } = self.question;
        if code == 0 && in_reaction {
            return None;
        }
        if number != self.number {
            return Some((code, false));
        }
        let is_news = match self.named {
            Some(named) => code != 0 && code != named,
            None => true,
        };
        if is_news {
            self.named = Some(code);
        }
        is_news.then_some((code, true))
    }
}

impl FaultCodes {
    /// For these axes: an axis that does not map the object is asked by SDO.
    pub(crate) fn of(axes: &Axes) -> Self {
        let code = |axis: &Axis| FaultCode {
            // An axis that maps its error code needs no request. The position `u16::MAX` matches no
            // answer.
            position: if axis.maps_error_code() { u16::MAX } else { axis.sub_device() as u16 },
            service: MailboxService::Upload {
                index: axis.error_code(),
                sub_index: 0,
                complete_access: false,
            },
            buffer: (!axis.maps_error_code()).then(|| Vec::with_capacity(LENGTH)),
            search: Search::default(),
        };
        Self { axes: axes.axes.iter().map(code).collect() }
    }

    /// Requests the error code of each drive that went into fault, or has ended its reaction.
    pub(crate) fn ask(&mut self, axes: &Axes, main_device: &mut MainDevice) {
        for ((axis, report), bound) in self.axes.iter_mut().zip(axes.reports()).zip(&axes.axes) {
            axis.search.look(report.state.filter(|it| it.is_faulted()));
            if !axis.search.is_wanted || !bound.has_inputs() {
                continue;
            }
            let Some(data) = axis.buffer.take() else { continue };
            let request = MailboxRequest { position: axis.position, service: axis.service, data };
            match main_device.submit(request) {
                Ok(()) => axis.search.ask(),
                Err(refused) => axis.buffer = Some(refused.request.data),
            }
        }
    }

    /// Code of a fault of an axis that maps the object, once for each fault. Follows
    /// [`FaultCodes::ask`] in each cycle.
    pub(crate) fn shown(&mut self, axis: usize, axes: &Axes) -> Option<u16> {
        let (bound, report) = (axes.axes.get(axis)?, axes.reports().get(axis)?);
        let is_shown = bound.maps_error_code() && bound.has_inputs();
        self.axes.get_mut(axis).filter(|_| is_shown)?.search.show(report.error_code)
    }

    /// The answer to one of these questions: `None` if it is nothing new. Any other outcome comes
    /// back.
    pub(crate) fn take(&mut self, outcome: MailboxOutcome) -> Result<Option<Named>, MailboxOutcome> {
        let MailboxRequest { position, service, .. } = outcome.request;
        let ours = |axis: &FaultCode| {
            axis.position == position && axis.buffer.is_none() && service == axis.service
        };
        let Some(place) = self.axes.iter().position(ours) else { return Err(outcome) };
        let mut data = outcome.request.data;
        let code = match (&outcome.result, data.as_slice()) {
            (Ok(()), &[low, high, ..]) => Some(u16::from_le_bytes([low, high])),
            _ => None,
        };
        data.clear();
        let axis = &mut self.axes[place];
        axis.buffer = Some(data);
        let named = code.and_then(|code| axis.search.answer(code));
        Ok(named.map(|(code, is_present)| Named { axis: place, code, is_present }))
    }
}

/// Cycles within which a drive in Fault shows its code in the process data.
const SETTLES: u32 = 20;

/// Bytes of the answer; the object has two.
const LENGTH: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const REACTION: Option<State> = Some(State::FaultReactionActive);
    const FAULT: Option<State> = Some(State::Fault);

    /// Search after these states of the drive.
    fn seen(states: &[Option<State>]) -> Search {
        let mut search = Search::default();
        states.iter().for_each(|&state| search.look(state));
        search
    }

    #[test]
    fn after_the_reaction_the_drive_is_asked_once_more() {
        for early in [0, 0x5555] {
            for is_late in [false, true] {
                let mut search = seen(&[None, REACTION]);
                assert!(search.is_wanted);
                search.ask();
                search.look(REACTION);
                assert!(!search.is_wanted, "once in the reaction");
                if is_late {
                    search.look(FAULT);
                }
                let expected = (early != 0).then_some((early, true));
                assert_eq!(search.answer(early), expected, "late: {is_late}");
                search.look(FAULT);
                assert!(search.is_wanted, "late: {is_late}");
                search.ask();
                assert_eq!(search.answer(0x7305), Some((0x7305, true)));
                search.look(FAULT);
                assert!(!search.is_wanted);
            }
        }
    }

    #[test]
    fn the_same_code_is_named_once() {
        let mut search = seen(&[None, REACTION]);
        search.ask();
        assert_eq!(search.answer(0x2310), Some((0x2310, true)));
        search.look(FAULT);
        search.ask();
        assert_eq!(search.answer(0x2310), None);
        assert_eq!(search.answer(0), None, "the drive has forgotten it");
        // The next fault with this code is another one.
        search.look(None);
        search.look(FAULT);
        search.ask();
        assert_eq!(search.answer(0x2310), Some((0x2310, true)));
    }

    #[test]
    fn an_answer_about_an_earlier_fault_is_not_the_code_of_this_one() {
        for states in [&[None, FAULT][..], &[None, REACTION], &[REACTION]] {
            let mut search = seen(&[None, FAULT]);
            search.ask();
            states.iter().for_each(|&state| search.look(state));
            assert_eq!(search.answer(0x2310), Some((0x2310, false)));
            assert!(search.is_wanted, "{states:?}");
            search.look(FAULT);
            search.ask();
            assert_eq!(search.answer(0x4210), Some((0x4210, true)));
            assert!(!search.is_wanted);
        }
    }

    // feature(axes): a drive's fault with its error code in the process data is an event with the code
    #[test]
    fn a_code_in_the_process_data_is_named_once_for_each_fault() {
        let shown = |search: &mut Search, state, code| {
            search.look(state);
            search.show(code)
        };
        let mut search = Search::default();
        // The second fault is of the same kind, and the drive keeps the code over the reset.
        for before in [0, 0x2310] {
            assert_eq!(shown(&mut search, None, before), None);
            assert_eq!(shown(&mut search, REACTION, before), None, "the code of before");
            let found = [REACTION, FAULT].map(|state| {
                let codes = (0..30).filter_map(|_| shown(&mut search, state, 0x2310));
                codes.collect::<Vec<_>>()
            });
            let once = vec![0x2310];
            let expected = if before == 0 { [once, vec![]] } else { [vec![], once] };
            assert_eq!(found, expected, "{before:#06x}");
        }
        // A fault with a late code, without a code, and a short fault.
        let late = |from: usize| (0..30).map(move |it| if it < from { 0 } else { 0x7305 });
        for (from, expected) in [(10, 0x7305), (29, 0)] {
            let mut search = Search::default();
            // However long the reaction takes.
            (0..30).for_each(|_| assert_eq!(shown(&mut search, REACTION, 0), None));
            let found: Vec<_> = late(from).filter_map(|it| shown(&mut search, FAULT, it)).collect();
            assert_eq!(found, [expected], "{from}");
        }
        let mut search = Search { before: 0x7305, ..Search::default() };
        assert_eq!(shown(&mut search, FAULT, 0x7305), None);
        assert_eq!(shown(&mut search, None, 0), Some(0x7305));
    }

    #[test]
    fn a_fault_that_was_reset_is_still_named() {
        let mut search = seen(&[None, FAULT, None]);
        assert!(search.is_wanted, "the request was refused");
        search.ask();
        assert_eq!(search.answer(0x7305), Some((0x7305, true)));
        // The end of the reaction was not seen.
        let mut search = seen(&[None, REACTION]);
        search.ask();
        search.look(None);
        assert_eq!(search.answer(0), None);
        assert!(search.is_wanted);
    }
}
