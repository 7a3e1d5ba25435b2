//! `GET /v1/openapi.json`: the OpenAPI 3.1 document, drawn from the table of routes and the types of bodies.

use axum::Json;
use axum::response::{IntoResponse, Response};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::routes::{Gives, ROUTES, Route};
use crate::health::Document;

/// The document.
pub(super) async fn openapi() -> Response {
    Json(document()).into_response()
}

/// The document as JSON.
pub(super) fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = SchemaGenerator::new(settings);
    generator.subschema_for::<Document>();
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let operation = operation(route, &mut generator);
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(item) = item.as_object_mut() {
            item.insert(route.method.to_ascii_lowercase(), operation);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": "toolvane admin", "version": env!("CARGO_PKG_VERSION"), "license": {"name": "Apache-2.0 OR MIT"}},
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

/// A problem document (RFC 9457).
#[derive(JsonSchema)]
#[expect(dead_code, reason = "drawn, never made")]
struct Problem {
    r#type: Option<String>,
    title: String,
    status: u16,
    detail: Option<String>,
}

fn answers(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let content: Map<String, Value> = match route.gives {
        Gives::Json(draw) => {
            [("application/json".to_owned(), json!({"schema": draw(generator)}))].into_iter().collect()
        }
        Gives::Object => [("application/json".to_owned(), json!({"schema": {"type": "object"}}))].into_iter().collect(),
        Gives::Other(media) => media.iter().map(|media| ((*media).to_owned(), json!({}))).collect(),
    };
    let problem = generator.subschema_for::<Problem>();
    let mut answers = Map::new();
    for code in route.codes {
        let answer = match *code {
            204 => json!({"description": "Done; there is nothing to show."}),
            304 => json!({"description": "It is as the reader knows it (`If-None-Match`)."}),
            503 => json!({"description": "Not now.", "content": content}),
            _ => json!({"description": "Done.", "content": content}),
        };
        answers.insert(code.to_string(), answer);
    }
    let problem = json!({
        "description": "What went wrong (RFC 9457).", "content": {"application/problem+json": {"schema": problem}},
    });
    answers.insert("default".to_owned(), problem);
    Value::Object(answers)
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.about,
        "parameters": parameters(route),
        "responses": answers(route, generator),
    });
    let Some(members) = operation.as_object_mut() else { return operation };
    if let Some(role) = route.role {
        members.insert("security".to_owned(), json!([{"token": []}]));
        members.insert("x-role".to_owned(), json!(role.as_str()));
    }
    if let Some(draw) = route.body {
        let content = json!({"application/json": {"schema": draw(generator)}});
        members.insert("requestBody".to_owned(), json!({"required": true, "content": content}));
    }
    operation
}

fn operation_id(route: &Route) -> String {
    let words = route.path.split(['/', '.']).filter(|part| !part.is_empty() && !part.starts_with('{') && *part != "v1");
    let by = if route.path.contains("{id}") || route.path.ends_with('}') { "One" } else { "" };
    let name: String = words.map(capital).collect();
    format!("{}{name}{by}", route.method.to_ascii_lowercase())
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_ascii_uppercase().to_string() + chars.as_str()).unwrap_or_default()
}

fn parameters(route: &Route) -> Vec<Value> {
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let path = in_path.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
    let query = route.query.iter().map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}));
    path.chain(query).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn what_is_described_refers_to_nothing_that_a_reader_does_not_have() {
        let text = document().to_string();
        for word in ["DESIGN", "STATE ", "MCP.md"] {
            let around = text.find(word).and_then(|at| text.get(at.saturating_sub(80)..at + word.len()));
            assert_eq!(around, None);
        }
    }

    #[test]
    fn every_route_is_described_once_and_every_reference_leads_somewhere() {
        let document = document();
        let paths = document["paths"].as_object().unwrap();
        let operations: Vec<&Value> = paths.values().flat_map(|item| item.as_object().unwrap().values()).collect();
        assert_eq!(operations.len(), ROUTES.len());
        let ids: HashSet<&str> = operations.iter().map(|one| one["operationId"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), ROUTES.len(), "{ids:?}");
        let text = document.to_string();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let references: Vec<&str> =
            text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(references.len() > 5);
        assert!(references.iter().all(|name| schemas.contains_key(*name)), "{references:?}");
    }
}
