//! Errors and warnings of topologies that `galamost convert` and the generator `Gromacs` share, and pairs without parameters.

use super::generator::{PLAIN, check};
use super::{GRO, convert, topology};

/// A topology without combination rule has no Lennard-Jones parameters.
#[test]
fn defaults_are_required() {
    let top = topology("1 2", "", "");
    let top = top.split_once("[ atomtypes ]").map(|(_, rest)| format!("[ atomtypes ]{rest}")).expect("a section");
    let message = "the topology has no [ defaults ]: the combination rule is unknown";
    let said = convert(&top, GRO, &[]).expect_err(message);
    assert!(said.contains(&format!("a.top:1:1: {message}")), "{said}");
    let (code, said) = check(&top, GRO, PLAIN);
    assert!(code == Some(2) && said.contains(&format!("a.top:1:1: Gromacs: {message}")), "{said}");
}

/// A macro has a use if a condition, also one that is not read, or a line has its name.
#[test]
fn macros_without_use_are_warnings() {
    let rows = "#ifdef FLEXIBLE\n#ifdef INNER\n#endif\n#endif\n[ bonds ]\n1 2 1 LENGTH 100";
    let top = topology("1 2", "", rows);
    let used = ["-D", "LENGTH=0.3", "-D", "INNER"];
    let said = convert(&top, GRO, &used).expect("converted");
    assert!(!said.contains("has no effect"), "{said}");
    let said = convert(&top, GRO, &[&used[..], &["-D", "FLEXIBEL", "-D", "OTHER=2"]].concat()).expect("converted");
    let typo = "a.top: the macro FLEXIBEL has no effect: neither a condition (#ifdef) nor a line uses it; did you mean FLEXIBLE?";
    for message in [typo, "a.top: the macro OTHER has no effect"] {
        assert!(said.contains(message), "{said}");
    }
    let define = r#", define: {"LENGTH": "0.3", "FLEXIBEL": ""})"#;
    let (code, said) = check(&top, GRO, &PLAIN.replace(')', define));
    assert!(code == Some(0) && said.contains(typo) && said.matches("has no effect").count() == 1, "{said}");
}

/// The atom of a row that is an error is not also a particle without mass that nothing places.
#[test]
fn a_wrong_site_is_one_error() {
    let with_site = GRO
        .replace("\n3\n", "\n4\n")
        .replace("   0.100\n   4.0", "   0.100\n    1M        D    4   0.200   0.200   0.200\n   4.0");
    for (row, message) in [
        ("[ virtual_sites2 ]\n4 1 2 7 0.4", "a.top:15:7: function 7 of [ virtual_sites2 ] is not supported"),
        ("[ virtual_sitesn ]\n4 3 1 0.5 3", "a.top:15:1: each atom needs a weight"),
    ] {
        let top = topology("1 2", "", &format!("4 B 1 M D 1 0 0.0\n{row}"));
        let said = convert(&top, &with_site, &[]).expect_err(message);
        assert!(said.contains(message) && !said.contains("no mass"), "{said}");
        let (code, said) = check(&top, &with_site, PLAIN);
        assert!(code == Some(2) && !said.contains("no mass") && said.contains("1 error;"), "{said}");
    }
}

/// If no type has parameters, pairs without row do not interact; one warning names them.
#[test]
#[ignore = "3 seconds"]
fn pairs_without_row_are_a_warning() {
    let without = |rule: &str, rows: &str| {
        let top = topology(rule, &format!("[ nonbond_params ]\n{rows}"), "");
        convert(&top.replace("A 0.2 4.0", "A 0 0").replace("A 0.8 9.0", "A 0 0"), GRO, &[]).expect("converted")
    };
    let start = "No interaction of these pairs, which have no row in [ nonbond_params ]:";
    for rule in ["1 1", "1 2"] {
        let said = without(rule, "A B 1 0.3 0.2");
        // in the pipeline and as a warning
        assert_eq!(said.matches(&format!("{start} A A, B B.")).count(), 2, "{said}");
        let said = without(rule, "A A 1 0.3 0.2\nA B 1 0 0\nB B 1 0 0");
        assert!(!said.contains(start), "{said}");
    }
    // other force fields mix parameters, and a type without them has no interaction
    let said = convert(&topology("1 2", "", "").replace("A 0.8 9.0", "A 0 0"), GRO, &[]).expect("converted");
    assert!(!said.contains(start), "{said}");
    // a virtual site that has no row at all
    let site =
        topology("1 2", "V 0 0 V 0 0\n[ nonbond_params ]\nA A 1 0.3 2", "4 V 1 M D 1\n[ virtual_sitesn ]\n4 1 1 2");
    let site = site.replace("A 0.2 4.0", "A 0 0").replace("A 0.8 9.0", "A 0 0");
    let gro = GRO
        .replace("\n3\n", "\n4\n")
        .replace("   0.100\n   4.0", "   0.100\n    1M        D    4   0.200   0.200   0.200\n   4.0");
    let said = convert(&site, &gro, &[]).expect("converted");
    assert!(said.contains(&format!("{start} A B, B B.")), "{said}");
    // a long list is cut
    let types: Vec<String> = (0..4).map(|k| format!("T{k} 10.0 0 A 0 0")).collect();
    let atoms: Vec<String> = (0..4).map(|k| format!("{} T{k} 1 M D{k} 1", k + 4)).collect();
    let tables = format!("{}\n[ nonbond_params ]\nA A 1 0.3 2", types.join("\n"));
    let many = topology("1 2", &tables, &atoms.join("\n"));
    let many = many.replace("A 0.2 4.0", "A 0 0").replace("A 0.8 9.0", "A 0 0");
    let more: String = (0..4).map(|k| format!("    1M       D{k}{:5}   0.20{k}   0.200   0.200\n", k + 4)).collect();
    let gro = GRO.replace("\n3\n", "\n7\n").replace("   4.00000   4.0", &format!("{more}   4.00000   4.0"));
    let said = convert(&many, &gro, &[]).expect("converted");
    assert!(said.contains("and 15 more."), "{said}");
}
