//! Where the members of the structs lie that cross in every step, compared when a library is loaded.
//!
//! These structs are behind raw pointers, so `abi_stable` does not see them. A library hands out a description of its
//! own ([`crate::abi::Layouts1`]), and the engine compares it with what it was built with. Words that are `reserved` on
//! one side may be in use on the other: that is how the structs grow. Anything else that differs is refused.

use super::calls::{
    BondedCall, CutoffRow, Edit, EditQueue, ForceCall, FrameArray, FrameCall, FrameColumn, PairCall, PairConfiguration,
    ParticleCall, ScalarCall, Thermo, UpdateCall,
};
use crate::abi::views::{Fault, Globals, LinkView, ListView, SimBox, StateView, Sums, Wanted};
use crate::device::philox::RandomKey;
use crate::device::precision::{PosTypeF64, PosTypeFixed};
use crate::params::varying::Varying;
use crate::snapshot::Link;
use serde::{Deserialize, Serialize};

/// A `#[repr(C)]` struct that crosses behind a pointer; derive it, and name the struct in [`crossing`].
pub trait Layout {
    /// Where its members lie.
    fn layout() -> StructLayout;
}

/// Where the members of a struct lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StructLayout {
    /// Name.
    pub name: String,
    /// Size in bytes.
    pub size: u32,
    /// Alignment.
    pub align: u32,
    /// Members: name, first byte, size in bytes.
    pub members: Vec<(String, u32, u32)>,
}

/// All structs that cross in every step.
pub fn crossing() -> Vec<StructLayout> {
    vec![
        Fault::layout(),
        Globals::layout(),
        Varying::layout(),
        StateView::layout(),
        PosTypeFixed::layout(),
        PosTypeF64::layout(),
        ListView::layout(),
        LinkView::layout(),
        Wanted::layout(),
        Sums::layout(),
        RandomKey::layout(),
        CutoffRow::<f64>::layout(),
        PairCall::layout(),
        PairConfiguration::layout(),
        BondedCall::layout(),
        ForceCall::layout(),
        ParticleCall::layout(),
        ScalarCall::layout(),
        Edit::layout(),
        EditQueue::layout(),
        UpdateCall::layout(),
        FrameColumn::<u8>::layout(),
        FrameArray::layout(),
        Thermo::layout(),
        Link::<4>::layout(),
        FrameCall::layout(),
        SimBox::layout(),
    ]
}

impl StructLayout {
    /// Members that hold something.
    fn used(&self) -> impl Iterator<Item = &(String, u32, u32)> {
        self.members.iter().filter(|(name, ..)| !name.starts_with("reserved"))
    }

    /// Whether all of these bytes are reserved here.
    fn is_reserved(&self, begin: u32, size: u32) -> bool {
        self.used().all(|(_, b, s)| begin + size <= *b || b + s <= begin) && begin + size <= self.size
    }
}

/// What of the other side's structs does not fit, if anything; `theirs` are a library's, `ours` this engine's. A
/// struct that only one side knows belongs to a table that only one side knows.
pub fn difference(theirs: &[StructLayout], ours: &[StructLayout]) -> Option<String> {
    let pairs = theirs.iter().filter_map(|t| Some((t, ours.iter().find(|o| o.name == t.name)?)));
    pairs.filter_map(|(t, o)| different(t, o)).next()
}

