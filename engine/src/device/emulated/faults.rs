//! Failures of the emulated device, for tests of error handling.

use super::fail;
use galamost_plugin_api::error::Result;

/// Simulated failures, set by the environment variable `GALAMOST_EMULATED_FAULT`: `lost:N` loses the device at launch
/// number N, `memory:N` limits its memory to N bytes, `barrier:N` removes the grid barrier number N from cooperative
/// launches (`galamost_host.h` reads it).
#[derive(Clone, Copy)]
pub struct SimulatedFaults {
    /// Number of the launch at which the device is lost.
    pub launches: u64,
    /// Memory in bytes.
    pub bytes: u64,
}

impl SimulatedFaults {
    /// Reads the environment variable.
    ///
    /// # Errors
    /// Returns an error if it names none of these failures.
    pub fn from_environment() -> Result<Self> {
        let mut faults = Self { launches: u64::MAX, bytes: u64::MAX };
        let text = std::env::var("GALAMOST_EMULATED_FAULT").unwrap_or_default();
        if text.is_empty() {
            return Ok(faults);
        }
        match text.split_once(':').and_then(|(what, n)| Some((what, n.parse().ok()?))) {
            Some(("lost", n)) => faults.launches = n,
            Some(("memory", n)) => faults.bytes = n,
            Some(("barrier", _)) => {}
            _ => {
                let message = format!("`{text}` is none of lost:N, memory:N and barrier:N");
                return Err(fail("GALAMOST_EMULATED_FAULT", message));
            }
        }
        Ok(faults)
    }
}
