//! Tables of a file as values of the model.
//!
//! `toml`'s own deserializer builds for each type of the model one map of keys, one of places and
//! one of dates: half of the time this crate takes to build. Here there is one, and a value of the
//! wrong kind is refused before its type sees it.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use toml::de::{DeTable, DeValue};

use crate::error::{Problem, Refused};

/// A value with its bytes in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spanned<T> {
    span: Range<usize>,
    value: T,
}

impl<T> Spanned<T> {
    pub(crate) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    pub(crate) const fn get_ref(&self) -> &T {
        &self.value
    }

    #[cfg(feature = "task-set")]
    pub(crate) fn into_inner(self) -> T {
        self.value
    }
}

/// Name by which a [`Spanned`] requests start, end and value.
const SPANNED: &str = "a value with its place";

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Spanned<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Parts<T> {
            type Value = Spanned<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(SPANNED)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Spanned<T>, A::Error> {
                let lacks = || de::Error::custom(SPANNED);
                let start = parts.next_element()?.ok_or_else(lacks)?;
                let end = parts.next_element()?.ok_or_else(lacks)?;
                let value = parts.next_element()?.ok_or_else(lacks)?;
                Ok(Spanned { span: start..end, value })
            }
        }

        deserializer.deserialize_tuple_struct(SPANNED, 3, Parts(PhantomData))
    }
}

/// A value of the file, or a place in it.
#[derive(Clone)]
pub(crate) enum Node<'v> {
    Value(Range<usize>, &'v DeValue<'v>),
    Place(usize),
}

impl<'v> From<&'v toml::Spanned<DeValue<'v>>> for Node<'v> {
    fn from(value: &'v toml::Spanned<DeValue<'v>>) -> Self {
        Self::Value(value.span(), value.get_ref())
    }
}

impl<'v> Node<'v> {
    fn span(&self) -> Range<usize> {
        match self {
            Self::Value(span, _) => span.clone(),
            Self::Place(at) => *at..*at,
        }
    }

    fn wrong(&self, expected: &dyn Expected) -> Refused {
        let found = match self {
            Self::Place(at) => Unexpected::Unsigned(*at as u64),
            Self::Value(_, value) => match value {
                DeValue::String(text) => Unexpected::Str(text),
                DeValue::Integer(_) => match self.integer() {
                    Ok(number) => Unexpected::Signed(number),
                    Err(refused) => return refused,
                },
                DeValue::Float(number) => Unexpected::Float(number.as_str().parse().unwrap_or(f64::NAN)),
                DeValue::Boolean(it) => Unexpected::Bool(*it),
                DeValue::Datetime(_) => Unexpected::Other("date or time"),
                DeValue::Array(_) => Unexpected::Seq,
                DeValue::Table(_) => Unexpected::Map,
            },
        };
        <Refused as de::Error>::invalid_type(found, expected).at(self.span())
    }

    /// The number, if it is a whole one.
    fn integer(&self) -> Result<i64, Refused> {
        let Self::Value(_, DeValue::Integer(number)) = self else {
            return Err(de::Error::custom("integer number overflowed"));
        };
        i64::from_str_radix(number.as_str(), number.radix())
            .map_err(|_| <Refused as de::Error>::custom("integer number overflowed").at(self.span()))
    }

    fn table(&self) -> Option<TableEntries<'v>> {
        match self {
            Self::Value(_, DeValue::Table(table)) => {
                Some(TableEntries { rest: Box::new(table.iter()), value: None })
            }
            _ => None,
        }
    }

    fn list(&self) -> Option<Items<'v>> {
        match self {
            Self::Value(_, DeValue::Array(list)) => {
                Some(Items { rest: Box::new(list.iter().map(Node::from)) })
            }
            _ => None,
        }
    }
}

/// Reads all of `table` of `text` as one `T`, and refuses values that are invalid for `T`.
pub(crate) fn read<'v, T: for<'de> Deserialize<'de>>(
    text: &str,
    table: &'v toml::Spanned<DeValue<'v>>,
) -> Result<T, Problem> {
    T::deserialize(Node::from(table)).map_err(|refused| Problem::refused(text, refused))
}

