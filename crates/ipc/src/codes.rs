//! Enums whose codes cross the shared memory.

/// Declares an enum of codes from 1 on: read from their numbers, and in words.
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
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Decodes a code; `None` for 0 and unknown codes.
            #[must_use]
            pub const fn from_code(code: $number) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// Text for a line of its own.
            #[must_use]
            pub const fn words(self) -> &'static str {
                match self {
                    $(Self::$variant => $words,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.words())
            }
        }
    };
}

pub(crate) use codes;
