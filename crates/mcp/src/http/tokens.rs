//! The tokens of a workspace, their limits, and how much of the limits is used.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pinfold::Mode;
use pinfold_guard::TokenHash;
use serde::Deserialize;

use crate::caller::Caller;

/// A token that clients send. During a rotation it has two hashes, those of the old and the new secret.
#[derive(Clone, Debug)]
pub struct Token {
    /// Its name, for logs; empty for one that has none. Sessions belong to the name, so they outlast a rotation.
    pub name: Arc<str>,
    /// The hashes of the accepted secrets.
    pub hashes: Vec<TokenHash>,
    /// The permission mode of the token's calls, if it allows less than the workspace's.
    pub mode: Option<Mode>,
    /// The token's limits.
    pub limits: TokenLimits,
}

/// The limits of a token.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct TokenLimits {
    /// The maximum number of sessions at a time.
    pub max_sessions: Option<usize>,
    /// The maximum number of requests per second, on average. After a pause, one second's worth may come at once.
    pub max_calls_per_second: Option<u32>,
    /// The maximum number of bytes per second in requests and answers, on average. An answer is never cut; the next
    /// request waits.
    pub max_bytes_per_second: Option<u64>,
}

impl TokenLimits {
    /// These limits, with `other` for each one that is not set.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            max_sessions: self.max_sessions.or(other.max_sessions),
            max_calls_per_second: self.max_calls_per_second.or(other.max_calls_per_second),
            max_bytes_per_second: self.max_bytes_per_second.or(other.max_bytes_per_second),
        }
    }
}

/// The tokens that are accepted now.
#[derive(Clone, Debug)]
pub enum Tokens {
    /// Requests need no token. This is for tests, and for servers behind a proxy that checks tokens.
    NotNeeded,
    /// The tokens cannot be read, so no request is accepted.
    Unknown,
    /// The accepted tokens.
    Known(Arc<[Token]>),
}

/// A request whose token is accepted.
#[derive(Clone, Debug)]
pub(super) struct AdmittedRequest {
    pub(super) caller: Caller,
    pub(super) limits: TokenLimits,
    pub(super) usage: Arc<TokenUsage>,
}

/// The usage of each token, by its name.
#[derive(Debug, Default)]
pub(super) struct UsageByToken(Mutex<HashMap<Arc<str>, Arc<TokenUsage>>>);

impl UsageByToken {
    /// Finds the token of a request among the accepted ones. Compares it with all of them.
    pub(super) fn admit(
        &self,
        tokens: &Tokens,
        given: Option<&TokenHash>,
    ) -> Option<AdmittedRequest> {
        let token = match (tokens, given) {
            (Tokens::NotNeeded, _) => None,
            (Tokens::Unknown, _) | (Tokens::Known(_), None) => return None,
            (Tokens::Known(tokens), Some(given)) => {
                let right = |token: &&Token| given.is_among(&token.hashes);
                let found: Vec<&Token> = tokens.iter().filter(right).collect();
                Some(*found.first()?)
            }
        };
        let limits = token.map(|token| token.limits).unwrap_or_default();
        let caller = Caller {
            token: token.map(|token| token.name.clone()).unwrap_or_default(),
            mode: token.and_then(|token| token.mode),
            max_sessions: limits.max_sessions,
        };
        let mut usages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let usage = usages.entry(caller.token.clone()).or_default().clone();
        Some(AdmittedRequest { caller, limits, usage })
    }

    /// Whether the caller's token is still accepted, in the same mode.
    pub(super) fn is_current(tokens: &Tokens, caller: &Caller) -> bool {
        match tokens {
            Tokens::NotNeeded => true,
            // No request is admitted, but sessions last until the tokens are known again.
            Tokens::Unknown => true,
            Tokens::Known(tokens) => {
                let same = |token: &Token| token.name == caller.token && token.mode == caller.mode;
                tokens.iter().any(same)
            }
        }
    }

