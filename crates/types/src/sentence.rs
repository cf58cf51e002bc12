//! Errors with their sentence as `Debug`.

/// Makes `Debug` of errors equal to their `Display`, a sentence: a `main` that returns an error
/// then prints a readable line.
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
