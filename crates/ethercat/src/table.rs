//! Two kinds of number types in the standards: a table of codes with texts, and a set of bits.

/// The constants of a code type, their texts, and the list of all, from one list in ascending
/// order. `$undefined` names a code that is not in it.
macro_rules! codes {
    ($type:ident, $undefined:expr; $($name:ident = $number:literal, $text:literal;)*) => {
        impl $type {
            $(#[doc = concat!(stringify!($number), ": ", $text, ".")]
            pub const $name: Self = Self($number);)*

            /// Meaning of the code; codes that the standards do not define are named as such.
            #[must_use]
            pub fn text(self) -> &'static str {
                let found = Self::all().binary_search(&(self, "")).unwrap_or_else(|place| place);
                match Self::all().get(found) {
                    Some((code, text)) if *code == self => text,
                    _ => $undefined(self.0),
                }
            }

            /// Every code the standards define with its text, in ascending order.
            #[must_use]
            pub const fn all() -> &'static [(Self, &'static str)] {
                &[$((Self::$name, $text),)*]
            }
        }

        #[cfg(test)]
        mod table {
            #[test]
            fn the_table_ascends_so_that_every_code_is_found() {
                let all = super::$type::all();
                assert!(all.is_sorted_by(|(a, _), (b, _)| a < b));
                assert!(all.iter().all(|(code, text)| code.text() == *text));
            }
        }
    };
}

/// Union and inclusion of a type that is a number of independent bits.
macro_rules! bit_set {
    ($type:ident) => {
        impl $type {
            /// All bits of both.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// True if every bit of `other` is set.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }
    };
}

pub(crate) use {bit_set, codes};
