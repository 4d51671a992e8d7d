//! Signs of life and failures, which processes send each other beside the messages of the run.

use super::library::{BYTE, Functions, Handle, NO_REQUEST, WORLD, handle};
use galamost_plugin_api::error::{Error, Result};
use serde_json::{Value, json};
use std::ffi::c_int;
use std::time::{Duration, Instant};

/// Tag of messages of the run.
pub const DATA: c_int = 1;
/// Tag of a sign of life.
const BEAT: c_int = 2;
/// Tag of a failure.
const FAILURE: c_int = 3;
/// Bytes of a failure.
const FAILURE_BYTES: usize = 4096;
/// Characters of its text, which may take four bytes each, twice as many if they are escaped.
const FAILURE_TEXT: usize = 480;
/// Time after which a process that gave no sign of life is lost.
const SILENCE: Duration = Duration::from_secs(30);

/// The first failure that this rank knows of, its own or that of another one.
#[derive(Clone, Debug)]
pub struct Failed {
    /// The error.
    pub error: Error,
    /// The rank is lost, and cannot report its error.
    pub lost: Option<usize>,
}

/// What this process knows of the others. A thread that holds the lock may call the library.
pub struct Control {
    rank: usize,
    /// When each rank last gave a sign of life.
    seen: Vec<Instant>,
    /// The last sign of life to each rank: its request while it is under way.
    beats: Vec<usize>,
    /// Failures under way.
    failures: Vec<(usize, Vec<u8>)>,
    /// The first failure.
    pub failed: Option<Failed>,
}

/// A sign of life; it lives as long as the program because it may be under way at any time.
static SIGN: [u8; 1] = [1];

impl Control {
    pub fn new(rank: usize, ranks: usize) -> Self {
        let seen = vec![Instant::now(); ranks];
        Self { rank, seen, beats: vec![NO_REQUEST; ranks], failures: vec![], failed: None }
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.rank;
        (0..self.seen.len()).filter(move |r| *r != own)
    }

    /// Sends a sign of life to each rank that has received the last one.
    pub fn beat(&mut self, mpi: &Functions) -> Result<()> {
        for rank in self.others() {
            let mut request = [handle(self.beats[rank])];
            if test(mpi, &mut request)? {
                request[0] = send(mpi, &SIGN, rank, BEAT)?;
            }
            self.beats[rank] = request[0].addr();
        }
        Ok(())
    }

    /// Receives signs of life and failures. `names` returns the name of a rank.
    pub fn listen(&mut self, mpi: &Functions, names: impl Fn(usize) -> String) -> Result<()> {
        for rank in self.others() {
            let mut sign = [0];
            while receive_if_sent(mpi, &mut sign, rank, BEAT)? {
                self.seen[rank] = Instant::now();
            }
            let mut bytes = vec![0; FAILURE_BYTES];
            if receive_if_sent(mpi, &mut bytes, rank, FAILURE)? {
                let error = decode(&bytes, &names(rank));
                self.failed.get_or_insert(Failed { error, lost: None });
            }
        }
        Ok(())
    }

    /// Notes a rank that gave no sign of life for too long.
    pub fn find_lost(&mut self, names: impl Fn(usize) -> String) {
        if let Some(rank) = self.others().find(|r| self.seen[*r].elapsed() > SILENCE) {
            self.lose(rank, &names(rank));
        }
    }

    /// Notes that a rank is lost.
    pub fn lose(&mut self, rank: usize, name: &str) {
        let error = Error::Run(format!("{name} has stopped answering"));
        self.failed.get_or_insert(Failed { error, lost: Some(rank) });
    }

    /// Takes the time at which this process was not scheduled out of that of the others' silence.
    pub fn forgive(&mut self, time: Duration) {
        self.seen.iter_mut().for_each(|s| *s += time);
    }

    /// Sends a failure to all ranks.
    pub fn announce(&mut self, mpi: &Functions, error: &Error) -> Result<()> {
        for rank in self.others() {
            let bytes = encode(error);
            let request = send(mpi, &bytes, rank, FAILURE)?;
            // kept until the process ends, because it may be under way until then
            self.failures.push((request.addr(), bytes));
        }
        Ok(())
    }
}

