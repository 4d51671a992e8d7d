//! `cargo xtask docs`: builds the book. Pages are staged under `target/docs/src`, so that they can use files of the whole
//! repository: pictures are copied, includes get absolute paths, and links to other files become links to the repository.

use crate::links::{self, GENERATED, Link, LinkKind, PAGES};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Web address of the repository.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");
/// Line of SUMMARY.md that is replaced by the list of generated pages.
const PLACEHOLDER: &str = "<!-- components -->";

/// Builds the book with the pages of this program's components, and returns the folder with its pages.
///
/// # Errors
/// Returns an error if the program or mdbook is missing, if a link is broken, or if mdbook fails.
pub fn build(root: &Path, program: &Path) -> Result<PathBuf, String> {
    let work = crate::target(root).join("docs");
    let generated = work.join("components");
    generate(program, &generated)?;
    let broken = links::check(root, Some(&generated))?;
    if !broken.is_empty() {
        return Err(format!("{}\n{} broken links", broken.join("\n"), broken.len()));
    }
    stage(root, &generated, &work)?;
    mdbook(&work)?;
    Ok(work.join("book"))
}

/// Returns whether the program `mdbook` is installed.
#[must_use]
pub fn has_mdbook() -> bool {
    Command::new("mdbook").arg("--version").output().is_ok_and(|o| o.status.success())
}

/// Writes the pages of all components with `galamost plugins --markdown`.
///
/// # Errors
/// Returns an error if the program is missing or fails.
pub fn generate(program: &Path, to: &Path) -> Result<(), String> {
    if !program.exists() {
        return Err(format!("{}: no such program; run `cargo build --release` first", program.display()));
    }
    recreate(to)?;
    run(Command::new(program).args(["plugins", "--markdown"]).arg(to))
}

/// Writes the sources of the book, as mdbook reads them, under `to`.
///
/// # Errors
/// Returns an error if a file cannot be read or written.
pub fn stage(root: &Path, generated: &Path, to: &Path) -> Result<(), String> {
    let pages = root.join(PAGES);
    let staged = to.join("src");
    recreate(&staged)?;
    copy_tree(&pages, &staged)?;
    copy_tree(generated, &staged.join(GENERATED))?;
    let list = staged.join(GENERATED).join("SUMMARY.md");
    let summary = with_components(&read(&pages.join("SUMMARY.md"))?, &read(&list)?);
    write(&staged.join("SUMMARY.md"), &summary)?;
    std::fs::remove_file(&list).map_err(|e| format!("{}: {e}", list.display()))?;
    copy(&root.join("docs/book.toml"), &to.join("book.toml"))?;
    rewrite(root, &pages, &pages, &staged)?;
    let components = staged.join("reference/components.md");
    write(&components, &with_page_links(&read(&components)?, &summary))
}

/// Links the names in the list of components to the generated pages: `pair-dpd.md` for `Dpd` below "Pair potentials".
fn with_page_links(list: &str, summary: &str) -> String {
    let mut out = String::new();
    let mut kind = String::new();
    for line in list.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            let word = heading.split_whitespace().next().unwrap_or_default().to_lowercase();
            kind = word.strip_suffix('s').unwrap_or(&word).to_string();
        }
        let row = line.strip_prefix("| `").and_then(|rest| rest.split_once('`'));
        let page = row.and_then(|(name, _)| {
            let start = format!("[{name}]({GENERATED}/{kind}-");
            let (_, rest) = summary.split_once(&start)?;
            Some(format!("components/{kind}-{}", rest.split_once(')')?.0))
        });
        match (row, page) {
            (Some((name, rest)), Some(page)) => out += &format!("| [`{name}`]({page}){rest}\n"),
            _ => out += &format!("{line}\n"),
        }
    }
    out
}

/// Replaces the placeholder by the list of generated pages, one level below the page before it.
fn with_components(summary: &str, list: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let entries: Vec<&str> = list.lines().filter(|l| l.trim_start().starts_with(['-', '*'])).collect();
    let least = entries.iter().map(|l| indent(l)).min().unwrap_or(0);
    let mut nested = String::new();
    for line in entries {
        let line = match line.split_once("](") {
            Some((text, target)) if !target.contains('/') => format!("{text}]({GENERATED}/{target}"),
            _ => line.to_string(),
        };
        nested += &format!("  {}\n", &line[least..]);
    }
    summary.replace(&format!("{PLACEHOLDER}\n"), &nested)
}

/// Rewrites the links of all pages under a folder that leave the book.
fn rewrite(root: &Path, pages: &Path, folder: &Path, staged: &Path) -> Result<(), String> {
    for entry in std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?.filter_map(Result::ok) {
        let path = entry.path();
        let to = staged.join(path.strip_prefix(pages).unwrap_or(&path));
        if path.is_dir() {
            rewrite(root, pages, &path, staged)?;
        } else if path.extension().is_some_and(|e| e == "md") && entry.file_name() != "SUMMARY.md" {
            write(&to, &page(root, pages, &path, staged)?)?;
        }
    }
    Ok(())
}

