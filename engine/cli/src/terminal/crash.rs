//! Fatal signals and exits: an invalid memory access, an abort or an exit of a plugin ends the program with a message that names
//! the component.

use galamost_engine::activity::{AtCrash, at_crash};
use galamost_engine::log::is_json;
use std::fmt::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

const FATAL: [(i32, &str); 5] = [
    (libc::SIGSEGV, "an invalid memory access (SIGSEGV)"),
    (libc::SIGBUS, "an invalid memory access (SIGBUS)"),
    (libc::SIGILL, "an illegal instruction (SIGILL)"),
    (libc::SIGFPE, "an arithmetic error (SIGFPE)"),
    (libc::SIGABRT, "an abort, for example for lack of memory (SIGABRT)"),
];
/// Addresses below belong to an element of a null array.
const NEAR_NULL: usize = 1 << 32;

/// The handlers that were installed before, by position in [`FATAL`]: those of Rust report a stack overflow.
static BEFORE: OnceLock<[libc::sigaction; FATAL.len()]> = OnceLock::new();

/// Whether a parent process reports how this one ended.
static RELEASED: AtomicBool = AtomicBool::new(false);

/// Name of this process if several share the run.
static PROCESS: OnceLock<String> = OnceLock::new();

/// Sets the name with which this process, one of several, reports how it ended.
pub fn set_process(name: String) {
    let _ = PROCESS.set(name);
}

/// Reports fatal signals, and exits in a call of a component, from now on.
pub fn catch() {
    // SAFETY: a zeroed `sigaction` is valid: no handler, no flags, no mask
    let mut before: [libc::sigaction; FATAL.len()] = unsafe { std::mem::zeroed() };
    for ((signal, _), old) in FATAL.iter().zip(&mut before) {
        // SAFETY: only reads the current handler into `old`
        unsafe { libc::sigaction(*signal, std::ptr::null(), old) };
    }
    if BEFORE.set(before).is_err() {
        return;
    }
    for (signal, _) in FATAL {
        // SAFETY: a `sigaction` of zeros is valid: no flags, an empty mask and the default action
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_signal;
        action.sa_sigaction = handler as usize;
        // a stack overflow leaves no room on the stack; Rust gives each thread an alternate one
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: `on_signal` has the signature that `SA_SIGINFO` requires and only calls functions that are safe in a
        // signal handler
        unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    }
    // SAFETY: `on_exit` is a function of this program, so it remains valid until the end; without memory for the handler,
    // an exit of a plugin is not reported
    unsafe { libc::atexit(on_exit) };
}

/// Leaves fatal signals to the system again, and exits unreported, for a child process whose parent reports how it ended.
pub fn release() {
    RELEASED.store(true, Ordering::Relaxed);
    for (signal, _) in FATAL {
        // SAFETY: the default action is valid for each of these signals
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Text in memory of fixed size; what does not fit is cut.
struct Text {
    bytes: [u8; 1024],
    length: usize,
}

impl std::fmt::Write for Text {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        let n = s.len().min(self.bytes.len() - self.length);
        self.bytes[self.length..][..n].copy_from_slice(&s.as_bytes()[..n]);
        self.length += n;
        Ok(())
    }
}

extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let place = FATAL.iter().position(|(s, _)| *s == signal).unwrap_or(0);
    report_stack_overflow(place, signal, info, context);
    let (_, what) = FATAL[place];
    // SAFETY: the system passes a valid `siginfo_t`; its address is set for these signals
    let address = (signal == libc::SIGSEGV && !info.is_null()).then(|| unsafe { (*info).si_addr() } as usize);
    at_crash(|c| end(what, address, c));
}

/// Runs when the program exits. An exit in a call of a component would look like the regular end of the run.
extern "C" fn on_exit() {
    if RELEASED.load(Ordering::Relaxed) {
        return;
    }
    at_crash(|c| {
        if c.component.is_some() {
            end("a call of `exit`; a component must return an error instead", None, c);
        }
    });
}

/// Prints what ended the program, and ends it.
fn end(what: &str, address: Option<usize>, c: AtCrash<'_>) -> ! {
    let mut text = Text { bytes: [0; 1024], length: 0 };
    let _ = if is_json() {
        text.write_str("{\"event\":\"error\",\"status\":1,\"message\":\"")
    } else {
        text.write_str("error: ")
    };
    let _ = describe(&mut text, PROCESS.get(), what, address, c);
    let _ = text.write_str(if is_json() { "\"}\n" } else { "\n" });
    // SAFETY: `write` and `_exit` may be called in a signal handler; the text is initialized up to its length
    unsafe {
        libc::write(2, text.bytes.as_ptr().cast(), text.length);
        libc::_exit(1);
    }
}

/// Calls the handler that Rust installed. It reports a stack overflow and aborts; otherwise it returns.
fn report_stack_overflow(place: usize, signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(old) = BEFORE.get().map(|b| b[place]) else { return };
    if old.sa_sigaction != libc::SIG_DFL && old.sa_sigaction != libc::SIG_IGN && old.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: a handler with `SA_SIGINFO` has this signature, and is called with the arguments of the system
        unsafe {
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                std::mem::transmute(old.sa_sigaction);
            handler(signal, info, context);
        }
    }
}

fn describe(
    text: &mut Text,
    process: Option<&String>,
    what: &str,
    address: Option<usize>,
    c: AtCrash<'_>,
) -> std::fmt::Result {
    if let Some(process) = process {
        write!(text, "{process}: ")?;
    }
    if let Some(step) = c.step {
        write!(text, "step {step}: ")?;
    }
    match c.component {
        Some((name, method)) => write!(text, "{name} ended the program in `{method}` by {what}")?,
        None => write!(text, "the program ended by {what}")?,
    }
    if c.component.is_none() || address.is_none_or(|a| a >= NEAR_NULL) {
        return Ok(());
    }
    let mut separator = ": it reads an array that is null; arrays that no component declares in `needs.arrays`: ";
    for name in c.null_arrays {
        write!(text, "{separator}`{name}`")?;
        separator = ", ";
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut() {
        let mut text = Text { bytes: [0; 1024], length: 0 };
        let mut names = std::iter::repeat_n("charge", 500);
        let c = AtCrash { component: Some(("Foo", "compute")), step: Some(7), null_arrays: &mut names };
        describe(&mut text, None, "an abort", Some(8), c).expect("written");
        assert_eq!(text.length, 1024);
        let said = String::from_utf8_lossy(&text.bytes).into_owned();
        assert!(
            said.starts_with("step 7: Foo ended the program in `compute` by an abort: it reads an array"),
            "{said}"
        );
    }

    #[test]
    fn one_of_several_processes_is_named() {
        let mut text = Text { bytes: [0; 1024], length: 0 };
        let c = AtCrash { component: Some(("Foo", "compute")), step: None, null_arrays: &mut std::iter::empty() };
        describe(&mut text, Some(&"rank 1 on host b".into()), "an abort", None, c).expect("written");
        let said = String::from_utf8_lossy(&text.bytes[..text.length]).into_owned();
        assert_eq!(said, "rank 1 on host b: Foo ended the program in `compute` by an abort");
    }
}
