//! The lengths of file names.

use super::Target;

/// The largest number of bytes in the name of a file.
const LONGEST: usize = 255;
/// Bytes that the name of a file has more while it is written, `.galamost.NAME.part`: more than if it is set aside, such as `.old.99`.
pub const RENAMED: usize = 15;
/// Bytes of the endings of older checkpoints, such as `.99`.
pub const OLDER: usize = 3;
/// Digits of a step in the name of a file.
const DIGITS: usize = 10;

/// Checks that a file system accepts the name of a file with endings of `more` bytes.
///
/// # Errors
/// Returns an error that says how long the name may be.
pub fn check_length(target: &Target, more: usize) -> Result<(), String> {
    const STEP: &str = "{step}";
    let steps = target.name.matches(STEP).count();
    let (length, longest) = (target.file.len() + steps * DIGITS - steps * STEP.len(), LONGEST - more);
    if length <= longest {
        return Ok(());
    }
    Err(format!(
        "the name of the file has {length} bytes, and {longest} is the most, because a file that is written is called `.galamost.NAME.part`; \
         choose a shorter name"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_and_steps_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let check =
            |name: String| check_length(&Target::resolve(&folder.path().join(name)).expect("resolved"), RENAMED);
        assert_eq!(check("a".repeat(240)), Ok(()));
        assert!(check("a".repeat(241)).is_err_and(|e| e.contains("has 241 bytes, and 240 is the most")));
        assert!(check("a".repeat(300)).is_err());
        assert_eq!(check(format!("{}{{step}}", "a".repeat(230))), Ok(()));
        assert!(check(format!("{}{{step}}", "a".repeat(231))).is_err_and(|e| e.contains("has 241 bytes")));
    }
}
