//! Signs of life of runs: the times of their lock files. After a kill, a later run knows by it which files the killed one may have written.

use super::file::sign;
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time between two signs of life.
pub const INTERVAL: Duration = Duration::from_secs(2);
/// Size of the stack of the thread.
const STACK: usize = 1 << 16;

/// The lock files of all runs of this process, and the thread that writes to them.
struct Signs {
    /// By number.
    files: Vec<(u64, Arc<File>, String)>,
    next: u64,
    is_running: bool,
}

static SIGNS: Mutex<Signs> = Mutex::new(Signs { files: vec![], next: 0, is_running: false });

fn signs() -> MutexGuard<'static, Signs> {
    SIGNS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A lock file that gets signs of life until this is dropped.
#[derive(Debug)]
pub struct Pulse(u64);

impl Pulse {
    /// Starts writing `text`, which the file has, at regular times. One thread does so for all runs.
    pub fn start(file: Arc<File>, text: String) -> Self {
        let mut all = signs();
        let number = all.next;
        all.next += 1;
        all.files.push((number, file, text));
        if !all.is_running {
            let thread = std::thread::Builder::new().name("lock".into()).stack_size(STACK).spawn(write);
            // without signs, a resumed run sets some of its files aside, which loses nothing
            all.is_running = thread.is_ok();
        }
        Self(number)
    }
}

/// Writes signs of life until no run is left.
fn write() {
    loop {
        std::thread::sleep(INTERVAL);
        let mut all = signs();
        if all.files.is_empty() {
            all.is_running = false;
            return;
        }
        for (_, file, text) in &all.files {
            let _ = sign(file, text);
        }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        signs().files.retain(|(number, ..)| *number != self.0);
    }
}
