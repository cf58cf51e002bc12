//! Answer to one request.

/// One request and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant<T> {
    /// Not requested.
    NotRequested,
    /// Requested and granted.
    Granted(T),
    /// Requested and refused.
    Refused {
        /// The request.
        requested: T,
        /// Reason of the refusal, and what to do.
        reason: String,
    },
}

impl<T: Copy> Grant<T> {
    pub(crate) fn ask(requested: Option<T>, request: impl FnOnce(T) -> Result<(), String>) -> Self {
        match requested {
            None => Self::NotRequested,
            Some(requested) => match request(requested) {
                Ok(()) => Self::Granted(requested),
                Err(reason) => Self::Refused { requested, reason },
            },
        }
    }

    /// True if it was requested and granted.
    #[must_use]
    pub fn is_granted(&self) -> bool {
        matches!(self, Self::Granted(_))
    }

    /// The request, whether granted or not.
    #[must_use]
    pub fn requested(&self) -> Option<T> {
        match self {
            Self::NotRequested => None,
            Self::Granted(requested) | Self::Refused { requested, .. } => Some(*requested),
        }
    }

    /// Refusals and their reasons.
    #[must_use]
    pub fn refusal(&self) -> Option<(T, &str)> {
        match self {
            Self::Refused { requested, reason } => Some((*requested, reason)),
            _ => None,
        }
    }
}
