//! Input for a tool from the examples of its own schema.

use serde_json::{Map, Value};

/// What a tool with this `inputSchema` can be called with: the first of its `examples`, or what its required properties give
/// as example, only value or default. `None` if one of them gives nothing.
pub fn of_schema(schema: &Value) -> Option<Map<String, Value>> {
    if let Some(whole) = examples(schema).next().and_then(Value::as_object) {
        return Some(whole.clone());
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let properties = schema.get("properties");
    required
        .map(|name| {
            let name = name.as_str()?;
            Some((name.to_owned(), of_property(properties?.get(name)?)?.clone()))
        })
        .collect()
}

fn of_property(schema: &Value) -> Option<&Value> {
    let only = schema.get("enum").and_then(Value::as_array).and_then(|values| values.first());
    examples(schema).next().or(schema.get("const")).or(schema.get("default")).or(only)
}

/// `examples` of JSON Schema, and `example` as OpenAPI spells it.
fn examples(schema: &Value) -> impl Iterator<Item = &Value> {
    let many = schema.get("examples").and_then(Value::as_array).into_iter().flatten();
    many.chain(schema.get("example"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_examples_of_a_schema_make_an_input_that_fits_it() {
        for (schema, expected) in [
            (json!({"type": "object"}), Some(json!({}))),
            (json!({"properties": {"q": {"examples": ["tea"]}}}), Some(json!({}))),
            (json!({"examples": [{"q": "tea"}, {"q": "milk"}], "required": ["z"]}), Some(json!({"q": "tea"}))),
            (json!({"required": ["q"], "properties": {"q": {"examples": ["tea", "milk"]}}}), Some(json!({"q": "tea"}))),
            (json!({"required": ["q"], "properties": {"q": {"example": 7}}}), Some(json!({"q": 7}))),
            (json!({"required": ["q"], "properties": {"q": {"default": false}}}), Some(json!({"q": false}))),
            (json!({"required": ["q"], "properties": {"q": {"const": "a"}}}), Some(json!({"q": "a"}))),
            (json!({"required": ["q"], "properties": {"q": {"enum": ["b", "c"]}}}), Some(json!({"q": "b"}))),
            (json!({"required": ["q"], "properties": {"q": {"type": "string"}}}), None),
            (json!({"required": ["q", "z"], "properties": {"q": {"default": 1}}}), None),
            (json!({"required": [7]}), None),
        ] {
            assert_eq!(of_schema(&schema).map(Value::Object), expected, "{schema}");
        }
    }
}
