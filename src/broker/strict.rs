//! JSON read strictly: values in which every key stands once, and objects that are objects.
//!
//! `serde_json::Value` keeps the last of duplicate keys, and derived structures take an array for an
//! object; two readers of the same text could then see different things. Depth is bounded by
//! `serde_json` itself (128).

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The key under which `serde_json` hands numbers on if it keeps all their digits.
const NUMBER: &str = "$serde_json::private::Number";

/// What an object holds; an array of the same values is none.
pub(super) struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        from.deserialize_map(Members(PhantomData))
    }
}

/// A value without duplicate keys.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Strict(pub Value);

/// An optional member: absent and `null` are `None`.
pub(super) fn optional_value<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Value>, D::Error> {
    Strict::deserialize(from).map(|Strict(value)| Some(value).filter(|value| !value.is_null()))
}

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(StrictVisitor)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Strict;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value without duplicate keys")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Strict, E> {
        Ok(Strict(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Strict, E> {
        Ok(Strict(Value::Number(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Strict, E> {
        Ok(Strict(Value::Number(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Strict, E> {
        Ok(Strict(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Strict, E> {
        Ok(Strict(Value::String(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Strict, E> {
        Ok(Strict(Value::String(value)))
    }

    fn visit_unit<E>(self) -> Result<Strict, E> {
        Ok(Strict(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Strict, E> {
        Ok(Strict(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Strict, D::Error> {
        Strict::deserialize(from)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Strict, A::Error> {
        let mut values = Vec::new();
        while let Some(Strict(value)) = seq.next_element()? {
            values.push(value);
        }
        Ok(Strict(Value::Array(values)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Strict, A::Error> {
        let mut values = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if key == NUMBER && values.is_empty() {
                let digits = map.next_value::<String>()?;
                let number: Number = digits.parse().map_err(de::Error::custom)?;
                return Ok(Strict(Value::Number(number)));
            }
            let Strict(value) = map.next_value()?;
            if values.contains_key(&key) {
                return Err(de::Error::custom(format!("duplicate key {key:?}")));
            }
            values.insert(key, value);
        }
        Ok(Strict(Value::Object(values)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_serde_json_reads_but_for_duplicates() {
        for text in ["null", "1", "-1", "1.5", "1e400", "\"a\"", "[1,[]]", r#"{"a":{"b":[true]}}"#]
        {
            let Strict(value) = serde_json::from_str(text).unwrap();
            assert_eq!(value, serde_json::from_str::<Value>(text).unwrap());
        }
        for text in [r#"{"a":1,"a":1}"#, r#"[{"x":{"a":1,"\u0061":2}}]"#] {
            assert!(serde_json::from_str::<Strict>(text).is_err(), "{text}");
        }
        assert!(serde_json::from_str::<Strict>(&"[".repeat(200_000)).is_err());
    }
}
