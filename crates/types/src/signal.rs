//! Signals: process data by name, with their types, scales, and the behaviour of outputs.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use crate::macros::named;

named! {
    /// Way of process data, as the MainDevice sees it.
    #[derive(Default)]
    Direction {
        /// From a SubDevice (TxPDO).
        #[default]
        Input = "input";
        /// To a SubDevice (RxPDO).
        Output = "output";
    }
}

impl Direction {
    /// The opposite one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Input => Self::Output,
            Self::Output => Self::Input,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Type of an entry of process data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// One bit.
    #[default]
    Bool,
    /// An unsigned integer of 1 to 64 bits.
    Unsigned(u8),
    /// An integer of 1 to 64 bits, two's complement.
    Signed(u8),
    /// IEEE 754, 32 bits.
    Float,
    /// IEEE 754, 64 bits.
    Double,
}

impl ValueType {
    /// Bits of the entry.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::Bool => 1,
            Self::Unsigned(bits) | Self::Signed(bits) => bits,
            Self::Float => 32,
            Self::Double => 64,
        }
    }

    /// Lowest and highest number it holds.
    #[must_use]
    pub fn bounds(self) -> (f64, f64) {
        match self {
            Self::Bool => (0.0, 1.0),
            Self::Unsigned(bits) => (0.0, mask(bits) as f64),
            Self::Signed(bits) => {
                let highest = mask(bits) >> 1;
                (-(highest as f64) - 1.0, highest as f64)
            }
            Self::Float => (f64::from(f32::MIN), f64::from(f32::MAX)),
            Self::Double => (f64::MIN, f64::MAX),
        }
    }

    /// Value of an entry's bits.
    #[must_use]
    pub fn decode(self, raw: u64) -> Value {
        match self {
            Self::Bool => Value::Bool(raw & 1 != 0),
            Self::Unsigned(bits) => Value::Unsigned(raw & mask(bits)),
            Self::Signed(bits) => {
                let unused = 64 - u32::from(bits.clamp(1, 64));
                Value::Signed((raw << unused) as i64 >> unused)
            }
            Self::Float => Value::Real(f64::from(f32::from_bits(raw as u32))),
            Self::Double => Value::Real(f64::from_bits(raw)),
        }
    }

    /// Bits of the nearest value the entry holds; `None` for a value that is not finite, or a
    /// number for a bit and the other way round. The flag is true if the value was clamped;
    /// rounding does not count.
    #[must_use]
    pub fn encode(self, value: Value) -> Option<(u64, bool)> {
        if !value.is_finite() {
            return None;
        }
        match (self, value) {
            (Self::Bool, Value::Bool(value)) => Some((value.into(), false)),
            (Self::Bool, _) | (_, Value::Bool(_)) => None,
            (Self::Unsigned(bits), _) => {
                let wanted = value.whole();
                let held = wanted.clamp(0, i128::from(mask(bits)));
                Some((held as u64, held != wanted))
            }
            (Self::Signed(bits), _) => {
                let highest = i128::from(mask(bits) >> 1);
                let wanted = value.whole();
                let held = wanted.clamp(-highest - 1, highest);
                Some((held as u64 & mask(bits), held != wanted))
            }
            (Self::Float, _) => {
                let wanted = value.number();
                let held = wanted.clamp(f64::from(f32::MIN), f64::from(f32::MAX));
                Some((u64::from((held as f32).to_bits()), held != wanted))
            }
            (Self::Double, _) => Some((value.number().to_bits(), false)),
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.pad("bool"),
            Self::Unsigned(bits) => f.pad(&format!("uint{bits}")),
            Self::Signed(bits) => f.pad(&format!("int{bits}")),
            Self::Float => f.pad("float"),
            Self::Double => f.pad("double"),
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for ValueType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for ValueType {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let expected = "expected bool, uint1 to uint64, int1 to int64, float or double";
        let unknown = |_| serde::de::Error::custom(format_args!("unknown type `{text}`, {expected}"));
        text.parse().map_err(unknown)
    }
}

/// A text that is no type's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownType;

impl FromStr for ValueType {
    type Err = UnknownType;

    fn from_str(text: &str) -> Result<Self, UnknownType> {
        let bits = |digits: &str| {
            let canonical = !digits.starts_with(['0', '+']);
            digits.parse().ok().filter(|bits| canonical && (1..=64).contains(bits)).ok_or(UnknownType)
        };
        match text {
            "bool" => Ok(Self::Bool),
            "float" => Ok(Self::Float),
            "double" => Ok(Self::Double),
            _ => match (text.strip_prefix("uint"), text.strip_prefix("int")) {
                (Some(digits), _) => bits(digits).map(Self::Unsigned),
                (_, Some(digits)) => bits(digits).map(Self::Signed),
                _ => Err(UnknownType),
            },
        }
    }
}

named! {
    /// Kind of a signal's value.
    #[derive(Default)]
    ValueKind {
        /// A bit.
        #[default]
        Bool = "bool";
        /// An unsigned integer.
        Unsigned = "unsigned";
        /// An integer.
        Signed = "signed";
        /// Any number: a float, a double, or what is scaled.
        Real = "real";
    }
}

/// A value of a signal; in JSON true, false or a number.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(untagged))]
pub enum Value {
    /// A bit.
    Bool(bool),
    /// An unsigned integer.
    Unsigned(u64),
    /// An integer.
    Signed(i64),
    /// Any number: a float, a double, or what is scaled.
    Real(f64),
}

impl Value {
    /// The number; 0 or 1 of a bit. Integers beyond 2^53 are rounded.
    #[must_use]
    pub fn number(self) -> f64 {
        match self {
            Self::Bool(value) => f64::from(u8::from(value)),
            Self::Unsigned(value) => value as f64,
            Self::Signed(value) => value as f64,
            Self::Real(value) => value,
        }
    }

    /// True unless it is NaN or infinite.
    #[must_use]
    pub fn is_finite(self) -> bool {
        self.number().is_finite()
    }

    /// The value as a word; its kind gives the meaning.
    #[must_use]
    pub fn word(self) -> u64 {
        match self {
            Self::Bool(value) => value.into(),
            Self::Unsigned(value) => value,
            Self::Signed(value) => value as u64,
            Self::Real(value) => value.to_bits(),
        }
    }

    /// The nearest whole number; a half rounds away from zero.
    fn whole(self) -> i128 {
        match self {
            Self::Bool(value) => value.into(),
            Self::Unsigned(value) => value.into(),
            Self::Signed(value) => value.into(),
            Self::Real(value) => (if value < 0.0 { value - 0.5 } else { value + 0.5 }) as i128,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Unsigned(value) => write!(f, "{value}"),
            Self::Signed(value) => write!(f, "{value}"),
            Self::Real(value) => write!(f, "{value}"),
        }
    }
}

/// From an entry's number to a quantity: `number * scale + offset`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// Not 0.
    pub scale: f64,
    /// In the unit of the signal.
    pub offset: f64,
}

