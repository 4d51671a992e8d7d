//! Memory layout of the structs that cross the boundary in every step, compared when a library is loaded.
//!
//! These structs are behind raw pointers, so `abi_stable` does not check them. A library provides a description of its
//! layouts ([`crate::abi::Layouts1`]), and the engine compares it with its own. Words that are `reserved` on one side
//! may be in use on the other, and a struct whose first member is its `size` may be longer in the engine than in the library,
//! which is how the structs grow. Any other difference is rejected.

use super::calls::{
    BondedCall, CutoffRow, Edit, EditQueue, ForceCall, FrameArray, FrameCall, FrameColumn, PairCall, PairConfiguration,
    ParticleCall, ScalarCall, SpecialPairs, Thermo, UpdateCall,
};
use crate::abi::services::BlockSums;
use crate::abi::views::{Fault, FaultRecord, Globals, LinkView, ListView, SimBox, StateView, Sums, Wanted};
use crate::device::philox::RandomKey;
use crate::device::precision::{PosTypeF64, PosTypeFixed};
use crate::params::varying::Varying;
use crate::snapshot::Link;
use serde::{Deserialize, Serialize};

/// A `#[repr(C)]` struct that crosses behind a pointer. Derive it, and add the struct to [`crossing`].
pub trait Layout {
    /// Returns the layout of the struct.
    fn layout() -> StructLayout;
}

/// The layout of a struct.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StructLayout {
    /// Name.
    pub name: String,
    /// Size in bytes.
    pub size: u32,
    /// Alignment.
    pub align: u32,
    /// Members: name, offset, size in bytes.
    pub members: Vec<(String, u32, u32)>,
}

/// Returns the layouts of all structs that cross in every step.
pub fn crossing() -> Vec<StructLayout> {
    vec![
        Fault::layout(),
        FaultRecord::layout(),
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
        SpecialPairs::layout(),
        ParticleCall::layout(),
        ScalarCall::layout(),
        Edit::layout(),
        EditQueue::layout(),
        UpdateCall::layout(),
        FrameColumn::<'_, u8>::layout(),
        FrameArray::layout(),
        Thermo::layout(),
        Link::<4>::layout(),
        FrameCall::layout(),
        SimBox::layout(),
        BlockSums::layout(),
    ]
}

impl StructLayout {
    /// Returns the members that are not reserved.
    fn used(&self) -> impl Iterator<Item = &(String, u32, u32)> {
        self.members.iter().filter(|(name, ..)| !name.starts_with("reserved"))
    }

    /// Returns whether all of these bytes are reserved.
    fn is_reserved(&self, begin: u32, size: u32) -> bool {
        self.used().all(|(_, b, s)| begin + size <= *b || b + s <= begin) && begin + size <= self.size
    }

    /// Returns whether the struct may grow at its end: it begins with its size.
    fn grows(&self) -> bool {
        self.members.first().is_some_and(|(name, ..)| name == "size")
    }

    /// Returns the bytes of this range that the struct has.
    fn within(&self, begin: u32, size: u32) -> u32 {
        if self.grows() { size.min(self.size.saturating_sub(begin)) } else { size }
    }
}

