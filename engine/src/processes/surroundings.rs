//! Environment variables that libraries of a run in several processes read.

/// Variables and their values. Those with `false` replace no value of the user.
const VARIABLES: [(&str, &str, bool); 2] = [
    // multicast over NVLink, which messages do not use
    ("NCCL_NVLS_ENABLE", "0", true),
    // UCX, a transport of MPI libraries, starts to print debug lines at SIGHUP, which a closed terminal sends and which ends
    // the run with a checkpoint
    ("UCX_DEBUG_SIGNO", "0", false),
];

/// Sets variables for libraries that are loaded later. Call it before the program starts threads.
pub fn prepare_environment() {
    for (name, value) in changes(|name| std::env::var_os(name).is_some()) {
        // SAFETY: there is one thread
        unsafe { std::env::set_var(name, value) };
    }
}

/// Returns the variables to set.
fn changes(is_set: impl Fn(&str) -> bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    let wanted = VARIABLES.into_iter().filter(move |(name, _, replaces)| *replaces || !is_set(name));
    wanted.map(|(name, value, _)| (name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_user_are_kept() {
        let of = |set: bool| changes(move |_| set).collect::<Vec<_>>();
        assert_eq!(of(false), [("NCCL_NVLS_ENABLE", "0"), ("UCX_DEBUG_SIGNO", "0")]);
        assert_eq!(of(true), [("NCCL_NVLS_ENABLE", "0")]);
    }
}