/// One signal, found in the process data.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// Name; unique in the robot.
    pub name: String,
    /// Position on the bus of its SubDevice.
    pub sub_device: usize,
    /// Bits from the start of the SubDevice's inputs or outputs.
    pub bit_offset: usize,
    /// Type of its entry, which is as wide.
    pub value_type: ValueType,
    /// Unit, empty for none.
    pub unit: String,
    /// Its value is a real number with a unit, if it is scaled.
    pub scaling: Option<Scaling>,
    /// Lowest and highest value of an output, or expected of an input.
    pub range: Option<(f64, f64)>,
    /// Writer.
    pub flow: Flow,
}

/// Writer of a signal.
#[derive(Clone, Debug, PartialEq)]
pub enum Flow {
    /// Its SubDevice.
    Input,
    /// A controller, or the commands from outside.
    Output(OutputBehaviour),
    /// An output that a part of the robot writes, as `axis "spindle"`: it can be read only.
    Taken(String),
    /// An output that bounds an axis, as its drive's greatest torque: it stays at these bits, which
    /// the robot file gives, and can be read only.
    Fixed(u64),
    /// The cycle: an unsigned output with the low bits of the number of the cycle that sends it; it
    /// can be read only.
    Cycle,
}

/// Behaviour of an output, in bits of its entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputBehaviour {
    /// Its only setter.
    pub writer: Writer,
    /// From the start on, until it is set.
    pub initial: u64,
    /// While the external command is stale that sets it or drives its controller. `None`: the
    /// controller continues.
    pub on_stale: Option<OnStale>,
    /// From the beginning of the stop on.
    pub on_stop: u64,
    /// While its SubDevice is lost, so that it returns with it; `None`: as if it had not been lost.
    pub on_return: Option<u64>,
}

