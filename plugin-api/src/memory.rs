//! Checks of memory whose size follows from numbers in the pipeline.
//!
//! A failed allocation of a vector ends the program without a message that a user understands. Components therefore call
//! [`require`] before they allocate a grid, a histogram or particles, usually in `bind`, and report its message at the
//! position of the number.

use std::fmt::Display;
use std::sync::OnceLock;

/// Sizes below are not checked: every machine has them.
const SMALL: f64 = 1e6;

/// Returns the memory of this machine in bytes, or of the container that the program runs in.
pub fn of_machine() -> Option<u64> {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        let installed = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
            let line = text.lines().find(|l| l.starts_with("MemTotal:"))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib << 10)
        });
        let of_container =
            ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"].into_iter().filter_map(number);
        installed.into_iter().chain(of_container).min()
    })
}

/// Checks that memory of this size can be allocated. `what` begins the message: the thing and its numbers. Sizes are f64,
/// so products of parameters cannot overflow.
///
/// # Errors
/// Returns a message with the number of bytes and the limit.
pub fn require(what: impl Display, bytes: f64) -> Result<(), String> {
    if bytes < SMALL {
        return Ok(());
    }
    if let Some(most) = of_machine().filter(|most| bytes > *most as f64) {
        let (needed, most) = (size(bytes), size(most as f64));
        return Err(format!("{what}: this needs {needed} of memory, and this machine has {most}"));
    }
    // a limit of the process (`ulimit -v`) shows only when memory is reserved; it is not touched, so this costs nothing
    if Vec::<u8>::new().try_reserve_exact(bytes as usize).is_err() {
        return Err(format!("{what}: this needs {} of memory, more than this process can get", size(bytes)));
    }
    Ok(())
}

/// Returns a number of bytes as text: `64.0 GB`.
fn size(bytes: f64) -> String {
    match bytes {
        b if b >= 1e15 => format!("{b:.1e} bytes"),
        b if b >= 1e9 => format!("{:.1} GB", b / 1e9),
        b => format!("{:.0} MB", b / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_no_machine_has_are_refused() {
        assert_eq!(require("one value", 8.0), Ok(()));
        assert_eq!(require("a small grid", 2e6), Ok(()));
        for (bytes, text) in [(1e14, "100000.0 GB"), (8e27, "8.0e27 bytes"), (f64::INFINITY, "inf bytes")] {
            let e = require("the grid", bytes).expect_err("too much");
            assert!(e.starts_with(&format!("the grid: this needs {text} of memory, ")), "{e}");
        }
        assert_eq!(size(64e9), "64.0 GB");
    }
}