/// Returns the text of a page whose links work inside the book.
fn page(root: &Path, pages: &Path, path: &Path, staged: &Path) -> Result<String, String> {
    let text = read(path)?;
    let folder = path.parent().unwrap_or(pages);
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    // in reverse order, so that earlier positions remain valid
    for link in links::links(&text).iter().rev() {
        if let Some(target) = new_target(root, pages, folder, link, staged)? {
            lines[link.line - 1].replace_range(link.at..link.at + link.target.len(), &target);
        }
    }
    Ok(lines.join("\n") + "\n")
}

/// Returns the target that replaces a link which leaves the book.
fn new_target(root: &Path, pages: &Path, folder: &Path, link: &Link, staged: &Path) -> Result<Option<String>, String> {
    if links::external(&link.target) || link.target.starts_with('#') {
        return Ok(None);
    }
    let (path, anchor) = link.target.split_once('#').unwrap_or((&link.target, ""));
    let file = links::normal(&folder.join(path));
    if file.starts_with(pages) && link.kind != LinkKind::Include {
        return Ok(None);
    }
    let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
    match link.kind {
        LinkKind::Include => Ok(Some(file.to_string_lossy().into_owned())),
        LinkKind::Picture => {
            let copied = Path::new("images").join(name.replace('/', "-"));
            copy(&file, &staged.join(&copied))?;
            let up = "../".repeat(folder.strip_prefix(pages).unwrap_or(folder).components().count());
            Ok(Some(format!("{up}{}", copied.display())))
        }
        LinkKind::Page => {
            let kind = if file.is_dir() { "tree" } else { "blob" };
            let anchor = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
            Ok(Some(format!("{REPOSITORY}/{kind}/main/{name}{anchor}")))
        }
    }
}

/// Runs mdbook on a folder.
fn mdbook(folder: &Path) -> Result<(), String> {
    if !has_mdbook() {
        return Err(format!(
            "mdbook is not installed; run `cargo install mdbook --locked` and try again. The links are valid, and the pages are in {}",
            folder.join("src").display()
        ));
    }
    run(Command::new("mdbook").arg("build").arg(folder))
}

fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

/// Creates an empty folder, replacing an existing one.
fn recreate(folder: &Path) -> Result<(), String> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}

/// Copies a folder recursively.
///
/// # Errors
/// Returns an error if a file cannot be read or written.
pub fn copy_tree(from: &Path, to: &Path) -> Result<(), String> {
    std::fs::create_dir_all(to).map_err(|e| format!("{}: {e}", to.display()))?;
    for entry in std::fs::read_dir(from).map_err(|e| format!("{}: {e}", from.display()))?.filter_map(Result::ok) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            copy(&entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Copies a file and creates its folder.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    std::fs::copy(from, to).map(|_| ()).map_err(|e| format!("{} to {}: {e}", from.display(), to.display()))
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_pages_join_the_contents() {
        let list = "# Title\n  - [Dpd](pair-dpd.md)\n    - [X](reference/components/x.md)\n";
        let summary = with_components("- [A](a.md)\n<!-- components -->\n- [B](b.md)\n", list);
        let expected = "- [A](a.md)\n  - [Dpd](reference/components/pair-dpd.md)\n    - [X](reference/components/x.md)\n- [B](b.md)\n";
        assert_eq!(summary, expected);
    }

    #[test]
    fn names_of_components_become_links() {
        let summary =
            "  - [Gsd](reference/components/generator-gsd.md)\n  - [Gsd](reference/components/analyzer-gsd.md)\n";
        let list = "## Analyzers\n\n| name | plugin |\n|---|---|\n| `Gsd` | formats |\n| `Rdf` | analyzers |\n";
        let linked = with_page_links(list, summary);
        assert_eq!(linked, list.replace("`Gsd`", "[`Gsd`](components/analyzer-gsd.md)"));
    }

    #[test]
    fn links_that_leave_the_book_are_rewritten() {
        let root = std::env::temp_dir().join(format!("galamost-docs-{}", std::process::id()));
        let pages = root.join(PAGES);
        std::fs::create_dir_all(pages.join("t")).expect("a folder");
        std::fs::write(root.join("p.png"), "picture").expect("written");
        let text = "![p](../../../p.png) [r](../../../R.md#a) [a](../a.md)\n```ron\n{{#include ../../../e.ron}}\n```\n";
        std::fs::write(pages.join("t/x.md"), text).expect("written");
        let staged = root.join("staged");
        let page = page(&root, &pages, &pages.join("t/x.md"), &staged).expect("rewritten");
        let copied = staged.join("images/p.png").exists();
        let root_name = root.display().to_string();
        std::fs::remove_dir_all(&root).expect("removed");
        let expected = format!(
            "![p](../images/p.png) [r]({REPOSITORY}/blob/main/R.md#a) [a](../a.md)\n```ron\n{{{{#include {root_name}/e.ron}}}}\n```\n"
        );
        assert_eq!(page, expected);
        assert!(copied);
    }
}
