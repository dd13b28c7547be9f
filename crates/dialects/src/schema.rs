//! JSON schemas of tools, simplified for models.
//!
//! The schemas come from schemars, without parts that are useless or misleading for a model: titles, number formats,
//! `null` beside a type, references.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

/// The schema of a tool's arguments.
pub(crate) fn input<T: JsonSchema>() -> Value {
    input_from(T::json_schema)
}

fn input_from(generate: Generate) -> Value {
    let mut schema =
        schema(generate, SchemaSettings::draft2020_12().for_deserialize(), Nulls::Drop);
    // Some clients need it even if there are no arguments.
    if let Some(object) = schema.as_object_mut() {
        object.entry("properties").or_insert_with(|| Map::new().into());
    }
    schema
}

/// The schema of a tool's answer.
pub(crate) fn output<T: JsonSchema>() -> Value {
    schema(T::json_schema, SchemaSettings::draft2020_12().for_serialize(), Nulls::Keep)
}

/// The function of a type that makes its schema. With a type parameter instead, the code below would be compiled for
/// each type.
type Generate = fn(&mut SchemaGenerator) -> Schema;

/// Whether a schema keeps `null` as a type.
#[derive(Clone, Copy, PartialEq)]
enum Nulls {
    /// For arguments: `null` is accepted, but a model that sees it in the schema starts to send it.
    Drop,
    /// For answers, which contain `null`.
    Keep,
}

fn schema(generate: Generate, settings: SchemaSettings, nulls: Nulls) -> Value {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = generate(&mut settings.into_generator()).to_value();
    simplify(&mut schema, nulls);
    schema
}

fn simplify(schema: &mut Value, nulls: Nulls) {
    let Value::Object(object) = schema else { return };
    for noise in ["$schema", "title", "format"] {
        object.remove(noise);
    }
    if object.get("default") == Some(&Value::Null) {
        object.remove("default");
    }
    // Joins the lines of each paragraph, since only the source is wrapped.
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text =
            text.split("\n\n").map(|part| part.replace('\n', " ")).collect::<Vec<_>>().join("\n");
    }
    if nulls == Nulls::Drop {
        drop_null(object);
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(|property| simplify(property, nulls));
    }
    if let Some(items) = object.get_mut("items") {
        simplify(items, nulls);
    }
}

fn drop_null(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let Some(Value::Array(mut choices)) = object.remove("anyOf") else { return };
    choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
    match choices.as_mut_slice() {
        [Value::Object(only)] => {
            // The field's own keys, such as its description, take precedence.
            std::mem::take(only).into_iter().for_each(|(key, value)| {
                object.entry(key).or_insert(value);
            });
        }
        _ => {
            object.insert("anyOf".into(), Value::Array(choices));
        }
    }
}
