//! POSIX timer that sends a signal to one thread (timer_create(2), `SIGEV_THREAD_ID`).

use std::io;
use std::mem;
use std::ptr;
use std::time::Duration;

/// Timer of `CLOCK_MONOTONIC` that sends its signal to the thread that created it.
pub(crate) struct SignalTimer {
    timer: libc::timer_t,
    signals: libc::sigset_t,
    before: libc::sigset_t,
    /// The signal is blocked for, and sent to, this thread only: not `Send`.
    stays_on_its_thread: std::marker::PhantomData<*const ()>,
}

impl SignalTimer {
    /// Creates a timer for the calling thread. The first real-time signal is blocked on the thread
    /// from now on.
    ///
    /// # Errors
    /// EAGAIN if no more timers or signals are available.
    pub(crate) fn new() -> io::Result<Self> {
        let signal = libc::SIGRTMIN();
        // SAFETY: all-zero sets and an all-zero sigevent are memory for the calls below to fill;
        // each pointer is to a live value of its type. Blocking a signal changes only this thread's
        // mask.
        unsafe {
            let (mut signals, mut before): (libc::sigset_t, libc::sigset_t) = mem::zeroed();
            libc::sigemptyset(&mut signals);
            libc::sigaddset(&mut signals, signal);
            match libc::pthread_sigmask(libc::SIG_BLOCK, &signals, &mut before) {
                0 => {}
                error => return Err(io::Error::from_raw_os_error(error)),
            }
            let mut event: libc::sigevent = mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = mem::zeroed();
            if libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) < 0 {
                let error = io::Error::last_os_error();
                libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
                return Err(error);
            }
            Ok(Self { timer, signals, before, stays_on_its_thread: std::marker::PhantomData })
        }
    }

    /// Sets the timer to `instant_ns` of the monotonic clock, and sleeps until its signal arrives.
    ///
    /// # Errors
    /// The operating system's error.
    pub(crate) fn sleep_until(&self, instant_ns: u64) -> io::Result<()> {
        let end = Duration::from_nanos(instant_ns.max(1));
        let setting = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: libc::timespec {
                tv_sec: end.as_secs() as _,
                tv_nsec: end.subsec_nanos() as libc::c_long,
            },
        };
        // SAFETY: the timer was created and is deleted only on drop; `setting` outlives the call.
        if unsafe { libc::timer_settime(self.timer, libc::TIMER_ABSTIME, &setting, ptr::null_mut()) } < 0 {
            return Err(io::Error::last_os_error());
        }
        loop {
            // SAFETY: the set is a valid one; a null pointer requests no details of the signal.
            if unsafe { libc::sigwaitinfo(&self.signals, ptr::null_mut()) } > 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

impl Drop for SignalTimer {
    fn drop(&mut self) {
        // SAFETY: created in `new` and deleted once; the mask is the one `new` found. Every timer
        // that was set has been waited for but the last; its signal is taken here before it is
        // unblocked.
        unsafe {
            libc::timer_delete(self.timer);
            let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            while libc::sigtimedwait(&self.signals, ptr::null_mut(), &at_once) > 0 {}
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use rt::clock::{Clock, MonotonicClock};

    #[test]
    fn the_signal_comes_when_the_time_has_come_and_not_before() {
        let timer = SignalTimer::new().unwrap();
        for _ in 0..5 {
            let end = MonotonicClock.now() + Duration::from_millis(1);
            timer.sleep_until(end.as_nanos()).unwrap();
            assert!(MonotonicClock.now() >= end);
        }
        timer.sleep_until(0).unwrap();
    }
}
