//! Panics are caught inside the plugin and returned as errors.

use crate::error::{Error, Result};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::Once;

thread_local! {
    static PANIC_PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `f` and converts a panic into an error that names the component.
pub fn guard<T>(component: &str, f: impl FnOnce() -> Result<T>) -> Result<T> {
    static QUIET: Once = Once::new();
    // the hook affects this library only: it records the location instead of printing to the terminal
    QUIET.call_once(|| {
        set_hook(Box::new(|info| {
            let place = info.location().map(|l| format!("{}:{}", l.file(), l.line()));
            PANIC_PLACE.with(|p| *p.borrow_mut() = place);
        }));
    });
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| {
        Err(Error::Panic { component: component.into(), method: "", message: panic_message(payload) })
    })
}

/// A panic caught on another thread: its text and location.
pub(crate) struct CaughtPanic(pub String);

/// Returns the text and location of a panic; call it on the thread that caught the panic.
pub(crate) fn panic_message(payload: Box<dyn Any + Send>) -> String {
    if let Some(CaughtPanic(text)) = payload.downcast_ref() {
        return text.clone();
    }
    let text = payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_string())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic payload that is not text".into());
    // the destructor of the payload may panic again, outside of any `catch_unwind`
    std::mem::forget(payload);
    let place = PANIC_PLACE.with(|p| p.borrow_mut().take()).unwrap_or_else(|| "unknown location".into());
    format!("{text} ({place})")
}
