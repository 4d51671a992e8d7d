//! Topologies of GROMACS: [`Source`] follows the preprocessor, [`Topology`] has the sections, [`System`] the interactions of
//! all molecules as rows of components, and [`structure`](fn@structure) makes a state with the positions of a file.

mod forcefield;
mod interactions;
mod nonbonded;
mod sites;
mod source;
mod structure;
mod system;
mod terms;
mod text;
mod topology;

pub use forcefield::{AtomType, ForceField, Table, TypeRow};
pub use interactions::{Interaction, Interactions};
pub use nonbonded::{missing_rows, rows as pair_rows};
pub use sites::Site;
pub use source::{At, Line, Settings, Source, Word};
pub use structure::{Coordinates, DIGITS, structure};
pub use system::{Bonded, COULOMB, LinkType, ReactionField, SiteBlock, System};
pub use terms::{Form, Term};
pub use text::number;
pub use topology::{Atom, Block, Molecule, Section, Topology};

#[cfg(test)]
mod tests {
    use super::*;

    /// Text that is cut anywhere, or in which any line is another one, gives a system or an error.
    #[test]
    fn damaged_topologies_are_errors() {
        let top = "[ defaults ]\n1 2\n[ atomtypes ]\nA a 6 10.0 0.5 A 0.2 4.0\nV 0 0 V 0 0\n[ dihedraltypes ]\nX a a X 9 0 1 2\nX a a X 9 0 1 3\n\
                   #ifdef X\n#else\n#define b 0.3 100\n#endif\n[ moleculetype ]\nM 3\n[ atoms ]\n1 A 1 M A 1\n2 A 1 M B 1 0.5 2.0\n\
                   3 A 1 M C 1\n4 A 1 M D 1\n5 V 1 M E 1\n[ bonds ]\n1 2 1 b\n2 3 2 b\n3 4 1 b\n[ angles ]\n1 2 3 10 120 5\n[ dihedrals ]\n\
                   1 2 3 4 9\n[ virtual_sitesn ]\n5 3 1 1.0 2 2.0\n[ exclusions ]\n5 1 2\n[ system ]\nx\n[ molecules ]\nM 2\n";
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.top");
        let field = ReactionField::default();
        let read = |text: &str| {
            std::fs::write(&path, text).expect("written");
            let source = Source::read(&path, &Settings::default());
            let topology = source.and_then(|s| Topology::read(s, &mut vec![])).map_err(|e| vec![e])?;
            let system = System::of(&topology, None, &field)?;
            pair_rows(&topology).map(|rows| (system.exclude, rows.len()))
        };
        assert_eq!(read(top), Ok((vec!["Bonds", "Angles", "Dihedrals"], 3)));
        let mut errors = 0;
        (0..top.len()).for_each(|k| errors += usize::from(read(&top[..k]).is_err()));
        // it is whole from the number of molecules on
        assert_eq!(errors, top.len() - 1);
        let lines: Vec<&str> = top.lines().collect();
        for k in 0..lines.len() {
            for other in &lines {
                let mut all = lines.clone();
                all[k] = other;
                let _ = read(&all.join("\n"));
            }
            let words: Vec<&str> = lines[k].split(' ').collect();
            for (w, other) in
                (0..words.len()).flat_map(|w| ["", "-1", "1e999", "99999999999", "nan", "["].map(|o| (w, o)))
            {
                let mut line = words.clone();
                line[w] = other;
                let line = line.join(" ");
                let mut all = lines.clone();
                all[k] = &line;
                let _ = read(&all.join("\n"));
            }
        }
    }
}
