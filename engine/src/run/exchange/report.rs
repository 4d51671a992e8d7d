//! What an exchange has achieved: acceptance ratios and round trips.

use super::Meeting;
use crate::checkpoint::exchange::ExchangeState;
use crate::diagnostic::counted;
use serde_json::{Value, json};
use tracing::{info, warn};

/// An acceptance ratio below this one is reported as a warning.
const LOWEST_RATIO: f64 = 0.01;
/// Attempts from which a ratio is reported: fewer say little about a ratio of one percent.
const FEWEST_ATTEMPTS: u64 = 100;

/// Returns the entry `exchange` in the record of a replica. Acceptance is that of the pair of this replica and the next one.
pub fn of_replica(state: &ExchangeState, replica: usize) -> Value {
    let pair = state.pairs.get(replica);
    json!({
        "rounds": state.rounds,
        "walker": state.walkers[replica],
        "attempts": pair.map(|p| p.made),
        "accepted": pair.map(|p| p.accepted),
        "acceptance": pair.and_then(|p| p.ratio()),
        "from_first": state.from_first(replica),
        "round_trips": state.round_trips.iter().sum::<u64>(),
    })
}

/// Logs acceptance ratios, round trips and the origin of walkers, with warnings of ratios that are too low.
pub fn log_exchange(meeting: &Meeting) {
    let state = meeting.state();
    let n = meeting.replicas();
    let trips = counted(state.round_trips.iter().sum(), "round trip");
    info!(
        "exchange: {} at {}, {trips}",
        counted(state.pairs.iter().map(|p| p.made).sum(), "attempt"),
        counted(state.rounds, "step")
    );
    for (r, pair) in state.pairs.iter().enumerate() {
        let Some(ratio) = pair.ratio() else { continue };
        let kt = |r| meeting.final_kt(r);
        let what = format!("replicas {r} and {} (kT {} and {})", r + 1, kt(r), kt(r + 1));
        info!("{what}: {} of {} accepted, {ratio:.3}", pair.accepted, counted(pair.made, "attempt"));
        if pair.made >= FEWEST_ATTEMPTS && ratio < LOWEST_RATIO {
            warn!("{what} exchange almost never; use more replicas, whose parameters are closer");
        }
    }
    let origins: Vec<Option<f64>> = (0..n).map(|r| state.from_first(r)).collect();
    let shown: Vec<String> = origins.iter().map(|f| f.map_or("-".into(), |f| format!("{f:.2}"))).collect();
    info!("fraction of walkers that come from replica 0, by replica: {}", shown.join(" "));
    let pairs: Vec<Value> = state.pairs.iter().map(|p| json!({"attempts": p.made, "accepted": p.accepted})).collect();
    let facts =
        json!({"rounds": state.rounds, "pairs": pairs, "round_trips": state.round_trips, "from_first": origins});
    crate::log::event("exchange", facts);
}