    /// Forgets the usage of tokens that are no longer accepted.
    pub(super) fn forget_others(&self, tokens: &Tokens) {
        if let Tokens::Known(tokens) = tokens {
            let mut usages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            usages.retain(|name, _| tokens.iter().any(|token| token.name == *name));
        }
    }
}

/// How much of its limits a token has used: one token bucket for each rate.
#[derive(Debug, Default)]
pub(super) struct TokenUsage(Mutex<Buckets>);

#[derive(Debug, Default)]
struct Buckets {
    calls: Option<Bucket>,
    bytes: Option<Bucket>,
}

/// A token bucket. It fills over time, up to one second's worth.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    fn filled(before: Option<Self>, rate: f64, now: Instant) -> Self {
        let left = before.map_or(rate, |it| {
            let more = now.saturating_duration_since(it.at).as_secs_f64() * rate;
            (it.left + more).min(rate)
        });
        Self { left, at: now }
    }

    /// The time until the bucket holds `needed`.
    fn wait(&self, needed: f64, rate: f64) -> Option<Duration> {
        (self.left < needed).then(|| Duration::from_secs_f64((needed - self.left) / rate))
    }
}

/// A limit that is reached, and how long the client has to wait.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct LimitReached {
    pub(super) limit: String,
    pub(super) wait: Duration,
}

impl TokenUsage {
    /// Counts a request, or returns the limit that it would exceed.
    pub(super) fn count(&self, limits: &TokenLimits, now: Instant) -> Result<(), LimitReached> {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(max) = limits.max_bytes_per_second {
            let rate = max.max(1) as f64;
            let bytes = Bucket::filled(buckets.bytes, rate, now);
            buckets.bytes = Some(bytes);
            if let Some(wait) = bytes.wait(0.0, rate) {
                return Err(LimitReached { limit: format!("{max} bytes a second"), wait });
            }
        }
        if let Some(max) = limits.max_calls_per_second {
            let rate = f64::from(max.max(1));
            let mut calls = Bucket::filled(buckets.calls, rate, now);
            let wait = calls.wait(1.0, rate);
            if wait.is_none() {
                calls.left -= 1.0;
            }
            buckets.calls = Some(calls);
            if let Some(wait) = wait {
                return Err(LimitReached { limit: format!("{max} calls a second"), wait });
            }
        }
        Ok(())
    }

    /// Counts bytes that were received or sent.
    pub(super) fn add_bytes(&self, bytes: usize) {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(it) = &mut buckets.bytes {
            it.left -= bytes as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_calls_may_come_at_once_and_then_as_many_as_a_second_gives() {
        let (usage, start) = (TokenUsage::default(), Instant::now());
        let limits = TokenLimits { max_calls_per_second: Some(10), ..TokenLimits::default() };
        let at = |milliseconds| usage.count(&limits, start + Duration::from_millis(milliseconds));
        (0..10).for_each(|_| assert_eq!(at(0), Ok(())));
        let refused = at(0).unwrap_err();
        assert_eq!((refused.limit.as_str(), refused.wait.as_millis()), ("10 calls a second", 100));
        assert!(at(99).is_err());
        assert_eq!(at(101), Ok(()));
        assert!(at(102).is_err());
        // However long the pause is, it allows one second's worth.
        (0..10).for_each(|_| assert_eq!(at(60_000), Ok(())));
        assert!(at(60_000).is_err());
    }

    #[test]
    fn bytes_that_were_too_many_are_waited_for() {
        let (usage, start) = (TokenUsage::default(), Instant::now());
        let limits = TokenLimits { max_bytes_per_second: Some(1_000), ..TokenLimits::default() };
        let at = |milliseconds| usage.count(&limits, start + Duration::from_millis(milliseconds));
        assert_eq!(at(0), Ok(()));
        usage.add_bytes(3_000);
        assert_eq!(at(0).unwrap_err().wait, Duration::from_secs(2));
        assert!(at(1_999).is_err());
        assert_eq!(at(2_001), Ok(()));
    }
}