/// Setter of an output that no part of the robot writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writer {
    /// The controller.
    #[default]
    Controller,
    /// The holder of the lease of commands.
    Outside,
}

/// An output while the command is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnStale {
    /// Stays as it is.
    Hold,
    /// Takes these bits.
    Bits(u64),
}

impl Signal {
    /// Way of its value.
    #[must_use]
    pub fn direction(&self) -> Direction {
        if self.flow == Flow::Input { Direction::Input } else { Direction::Output }
    }

    /// True of an output that is set by commands from outside.
    #[must_use]
    pub fn is_commanded(&self) -> bool {
        matches!(self.flow, Flow::Output(OutputBehaviour { writer: Writer::Outside, .. }))
    }

    /// Writer of an output that can be read only.
    #[must_use]
    pub fn read_only_for(&self) -> Option<&str> {
        match &self.flow {
            Flow::Input | Flow::Output(_) => None,
            Flow::Taken(writer) => Some(writer),
            Flow::Fixed(_) => Some("the robot file"),
            Flow::Cycle => Some("the cycle"),
        }
    }

    /// Lowest and highest value, in its unit.
    #[must_use]
    pub fn bounds(&self) -> (f64, f64) {
        let (lowest, highest) = self.value_type.bounds();
        match (self.range, self.scaling) {
            (Some(range), _) => range,
            (None, None) => (lowest, highest),
            (None, Some(Scaling { scale, offset })) => {
                let ends = [lowest, highest].map(|end| end * scale + offset);
                (ends[0].min(ends[1]), ends[0].max(ends[1]))
            }
        }
    }

    /// Value of its entry's bits.
    #[must_use]
    pub fn value(&self, raw: u64) -> Value {
        let value = self.value_type.decode(raw);
        match self.scaling {
            None => value,
            Some(Scaling { scale, offset }) => Value::Real(value.number() * scale + offset),
        }
    }

    /// Bits of the nearest value within its range, and whether it differs; `None` if the value is
    /// not finite, or of another kind.
    #[must_use]
    pub fn raw(&self, value: Value) -> Option<(u64, bool)> {
        let of_kind = matches!(value, Value::Bool(_)) == (self.value_type == ValueType::Bool);
        if !(value.is_finite() && of_kind) {
            return None;
        }
        let (value, clamped) = match self.range {
            Some((lowest, highest)) if !(lowest..=highest).contains(&value.number()) => {
                (Value::Real(value.number().clamp(lowest, highest)), true)
            }
            _ => (value, false),
        };
        let value = match self.scaling {
            None => value,
            Some(Scaling { scale, offset }) => Value::Real((value.number() - offset) / scale),
        };
        self.value_type.encode(value).map(|(raw, held)| (raw, clamped || held))
    }

    /// Kind of its values.
    #[must_use]
    pub fn kind(&self) -> ValueKind {
        match self.value(0) {
            Value::Bool(_) => ValueKind::Bool,
            Value::Unsigned(_) => ValueKind::Unsigned,
            Value::Signed(_) => ValueKind::Signed,
            Value::Real(_) => ValueKind::Real,
        }
    }
}

const fn mask(bits: u8) -> u64 {
    match bits {
        0 => 0,
        1..=64 => u64::MAX >> (64 - bits),
        _ => u64::MAX,
    }
}

