//! Who asks for a diagnosis (DESIGN 13): of all failures of one kind in one interval, one; and all together no more than a
//! token bucket allows.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Now, Tick};

/// A document diagnosed for a signature less than this ago accepts no new job for it.
const FRESH_FOR: Duration = Duration::from_secs(120);
/// Diagnoses that may start at once, and how long one takes to become possible again.
const TOKENS: f64 = 10.0;
const TOKEN_EVERY: Duration = Duration::from_secs(60);
/// Claims remembered per entry.
const CLAIMS_MAX: usize = 64;

#[derive(Debug)]
struct Taken {
    signature: Arc<str>,
    user: Option<Arc<str>>,
    until: Tick,
}

/// The claims of one entry. They outlive a clear of the cooldown: each stays taken until its own deadline.
#[derive(Debug, Default)]
pub(super) struct Claims {
    taken: Vec<Taken>,
    diagnosed: Option<(Arc<str>, Tick)>,
}

impl Claims {
    /// Whether a claim for this kind of failure could be taken now.
    pub(super) fn is_free(&self, signature: &str, user: Option<&Arc<str>>, now: Now) -> bool {
        let fresh =
            self.diagnosed.as_ref().is_some_and(|(of, at)| **of == *signature && now.tick.since(*at) < FRESH_FOR);
        let taken = self
            .taken
            .iter()
            .any(|taken| *taken.signature == *signature && taken.user.as_ref() == user && taken.until > now.tick);
        !fresh && !taken
    }

    /// Takes a claim until `until`.
    pub(super) fn take(&mut self, signature: &Arc<str>, user: Option<&Arc<str>>, until: Now, now: Now) {
        self.taken.retain(|taken| taken.until > now.tick);
        if self.taken.len() >= CLAIMS_MAX {
            self.taken.remove(0);
        }
        self.taken.push(Taken { signature: Arc::clone(signature), user: user.cloned(), until: until.tick });
    }

    /// A diagnosis has been made.
    pub(super) fn diagnosed(&mut self, signature: &Arc<str>, now: Now) {
        self.diagnosed = Some((Arc::clone(signature), now.tick));
    }
}

/// The bound on all diagnoses of this process.
#[derive(Debug)]
pub(super) struct Bucket {
    tokens: f64,
    at: Option<Tick>,
}

impl Default for Bucket {
    fn default() -> Bucket {
        Bucket { tokens: TOKENS, at: None }
    }
}

impl Bucket {
    /// Takes a token, if there is one.
    pub(super) fn take(&mut self, now: Tick) -> bool {
        let passed = now.since(self.at.replace(now).unwrap_or(now));
        self.tokens = (self.tokens + passed.as_secs_f64() / TOKEN_EVERY.as_secs_f64()).min(TOKENS);
        if self.tokens < 1.0 {
            return false;
        }
        self.tokens -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_diagnoses_start_at_once_and_then_one_a_minute() {
        let mut bucket = Bucket::default();
        let taken = |bucket: &mut Bucket, at| (0..20).filter(|_| bucket.take(Tick(at))).count();
        assert_eq!(taken(&mut bucket, 0), 10);
        assert_eq!(taken(&mut bucket, 59_000), 0);
        assert_eq!(taken(&mut bucket, 60_000), 1);
        assert_eq!(taken(&mut bucket, 180_000), 2);
    }
}
