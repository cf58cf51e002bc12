//! Rules by which tasks share a processor.

use crate::macros::named;

named! {
    /// Scheduling policy.
    #[derive(Default)]
    Policy {
        /// Highest priority first: `SCHED_FIFO`.
        #[default]
        FixedPriority = "fp";
        /// Earliest deadline first.
        EarliestDeadline = "edf";
        /// Reservations of `SCHED_DEADLINE`: earliest deadline first, admitted by the kernel's own
        /// test.
        Reservation = "deadline";
    }
}

named! {
    /// Lock protocol: effect of a lock on the priority of its holder.
    #[derive(Default)]
    Protocol {
        /// Priority inheritance: the holder runs with the highest priority among the tasks that
        /// wait: `PTHREAD_PRIO_INHERIT`.
        #[default]
        Inheritance = "inheritance";
        /// Priority ceiling: the holder runs at once with the highest priority among all users:
        /// `PTHREAD_PRIO_PROTECT`.
        Ceiling = "ceiling";
        /// No protocol: tasks of middle priority can delay the holder.
        None = "none";
    }
}
