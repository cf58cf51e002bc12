//! Errors with their sentence as `Debug`.

/// Makes `Debug` of errors their sentence, which is their `Display`: a `main` that returns one
/// prints a line that people read.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_is_sentence {
    ($($error:ty),+ $(,)?) => {
        $(impl core::fmt::Debug for $error {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, f)
            }
        })+
    };
}
