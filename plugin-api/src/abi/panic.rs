//! Panics are caught inside the plugin and become errors.

use crate::error::{Error, Result};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::Once;

thread_local! {
    static PANIC_PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `f`; a panic becomes an error that names the component.
pub fn guard<T>(component: &str, f: impl FnOnce() -> Result<T>) -> Result<T> {
    static QUIET: Once = Once::new();
    // the hook belongs to this library alone: it notes the place instead of printing to the terminal
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

/// A panic that was caught on another thread, with its text and place.
pub(crate) struct CaughtPanic(pub String);

/// Text and place of a panic, on the thread where it was caught.
pub(crate) fn panic_message(payload: Box<dyn Any + Send>) -> String {
    if let Some(CaughtPanic(text)) = payload.downcast_ref() {
        return text.clone();
    }
    let text = payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_string())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a value that is no text".into());
    // the value's own destructor may panic, which nobody would catch any more
    std::mem::forget(payload);
    let place = PANIC_PLACE.with(|p| p.borrow_mut().take()).unwrap_or_else(|| "unknown place".into());
    format!("{text} ({place})")
}
