//! Images for models.
//!
//! Type and size are read from the header. Only an image that has to be scaled down is decoded.

#[cfg(feature = "images")]
use std::io::Cursor;

#[cfg(feature = "images")]
use image::{DynamicImage, ImageFormat, ImageReader, Limits, codecs::jpeg::JpegEncoder};

use crate::Settings;
#[cfg(feature = "images")]
use crate::limits::{MAX_DECODED_BYTES, MAX_DECODED_SIDE};
use crate::limits::{MAX_SHOWN_IMAGE_BYTES, MAX_SHOWN_IMAGE_SIDE};

/// An image that a model can read.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Its media type.
    pub mime: &'static str,
    /// Its bytes.
    pub data: Vec<u8>,
    /// Its width in pixels.
    pub width: usize,
    /// Its height in pixels.
    pub height: usize,
    /// Its width and height before it was scaled down.
    pub shrunk_from: Option<(usize, usize)>,
}

/// Why an image cannot be shown.
#[derive(Debug)]
pub(crate) enum NoPicture {
    /// It has too many bytes or pixels.
    TooLarge(String),
    /// It cannot be decoded.
    Damaged,
    /// The deadline passed.
    #[cfg_attr(not(feature = "images"), expect(dead_code, reason = "only decoding takes long"))]
    TimedOut,
}

/// The maximum size of an image that is not scaled down; `None` for no maximum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shrink {
    side: Option<usize>,
    bytes: Option<u64>,
}

impl Shrink {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { side: settings.max_image_side, bytes: settings.max_image_bytes }
    }

    fn is_set(self) -> bool {
        self.side.is_some() || self.bytes.is_some()
    }

    /// How much memory an image of this size may take.
    pub(crate) fn memory(self, size: u64) -> u64 {
        #[cfg(feature = "images")]
        if self.is_set() {
            return MAX_DECODED_BYTES;
        }
        2 * size
    }
}

/// Whether models can read images of this media type.
pub(crate) fn is_picture(mime: &str) -> bool {
    matches!(mime, "image/png" | "image/jpeg" | "image/gif" | "image/webp")
}

/// Checks an image, and scales it down if the settings ask for it.
pub(crate) fn picture(
    mime: &'static str,
    data: Vec<u8>,
    shrink: Shrink,
    keep_going: &dyn Fn() -> bool,
) -> Result<Picture, NoPicture> {
    let size = imagesize::blob_size(&data).map_err(|_| NoPicture::Damaged)?;
    let (width, height) = (size.width, size.height);
    if width == 0 || height == 0 {
        return Err(NoPicture::Damaged);
    }
    let longest = width.max(height);
    let too_wide = shrink.side.is_some_and(|side| longest > side);
    let too_heavy = shrink.bytes.is_some_and(|bytes| data.len() as u64 > bytes);
    if too_wide || too_heavy || shrink.is_set() && longest > MAX_SHOWN_IMAGE_SIDE {
        return shrunk(mime, &data, (width, height), shrink, keep_going);
    }
    if longest > MAX_SHOWN_IMAGE_SIDE {
        return Err(NoPicture::TooLarge(format!(
            "it has {width} x {height} pixels, and more than {MAX_SHOWN_IMAGE_SIDE} on a side cannot be shown"
        )));
    }
    Ok(Picture { mime, data, width, height, shrunk_from: None })
}

/// The problem with an image of this size, if it is too large.
pub(crate) fn too_many_bytes(size: u64) -> Option<String> {
    (size > MAX_SHOWN_IMAGE_BYTES).then(|| {
        format!("it has {size} bytes, and more than {MAX_SHOWN_IMAGE_BYTES} cannot be shown")
    })
}

