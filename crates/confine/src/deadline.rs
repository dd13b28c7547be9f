//! The end of a call: its deadline has passed, or it was cancelled.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{Error, Result};

/// The deadline of a call. Every step that may take long checks it. The default never passes.
#[derive(Clone, Default)]
pub struct Deadline(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

/// How long a waiting step sleeps between two checks.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

impl Deadline {
    /// A deadline that has passed once `lasts` returns false.
    pub fn lasting_while(lasts: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(lasts)))
    }

    /// Whether it has passed.
    pub fn has_passed(&self) -> bool {
        self.check().is_err()
    }

    /// Fails if it has passed.
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
