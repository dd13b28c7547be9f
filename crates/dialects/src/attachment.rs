//! Attaches files to an answer: images, audio and PDFs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinfold::operations::{Open, Opened, ReadBytes};
use pinfold::{Documents, Error, RawPath};

use crate::ToolContext;
use crate::answer::{Block, Resource};

/// The file as a content block, if models accept its kind. `mime` is its detected media type.
pub(crate) fn attachment(
    path: &RawPath,
    mime: &'static str,
    ctx: &ToolContext<'_>,
) -> Result<Option<Block>, Error> {
    let is_pdf = mime == "application/pdf";
    if is_pdf && ctx.session.settings().documents == Documents::Reject {
        return Ok(None);
    }
    if mime.starts_with("image/") {
        return image(path, ctx);
    }
    if !is_pdf && !mime.starts_with("audio/") {
        return Ok(None);
    }
    let file = ctx.session.perform_with(&ReadBytes::new(path.clone()), ctx.call)?.outcome;
    let data = STANDARD.encode(&file.bytes);
    Ok(Some(if is_pdf {
        let uri = format!("file://{}", ctx.absolute(&file.place));
        Block::Resource { resource: Resource { uri, mime_type: mime, blob: data } }
    } else {
        Block::Audio { data, mime_type: mime }
    }))
}

/// An image, scaled down if the settings ask for it. Returns `None` if models do not accept its kind.
pub(crate) fn image(path: &RawPath, ctx: &ToolContext<'_>) -> Result<Option<Block>, Error> {
    match ctx.session.perform_with(&Open::new(path.clone()), ctx.call) {
        Ok(done) => Ok(match done.outcome {
            Opened::Image { picture, .. } => Some(Block::Image {
                data: STANDARD.encode(&picture.data),
                mime_type: picture.mime.into(),
            }),
            Opened::Text { .. } | Opened::Pdf { .. } | Opened::Notebook { .. } => None,
        }),
        Err(Error::Binary { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}