impl<'de> Deserializer<'de> for Node<'_> {
    type Error = Refused;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        let Self::Value(span, value) = &self else { return self.deserialize_u64(visitor) };
        match value {
            DeValue::String(text) => {
                visitor.visit_str(text).map_err(|refused: Refused| refused.at(span.clone()))
            }
            DeValue::Integer(_) | DeValue::Float(_) => self.deserialize_f64(visitor),
            DeValue::Boolean(_) => self.deserialize_bool(visitor),
            DeValue::Datetime(_) => Err(self.wrong(&visitor)),
            DeValue::Array(_) => self.deserialize_seq(visitor),
            DeValue::Table(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match &self {
            Self::Value(span, DeValue::Boolean(it)) => {
                visitor.visit_bool(*it).map_err(|refused: Refused| refused.at(span.clone()))
            }
            _ => Err(self.wrong(&visitor)),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        let visited = match &self {
            Self::Place(at) => visitor.visit_u64(*at as u64),
            Self::Value(_, DeValue::Integer(number)) => match self.integer() {
                Ok(number) => visitor.visit_i64(number),
                Err(refused) => match u64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => visitor.visit_u64(number),
                    Err(_) => return Err(refused),
                },
            },
            _ => return Err(self.wrong(&visitor)),
        };
        visited.map_err(|refused: Refused| refused.at(self.span()))
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        let Self::Value(span, DeValue::Float(number)) = &self else { return self.deserialize_u64(visitor) };
        let (text, span) = (number.as_str(), span.clone());
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() || text.contains("inf") || number.is_nan() => {
                visitor.visit_f64(number)
            }
            _ => Err(de::Error::custom("floating-point number overflowed")),
        }
        .map_err(|refused: Refused| refused.at(span))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match &self {
            Self::Value(span, DeValue::String(text)) => {
                visitor.visit_str(text).map_err(|refused: Refused| refused.at(span.clone()))
            }
            _ => Err(self.wrong(&visitor)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        if name != SPANNED {
            return self.deserialize_seq(visitor);
        }
        let Range { start, end } = self.span();
        let parts = [Node::Place(start), Node::Place(end), self];
        visitor.visit_seq(Items { rest: Box::new(parts.into_iter()) })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        let Some(items) = self.list() else { return Err(self.wrong(&visitor)) };
        visitor.visit_seq(items).map_err(|refused: Refused| refused.at(self.span()))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        let Some(entries) = self.table() else { return Err(self.wrong(&visitor)) };
        visitor.visit_map(entries).map_err(|refused: Refused| refused.at(self.span()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        let wanted = |words| Err(de::Error::custom(words));
        match &self {
            Self::Value(_, DeValue::String(text)) => visitor.visit_enum(text.as_ref().into_deserializer()),
            Self::Value(_, DeValue::Table(table)) => match table.iter().next() {
                Some(_) if table.len() > 1 => wanted("wanted exactly 1 element, more than 1 element"),
                Some((key, value)) => visitor.visit_enum(Choice { key, value: value.into() }),
                None => wanted("wanted exactly 1 element, found 0 elements"),
            },
            _ => wanted("wanted string or table"),
        }
        .map_err(|refused: Refused| refused.at(self.span()))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_unit()
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_f64(visitor)
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u16 u32 u128 f32 char string bytes byte_buf unit unit_struct identifier
    }
}

/// Values of a list, or the parts of a [`Spanned`].
struct Items<'v> {
    rest: Box<dyn Iterator<Item = Node<'v>> + 'v>,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Refused;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Refused> {
        self.rest.next().map(|node| seed.deserialize(node)).transpose()
    }
}

type TableEntry<'v> = (&'v toml::Spanned<toml::de::DeString<'v>>, &'v toml::Spanned<DeValue<'v>>);

/// Keys of a table with their values.
struct TableEntries<'v> {
    rest: Box<dyn Iterator<Item = TableEntry<'v>> + 'v>,
    value: Option<TableEntry<'v>>,
}

impl<'de> MapAccess<'de> for TableEntries<'_> {
    type Error = Refused;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Refused> {
        self.value = self.rest.next();
        let Some((key, _)) = self.value else { return Ok(None) };
        let text: de::value::StrDeserializer<'_, Refused> = key.get_ref().as_ref().into_deserializer();
        seed.deserialize(text).map(Some).map_err(|refused: Refused| refused.at(key.span()))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Refused> {
        let Some((key, value)) = self.value.take() else {
            return Err(de::Error::custom("a value without a key"));
        };
        seed.deserialize(Node::from(value))
            .map_err(|refused: Refused| refused.at(value.span()).under(key.get_ref()))
    }
}

/// One of several kinds of a value, as the only key of a table.
struct Choice<'v> {
    key: &'v toml::Spanned<toml::de::DeString<'v>>,
    value: Node<'v>,
}

impl<'de, 'v> EnumAccess<'de> for Choice<'v> {
    type Error = Refused;
    type Variant = Node<'v>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Node<'v>), Refused> {
        let text: de::value::StrDeserializer<'_, Refused> = self.key.get_ref().as_ref().into_deserializer();
        let variant = seed.deserialize(text).map_err(|refused: Refused| refused.at(self.key.span()))?;
        Ok((variant, self.value))
    }
}

impl<'de> VariantAccess<'de> for Node<'_> {
    type Error = Refused;

    fn unit_variant(self) -> Result<(), Refused> {
        let empty = |table: &DeTable<'_>| table.is_empty();
        match &self {
            Self::Value(_, DeValue::Table(table)) if empty(table) => Ok(()),
            _ => Err(<Refused as de::Error>::custom("expected empty table").at(self.span())),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Refused> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.deserialize_map(visitor)
    }
}