/// True if `name` belongs to an element of the signal `array`: `array[0]` and up, or `array.x`.
#[must_use]
pub fn is_element(array: &str, name: &str) -> bool {
    let rest = name.strip_prefix(array).unwrap_or("");
    rest.len() > 1 && rest.starts_with('.')
        || rest.len() > 2 && rest.starts_with('[') && rest.ends_with(']')
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    // feature(signals): `[[signal]]` by channel or entry, with type, unit, scale, offset, range and what becomes of an output
    #[test]
    fn types_go_by_their_names() {
        for name in ["bool", "uint1", "int12", "uint64", "float", "double"] {
            assert_eq!(name.parse::<ValueType>().unwrap().to_string(), name);
        }
        for name in ["", "int0", "int65", "uint", "uint08", "int+8", "u16", "Bool"] {
            assert_eq!(name.parse::<ValueType>(), Err(UnknownType), "{name}");
        }
    }

    // feature(signals): values of 1 to 64 bits, scaled, clamped, refused
    #[test]
    fn values_come_back_and_what_is_too_large_is_the_nearest() {
        let int12 = ValueType::Signed(12);
        assert_eq!(int12.encode(Value::Signed(-1)), Some((0xFFF, false)));
        assert_eq!(int12.decode(0xFFF), Value::Signed(-1));
        assert_eq!(int12.encode(Value::Real(3000.0)), Some((0x7FF, true)));
        assert_eq!(int12.encode(Value::Real(-2048.4)), Some((0x800, false)));
        assert_eq!(ValueType::Unsigned(8).encode(Value::Signed(-3)), Some((0, true)));
        assert_eq!(ValueType::Unsigned(64).encode(Value::Unsigned(u64::MAX)), Some((u64::MAX, false)));
        assert_eq!(ValueType::Signed(64).decode(u64::MAX), Value::Signed(-1));
        assert_eq!(ValueType::Float.decode(u64::from(1.5_f32.to_bits())), Value::Real(1.5));
        assert!(ValueType::Float.encode(Value::Real(1e300)).unwrap().1);
        assert_eq!(ValueType::Double.encode(Value::Real(f64::NAN)), None);
        assert_eq!(ValueType::Bool.encode(Value::Unsigned(1)), None);
        assert_eq!(ValueType::Unsigned(1).encode(Value::Bool(true)), None);
    }

    // feature(signals): values of 1 to 64 bits, scaled, clamped, refused
    #[test]
    fn a_scaled_signal_is_clamped_in_its_unit() {
        let volts = Signal {
            name: "valve".to_string(),
            sub_device: 0,
            bit_offset: 0,
            value_type: ValueType::Signed(16),
            unit: "V".to_string(),
            scaling: Some(Scaling { scale: 10.0 / 32767.0, offset: 1.0 }),
            range: Some((0.0, 5.0)),
            flow: Flow::Input,
        };
        assert_eq!(volts.kind(), ValueKind::Real);
        assert_eq!(volts.raw(Value::Real(1.0)), Some((0, false)));
        let (raw, clamped) = volts.raw(Value::Real(7.0)).unwrap();
        assert!(clamped && (volts.value(raw).number() - 5.0).abs() < 1e-3);
        assert_eq!(volts.raw(Value::Real(f64::INFINITY)), None);
        assert_eq!(volts.raw(Value::Bool(true)), None);
        assert_eq!(volts.bounds(), (0.0, 5.0));
        let scaling = Some(Scaling { scale: -0.5, offset: 1.0 });
        assert_eq!(Signal { range: None, scaling, ..volts }.bounds(), (-16382.5, 16385.0));
    }

    /// Elements have the name of their signal and their own in brackets, or behind a dot.
    #[test]
    fn an_element_has_the_name_of_its_signal_in_front() {
        assert!(["force.x", "force[0]", "force[12]"].iter().all(|name| is_element("force", name)));
        let others = ["force", "forces[0]", "force.", "force[]", "force[0", "torque.x", "other.force.x"];
        assert!(!others.iter().any(|name| is_element("force", name)));
    }
}
