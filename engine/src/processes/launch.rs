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

/// What one variable of a pair means without the other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Single {
    /// A launcher always sets both.
    Error,
    /// Other programs use this name, too.
    Warning,
    /// A batch script has the variables of its job; only `srun` sets the number of tasks of a step.
    Normal,
}

/// Variables with the number of the process and the number of processes. Those of the MPI library are first.
const VARIABLES: [([&str; 2], Single); 5] = [
    (["PMI_RANK", "PMI_SIZE"], Single::Error),
    (["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"], Single::Error),
    (["MPI_RANK", "MPI_SIZE"], Single::Warning),
    (["SLURM_PROCID", "SLURM_STEP_NUM_TASKS"], Single::Normal),
    (["RANK", "WORLD_SIZE"], Single::Warning),
];

/// Returns how this process was started as one of several; `None` if it is the only one.
pub fn launch() -> Option<Launch> {
    launch_of(variable)
}

/// Checks the variables of launchers. If none of them describe one of several processes, an impossible pair is an error: the launch
/// would become single runs that write the same files. Returns a warning if one variable of a pair, whose name other
/// programs use as well, is ignored.
///
/// # Errors
/// See above.
pub fn check_launch() -> Result<Option<String>, String> {
    check_of(variable)
}

/// Returns the value of a variable; an empty one counts as unset.
fn variable(name: &str) -> Option<String> {
    let value = std::env::var_os(name)?.to_string_lossy().trim().to_string();
    (!value.is_empty()).then_some(value)
}

fn launch_of(value: impl Fn(&str) -> Option<String>) -> Option<Launch> {
    let mut single = false;
    VARIABLES.into_iter().find_map(|(variables, kind)| {
        let [rank, ranks] = variables.map(|name| value(name).and_then(|text| text.parse::<usize>().ok()));
        let (rank, ranks) = (rank?, ranks?);
        // `mpiexec -n 1` in a task of `srun`, whose variables are those of the task
        single = single || (kind == Single::Error && ranks == 1);
        let is_outer = single && kind == Single::Normal;
        (ranks > 1 && rank < ranks && !is_outer).then_some(Launch { rank, ranks, variables })
    })
}

fn check_of(value: impl Fn(&str) -> Option<String>) -> Result<Option<String>, String> {
    if launch_of(&value).is_some() {
        return Ok(None);
    }
    let number = |text: &str| text.parse::<usize>().ok();
    let mut warning = None;
    for (variables, single) in VARIABLES {
        let [of, count] = variables;
        let (set, missing, text) = match variables.map(&value) {
            [None, None] => continue,
            [Some(rank), Some(ranks)] => {
                if number(&rank).zip(number(&ranks)).is_none_or(|(rank, ranks)| rank >= ranks) {
                    return Err(format!(
                        "{of}={rank} and {count}={ranks} do not describe one of several processes: {count} must be a number \
                         from 1, and {of} a number from 0 to {count} - 1; correct or unset both variables"
                    ));
                }
                if single == Single::Normal && number(&ranks) > Some(1) {
                    warning = warning.or(Some(format!(
                        "{of}={rank} and {count}={ranks} are ignored, because `mpiexec` has started one process; if it was `srun`, unset \
                         PMI_RANK, PMI_SIZE, OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE"
                    )));
                }
                continue;
            }
            [Some(rank), None] => (of, count, rank),
            [None, Some(ranks)] => (count, of, ranks),
        };
        match single {
            Single::Normal => {}
            Single::Warning => {
                let why = format!("because {missing} is not set; a run in several processes needs both");
                warning = warning.or(Some(format!("{set}={text} is ignored {why}")));
            }
            Single::Error => {
                return Err(format!("{set}={text} is set without {missing}, but a launcher sets both; unset {set}"));
            }
        }
    }
    Ok(warning)
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
        // mpiexec -n 1 in a task of srun
        let task = [("SLURM_PROCID", "3"), ("SLURM_STEP_NUM_TASKS", "8")];
        assert_eq!(of(&[("PMI_RANK", "0"), ("PMI_SIZE", "1"), task[0], task[1]]), None);
        assert_eq!(of(&[("RANK", "0"), ("WORLD_SIZE", "1"), task[0], task[1]]), Some((3, 8, "SLURM_PROCID")));
        assert_eq!(of(&[("RANK", "1"), ("WORLD_SIZE", "2"), ("LOCAL_RANK", "1")]), Some((1, 2, "RANK")));
        assert_eq!(of(&[("RANK", "7"), ("WORLD_SIZE", "2")]), None);
    }

    #[test]
    fn impossible_variables_are_errors() {
        let of =
            |set: &[(&str, &str)]| check_of(|name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_string()));
        let pairs = [("2", "2"), ("-1", "2"), ("abc", "2"), ("0", "abc"), ("0", "0")];
        for (rank, ranks) in pairs {
            for [first, second] in VARIABLES.map(|(names, _)| names) {
                let message = of(&[(first, rank), (second, ranks)]).expect_err("an error");
                assert!(message.starts_with(&format!("{first}={rank} and {second}={ranks} do not")), "{message}");
            }
        }
        let good = [("PMI_RANK", "1"), ("PMI_SIZE", "2")];
        for single in [&good[..1], &good[1..], &[("OMPI_COMM_WORLD_RANK", "0")]] {
            let message = of(single).expect_err("an error");
            assert!(message.contains(&format!("{}={} is set without", single[0].0, single[0].1)), "{message}");
        }
        for single in [[("RANK", "abc")], [("WORLD_SIZE", "2")], [("MPI_RANK", "0")]] {
            let message = of(&single).expect("no error").expect("a warning");
            assert!(message.contains("is ignored because"), "{message}");
        }
        let task = [("SLURM_PROCID", "3"), ("SLURM_STEP_NUM_TASKS", "8")];
        for names in [["PMI_RANK", "PMI_SIZE"], ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"]] {
            let message =
                of(&[(names[0], "0"), (names[1], "1"), task[0], task[1]]).expect("no error").expect("a warning");
            assert!(message.starts_with("SLURM_PROCID=3 and SLURM_STEP_NUM_TASKS=8 are ignored"), "{message}");
        }
        // a batch script; one process; a launch whose library also finds other variables
        assert_eq!(of(&[("SLURM_PROCID", "0")]), Ok(None));
        assert_eq!(of(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]), Ok(None));
        assert_eq!(of(&[good[0], good[1], ("RANK", "abc")]), Ok(None));
    }
}
