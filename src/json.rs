//! JSON from outside, read strictly: size, depth and count are bounded, and no key stands twice.
//!
//! The usual reader keeps the last of duplicate keys, so two readers of one text may see two
//! different values. Trust boundary: the text comes from callers, agents and tools.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Largest text that is read. A tool's result has the same bound on its way from the sandbox.
pub const MAX_BYTES: usize = 4 << 20;
/// Deepest nesting. Every walk over a value recurses at most this often.
pub const MAX_DEPTH: usize = 64;
/// The one key under which the JSON library hands over a number that is no whole one, when any part of the
/// program has asked it to keep all digits. A text that spells it out as an object gets a number, no more.
const NUMBER: &str = "$serde_json::private::Number";
/// Most values in one text; an empty one costs tens of bytes of memory.
pub const MAX_VALUES: usize = 200_000;

/// Why a text is not JSON that is read here.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum JsonError {
    /// More bytes than are read.
    #[error("{0} bytes; at most {MAX_BYTES} are read")]
    TooLarge(usize),
    /// Not JSON, a key twice, or nested too deep.
    #[error("line {line}, column {column}: {why}")]
    Unreadable {
        /// What is wrong.
        why: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
}

/// Reads one value.
///
/// # Errors
/// The text is too large, is not JSON, repeats a key, or is nested too deep.
pub fn read(text: &str) -> Result<Value, JsonError> {
    if text.len() > MAX_BYTES {
        return Err(JsonError::TooLarge(text.len()));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let mut left = MAX_VALUES;
    let value = Strict { depth: 0, left: &mut left }.deserialize(&mut reader);
    value.and_then(|value| reader.end().map(|()| value)).map_err(|error| {
        let text = error.to_string();
        let why = text.split(" at line ").next().unwrap_or(&text).to_owned();
        JsonError::Unreadable { why, line: error.line(), column: error.column() }
    })
}

/// Whether a value is within the bounds that [`read`] holds: for values that came another way.
#[must_use]
pub fn is_bounded(value: &Value) -> bool {
    fn walk(value: &Value, depth: usize, left: &mut usize) -> bool {
        if depth > MAX_DEPTH || *left == 0 {
            return false;
        }
        *left -= 1;
        match value {
            Value::Array(items) => items.iter().all(|item| walk(item, depth + 1, left)),
            Value::Object(map) => map.values().all(|item| walk(item, depth + 1, left)),
            Value::Number(number) => number.as_f64().is_some_and(f64::is_finite),
            Value::Null | Value::Bool(_) | Value::String(_) => true,
        }
    }
    walk(value, 0, &mut MAX_VALUES.clone())
}

struct Strict<'l> {
    depth: usize,
    left: &'l mut usize,
}

impl Strict<'_> {
    fn inner<E: de::Error>(&mut self) -> Result<Strict<'_>, E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        if *self.left == 0 {
            return Err(E::custom(format!("more than {MAX_VALUES} values")));
        }
        *self.left -= 1;
        Ok(Strict { depth: self.depth + 1, left: self.left })
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("not a number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(self.inner()?)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if key == NUMBER && map.is_empty() {
                let digits: String = entries.next_value()?;
                let number = digits.parse().ok().and_then(Number::from_f64);
                let number = number.ok_or_else(|| de::Error::custom("number out of range"))?;
                if entries.next_key::<String>()?.is_some() {
                    return Err(de::Error::custom(format!("the key {NUMBER:?} is reserved")));
                }
                return Ok(Value::Number(number));
            }
            if map.contains_key(&key) {
                return Err(de::Error::custom(format!("the key {key:?} stands twice")));
            }
            let value = entries.next_value_seed(self.inner()?)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_json_is_read_as_it_is() {
        let text = r#"{"a":[1,-2,2.5,true,null,"x\u00e9"],"b":{}}"#;
        assert_eq!(read(text), Ok(json!({"a":[1,-2,2.5,true,null,"xé"],"b":{}})));
    }

    #[test]
    fn a_key_that_stands_twice_is_refused_at_any_depth() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"c":2,"a":3}}]"#, r#"{"a":1,"\u0061":2}"#]
        {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains("stands twice"), "{error}");
        }
    }

    #[test]
    fn broken_json_is_an_error_with_its_place() {
        for text in
            ["", "{", "{a:1}", "[1,]", "1 2", "NaN", "1e999", "\"\u{1}\"", "\"\\ud800\"", "tru"]
        {
            assert!(matches!(read(text), Err(JsonError::Unreadable { .. })), "{text}");
        }
        let at = read("{\n \"a\": x}").unwrap_err();
        assert!(matches!(at, JsonError::Unreadable { line: 2, .. }), "{at}");
    }

    #[test]
    fn numbers_are_finite_and_plain() {
        assert_eq!(read("1e3"), Ok(json!(1000.0)));
        assert_eq!(
            read("[18446744073709551615, -9223372036854775808]"),
            Ok(json!([u64::MAX, i64::MIN]))
        );
        assert_eq!(read("1e400").unwrap_err().to_string(), "line 1, column 5: number out of range");
        assert_eq!(read(r#"{"$serde_json::private::Number":"2.5"}"#), Ok(json!(2.5)));
        for text in ["x", "1e999", "NaN", "inf"] {
            assert!(read(&format!(r#"{{"$serde_json::private::Number":"{text}"}}"#)).is_err());
        }
        assert!(read(r#"{"$serde_json::private::Number":"1","a":1}"#).is_err());
        assert!(read(r#"{"$serde_json::private::Number":{}}"#).is_err());
    }

    #[test]
    fn depth_count_and_size_are_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(read(&nested(MAX_DEPTH)).is_ok());
        assert!(read(&nested(MAX_DEPTH + 2)).is_err() && read(&nested(1_000_000)).is_err());
        let many = format!("[{}0]", "0,".repeat(MAX_VALUES + 1));
        assert!(read(&many).unwrap_err().to_string().contains("values"));
        assert_eq!(read(&" ".repeat(MAX_BYTES + 1)), Err(JsonError::TooLarge(MAX_BYTES + 1)));
    }
}
