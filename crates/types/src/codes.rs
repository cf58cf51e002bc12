//! Enums with codes that are exchanged between processes.

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
