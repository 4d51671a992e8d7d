//! Replicas of one device, each driven by its own thread. Their graphs are launched together.

use super::combined::{Combined, Conditions};
use super::kernels::Kernels;
use super::program::Program;
use crate::device::Device;
use galamost_plugin_api::error::{Error, Result};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What a replica waits for.
enum Request {
    /// It does not wait.
    None,
    /// The launches of programs, in order.
    Launch(Vec<Arc<Program>>),
    /// The number of steps that all replicas can do together, at most this one.
    Steps(u64),
    /// It has ended, or waits for the others in another way.
    Absent,
}

/// The answer to a request; 0 for a launch.
type Answer = Result<u64>;

struct State {
    requests: Vec<Request>,
    answers: Vec<Option<Answer>>,
}

/// Replicas of one device.
pub struct Group {
    pub device: Arc<dyn Device>,
    pub kernels: Kernels,
    conditions: Conditions,
    state: Mutex<State>,
    changed: Condvar,
    combined: Mutex<Vec<Combined>>,
    replicas: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Group {
    pub fn new(device: Arc<dyn Device>, replicas: usize) -> Result<Self> {
        let kernels = Kernels::new(device.clone());
        Ok(Self {
            conditions: Conditions::new(&kernels)?,
            kernels,
            device,
            state: Mutex::new(State {
                requests: (0..replicas).map(|_| Request::None).collect(),
                answers: vec![None; replicas],
            }),
            changed: Condvar::new(),
            combined: Mutex::default(),
            replicas,
        })
    }

    /// Returns the number of replicas.
    pub fn replicas(&self) -> usize {
        self.replicas
    }

    /// Launches programs of a replica together with those of the others: once each of them has some to launch, asks for
    /// [`Self::agree`], or is absent.
    pub fn launch(&self, replica: usize, programs: Vec<Arc<Program>>) -> Result<()> {
        self.request(replica, Request::Launch(programs)).map(drop)
    }

    /// Waits until all replicas ask for it or are absent, and returns the smallest number of steps.
    pub fn agree(&self, replica: usize, steps: u64) -> Result<u64> {
        self.request(replica, Request::Steps(steps))
    }

    /// Says whether the other replicas wait for this one. They do at first.
    pub fn set_awaited(&self, replica: usize, awaited: bool) {
        lock(&self.state).requests[replica] = if awaited { Request::None } else { Request::Absent };
        self.changed.notify_all();
    }

    /// Forgets a program, whose arguments may become invalid.
    pub fn forget(&self, replica: usize, program: &Arc<Program>) -> Result<()> {
        let mut combined = lock(&self.combined);
        let mut result = Ok(());
        combined.retain_mut(|c| match c.remove(replica, program) {
            Ok(empty) => !empty,
            Err(e) => {
                result = Err(e);
                true
            }
        });
        result
    }

    fn request(&self, replica: usize, request: Request) -> Answer {
        let mut state = lock(&self.state);
        state.requests[replica] = request;
        loop {
            if let Some(answer) = state.answers[replica].take() {
                return answer;
            }
            // the last replica to arrive works for all; the others cannot pass this point meanwhile
            if state.requests.iter().all(|r| !matches!(r, Request::None)) {
                self.serve(&mut state);
                self.changed.notify_all();
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Serves all replicas: launches if there are any, so that a replica that is behind catches up; otherwise the number of
    /// steps.
    fn serve(&self, state: &mut State) {
        let launches: Vec<(usize, Vec<Arc<Program>>)> = state
            .requests
            .iter()
            .enumerate()
            .filter_map(|(r, request)| match request {
                Request::Launch(programs) => Some((r, programs.clone())),
                _ => None,
            })
            .collect();
        if launches.is_empty() {
            let steps = |r: &Request| if let Request::Steps(n) = r { Some(*n) } else { None };
            let least = state.requests.iter().filter_map(steps).min().unwrap_or(0);
            for (request, answer) in state.requests.iter_mut().zip(&mut state.answers) {
                if matches!(request, Request::Steps(_)) {
                    (*request, *answer) = (Request::None, Some(Ok(least)));
                }
            }
            return;
        }
        let longest = launches.iter().map(|(_, p)| p.len()).max().unwrap_or(0);
        let each =
            |k: usize| launches.iter().filter_map(move |(r, p)| Some((*r, p.get(k)?.clone()))).collect::<Vec<_>>();
        let all = || (0..longest).try_for_each(|k| self.launch_all(&each(k)));
        // a panic must not leave the others waiting
        let launched = std::panic::catch_unwind(std::panic::AssertUnwindSafe(all))
            .unwrap_or_else(|_| Err(Error::Run("the launch of replicas has panicked".into())));
        for (r, _) in launches {
            state.requests[r] = Request::None;
            state.answers[r] = Some(launched.clone().map(|()| 0));
        }
    }

    /// Launches programs, those that are alike together.
    fn launch_all(&self, launches: &[(usize, Arc<Program>)]) -> Result<()> {
        let mut all = lock(&self.combined);
        let mut parts: Vec<(usize, Vec<(usize, Arc<Program>)>)> = vec![];
        for (r, program) in launches {
            let k = match all.iter().position(|c| c.accepts(program)) {
                Some(k) => k,
                None => {
                    all.push(Combined::new(&self.device, self.conditions, self.replicas, *r, program)?);
                    all.len() - 1
                }
            };
            match parts.iter_mut().find(|(at, _)| *at == k) {
                Some((_, part)) => part.push((*r, program.clone())),
                None => parts.push((k, vec![(*r, program.clone())])),
            }
        }
        parts.iter().try_for_each(|(k, part)| all[*k].launch(part))
    }
}
