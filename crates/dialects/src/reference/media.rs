//! `read_media_file`

use std::fmt::Write as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinfold::operations;
use pinfold::{Done, Error};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::{Block, Resource};
use crate::reference::error_text::SystemCall;
use crate::reference::path::ReferencePath;
use crate::{Tool, ToolContext};

/// Reads an image, audio or any other file as base64, up to 20 MiB.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadMediaFile {
    /// Absolute or relative path.
    path: ReferencePath,
}

impl Tool for ReadMediaFile {
    const NAME: &'static str = "read_media_file";
    const TITLE: &'static str = "Read Media File";
    const IDEMPOTENT: bool = true;
    type Op = operations::ReadBytes;
    type Reply = Block;

    fn operation(&self, _: &ToolContext<'_>) -> Result<operations::ReadBytes, Error> {
        Ok(operations::ReadBytes::new(self.path.raw()))
    }

    fn reply(&self, done: Done<operations::ReadBytes>, ctx: &ToolContext<'_>) -> Block {
        let file = done.outcome;
        let data = STANDARD.encode(&file.bytes);
        let name = file.place.path.name().to_string();
        let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        let image =
            |mime_type: &'static str, data| Block::Image { data, mime_type: mime_type.into() };
        let audio = |mime_type, data| Block::Audio { data, mime_type };
        match ending.as_deref() {
            Some("png") => image("image/png", data),
            Some("jpg" | "jpeg") => image("image/jpeg", data),
            Some("gif") => image("image/gif", data),
            Some("webp") => image("image/webp", data),
            Some("bmp") => image("image/bmp", data),
            Some("svg") => image("image/svg+xml", data),
            Some("mp3") => audio("audio/mpeg", data),
            Some("wav") => audio("audio/wav", data),
            Some("ogg") => audio("audio/ogg", data),
            Some("flac") => audio("audio/flac", data),
            _ => {
                let uri = file_uri(&ctx.session.real_path(&file.place));
                let mime_type = "application/octet-stream";
                let resource = Resource { uri, mime_type, blob: data };
                Block::Resource { resource }
            }
        }
    }

    fn error_text(&self, error: &Error, ctx: &ToolContext<'_>) -> Option<String> {
        SystemCall::Of("open", &self.path).error_text(error, ctx)
    }

    fn compact_params(&self, ctx: &ToolContext<'_>) -> String {
        ctx.short_path(self.path.as_str())
    }
}

/// The URI of a path.
fn file_uri(path: &Path) -> String {
    let mut uri = String::from("file://");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => uri.push(char::from(*byte)),
            _ if b"/-._~!$&'()*+,;=:@[]|^".contains(byte) => uri.push(char::from(*byte)),
            _ => write!(uri, "%{byte:02X}").expect("a String takes anything"),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_has_no_character_that_means_something_else() {
        assert_eq!(file_uri(Path::new("/w/x y#?é%.bin")), "file:///w/x%20y%23%3F%C3%A9%25.bin");
    }
}
