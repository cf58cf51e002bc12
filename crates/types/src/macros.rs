//! Enums with names or codes, and errors with their sentence as `Debug`.

/// Declares an enum with variants that have a name in files, on the command line and in JSON. Each
/// name is written once, for [`name`](crate::FrameOrder::name) and for serde.
macro_rules! named {
    ($(#[$about:meta])* $name:ident { $($(#[$variant_about:meta])* $variant:ident = $text:literal;)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
        pub enum $name {
            $($(#[$variant_about])* #[cfg_attr(feature = "serde", serde(rename = $text))] $variant,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// Name in robot files, on the command line and in JSON.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }
    };
}

pub(crate) use named;

/// Declares an enum of codes: read from their numbers, and in words.
#[doc(hidden)]
#[macro_export]
macro_rules! codes {
    ($(#[$doc:meta])* $name:ident: $number:ty {
        $($(#[$variant_doc:meta])* $variant:ident = $code:literal, $words:literal;)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr($number)]
        pub enum $name {
            $($(#[$variant_doc])* $variant = $code,)+
        }

        impl $name {
            /// All codes.
            pub const ALL: [Self; [$($code as $number),+].len()] = [$(Self::$variant),+];

            /// Decodes a code; `None` for an unknown one.
            #[must_use]
            pub const fn from_code(code: $number) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// The code of this text; `None` for another.
            #[must_use]
            pub fn from_words(words: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.words() == words)
            }

            /// Text for a separate line, and the name in JSON.
            #[must_use]
            pub const fn words(self) -> &'static str {
                match self {
                    $(Self::$variant => $words,)+
                }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.words())
            }
        }
    };
}

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