/// Begins to send bytes, which must live until the request is complete.
pub fn send(mpi: &Functions, bytes: &[u8], to: usize, tag: c_int) -> Result<Handle> {
    let mut request = handle(NO_REQUEST);
    // SAFETY: the bytes are valid, and callers keep them until the request is complete
    let result = unsafe {
        let (length, byte) = (bytes.len() as i64, handle(BYTE));
        (mpi.send)(bytes.as_ptr().cast(), length, byte, to as c_int, tag, handle(WORLD), &raw mut request)
    };
    mpi.check("sending", result).map(|()| request)
}

/// Begins to receive bytes, which must live until the request is complete.
pub fn receive(mpi: &Functions, bytes: &mut [u8], from: usize, tag: c_int) -> Result<Handle> {
    let mut request = handle(NO_REQUEST);
    // SAFETY: the bytes are valid for writes, and callers neither use nor free them until the request is complete
    let result = unsafe {
        let (length, byte) = (bytes.len() as i64, handle(BYTE));
        (mpi.receive)(bytes.as_mut_ptr().cast(), length, byte, from as c_int, tag, handle(WORLD), &raw mut request)
    };
    mpi.check("receiving", result).map(|()| request)
}

/// Returns whether all requests are complete; they are then void.
pub fn test(mpi: &Functions, requests: &mut [Handle]) -> Result<bool> {
    let mut done = 0;
    // SAFETY: the pointers are valid, and without a status nothing else is written
    let result =
        unsafe { (mpi.test_all)(requests.len() as c_int, requests.as_mut_ptr(), &raw mut done, std::ptr::null_mut()) };
    mpi.check("waiting", result).map(|()| done != 0)
}

/// Receives a message if it has been sent.
fn receive_if_sent(mpi: &Functions, bytes: &mut [u8], from: usize, tag: c_int) -> Result<bool> {
    let mut sent = 0;
    // SAFETY: the pointers are valid, and without a status nothing else is written
    let result = unsafe { (mpi.probe)(from as c_int, tag, handle(WORLD), &raw mut sent, std::ptr::null_mut()) };
    mpi.check("looking for messages", result)?;
    if sent == 0 {
        return Ok(false);
    }
    let mut request = [receive(mpi, bytes, from, tag)?];
    while !test(mpi, &mut request)? {}
    Ok(true)
}

fn encode(error: &Error) -> Vec<u8> {
    let short = |text: &str| text.chars().take(FAILURE_TEXT).collect::<String>();
    let value = match error {
        Error::Unstable { step, tag, what } => json!({ "step": step, "tag": tag, "what": short(what) }),
        other => json!({ "what": short(&other.to_string()) }),
    };
    let mut bytes = value.to_string().into_bytes();
    bytes.resize(FAILURE_BYTES, b' ');
    bytes
}

/// Returns the error of a rank. The fault of a particle is that of the run; other errors name the rank.
fn decode(bytes: &[u8], name: &str) -> Error {
    let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let what = value["what"].as_str().unwrap_or("an unknown error").to_string();
    match value["step"].as_u64() {
        Some(step) => Error::Unstable { step, tag: value["tag"].as_u64().map(|t| t as u32), what },
        None => Error::Run(format!("{name}: {what}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_cross_processes() {
        let unstable = Error::Unstable { step: 7, tag: Some(3), what: "too fast".into() };
        assert_eq!(decode(&encode(&unstable), "rank 1").to_string(), unstable.to_string());
        let other = Error::Run("é".repeat(5000));
        let text = decode(&encode(&other), "rank 1 on b").to_string();
        assert!(text.starts_with("rank 1 on b: é") && text.ends_with('é'), "{text}");
        let escaped = Error::Run("\u{1}".repeat(5000));
        assert_eq!(encode(&escaped).len(), FAILURE_BYTES);
    }
}
