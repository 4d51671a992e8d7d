//! The book and the README: links resolve, pipelines pass the check, commands exist, and commands and pipelines marked `run`
//! succeed.

use crate::examples::{SHARED, finished};
use galamost_engine::pipeline::DeviceChoice;
use galamost_tests::tolerances::bound;
use galamost_tests::{csv, galamost, output, plan_in, program, repository, words};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// A fenced block of code: ```` ```sh,run ````.
struct Block {
    /// Page and line, for messages.
    place: String,
    /// Language and marks of the fence.
    info: Vec<String>,
    text: String,
}

impl Block {
    fn is(&self, language: &str) -> bool {
        self.info[0] == language
    }

    fn has(&self, mark: &str) -> bool {
        self.info.iter().any(|i| i == mark)
    }
}

/// README.md and the pages of the book.
fn pages() -> Vec<PathBuf> {
    let mut found = vec![repository().join("README.md")];
    let mut folders = vec![repository().join(xtask::links::PAGES)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").filter_map(Result::ok) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The fenced blocks of a page.
fn blocks(page: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(page).expect("a page");
    let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut found: Vec<Block> = vec![];
    let mut open: Option<Block> = None;
    for (number, line) in text.lines().enumerate() {
        match &mut open {
            None if line.trim_start().starts_with("```") => {
                let info = line.trim().trim_start_matches('`').split(',').map(|i| i.trim().to_string()).collect();
                open = Some(Block { place: format!("{name}:{}", number + 1), info, text: String::new() });
            }
            Some(_) if line.trim() == "```" => found.extend(open.take()),
            Some(block) => {
                block.text += line;
                block.text.push('\n');
            }
            None => {}
        }
    }
    assert!(open.is_none(), "{name}: a block of code has no end");
    found
}

/// Counts the lines of all pages that begin a block and satisfy `is`, to find out whether [`blocks`] misses any.
fn fences(is: impl Fn(&str) -> bool) -> usize {
    let count = |page: &PathBuf| {
        let text = std::fs::read_to_string(page).expect("a page");
        text.lines().filter_map(|l| l.trim_start().strip_prefix("```")).filter(|l| is(l)).count()
    };
    pages().iter().map(count).sum()
}

/// Replaces `{{#include PATH}}` by the file, as mdBook does.
fn included(text: &str, page: &Path) -> String {
    let mut out = text.to_string();
    while let Some(start) = out.find("{{#include ") {
        let end = start + out[start..].find("}}").expect("the include ends");
        let file = page.parent().expect("a folder").join(out[start + "{{#include ".len()..end].trim());
        let content = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        out.replace_range(start..end + 2, content.trim_end());
    }
    out
}

/// A folder with the examples and their data, without what runs of them have left.
fn examples() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    copy_examples(&repository().join("examples"), folder.path());
    folder
}

fn copy_examples(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("examples").filter_map(Result::ok) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let data = [".ron", ".xml", ".gz", ".dump", ".pdb", ".top", ".itp", ".gro"].iter().any(|e| name.ends_with(e));
        if path.is_dir() && name != "pictures" && name != "spec" {
            copy_examples(&path, &to.join(name));
        } else if path.is_file() && (data || name == "rdf.csv") {
            std::fs::copy(&path, to.join(name)).expect("copied");
        }
    }
}