/// Scales an image down to the maximum side, and further until it has few enough bytes.
#[cfg(feature = "images")]
fn shrunk(
    mime: &str,
    data: &[u8],
    (width, height): (usize, usize),
    shrink: Shrink,
    keep_going: &dyn Fn() -> bool,
) -> Result<Picture, NoPicture> {
    let too_large = || {
        NoPicture::TooLarge(format!(
            "it has {width} x {height} pixels, which is too much to shrink it"
        ))
    };
    if width.max(height) > MAX_DECODED_SIDE {
        return Err(too_large());
    }
    let format = ImageFormat::from_mime_type(mime).ok_or(NoPicture::Damaged)?;
    let mut reader = ImageReader::with_format(Cursor::new(data), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    reader.limits(limits);
    let picture = reader.decode().map_err(|error| match error {
        image::ImageError::Limits(_) => too_large(),
        _ => NoPicture::Damaged,
    })?;
    let max_bytes = shrink.bytes.unwrap_or(u64::MAX).min(MAX_SHOWN_IMAGE_BYTES);
    let mut side = shrink
        .side
        .unwrap_or(MAX_SHOWN_IMAGE_SIDE)
        .min(MAX_SHOWN_IMAGE_SIDE)
        .min(width.max(height))
        .max(1);
    let mut small = picture;
    loop {
        if !keep_going() {
            return Err(NoPicture::TimedOut);
        }
        let longest = u32::try_from(side).unwrap_or(u32::MAX);
        // `thumbnail` makes one pass over the pixels, which become fewer each time.
        small = small.thumbnail(longest, longest);
        let (mime, data) = encoded(&small, format).ok_or(NoPicture::Damaged)?;
        if data.len() as u64 > max_bytes && side == 1 {
            return Err(NoPicture::TooLarge(format!("it cannot be shrunk to {max_bytes} bytes")));
        }
        if data.len() as u64 <= max_bytes {
            let (new_width, new_height) = (small.width() as usize, small.height() as usize);
            let shrunk_from = Some((width, height));
            return Ok(Picture { mime, data, width: new_width, height: new_height, shrunk_from });
        }
        side = (side * 3 / 4).max(1);
    }
}

/// Refuses the image: this build cannot decode it.
#[cfg(not(feature = "images"))]
fn shrunk(
    _: &str,
    _: &[u8],
    (width, height): (usize, usize),
    _: Shrink,
    _: &dyn Fn() -> bool,
) -> Result<Picture, NoPicture> {
    Err(NoPicture::TooLarge(format!(
        "it has {width} x {height} pixels, and this build of Pinfold does not scale images down"
    )))
}

/// Encodes a JPEG as JPEG, and every other format as PNG, without loss.
#[cfg(feature = "images")]
fn encoded(picture: &DynamicImage, format: ImageFormat) -> Option<(&'static str, Vec<u8>)> {
    const QUALITY: u8 = 85;
    let mut data = Cursor::new(Vec::new());
    if format == ImageFormat::Jpeg {
        let encoder = JpegEncoder::new_with_quality(&mut data, QUALITY);
        picture.to_rgb8().write_with_encoder(encoder).ok()?;
        return Some(("image/jpeg", data.into_inner()));
    }
    picture.write_to(&mut data, ImageFormat::Png).ok()?;
    Some(("image/png", data.into_inner()))
}

#[cfg(test)]
#[cfg(feature = "images")]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let pixels = image::RgbImage::from_fn(width, height, |x, y| {
            // Noise does not compress.
            let value = x.wrapping_mul(2_654_435_761).wrapping_add(y.wrapping_mul(40_503)) >> 7;
            image::Rgb([value as u8, (value >> 8) as u8, (value >> 16) as u8])
        });
        let mut data = Cursor::new(Vec::new());
        pixels.write_to(&mut data, ImageFormat::Png).unwrap();
        data.into_inner()
    }

    #[test]
    fn images_are_scaled_down_only_if_the_settings_ask_for_it() {
        let data = png(300, 200);
        let asked = |side, bytes| {
            picture("image/png", data.clone(), Shrink { side, bytes }, &|| true).unwrap()
        };
        assert_eq!(asked(None, None).data, data);
        assert_eq!(asked(Some(300), Some(1 << 20)).shrunk_from, None);
        let small = asked(Some(150), None);
        assert_eq!((small.width, small.height, small.shrunk_from), (150, 100, Some((300, 200))));
        assert_eq!(imagesize::blob_size(&small.data).unwrap().width, 150);
        let light = asked(None, Some(10_000));
        assert!(light.data.len() <= 10_000 && light.width > 10, "{}", light.data.len());
    }

    #[test]
    fn an_image_without_pixels_is_damaged() {
        for side in [16..20, 20..24] {
            let mut empty = png(3, 2);
            empty[side].fill(0);
            let refused = picture("image/png", empty, Shrink { side: None, bytes: None }, &|| true);
            assert!(matches!(refused, Err(NoPicture::Damaged)), "{refused:?}");
        }
    }

    #[test]
    fn images_too_large_to_decode_are_refused() {
        let mut huge = png(3, 2);
        // The header claims 60,000 x 60,000 pixels.
        huge[16..24].copy_from_slice(&[0, 0, 0xEA, 0x60, 0, 0, 0xEA, 0x60]);
        for shrink in [Shrink { side: None, bytes: None }, Shrink { side: Some(100), bytes: None }]
        {
            let refused = picture("image/png", huge.clone(), shrink, &|| true);
            assert!(matches!(refused, Err(NoPicture::TooLarge(_))), "{refused:?}");
        }
        let cut = png(300, 200)[..1_000].to_vec();
        let refused = picture("image/png", cut, Shrink { side: Some(10), bytes: None }, &|| true);
        assert!(matches!(refused, Err(NoPicture::Damaged)), "{refused:?}");
    }
}
