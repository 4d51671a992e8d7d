//! Type numbers in formats that identify types by name.

use galamost_plugin_api::snapshot::Link;

/// Returns all type names if a reader that numbers them in order of their first use would number them differently.
/// `used` are the types of the rows in the file.
pub fn list(names: &[String], used: impl Iterator<Item = u32>) -> Option<&[String]> {
    let mut next = 0;
    for kind in used {
        if kind > next {
            return Some(names);
        }
        next += u32::from(kind == next);
    }
    ((next as usize) < names.len()).then_some(names)
}

/// Like [`list`], for bonds, angles or dihedrals.
pub fn of_links<'a, const N: usize>(names: &'a [String], links: &[Link<N>]) -> Option<&'a [String]> {
    list(names, links.iter().map(|l| l.kind))
}

/// Joins names of columns: `fx`, `fx and fy`, `fx, fy and fz`.
pub fn joined(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).into(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_only_written_where_the_order_would_be_lost() {
        let names = ["A", "B", "C"].map(String::from);
        let needs = |used: &[u32]| list(&names, used.iter().copied()).is_some();
        assert!(!needs(&[0, 0, 1, 0, 2, 1]));
        assert!(needs(&[1, 0, 2]) && needs(&[0, 2, 1]) && needs(&[0, 1]) && needs(&[]));
        assert!(list(&[], [].into_iter()).is_none());
        assert_eq!(["", "a", "a and b", "a, b and c"], [&[][..], &["a"], &["a", "b"], &["a", "b", "c"]].map(joined));
    }
}
