//! What launchers of several processes write into the environment.

/// How this process was started as one of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Number of this process, from 0.
    pub rank: usize,
    /// Number of processes.
    pub ranks: usize,
    /// The environment variables with both.
    pub variables: [&'static str; 2],
}

/// Variables with the number of the process and the number of processes. Those of the MPI library are first. A batch script
/// has the variables of its job; only `srun` sets the number of tasks of a step.
const VARIABLES: [[&str; 2]; 5] = [
    ["PMI_RANK", "PMI_SIZE"],
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
    ["MPI_RANK", "MPI_SIZE"],
    ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS"],
    ["RANK", "WORLD_SIZE"],
];

/// Returns how this process was started as one of several; `None` if it is the only one.
pub fn launch() -> Option<Launch> {
    launch_of(|name| std::env::var(name).ok())
}

fn launch_of(value: impl Fn(&str) -> Option<String>) -> Option<Launch> {
    VARIABLES.into_iter().find_map(|variables| {
        let [rank, ranks] = variables.map(|name| value(name).and_then(|text| text.trim().parse::<usize>().ok()));
        let (rank, ranks) = (rank?, ranks?);
        (ranks > 1 && rank < ranks).then_some(Launch { rank, ranks, variables })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_recognized() {
        let of = |set: &[(&str, &str)]| {
            launch_of(|name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_string()))
                .map(|l| (l.rank, l.ranks, l.variables[0]))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("PMI_RANK", "2"), ("PMI_SIZE", "4")]), Some((2, 4, "PMI_RANK")));
        assert_eq!(of(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]), None);
        // a batch script without srun
        assert_eq!(of(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]), None);
        assert_eq!(of(&[("SLURM_PROCID", "3"), ("SLURM_STEP_NUM_TASKS", "8")]), Some((3, 8, "SLURM_PROCID")));
        assert_eq!(of(&[("RANK", "1"), ("WORLD_SIZE", "2"), ("LOCAL_RANK", "1")]), Some((1, 2, "RANK")));
        assert_eq!(of(&[("RANK", "7"), ("WORLD_SIZE", "2")]), None);
    }
}
