//! Profile of time steps: seconds by component (or neighbor list) and kernel.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Time of a component in one of its kernels or, on the CPU, in one of its functions.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// A component, several components with a common kernel (`A + B`), or `neighbor list`.
    pub part: String,
    /// Kernel.
    pub kernel: String,
    /// Number of calls.
    pub calls: u64,
    /// Total seconds.
    pub seconds: f64,
}

/// Component and kernel.
type Key = (Arc<str>, String);

#[derive(Default)]
struct Inner {
    part: Arc<str>,
    sums: BTreeMap<Key, (u64, f64)>,
}

/// Collects timings.
#[derive(Default)]
pub struct Profile {
    on: AtomicBool,
    inner: Mutex<Inner>,
}

impl Profile {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the profile is recording.
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Starts recording.
    pub fn begin(&self) {
        *self.lock() = Inner::default();
        self.on.store(true, Ordering::Relaxed);
    }

    /// Stops recording and returns the timings, longest first.
    pub fn end(&self) -> Vec<Timing> {
        self.on.store(false, Ordering::Relaxed);
        let sums = std::mem::take(&mut *self.lock()).sums;
        let one = |((part, kernel), (calls, seconds)): (Key, (u64, f64))| Timing {
            part: part.to_string(),
            kernel,
            calls,
            seconds,
        };
        let mut all: Vec<Timing> = sums.into_iter().map(one).collect();
        all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        all
    }

    /// Sets the component of the launches that follow.
    pub fn set_part(&self, part: &str) {
        if self.is_on() {
            self.lock().part = part.into();
        }
    }

    /// Sets the component of launches until the guard is dropped.
    pub fn within(&self, part: &str) -> Within<'_> {
        let before = self.is_on().then(|| self.part());
        self.set_part(part);
        Within { profile: self, before }
    }

    /// Returns the component of the current launches.
    pub fn part(&self) -> Arc<str> {
        self.lock().part.clone()
    }

    /// Adds a call.
    pub fn add(&self, part: Arc<str>, kernel: &str, seconds: f64) {
        let mut inner = self.lock();
        let (calls, sum) = inner.sums.entry((part, kernel.into())).or_default();
        *calls += 1;
        *sum += seconds;
    }

    /// Calls `f` and adds its time on the CPU.
    pub fn time<T>(&self, part: &str, kernel: &str, f: impl FnOnce() -> T) -> T {
        if !self.is_on() {
            return f();
        }
        let begun = Instant::now();
        let out = f();
        self.add(part.into(), kernel, begun.elapsed().as_secs_f64());
        out
    }
}

/// Restores the previous component of launches when it is dropped.
#[must_use]
pub struct Within<'a> {
    profile: &'a Profile,
    before: Option<Arc<str>>,
}

impl Drop for Within<'_> {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            self.profile.set_part(before);
        }
    }
}

/// Adds timings to earlier ones.
pub fn add_timings(sum: &mut Vec<Timing>, new: Vec<Timing>) {
    for t in new {
        match sum.iter_mut().find(|s| (&s.part, &s.kernel) == (&t.part, &t.kernel)) {
            Some(s) => {
                s.calls += t.calls;
                s.seconds += t.seconds;
            }
            None => sum.push(t),
        }
    }
    sum.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
}

/// Returns the seconds of each component, longest first.
pub fn seconds_by_part(all: &[Timing]) -> Vec<(String, f64)> {
    let mut parts: Vec<(String, f64)> = vec![];
    for t in all {
        match parts.iter_mut().find(|p| p.0 == t.part) {
            Some(p) => p.1 += t.seconds,
            None => parts.push((t.part.clone(), t.seconds)),
        }
    }
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    parts
}

#[cfg(test)]
mod tests {
    use super::Profile;

    #[test]
    fn launches_belong_to_the_component_of_before_when_a_guard_is_dropped() {
        let profile = Profile::default();
        profile.begin();
        profile.set_part("MdScf");
        {
            let _part = profile.within("other GPUs");
            assert_eq!(&*profile.part(), "other GPUs");
        }
        assert_eq!(&*profile.part(), "MdScf");
    }
}