fn different(theirs: &StructLayout, ours: &StructLayout) -> Option<String> {
    let name = &theirs.name;
    for (member, begin, size) in theirs.used() {
        match ours.used().find(|(n, ..)| n == member) {
            Some((_, b, s)) if (b, s) == (begin, size) => {}
            Some((_, b, s)) => {
                return Some(format!(
                    "{name}.{member} is {size} bytes at {begin} there, but {s} bytes at {b} in this engine"
                ));
            }
            None if ours.is_reserved(*begin, *size) => {}
            None => return Some(format!("{name}.{member} stands where this engine has something else")),
        }
    }
    // what only this engine has must lie in words that the library left alone
    for (member, begin, size) in ours.used() {
        if !theirs.used().any(|(n, ..)| n == member) && !theirs.is_reserved(*begin, *size) {
            return Some(format!("it has no {name}.{member}"));
        }
    }
    ((theirs.size, theirs.align) != (ours.size, ours.align)).then(|| {
        format!(
            "{name} has {} bytes (alignment {}) there, but {} ({}) in this engine",
            theirs.size, theirs.align, ours.size, ours.align
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(members: &[(&str, u32, u32)]) -> StructLayout {
        let size = members.iter().map(|(_, b, s)| b + s).max().unwrap_or(0);
        let members = members.iter().map(|(n, b, s)| ((*n).to_string(), *b, *s)).collect();
        StructLayout { name: "V".into(), size, align: 8, members }
    }

    fn compare(a: &[(&str, u32, u32)], b: &[(&str, u32, u32)]) -> String {
        difference(&[layout(a)], &[layout(b)]).unwrap_or_default()
    }

    #[test]
    fn reserved_words_may_be_used_and_nothing_else() {
        let old = [("size", 0, 4), ("reserved0", 4, 4), ("a", 8, 8), ("reserved", 16, 16)];
        let new = [("size", 0, 4), ("flags", 4, 4), ("a", 8, 8), ("b", 16, 8), ("reserved", 24, 8)];
        assert_eq!(compare(&old, &old), "");
        assert_eq!(compare(&old, &new), "");
        assert_eq!(compare(&new, &old), "");
        let middle = [("size", 0, 4), ("reserved0", 4, 4), ("x", 8, 8), ("a", 16, 8), ("reserved", 24, 8)];
        assert_eq!(compare(&middle, &old), "V.x stands where this engine has something else");
        assert_eq!(compare(&old, &middle), "V.a is 8 bytes at 8 there, but 8 bytes at 16 in this engine");
        let wider = [("size", 0, 4), ("reserved0", 4, 4), ("a", 8, 16), ("reserved", 24, 8)];
        assert_eq!(compare(&wider, &old), "V.a is 16 bytes at 8 there, but 8 bytes at 8 in this engine");
        let longer = [("size", 0, 4), ("reserved0", 4, 4), ("a", 8, 8), ("reserved", 16, 24)];
        assert_eq!(compare(&longer, &old), "V has 40 bytes (alignment 8) there, but 32 (8) in this engine");
        let gone = [("size", 0, 4), ("reserved0", 4, 4), ("c", 8, 8), ("reserved", 16, 16)];
        assert_eq!(compare(&gone, &old), "V.c stands where this engine has something else");
        let outside = [("size", 0, 4), ("reserved0", 4, 4), ("a", 8, 8), ("reserved", 16, 16), ("b", 32, 8)];
        assert_eq!(compare(&outside, &old), "V.b stands where this engine has something else");
    }

    #[test]
    fn the_description_is_that_of_the_compiler() {
        let all = crossing();
        let view = all.iter().find(|l| l.name == "StateView").expect("named");
        assert_eq!(view.size as usize, size_of::<StateView>());
        assert_eq!(view.members[0], ("size".into(), 0, 4));
        // no bytes between members: what lies there would be compared by nobody
        for l in all.iter().filter(|l| l.name != "FrameArray" && l.name != "ScalarCall") {
            let mut end = 0;
            for (name, begin, size) in &l.members {
                assert!(*begin < end + 8, "a hole before {}.{name}", l.name);
                end = begin + size;
            }
        }
        let mut names: Vec<_> = all.iter().map(|l| l.name.clone()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len(), "a name is there twice");
        assert_eq!(difference(&all, &all), None);
    }

    fn sources(folder: &std::path::Path, files: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                sources(&path, files);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }

    /// Who writes a struct that crosses and forgets to name it here would have it unchecked.
    #[test]
    fn every_struct_that_crosses_is_described() {
        let listed: Vec<_> = crossing().into_iter().map(|l| l.name).collect();
        let mut files = vec![];
        sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
        let mut seen = 0;
        for path in files {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // what `abi_stable` describes itself, and this file
            if ["stable.rs", "tables.rs", "wire_types.rs", "record.rs", "layout.rs"].contains(&name.as_str()) {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a text");
            for piece in text.split("#[repr(C").skip(1) {
                let Some((before, after)) = piece.split_once("pub struct ") else { continue };
                let name: String = after.chars().take_while(|c| c.is_alphanumeric()).collect();
                // a mention in a comment; values inside functions; an integrator's own state, which the engine only keeps
                if before.contains("\n\n") || ["Vec3", "Quaternion", "Step", "NoState"].contains(&name.as_str()) {
                    continue;
                }
                seen += 1;
                assert!(listed.contains(&name), "{}: {name} is not in `layout::crossing`", path.display());
            }
        }
        assert_eq!(seen, listed.len(), "the search found other structs than the list has");
    }
}