/// Returns the first incompatible difference, if there is one. `theirs` are the layouts of a library, `ours` those of
/// this engine. Structs that only one side knows belong to tables that only one side knows, and are skipped.
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
                    "{name}.{member} has {size} bytes at offset {begin} in the plugin, but {s} bytes at offset {b} in this engine"
                ));
            }
            None if ours.is_reserved(*begin, *size) => {}
            None => return Some(format!("{name}.{member} overlaps other members in this engine")),
        }
    }
    // members that only this engine has must lie in words that the library reserves, or behind its struct
    for (member, begin, size) in ours.used() {
        let known = theirs.within(*begin, *size);
        if !theirs.used().any(|(n, ..)| n == member) && known > 0 && !theirs.is_reserved(*begin, known) {
            return Some(format!("the plugin has no {name}.{member}"));
        }
    }
    let sizes_fit = theirs.size == ours.size || (theirs.grows() && theirs.size < ours.size);
    (!sizes_fit || theirs.align != ours.align).then(|| {
        format!(
            "{name} has {} bytes (alignment {}) in the plugin, but {} ({}) in this engine",
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
        assert_eq!(compare(&middle, &old), "V.x overlaps other members in this engine");
        assert_eq!(
            compare(&old, &middle),
            "V.a has 8 bytes at offset 8 in the plugin, but 8 bytes at offset 16 in this engine"
        );
        let wider = [("size", 0, 4), ("reserved0", 4, 4), ("a", 8, 16), ("reserved", 24, 8)];
        assert_eq!(
            compare(&wider, &old),
            "V.a has 16 bytes at offset 8 in the plugin, but 8 bytes at offset 8 in this engine"
        );
        let longer = [("size", 0, 4), ("reserved0", 4, 4), ("a", 8, 8), ("reserved", 16, 24)];
        assert_eq!(compare(&longer, &old), "V has 40 bytes (alignment 8) in the plugin, but 32 (8) in this engine");
        // an engine may have more at the end than the plugin, which does not read it; without a size, nobody could know
        assert_eq!(compare(&old, &longer), "");
        let grown = [("size", 0, 4), ("reserved0", 4, 4), ("a", 8, 8), ("b", 16, 24), ("c", 40, 8)];
        assert_eq!(compare(&old, &grown), "");
        assert_eq!(compare(&grown, &old), "V.b overlaps other members in this engine");
        let over = [("size", 0, 4), ("reserved0", 4, 4), ("b", 8, 40)];
        assert_eq!(compare(&old, &over), "V.a overlaps other members in this engine");
        let unsized_old = [("a", 0, 8)];
        let unsized_new = [("a", 0, 8), ("b", 8, 8)];
        assert_eq!(compare(&unsized_old, &unsized_new), "the plugin has no V.b");
        let gone = [("size", 0, 4), ("reserved0", 4, 4), ("c", 8, 8), ("reserved", 16, 16)];
        assert_eq!(compare(&gone, &old), "V.c overlaps other members in this engine");
        let outside = [("size", 0, 4), ("reserved0", 4, 4), ("a", 8, 8), ("reserved", 16, 16), ("b", 32, 8)];
        assert_eq!(compare(&outside, &old), "V.b overlaps other members in this engine");
    }

    #[test]
    fn the_description_is_that_of_the_compiler() {
        let all = crossing();
        let view = all.iter().find(|l| l.name == "StateView").expect("named");
        assert_eq!(view.size as usize, size_of::<StateView>());
        assert_eq!(view.members[0], ("size".into(), 0, 4));
        // padding would not be compared: all of it is known
        let mut padding = vec![];
        for l in &all {
            let mut end = 0;
            for (name, begin, size) in &l.members {
                assert!(*begin >= end, "{}.{name} overlaps another member", l.name);
                if *begin > end {
                    padding.push(format!("{} bytes before {}.{name}", begin - end, l.name));
                }
                end = begin + size;
            }
            assert_eq!(end, l.size, "padding after the members of {}", l.name);
        }
        assert_eq!(padding, ["4 bytes before PairCall.state", "4 bytes before FrameArray.reals"]);
        let mut names: Vec<_> = all.iter().map(|l| l.name.clone()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len(), "duplicate names");
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

    /// A struct that crosses but is missing in `crossing` would not be checked.
    #[test]
    fn every_struct_that_crosses_is_described() {
        let listed: Vec<_> = crossing().into_iter().map(|l| l.name).collect();
        let mut files = vec![];
        sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
        let mut seen = 0;
        for path in files {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // structs that `abi_stable` checks, and this file
            if ["stable.rs", "tables.rs", "wire_types.rs", "plugin_record.rs", "layout.rs"].contains(&name.as_str()) {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a text");
            for piece in text.split("#[repr(C").skip(1) {
                let Some((before, after)) = piece.split_once("pub struct ") else { continue };
                let name: String = after.chars().take_while(|c| c.is_alphanumeric()).collect();
                // skip comments, values inside functions, and integrator states, which the engine only stores
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
