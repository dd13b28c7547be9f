//! How long somebody is willing to wait.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{Error, Result};

/// Asked again and again by whatever may take long: false ends it.
#[derive(Clone, Default)]
pub struct Deadline(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

/// How long something waits before it asks again.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

impl Deadline {
    /// Lasts as long as `lasts` says so.
    pub fn lasting_while(lasts: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(lasts)))
    }

    /// Whether it has come to its end.
    pub fn has_passed(&self) -> bool {
        self.check().is_err()
    }

    /// An error if it has come to its end.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.0 {
            Some(lasts) if !lasts() => Err(Error::TimedOut),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Deadline {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Deadline")
    }
}
