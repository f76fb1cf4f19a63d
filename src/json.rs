//! JSON from outside, read strictly: size, depth and count are bounded, and no key stands twice.
//!
//! The usual reader keeps the last of duplicate keys, so two readers of one text may see two
//! different values. Trust boundary: the text comes from callers, agents, tools, MCP servers, and
//! programs that have read foreign bytes. [`read`] gives a value, [`read_as`] any type; the same
//! holds for both, at any depth. What only this program can have written may be read
//! without it; `tests/all/layers.rs` lists where.

mod guard;
mod object;
mod plain;

use serde::de::DeserializeOwned;
use serde_json::Value;

use guard::{Guarded, Left};
pub use object::Object;
use plain::Plain;

/// Largest text that is read. A tool's result has the same bound on its way from the sandbox.
pub const MAX_BYTES: usize = 4 << 20;
/// Deepest nesting. Every walk over a value recurses at most this often.
pub const MAX_DEPTH: usize = 64;
/// The one key under which the JSON library hands over a number that is no whole one, when any part of the
/// program has asked it to keep all digits. A text that spells it out as an object gets a number, no more.
const NUMBER: &str = "$serde_json::private::Number";
/// Most values in one text; an empty one costs tens of bytes of memory.
pub const MAX_VALUES: usize = 200_000;

/// How much of a text is read. Its depth is bounded by [`MAX_DEPTH`] in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes.
    pub bytes: usize,
    /// Most values.
    pub values: usize,
}

impl Limits {
    /// What holds where nothing else is said.
    pub const USUAL: Self = Self { bytes: MAX_BYTES, values: MAX_VALUES };
}

/// Why a text is not JSON that is read here.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum JsonError {
    /// More bytes than are read.
    #[error("{bytes} bytes; at most {most} are read")]
    TooLarge {
        /// How many there are.
        bytes: usize,
        /// How many are read.
        most: usize,
    },
    /// Not JSON, a key twice, nested too deep, or not of the type that is wanted.
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

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let mut why = error.to_string();
        if let Some(end) = why.rfind(" at line ").filter(|_| line > 0) {
            why.truncate(end);
        }
        Self::Unreadable { why, line, column }
    }
}

/// Reads one value. Its numbers are whole ones, or finite fractions in their shortest form.
///
/// # Errors
/// The text is too large, is not JSON, repeats a key, or is nested too deep.
pub fn read(text: &str) -> Result<Value, JsonError> {
    read_as(text.as_bytes(), Limits::USUAL).map(|Plain(value)| value)
}

/// Reads one value of a type. Parts that the type does not want are read as strictly as the others. Numbers
/// in a [`Value`] keep the digits that were written.
///
/// # Errors
/// The text is too large, is not JSON, repeats a key, is nested too deep, or is not of the type.
pub fn read_as<T: DeserializeOwned>(text: &[u8], limits: Limits) -> Result<T, JsonError> {
    if text.len() > limits.bytes {
        return Err(JsonError::TooLarge { bytes: text.len(), most: limits.bytes });
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let mut left = Left::new(limits.values);
    let value = T::deserialize(Guarded::new(&mut reader, &mut left))?;
    reader.end()?;
    Ok(value)
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
            assert!(error.contains("is there twice"), "{error}");
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
        assert_eq!(
            read(&" ".repeat(MAX_BYTES + 1)),
            Err(JsonError::TooLarge { bytes: MAX_BYTES + 1, most: MAX_BYTES })
        );
    }

    fn typed<T: DeserializeOwned>(text: &str) -> Result<T, String> {
        read_as(text.as_bytes(), Limits::USUAL).map_err(|error: JsonError| error.to_string())
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Said {
        Nothing,
        One(Value),
        Pair(u8, Value),
        Named { a: Option<Value> },
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Wanted {
        a: u64,
        #[serde(default)]
        said: Vec<Said>,
    }

    #[test]
    fn every_type_is_read_as_the_library_reads_it() {
        let text = r#"{"a":1,"other":[{"x":1.50}],"said":["nothing",{"one":{"k":[1e400]}},{"pair":[2,{}]},{"named":{"a":null}}]}"#;
        let read: Wanted = typed(text).unwrap();
        assert_eq!(read, serde_json::from_str(text).unwrap());
        for text in ["null", "1", "-1", "1.50", "1e400", "\"a\"", "[1,[]]", r#"{"a":{"b":[true]}}"#]
        {
            let expected: Value = serde_json::from_str(text).unwrap();
            assert_eq!(typed::<Value>(text), Ok(expected), "{text}");
        }
        assert!(typed::<Wanted>("[1]").is_ok() && typed::<Object<Wanted>>("[1]").is_err());
        assert!(typed::<Object<Wanted>>(r#"{"a":1}"#).is_ok());
        let wrong = typed::<Wanted>("{\n\"a\": \"x\"}").unwrap_err();
        assert!(wrong.starts_with("line 2, column ") && wrong.contains("expected u64"), "{wrong}");
    }

    #[test]
    fn no_part_of_a_type_is_read_less_strictly() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"other":{"x":1,"x":2}}"#,
            r#"{"a":1,"said":[{"one":{"x":1,"x":2}}]}"#,
            r#"{"a":1,"said":[{"pair":[1,{"x":1,"x":2}]}]}"#,
            r#"{"a":1,"said":[{"named":{"a":[{"x":1,"\u0078":2}]}}]}"#,
        ] {
            let error = typed::<Wanted>(text).unwrap_err();
            assert!(error.contains("is there twice"), "{text}: {error}");
        }
        let deep = "[".repeat(MAX_DEPTH + 1) + &"]".repeat(MAX_DEPTH + 1);
        for text in [
            format!(r#"{{"a":1,"other":{deep}}}"#),
            format!(r#"{{"a":1,"said":[{{"one":{deep}}}]}}"#),
        ] {
            let error = typed::<Wanted>(&text).unwrap_err();
            assert!(error.contains("nested deeper"), "{error}");
        }
        let many = format!(r#"{{"a":1,"other":[{}0]}}"#, "0,".repeat(100));
        let few = Limits { values: 50, ..Limits::USUAL };
        let error = read_as::<Wanted>(many.as_bytes(), few).unwrap_err().to_string();
        assert!(error.contains("more than 50 values"), "{error}");
        let short = Limits { bytes: 4, ..Limits::USUAL };
        assert!(matches!(
            read_as::<Value>(b"[1,2]", short),
            Err(JsonError::TooLarge { bytes: 5, most: 4 })
        ));
        assert!(typed::<Value>("1 2").is_err() && typed::<Value>("").is_err());
    }
}
