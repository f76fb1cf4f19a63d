//! What holds for every JSON text from outside, whatever it is read into: depth and count are bounded,
//! and no key stands twice.
//!
//! [`Guarded`] stands between the JSON library and the type that is read. It wraps the deserializer, and
//! through it every visitor, list and object below, so that nothing inside is read without it. Values
//! that the type does not want are looked at too.

use std::collections::HashSet;
use std::fmt;

use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer as _, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

use super::{MAX_DEPTH, NUMBER};

/// A part of a reader that counts: a deserializer, a visitor, a seed, a list or a variant.
pub(super) struct Guarded<'l, T> {
    inner: T,
    depth: usize,
    left: &'l mut Left,
}

/// How many values may still be read.
pub(super) struct Left {
    values: usize,
    most: usize,
}

impl Left {
    pub(super) fn new(most: usize) -> Self {
        Self { values: most, most }
    }

    /// Counts a value that is part of another at this depth.
    fn enter<E: Error>(&mut self, depth: usize) -> Result<(), E> {
        if depth >= MAX_DEPTH {
            return Err(E::custom(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        if self.values == 0 {
            return Err(E::custom(format!("more than {} values", self.most)));
        }
        self.values -= 1;
        Ok(())
    }
}

impl<'l, T> Guarded<'l, T> {
    pub(super) fn new(inner: T, left: &'l mut Left) -> Self {
        Self { inner, depth: 0, left }
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Guarded<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        let Self { inner, depth, left } = self;
        inner.deserialize(Guarded { inner: from, depth, left })
    }
}

macro_rules! forward {
    ($($method:ident($($name:ident: $type:ty),*))*) => {
        $(fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            let Self { inner, depth, left } = self;
            inner.$method($($name,)* Guarded { inner: visitor, depth, left })
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Guarded<'_, D> {
    type Error = D::Error;

    forward! {
        deserialize_any()
        deserialize_bool()
        deserialize_i8()
        deserialize_i16()
        deserialize_i32()
        deserialize_i64()
        deserialize_i128()
        deserialize_u8()
        deserialize_u16()
        deserialize_u32()
        deserialize_u64()
        deserialize_u128()
        deserialize_f32()
        deserialize_f64()
        deserialize_char()
        deserialize_str()
        deserialize_string()
        deserialize_bytes()
        deserialize_byte_buf()
        deserialize_option()
        deserialize_unit()
        deserialize_unit_struct(name: &'static str)
        deserialize_newtype_struct(name: &'static str)
        deserialize_seq()
        deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_map()
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
        deserialize_identifier()
    }

    /// Looked at like any other: the library would pass over it.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.deserialize_any(visitor)
    }
}

macro_rules! visit {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Guarded<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit! {
        visit_bool: bool,
        visit_i64: i64,
        visit_i128: i128,
        visit_u64: u64,
        visit_u128: u128,
        visit_f64: f64,
        visit_char: char,
        visit_str: &str,
        visit_borrowed_str: &'de str,
        visit_string: String,
        visit_bytes: &[u8],
        visit_borrowed_bytes: &'de [u8],
        visit_byte_buf: Vec<u8>,
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        let Self { inner, depth, left } = self;
        inner.visit_some(Guarded { inner: from, depth, left })
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        let Self { inner, depth, left } = self;
        inner.visit_newtype_struct(Guarded { inner: from, depth, left })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        let Self { inner, depth, left } = self;
        inner.visit_seq(Guarded { inner: items, depth, left })
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        let Self { inner, depth, left } = self;
        let entries = Guarded { inner: entries, depth, left };
        inner.visit_map(Members { entries, seen: HashSet::new(), number: false })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        let Self { inner, depth, left } = self;
        inner.visit_enum(Guarded { inner: variant, depth, left })
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Guarded<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let Self { inner, depth, left } = self;
        left.enter(*depth)?;
        inner.next_element_seed(Guarded { inner: seed, depth: *depth + 1, left })
    }
}

/// The members of an object, and the keys that were met.
struct Members<'l, A> {
    entries: Guarded<'l, A>,
    seen: HashSet<String>,
    /// Whether this is no object, but how the JSON library hands over a number.
    number: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Members<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let Some(key) = self.entries.inner.next_key::<String>()? else { return Ok(None) };
        self.number = self.seen.is_empty() && key == NUMBER;
        if !self.seen.insert(key.clone()) {
            return Err(A::Error::custom(format!("the key {key:?} is there twice")));
        }
        let key: StringDeserializer<A::Error> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let Guarded { inner, depth, left } = &mut self.entries;
        if self.number {
            return inner.next_value_seed(seed);
        }
        left.enter(*depth)?;
        inner.next_value_seed(Guarded { inner: seed, depth: *depth + 1, left })
    }
}

impl<'de, 'l, A: EnumAccess<'de>> EnumAccess<'de> for Guarded<'l, A> {
    type Error = A::Error;
    type Variant = Guarded<'l, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let Self { inner, depth, left } = self;
        let (value, variant) = inner.variant_seed(seed)?;
        Ok((value, Guarded { inner: variant, depth, left }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Guarded<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        let Self { inner, depth, left } = self;
        left.enter(depth)?;
        inner.newtype_variant_seed(Guarded { inner: seed, depth: depth + 1, left })
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        let Self { inner, depth, left } = self;
        left.enter(depth)?;
        inner.tuple_variant(len, Guarded { inner: visitor, depth: depth + 1, left })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let Self { inner, depth, left } = self;
        left.enter(depth)?;
        inner.struct_variant(fields, Guarded { inner: visitor, depth: depth + 1, left })
    }
}