#[test]
fn links_of_the_book_resolve() {
    let generated = tempfile::tempdir().expect("a folder");
    xtask::docs::generate(&program(), &generated.path().join("components")).unwrap_or_else(|e| panic!("{e}"));
    let broken = xtask::links::check(&repository(), Some(&generated.path().join("components")));
    let broken = broken.unwrap_or_else(|e| panic!("{e}"));
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn pipelines_of_the_book_pass_the_check() {
    let folder = examples();
    let mut pipelines = vec![];
    let mut found = 0;
    for page in pages() {
        for block in blocks(&page).into_iter().filter(|b| b.info == ["ron"]) {
            found += 1;
            let text = included(&block.text, &page);
            // pages of components show single components
            if text.contains("stages:") || text.contains("ensemble:") {
                pipelines.push((block.place, text));
            }
        }
    }
    assert!(found == fences(|l| l.trim() == "ron") && !pipelines.is_empty(), "{found} blocks");
    let failed: Vec<String> = pipelines
        .par_iter()
        .enumerate()
        .filter_map(|(k, (place, text))| {
            let path = folder.path().join(format!("book-{k}.ron"));
            if text.contains("replicas:") {
                // the program makes a pipeline for each replica
                std::fs::write(&path, text).expect("written");
                let out = galamost(folder.path(), &["check", &path.to_string_lossy(), "--device", "cpu"]);
                return (!out.status.success()).then(|| format!("{place}:\n{}", words(&out)));
            }
            let found = plan_in(&path, text, DeviceChoice::Cpu);
            found.err().map(|e| format!("{place}:\n{}", e.render()))
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Pipelines marked `ron,run`, in the book and on the pages of components, run to their end.
#[test]
fn pipelines_marked_run_succeed() {
    let generated = tempfile::tempdir().expect("a folder");
    xtask::docs::generate(&program(), generated.path()).unwrap_or_else(|e| panic!("{e}"));
    let of_components = std::fs::read_dir(generated.path()).expect("pages").filter_map(|e| Some(e.ok()?.path()));
    let marked = |page: &PathBuf| blocks(page).into_iter().filter(|b| b.is("ron") && b.has("run")).collect::<Vec<_>>();
    let pipelines: Vec<Block> = pages().into_iter().chain(of_components).flat_map(|page| marked(&page)).collect();
    assert!(!pipelines.is_empty(), "no page has a pipeline that is run");
    let failed: Vec<String> = pipelines
        .par_iter()
        .filter_map(|b| {
            let folder = examples();
            std::fs::write(folder.path().join("book.ron"), &b.text).expect("written");
            let out = galamost(folder.path(), &["--pipeline", "book.ron", "--device", "cpu", "--quiet"]);
            let said = words(&out);
            (!out.status.success() || !said.is_empty()).then(|| format!("{}:\n{said}", b.place))
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Overlapping ellipsoids are pushed apart and thermalized before the barostat begins: then kT stays near its target.
#[test]
#[ignore = "5 seconds"]
fn biaxial_ellipsoids_of_scripts_start_gently() {
    let page = blocks(&repository().join("docs/src/from-scripts.md"));
    let block = page.iter().find(|b| b.text.contains("biaxial.csv")).expect("a pipeline");
    let folder = tempfile::tempdir().expect("a folder");
    let text = block.text.replace("Thermo(every: 100", "Thermo(every: 10");
    std::fs::write(folder.path().join("book.ron"), &text).expect("written");
    let out = galamost(folder.path(), &["--pipeline", "book.ron", "--device", "cpu", "--quiet"]);
    assert!(out.status.success() && words(&out).is_empty(), "{}", words(&out));
    let t = csv(&folder.path().join("biaxial.csv"));
    let hottest =
        t["step"].iter().zip(&t["kT"]).filter(|(s, _)| **s >= 600.0).fold(0.0f64, |m, (_, k)| m.max(*k)) / 2.4;
    println!("kT over its target: at most {hottest:.3}");
    assert!(
        t["step"].last() == Some(&900.0) && hottest < bound("start of biaxial ellipsoids: kT over the target"),
        "{hottest}"
    );
}

/// The forces of the page for pairs of particles beside those of `PBGBForce` of PyGAMD 1.4.9. Numbers are of its formula, which gives the
/// potential energy that PyGAMD reports for the first frame of its example, −3035.6024, to eight digits. One more A and B are out of range.
#[test]
fn biaxial_ellipsoids_of_scripts_have_the_energies_of_pygamd() {
    let page = blocks(&repository().join("docs/src/from-scripts.md"));
    let text = &page.iter().find(|b| b.text.contains("biaxial.csv")).expect("a pipeline").text;
    let (from, to) = (text.find("    forces:").expect("forces"), text.find("    analyzers:").expect("analyzers"));
    let pipeline = format!(
        "(precision: Double, initial: [ GalamostXml(file: \"pair.xml\") ], {} analyzers: [ Thermo(every: 1, file: \"pair.csv\") ],
        stages: [ (steps: 0, dt: 0.001, integrators: [ RotationalVerlet() ]) ])",
        &text[from..to]
    );
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("pair.ron"), pipeline).expect("written");
    for (types, second, expected) in [
        ("A\nA", "1.2 0.0 0.0", -1.781_930_575_166_152_5),
        ("A\nB", "0.9 1.6 -0.7", -0.016_695_789_981_498_378),
        ("B\nB", "1.0 -2.1 1.2", -0.031_547_875_664_429_33),
    ] {
        let xml = format!(
            r#"<galamost_xml version="1.3"><configuration time_step="0" dimensions="3" natoms="4"><box lx="40" ly="40" lz="40"/>
<position num="4">
0 0 0
{second}
15 0 0
0 15 0
</position>
<type num="4">
{types}
A
B
</type>
<mass num="4">
1
1
1
1
</mass>
<inert num="4">
1 1 1
1 1 1
1 1 1
1 1 1
</inert>
<quaternion num="4">
0.1 -0.7 0.5 0.5
0.8 0.4 -0.4 0.2
0 0 0 1
0 0 0 1
</quaternion>
</configuration></galamost_xml>"#
        );
        std::fs::write(folder.path().join("pair.xml"), xml).expect("written");
        let out = galamost(folder.path(), &["--pipeline", "pair.ron", "--device", "cpu", "--quiet", "--overwrite"]);
        assert!(out.status.success(), "{}", words(&out));
        let energy = csv(&folder.path().join("pair.csv"))["potential"][0];
        assert!((energy - expected).abs() < 1e-9 * expected.abs(), "{types:?}: {energy} and {expected}");
    }
}

#[test]
fn commands_of_the_book_exist() {
    let helps = Helps::default();
    let (mut count, mut found) = (0usize, 0);
    let mut failed = vec![];
    for page in pages() {
        for block in blocks(&page).into_iter().filter(|b| b.is("sh")) {
            found += 1;
            for command in commands(&block.text) {
                match helps.examine(&command) {
                    Ok(known) => count += usize::from(known),
                    Err(why) => failed.push(format!("{}: {}: {why}", block.place, command.join(" "))),
                }
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let is_shell = |l: &str| l.trim() == "sh" || l.starts_with("sh,");
    assert!(found == fences(is_shell) && count >= found, "{count} commands in {found} blocks");
}

/// Blocks of commands that are run.
fn runs(page: &Path) -> Vec<Block> {
    blocks(page).into_iter().filter(|b| b.is("sh") && b.has("run")).collect()
}

fn is_tutorial(page: &Path) -> bool {
    page.parent().is_some_and(|folder| folder.ends_with("tutorials"))
}

#[test]
fn commands_marked_run_are_found() {
    let blocks: Vec<Block> = pages().iter().flat_map(|p| runs(p)).collect();
    let marked = fences(|l| l.starts_with("sh,") && l.contains("run"));
    assert!(marked > 0 && blocks.len() == marked, "{} blocks are run of {marked}", blocks.len());
    let shared: BTreeSet<&str> = blocks.iter().flat_map(|b| b.text.lines().filter_map(shared_run)).collect();
    assert!(shared.iter().eq(SHARED.iter()), "pages run {shared:?}; `SHARED` in tests/examples/ lists other examples");
}

#[test]
fn commands_marked_run_succeed() {
    commands_succeed(pages().into_iter().filter(|p| !is_tutorial(p)).collect());
}

#[test]
#[ignore = "a minute"]
fn commands_of_tutorials_succeed() {
    commands_succeed(pages().into_iter().filter(|p| is_tutorial(p)).collect());
}

fn commands_succeed(pages: Vec<PathBuf>) {
    let path = format!("{}:{}", output().display(), std::env::var("PATH").unwrap_or_default());
    let failed: Vec<String> = pages
        .par_iter()
        .flat_map_iter(|page| {
            // blocks of a page use files of earlier ones
            let folder = examples();
            let mut failed = vec![];
            for block in runs(page) {
                let mut shell = Command::new("bash");
                shell
                    .args(["-euo", "pipefail", "-c", &with_finished_runs(&block.text)])
                    .current_dir(folder.path())
                    .env("PATH", &path);
                let out = shell.output().expect("bash runs");
                if !out.status.success() {
                    failed.push(format!("{}:\n{}{}", block.place, block.text, words(&out)));
                }
            }
            failed
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Returns the example of `SHARED` that a command runs with the options of its test.
fn shared_run(line: &str) -> Option<&str> {
    let name = line.strip_prefix("galamost --pipeline ")?.strip_suffix(".ron --device cpu")?;
    SHARED.contains(&name).then_some(name)
}

/// Replaces the run of an example, which its test does with the same options, by a copy of that run's files.
fn with_finished_runs(text: &str) -> String {
    let line =
        |l: &str| shared_run(l).map_or(format!("{l}\n"), |name| format!("cp -r '{}/.' .\n", finished(name).display()));
    text.lines().map(line).collect()
}

/// The simple commands of a shell block, as words. Comments and variables before a command are dropped.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut found = vec![];
    for line in text.replace("\\\n", " ").lines() {
        let mut command: Vec<String> = vec![];
        for word in shell_words(line) {
            let ends = matches!(word.as_str(), "&&" | "||" | "|" | ";" | "&" | "(" | ")");
            let assignment = word
                .split_once('=')
                .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
            if ends {
                found.push(std::mem::take(&mut command));
            } else if !(assignment && command.is_empty()) {
                command.push(word);
            }
        }
        found.push(command);
    }
    found.retain(|c| !c.is_empty());
    found
}

/// The words and operators of a line, without its comment.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![];
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(q), _) if c == q => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ' | '\t') => words.extend(word.take()),
            (None, '(' | ')' | ';') => {
                words.extend(word.take());
                words.push(c.to_string());
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Help texts of the program, by subcommand.
#[derive(Default)]
struct Helps {
    texts: Mutex<BTreeMap<Vec<String>, String>>,
}

impl Helps {
    /// Returns the help of a subcommand, or of the program.
    fn of(&self, subcommand: &[&str]) -> String {
        let key: Vec<String> = subcommand.iter().map(ToString::to_string).collect();
        let mut texts = self.texts.lock().expect("unpoisoned");
        let entry = texts.entry(key).or_insert_with(|| {
            let arguments: Vec<&str> = subcommand.iter().copied().chain(["--help"]).collect();
            String::from_utf8_lossy(&galamost(&repository(), &arguments).stdout).into_owned()
        });
        entry.clone()
    }

    /// Whether a command is one of the program's or of cargo's; an error if that has no such subcommand or option.
    fn examine(&self, command: &[String]) -> Result<bool, String> {
        let arguments: Vec<&str> = command[1..].iter().map(String::as_str).collect();
        match command[0].as_str() {
            "galamost" | "target/release/galamost" => self.examine_galamost(&arguments).map(|()| true),
            "cargo" => examine_cargo(&arguments).map(|()| true),
            _ => Ok(false),
        }
    }

    fn examine_galamost(&self, arguments: &[&str]) -> Result<(), String> {
        let mut subcommand: Vec<&str> = vec![];
        // a subcommand comes first; without one, options of a run follow; `table` has subcommands
        while let Some(next) = arguments.get(subcommand.len()).filter(|a| !a.starts_with('-')) {
            if !listed(&self.of(&subcommand), next) {
                break;
            }
            subcommand.push(next);
        }
        if subcommand.is_empty() && arguments.first().is_some_and(|a| !a.starts_with('-')) {
            return Err(format!("there is no command `{}`", arguments[0]));
        }
        let help = self.of(&subcommand);
        for option in arguments.iter().filter(|a| is_option(a)) {
            let name = option.split('=').next().unwrap_or(option);
            if !options(&help).any(|o| o == name || (name.len() > 2 && !name.starts_with("--") && name.starts_with(o)))
            {
                return Err(format!("there is no option `{name}`"));
            }
        }
        Ok(())
    }
}

/// Whether a word is an option and no number or direction such as `-1` and `-y`, which are values.
fn is_option(word: &str) -> bool {
    let name = word.trim_start_matches('-');
    word.starts_with("--") && !name.is_empty() || matches!(word, "-v" | "-vv" | "-q" | "-h" | "-V")
}

/// Whether a help text lists a subcommand: two spaces, then its name.
fn listed(help: &str, name: &str) -> bool {
    let entry = |l: &&str| l.starts_with("  ") && !l.starts_with("   ");
    help.lines().filter(entry).any(|l| l.split_whitespace().next() == Some(name))
}

/// The options that a help text has: `-q, --quiet` has two.
fn options(help: &str) -> impl Iterator<Item = &str> {
    let lines = help.lines().map(str::trim_start).filter(|l| l.starts_with('-'));
    lines.flat_map(|l| {
        l.split_whitespace().take_while(|w| w.starts_with('-')).map(|w| {
            let end = w.find(|c: char| !(c.is_alphanumeric() || c == '-')).unwrap_or(w.len());
            &w[..end]
        })
    })
}

/// Checks that a command of cargo exists.
fn examine_cargo(arguments: &[&str]) -> Result<(), String> {
    match arguments {
        ["xtask", name, ..] if xtask::USAGE.contains(&format!("cargo xtask {name} ")) => Ok(()),
        ["build" | "check" | "test" | "doc" | "install" | "clippy" | "fmt" | "run" | "clean", ..] => Ok(()),
        _ => Err("not a command that the book may use".into()),
    }
}

#[test]
fn shell_lines_are_split() {
    let text = "(cd x && A=1 cargo test) # why\ngalamost table make 'Lj(r: \"a b\")' --pair A A \\\n  --out b\n";
    let expected: [&[&str]; 3] = [
        &["cd", "x"],
        &["cargo", "test"],
        &["galamost", "table", "make", "Lj(r: \"a b\")", "--pair", "A", "A", "--out", "b"],
    ];
    assert_eq!(commands(text), expected);
}
