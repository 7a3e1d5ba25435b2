//! JSON of others, read into structures. Where a structure is expected only an object will do (what derive makes would take an
//! array for its members in order, and an empty one for a structure that needs none), and an error says where it is.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};

/// Why a text does not have the form that it must have.
#[derive(Debug, thiserror::Error)]
#[error("{}{what}", self.place())]
pub struct Misfit {
    /// Where, such as `response.status`; empty for the whole.
    at: String,
    /// What is wrong, and what would do.
    pub what: String,
    /// Line and column in the text, from 1; 0 where there was no text.
    pub position: (usize, usize),
}

impl Misfit {
    /// The place, as it stands before what is wrong.
    pub fn place(&self) -> String {
        if self.at.is_empty() { String::new() } else { format!("`{}`: ", self.at) }
    }

    fn new(error: serde_path_to_error::Error<serde_json::Error>) -> Misfit {
        let at = error.path().to_string();
        let at = if at == "." { String::new() } else { at };
        let error = error.into_inner();
        let said = error.to_string();
        let what = said.rsplit_once(" at line ").map_or(said.as_str(), |(what, _)| what).to_owned();
        Misfit { at, what, position: (error.line(), error.column()) }
    }
}

/// Reads a text.
///
/// # Errors
/// If it is not JSON, or has another form.
pub fn read<'de, T: Deserialize<'de>>(text: &'de [u8]) -> Result<T, Misfit> {
    let mut whole = serde_json::Deserializer::from_slice(text);
    let read = serde_path_to_error::deserialize(Strict(&mut whole)).map_err(Misfit::new)?;
    whole.end().map_err(|error| Misfit {
        at: String::new(),
        what: "something follows the end".to_owned(),
        position: (error.line(), error.column()),
    })?;
    Ok(read)
}

/// Reads what is a value already.
///
/// # Errors
/// If it has another form.
pub fn of_value<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, Misfit> {
    serde_path_to_error::deserialize(Strict(value)).map_err(Misfit::new)
}

/// Reads, accesses or visits as what it wraps does, except that structures are maps.
struct Strict<T>(T);

/// A visitor of a structure.
struct Members<V> {
    visitor: V,
    fields: &'static [&'static str],
}

macro_rules! forward {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(Strict(visitor))
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Strict<D> {
    type Error = D::Error;

    forward! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64
        deserialize_char deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf deserialize_option
        deserialize_unit deserialize_seq deserialize_map deserialize_identifier deserialize_ignored_any
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Members { visitor, fields })
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_unit_struct(name, Strict(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, Strict(visitor))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(len, Strict(visitor))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple_struct(name, len, Strict(visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, Strict(visitor))
    }
}

macro_rules! pass {
    ($($method:ident: $kind:ty)*) => {
        $(fn $method<E: serde::de::Error>(self, value: $kind) -> Result<V::Value, E> {
            self.0.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Strict<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    pass! {
        visit_bool: bool visit_i64: i64 visit_i128: i128 visit_u64: u64 visit_u128: u128 visit_f64: f64 visit_str: &str
        visit_borrowed_str: &'de str visit_string: String visit_bytes: &[u8] visit_borrowed_bytes: &'de [u8]
        visit_byte_buf: Vec<u8>
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Strict(inner))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Strict(inner))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Strict(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Strict(members))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Strict(data))
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Members<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")?;
        for (i, field) in self.fields.iter().enumerate() {
            write!(f, "{}`{field}`", if i == 0 { " of " } else { ", " })?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Strict(members))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Strict<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Strict(inner))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Strict(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Strict(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Strict<A> {
    type Error = A::Error;
    type Variant = Strict<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Strict<A::Variant>), A::Error> {
        self.0.variant_seed(seed).map(|(variant, content)| (variant, Strict(content)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Strict(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, Strict(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Members { visitor, fields })
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Inner {
        a: Option<u8>,
        b: Vec<Inner>,
        any: Value,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Choice {
        Nothing,
        Wrapped(Inner),
        Named {
            #[serde(default)]
            inner: Option<Inner>,
        },
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Outer {
        inner: Option<Inner>,
        choice: Option<Choice>,
        pair: (u8, u8),
    }

    fn both(value: &Value) -> Result<Outer, String> {
        let text = value.to_string();
        let read = read::<Outer>(text.as_bytes()).map_err(|error| error.to_string());
        assert_eq!(of_value::<Outer>(value.clone()).map_err(|error| error.to_string()), read, "{text}");
        read
    }

    #[test]
    fn what_has_the_form_is_read_as_ever() {
        let inner = json!({"a": 1, "b": [{"a": 2}, {}], "any": [1, {"x": [null]}]});
        for choice in [json!(null), json!("nothing"), json!({"wrapped": inner}), json!({"named": {"inner": inner}})] {
            let value = json!({"inner": inner, "choice": choice, "pair": [1, 2]});
            assert_eq!(both(&value), Ok(serde_json::from_value(value.clone()).unwrap()), "{value}");
        }
    }

    #[test]
    fn an_array_is_no_structure_at_any_depth() {
        for (value, at) in [
            (json!([]), ""),
            (json!([null, null, [1, 2]]), ""),
            (json!({"inner": []}), "`inner`: "),
            (json!({"inner": {"b": [{}, []]}}), "`inner.b[1]`: "),
            (json!({"choice": {"wrapped": []}}), "`choice.wrapped`: "),
            (json!({"choice": {"named": {"inner": [1]}}}), "`choice.named.inner`: "),
        ] {
            let error = both(&value).unwrap_err();
            assert!(
                error.starts_with(&format!("{at}invalid type: sequence, expected an object of `")),
                "{value}: {error}"
            );
        }
        let named = read::<Outer>(br#"{"choice": {"named": []}}"#).unwrap_err();
        assert!(named.to_string().starts_with("`choice"), "{named}");
    }

    #[test]
    fn an_error_says_where_and_what_would_do() {
        let error = read::<Outer>(b"{\n \"inner\": {\"a\": \"x\"}}").unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), error.position),
            (r#"`inner.a`: invalid type: string "x", expected u8"#, (2, 19))
        );
        let error = read::<Outer>(b"{} x").unwrap_err();
        assert_eq!((error.to_string().as_str(), error.position), ("something follows the end", (1, 4)));
        assert!(both(&json!({"outer": 1})).unwrap_err().contains("unknown field `outer`, expected one of `inner`"));
        assert!(
            read::<Outer>(br#"{"pair": [1, 2], "pair": [1, 2]}"#).unwrap_err().to_string().contains("duplicate field")
        );
    }
}
