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
    /// The ranks whose last message has arrived.
    left: Vec<bool>,
    /// The requests of this rank's last messages.
    last: Vec<usize>,
    /// Failures under way.
    failures: Vec<(usize, Vec<u8>)>,
    /// The first failure.
    pub failed: Option<Failed>,
}

/// A sign of life; it lives as long as the program because it may be under way at any time.
static SIGN: [u8; 1] = [1];
/// The last sign of life of a process that leaves.
static LAST_SIGN: [u8; 1] = [0];

impl Control {
    pub fn new(rank: usize, ranks: usize) -> Self {
        let seen = vec![Instant::now(); ranks];
        Self {
            rank,
            seen,
            beats: vec![NO_REQUEST; ranks],
            left: vec![false; ranks],
            last: vec![],
            failures: vec![],
            failed: None,
        }
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
                self.left[rank] |= sign == LAST_SIGN;
            }
            let mut bytes = vec![0; FAILURE_BYTES];
            if receive_if_sent(mpi, &mut bytes, rank, FAILURE)? {
                let error = decode(&bytes, &names(rank));
                self.failed.get_or_insert(Failed { error, lost: None });
            }
        }
        Ok(())
    }

    /// Sends the last message to all ranks.
    pub fn send_last(&mut self, mpi: &Functions) -> Result<()> {
        for rank in self.others() {
            self.last.push(send(mpi, &LAST_SIGN, rank, BEAT)?.addr());
        }
        Ok(())
    }

    /// Returns whether this rank's messages have been sent and the last message of each other rank has arrived. Messages of a
    /// rank arrive in order, so none is under way then.
    pub fn may_end(&mut self, mpi: &Functions) -> Result<bool> {
        let mut requests: Vec<Handle> = self.beats.drain(..).chain(self.last.drain(..)).map(handle).collect();
        let sent = test(mpi, &mut requests)?;
        self.last = requests.into_iter().map(<Handle>::addr).collect();
        Ok(sent && self.others().all(|rank| self.left[rank]))
    }

    /// Notes a rank that gave no sign of life for too long and has not left.
    pub fn find_lost(&mut self, names: impl Fn(usize) -> String) {
        if let Some(rank) = self.others().find(|r| !self.left[*r] && self.seen[*r].elapsed() > SILENCE) {
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
    use super::super::library::silent;
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::collections::VecDeque;
    use std::ffi::c_void;

    type Pair = (c_int, c_int);

    thread_local! {
        /// The rank that calls the library.
        static CALLER: Cell<c_int> = const { Cell::new(0) };
        /// Messages under way: sender and receiver, tag, byte.
        static SENT: RefCell<VecDeque<(Pair, c_int, u8)>> = const { RefCell::new(VecDeque::new()) };
    }

    unsafe extern "C" fn send_byte(
        bytes: *const c_void,
        _: i64,
        _: Handle,
        to: c_int,
        tag: c_int,
        _: Handle,
        _: *mut Handle,
    ) -> c_int {
        // SAFETY: signs of life have one byte
        let byte = unsafe { *bytes.cast::<u8>() };
        SENT.with_borrow_mut(|sent| sent.push_back(((CALLER.get(), to), tag, byte)));
        0
    }

    fn place(from: c_int, tag: c_int) -> Option<usize> {
        SENT.with_borrow(|sent| sent.iter().position(|(pair, t, _)| (*pair, *t) == ((from, CALLER.get()), tag)))
    }

    unsafe extern "C" fn receive_byte(
        bytes: *mut c_void,
        _: i64,
        _: Handle,
        from: c_int,
        tag: c_int,
        _: Handle,
        _: *mut Handle,
    ) -> c_int {
        let message = place(from, tag).and_then(|at| SENT.with_borrow_mut(|sent| sent.remove(at)));
        // SAFETY: the byte is valid for writes
        unsafe { *bytes.cast::<u8>() = message.expect("a message").2 };
        0
    }

    unsafe extern "C" fn probe(from: c_int, tag: c_int, _: Handle, found: *mut c_int, _: *mut c_void) -> c_int {
        // SAFETY: the pointer is valid
        unsafe { *found = place(from, tag).is_some().into() };
        0
    }

    unsafe extern "C" fn test_all(_: c_int, _: *mut Handle, done: *mut c_int, _: *mut c_void) -> c_int {
        // SAFETY: the pointer is valid
        unsafe { *done = 1 };
        0
    }

    #[test]
    fn no_message_is_under_way_when_processes_leave() {
        let mpi = Functions { send: send_byte, receive: receive_byte, probe, test_all, ..silent() };
        let mut ranks: Vec<Control> = (0..3).map(|rank| Control::new(rank, 3)).collect();
        let mut with = |rank: usize, f: &dyn Fn(&mut Control)| {
            CALLER.set(rank as c_int);
            f(&mut ranks[rank]);
            ranks[rank].listen(&mpi, |r| r.to_string()).expect("no failure");
            ranks[rank].left.iter().enumerate().all(|(r, left)| *left || r == rank)
        };
        let beat = |c: &mut Control| c.beat(&mpi).expect("sent");
        let leave = |c: &mut Control| c.send_last(&mpi).expect("sent");
        assert!(!with(0, &beat) && !with(0, &leave), "rank 0 waits for the others");
        // rank 2 has not yet heard that rank 0 leaves
        assert!(!with(2, &beat) && !with(1, &leave) && !with(1, &|_| ()), "rank 1 waits for rank 2");
        assert!(with(2, &leave) && with(0, &|_| ()) && with(1, &|_| ()));
        assert!(SENT.with_borrow(VecDeque::is_empty), "a message is under way");
    }

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
