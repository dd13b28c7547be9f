//! Resources: some that are listed, and one for each name that somebody puts into a template.

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::content::PNG;

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";
const WATCHED: &str = "test://watched-resource";

pub(crate) fn list() -> Vec<Resource> {
    let resource = |uri: &str, name: &str, about: &str, mime_type: &str| {
        Resource::new(uri, name).with_description(about).with_mime_type(mime_type)
    };
    vec![
        resource(TEXT, "static-text", "Some text", "text/plain"),
        resource(BINARY, "static-binary", "An image", "image/png"),
        resource(WATCHED, "watched-resource", "Can be subscribed to", "text/plain"),
    ]
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = ResourceTemplate::new("test://template/{id}/data", "template")
        .with_description("Says which id it was asked for")
        .with_mime_type("application/json");
    vec![template]
}

pub(crate) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let id = || uri.strip_prefix("test://template/")?.strip_suffix("/data");
    let contents = match uri {
        TEXT => ResourceContents::text("This is the content of the static text resource.", uri),
        BINARY => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
        WATCHED => ResourceContents::text("This is the content of the watched resource.", uri),
        _ => match id() {
            Some(id) => {
                let data = format!("Data for ID: {id}");
                let text = json!({ "id": id, "templateTest": true, "data": data }).to_string();
                ResourceContents::text(text, uri).with_mime_type("application/json")
            }
            None => {
                let problem = format!("there is no resource `{uri}`");
                return Err(ErrorData::resource_not_found(problem, Some(json!({ "uri": uri }))));
            }
        },
    };
    Ok(ReadResourceResult::new(vec![contents]))
}
