//! Images: what they are is read from their headers, never by decoding them.

use crate::limits::{IMAGE_BYTES, IMAGE_SIDE};

/// A picture, as it is in its file.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Its media type.
    pub mime: &'static str,
    /// Its bytes.
    pub data: Vec<u8>,
    /// How wide it is, in pixels.
    pub width: usize,
    /// How high it is, in pixels.
    pub height: usize,
}

/// The media types of pictures that models can look at.
pub(crate) fn is_picture(mime: &str) -> bool {
    matches!(mime, "image/png" | "image/jpeg" | "image/gif" | "image/webp")
}

/// A picture that a model can look at; what speaks against it if it is not.
pub(crate) fn picture(mime: &'static str, data: Vec<u8>) -> Result<Picture, String> {
    let size = imagesize::blob_size(&data).map_err(|_| "its header is damaged".to_owned())?;
    let (width, height) = (size.width, size.height);
    if width > IMAGE_SIDE || height > IMAGE_SIDE {
        return Err(format!(
            "it has {width} x {height} pixels, and more than {IMAGE_SIDE} on a side cannot be shown"
        ));
    }
    Ok(Picture { mime, data, width, height })
}

/// What speaks against an image of so many bytes.
pub(crate) fn too_many_bytes(size: u64) -> Option<String> {
    (size > IMAGE_BYTES)
        .then(|| format!("it has {size} bytes, and more than {IMAGE_BYTES} cannot be shown"))
}
