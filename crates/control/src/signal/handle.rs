//! Handles of signals, found once by name and type.

use std::marker::PhantomData;

use types::{Value, ValueType};

/// An input, found by [`super::Signals::input`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input<T> {
    place: usize,
    value: PhantomData<T>,
}

/// An output, found by [`super::Signals::output`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output<T> {
    place: usize,
    value: PhantomData<T>,
}

impl<T> Input<T> {
    pub(super) fn new(place: usize) -> Self {
        Self { place, value: PhantomData }
    }
}

impl<T> Output<T> {
    pub(super) fn new(place: usize) -> Self {
        Self { place, value: PhantomData }
    }
}

/// An input or an output. Sealed.
pub trait Handle: sealed::Sealed {
    #[doc(hidden)]
    fn at(&self) -> usize;
}

impl<T> Handle for Input<T> {
    fn at(&self) -> usize {
        self.place
    }
}

impl<T> Handle for Output<T> {
    fn at(&self) -> usize {
        self.place
    }
}

/// A value that a signal can have: `bool`, integers, `f32`, `f64`. Sealed.
pub trait SignalValue: Copy + Default + sealed::Sealed {
    /// True if it holds every value of this type; `f64` holds every number, and is the only type
    /// for scaled signals.
    #[doc(hidden)]
    fn fits(value_type: ValueType, scaled: bool) -> bool;

    #[doc(hidden)]
    fn from_value(value: Value) -> Self;

    #[doc(hidden)]
    fn to_value(self) -> Value;
}

impl SignalValue for bool {
    fn fits(value_type: ValueType, scaled: bool) -> bool {
        value_type == ValueType::Bool && !scaled
    }

    fn from_value(value: Value) -> Self {
        matches!(value, Value::Bool(true))
    }

    fn to_value(self) -> Value {
        Value::Bool(self)
    }
}

macro_rules! integers {
    ($($name:ty: $kind:ident, $wide:ty;)*) => {$(
        impl SignalValue for $name {
            fn fits(value_type: ValueType, scaled: bool) -> bool {
                matches!(value_type, ValueType::$kind(bits) if u32::from(bits) <= <$name>::BITS) && !scaled
            }

            fn from_value(value: Value) -> Self {
                match value {
                    Value::$kind(value) => value as $name,
                    _ => 0,
                }
            }

            fn to_value(self) -> Value {
                Value::$kind(<$wide>::from(self))
            }
        }
    )*};
}

integers! {
    u8: Unsigned, u64;
    u16: Unsigned, u64;
    u32: Unsigned, u64;
    u64: Unsigned, u64;
    i8: Signed, i64;
    i16: Signed, i64;
    i32: Signed, i64;
    i64: Signed, i64;
}

impl SignalValue for f32 {
    fn fits(value_type: ValueType, scaled: bool) -> bool {
        value_type == ValueType::Float && !scaled
    }

    fn from_value(value: Value) -> Self {
        value.number() as f32
    }

    fn to_value(self) -> Value {
        Value::Real(self.into())
    }
}

impl SignalValue for f64 {
    fn fits(value_type: ValueType, _: bool) -> bool {
        value_type != ValueType::Bool
    }

    fn from_value(value: Value) -> Self {
        value.number()
    }

    fn to_value(self) -> Value {
        Value::Real(self)
    }
}

mod sealed {
    pub trait Sealed {}

    impl<T> Sealed for super::Input<T> {}
    impl<T> Sealed for super::Output<T> {}

    macro_rules! sealed {
        ($($name:ty)*) => {$(impl Sealed for $name {})*};
    }

    sealed! { bool u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }
}
