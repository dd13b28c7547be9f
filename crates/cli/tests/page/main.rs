//! `pinfold page`: access to the page, and what the user sees and does there.
//!
//! The tests in a browser need Chromium and packages that `cargo xtask test` installs and names in `PINFOLD_BROWSER`
//! and `PINFOLD_PAGE_MODULES`. Without those they print that they were skipped.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

mod access;
mod api;
mod browser;
mod history;
mod hostile;
mod large;
mod requests;
mod screenshots;
mod stage;
