//! Outputs that are symbolic links.

use super::{folder, go};
use galamost_tests::csv;
use std::os::unix::fs::symlink;

/// A run writes through links, so the files behind them are those of the earlier run: of tables, `{step}` files, the record and
/// checkpoints.
#[test]
fn the_files_behind_links_are_set_aside() {
    const NAMES: [&str; 4] = ["t.csv", "0000000020.xml", "p.run.json", "p.checkpoint"];
    let f = folder(
        r#"checkpoint: (every: 20), analyzers: [ Thermo(every: 5, file: "t.csv"), GalamostXml(every: 20, file: "{step}.xml") ],"#,
    );
    let (here, disk) = (f.path(), f.path().join("disk"));
    std::fs::create_dir(&disk).expect("a folder");
    for name in NAMES {
        symlink(format!("disk/{name}"), here.join(name)).expect("a link");
    }
    let read = |name: &str| std::fs::read(disk.join(name)).expect(name);
    let are_links = || NAMES.iter().all(|name| here.join(name).is_symlink());
    go(here, &["--pipeline", "p.ron"], 0);
    assert!(are_links());
    let first = NAMES.map(read);
    let said = go(here, &["--pipeline", "p.ron", "--steps", "30"], 0);
    assert!(said.contains("`.old` is appended to each name"), "{said}");
    assert!(are_links());
    for (name, bytes) in NAMES.iter().zip(first) {
        assert!(read(&format!("{name}.old")) == bytes, "{name}");
        assert!(!here.join(format!("{name}.old")).is_symlink(), "{name}");
    }
    go(here, &["--pipeline", "p.ron", "--overwrite", "--steps", "30"], 0);
    assert!(are_links() && !disk.join("t.csv.old.2").exists());
    go(here, &["--pipeline", "p.ron", "--resume"], 0);
    assert!(are_links() && disk.join("p.checkpoint.1").is_file() && !here.join("p.checkpoint.1").exists());
    assert_eq!(csv(&here.join("t.csv"))["step"].len(), 9);
}

/// A file of an earlier run that is a link to an input: neither renamed nor removed.
#[test]
fn an_input_behind_a_link_is_not_set_aside() {
    let f = folder(r#"analyzers: [ GalamostXml(every: 20, file: "{step}.xml") ],"#);
    let text = std::fs::read(f.path().join("p.ron")).expect("a pipeline");
    symlink("p.ron", f.path().join("0000000020.xml")).expect("a link");
    for args in [&["--pipeline", "p.ron"][..], &["--pipeline", "p.ron", "--overwrite"]] {
        let said = go(f.path(), args, 2);
        assert!(said.contains("p.ron: is read by this run, and a symbolic link"), "{said}");
        assert!(std::fs::read(f.path().join("p.ron")).is_ok_and(|now| now == text));
    }
}
