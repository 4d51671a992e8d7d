//! Signs of life of a run: the time of its lock file. After a kill, a later run knows by it which files the killed one may have written.

use super::file::sign;
use std::fs::File;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time between two signs of life.
const INTERVAL: Duration = Duration::from_secs(1);
/// Size of the stack of the thread.
const STACK: usize = 1 << 16;

/// A thread that writes the signs until it is dropped.
#[derive(Debug)]
pub struct Pulse {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Pulse {
    /// Starts writing `text`, which the file has, at regular times.
    pub fn start(file: File, text: String) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let write = move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                // without the sign, a resumed run sets some of its files aside, which loses nothing
                let _ = sign(&file, &text);
            }
        };
        let thread = std::thread::Builder::new().name("lock".into()).stack_size(STACK).spawn(write)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
