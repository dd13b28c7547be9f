//! How long somebody is willing to wait.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{Error, Result};

/// Asked again and again by whatever may take long: false ends it.
#[derive(Clone, Default)]
pub struct Patience(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

/// How long something waits before it asks again.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

impl Patience {
    /// Lasts as long as `lasts` says so.
    pub fn while_true(lasts: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(lasts)))
    }

    /// Whether it has come to its end.
    pub fn is_over(&self) -> bool {
        self.check().is_err()
    }

    /// An error if it has come to its end.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.0 {
            Some(lasts) if !lasts() => Err(Error::Impatient),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Patience {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Patience")
    }
}
