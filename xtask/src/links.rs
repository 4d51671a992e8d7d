//! Link check of the documentation. All relative links, images and includes of README.md, ARCHITECTURE.md and the book's
//! pages must resolve, and each page must be in the table of contents.

use std::path::{Component, Path, PathBuf};

/// The folder of the book's pages, relative to the repository.
pub const PAGES: &str = "docs/src";
/// The folder of generated pages, relative to [`PAGES`].
pub const GENERATED: &str = "reference/components";

/// A link in a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Line in the page, from 1.
    pub line: usize,
    /// Byte position of the target in its line.
    pub at: usize,
    /// Target as written, without a title.
    pub target: String,
    /// What kind of link it is.
    pub kind: LinkKind,
}

/// The kinds of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// A link to a page or a file.
    Page,
    /// A picture.
    Picture,
    /// A file that mdBook inserts.
    Include,
}

/// Checks README.md, ARCHITECTURE.md, and the pages of the book. Returns one message per broken link.
///
/// `generated` is the folder with the generated pages of components. Without it, links to these pages are not checked.
///
/// # Errors
/// Returns an error if a page cannot be read.
pub fn check(root: &Path, generated: Option<&Path>) -> Result<Vec<String>, String> {
    let pages = root.join(PAGES);
    let mut files = vec![root.join("README.md"), root.join("ARCHITECTURE.md")];
    let first = files.len();
    markdown(&pages, &mut files)?;
    let mut broken = vec![];
    for file in &files {
        let text = read(file)?;
        let folder = file.parent().unwrap_or(root);
        let name = file.strip_prefix(root).unwrap_or(file).display();
        for link in links(&text) {
            if let Err(why) = resolve(&link, file, folder, &text, &pages, generated) {
                broken.push(format!("{name}:{}: {}: {why}", link.line, link.target));
            }
        }
    }
    let summary = pages.join("SUMMARY.md");
    let listed: Vec<PathBuf> = links(&read(&summary)?).iter().map(|l| pages.join(&l.target)).collect();
    for file in files[first..].iter().filter(|f| **f != summary && !f.starts_with(pages.join(GENERATED))) {
        if !listed.contains(file) {
            broken.push(format!("{}: not in SUMMARY.md", file.strip_prefix(root).unwrap_or(file).display()));
        }
    }
    Ok(broken)
}

/// Checks one link of a page.
fn resolve(
    link: &Link,
    file: &Path,
    folder: &Path,
    text: &str,
    pages: &Path,
    generated: Option<&Path>,
) -> Result<(), String> {
    if external(&link.target) {
        return Ok(());
    }
    let (path, anchor) = link.target.split_once('#').map_or((link.target.as_str(), None), |(p, a)| (p, Some(a)));
    let mut target = if path.is_empty() { file.to_path_buf() } else { normal(&folder.join(path)) };
    if let Ok(page) = target.strip_prefix(pages.join(GENERATED)) {
        match generated {
            Some(folder) => target = folder.join(page),
            None => return Ok(()),
        }
    }
    if !target.exists() {
        return Err("no such file".into());
    }
    let (Some(anchor), true) = (anchor, target.extension().is_some_and(|e| e == "md")) else { return Ok(()) };
    let page = if path.is_empty() { text.to_string() } else { read(&target)? };
    if anchors(&page).iter().any(|a| a == anchor) { Ok(()) } else { Err(format!("no heading #{anchor}")) }
}

/// Returns whether a target is outside the repository (web or mail).
#[must_use]
pub fn external(target: &str) -> bool {
    ["http://", "https://", "mailto:"].iter().any(|p| target.starts_with(p))
}

/// Returns the links of a page. Code is skipped, except for includes.
#[must_use]
pub fn links(text: &str) -> Vec<Link> {
    let mut found = vec![];
    let mut fence: Option<&str> = None;
    for (number, line) in text.lines().enumerate() {
        let line_number = number + 1;
        for (at, _) in line.match_indices("{{#include ") {
            let start = at + "{{#include ".len();
            let Some(end) = line[start..].find("}}") else { continue };
            let target = line[start..start + end].trim().to_string();
            found.push(Link { line: line_number, at: start, target, kind: LinkKind::Include });
        }
        let trimmed = line.trim_start();
        if let Some(mark) = fence {
            if trimmed.starts_with(mark) && trimmed.trim_start_matches(['`', '~']).trim().is_empty() {
                fence = None;
            }
            continue;
        }
        if let Some(mark) = ["```", "~~~"].into_iter().find(|m| trimmed.starts_with(m)) {
            fence = Some(mark);
            continue;
        }
        let plain = without_code(line);
        for (at, _) in plain.match_indices("](") {
            let start = at + 2;
            let Some(end) = plain[start..].find(')') else { continue };
            let target = plain[start..start + end].split_whitespace().next().unwrap_or_default();
            // the text of the link may contain a picture: ![…](…)
            let picture = opening(&plain, at).is_some_and(|o| o > 0 && plain.as_bytes()[o - 1] == b'!');
            let kind = if picture { LinkKind::Picture } else { LinkKind::Page };
            if !target.is_empty() {
                found.push(Link { line: line_number, at: start, target: target.to_string(), kind });
            }
        }
    }
    found
}

/// Returns the position of the bracket that opens the text of a link, whose closing bracket is at `close`.
fn opening(line: &str, close: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in line[..close].char_indices().rev() {
        match c {
            ']' => depth += 1,
            '[' if depth == 0 => return Some(at),
            '[' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Replaces the characters of code spans by spaces; positions of other characters do not change.
fn without_code(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        let ticks = rest[start..].chars().take_while(|c| *c == '`').count();
        let mark = &rest[start..start + ticks];
        let Some(length) = rest[start + ticks..].find(mark) else { break };
        let end = start + ticks + length + ticks;
        out.push_str(&rest[..start]);
        out.extend(std::iter::repeat_n(' ', end - start));
        rest = &rest[end..];
    }
    out + rest
}

/// Returns the anchors of a page's headings, as generated by GitHub and mdBook.
#[must_use]
pub fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = vec![];
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if line.starts_with('#') && !fenced {
            let title = line.trim_start_matches('#').trim();
            let keep = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
            let slug: String = title.to_lowercase().chars().filter(keep).collect();
            let slug = slug.replace(' ', "-");
            let before = found.iter().filter(|a| **a == slug).count();
            found.push(if before == 0 { slug } else { format!("{slug}-{before}") });
        }
    }
    found
}

/// Lists the Markdown files under a folder, sorted.
fn markdown(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(Result::ok).map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            markdown(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "md") {
            files.push(path);
        }
    }
    Ok(())
}

/// Resolves `.` and `..` in a path without reading the disk.
#[must_use]
pub fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_and_code_is_skipped() {
        let text = "[`a`](b.md) and `[c](d.md)`\n```sh\n[e](f.md)\n{{#include ../g.ron}}\n```\n![h](i.png \"j\") [![k](l.svg)](m.md)\n";
        let found: Vec<(usize, String, LinkKind)> =
            links(text).into_iter().map(|l| (l.line, l.target, l.kind)).collect();
        let expected = [
            (1, "b.md", LinkKind::Page),
            (4, "../g.ron", LinkKind::Include),
            (6, "i.png", LinkKind::Picture),
            (6, "l.svg", LinkKind::Picture),
            (6, "m.md", LinkKind::Page),
        ];
        assert_eq!(found, expected.map(|(n, t, k)| (n, t.to_string(), k)));
    }

    #[test]
    fn headings_have_anchors() {
        let text = "# When a run fails\n## `galamost plot`, twice\n```sh\n# no heading\n```\n## When a run fails\n";
        assert_eq!(anchors(text), ["when-a-run-fails", "galamost-plot-twice", "when-a-run-fails-1"]);
    }

    #[test]
    fn broken_links_are_named() {
        let root = std::env::temp_dir().join(format!("galamost-links-{}", std::process::id()));
        let pages = root.join(PAGES);
        std::fs::create_dir_all(&pages).expect("a folder");
        std::fs::write(root.join("README.md"), "[ok](docs/src/a.md#title) [no](docs/src/a.md#other)\n")
            .expect("written");
        std::fs::write(root.join("ARCHITECTURE.md"), "[no](b.md)\n").expect("written");
        std::fs::write(pages.join("SUMMARY.md"), "- [A](a.md)\n").expect("written");
        std::fs::write(pages.join("a.md"), "# Title\n[later](reference/components/x.md)\n").expect("written");
        std::fs::write(pages.join("c.md"), "# C\n").expect("written");
        let broken = check(&root, None).expect("read");
        let generated = check(&root, Some(&root)).expect("read");
        std::fs::remove_dir_all(&root).expect("removed");
        let expected = [
            "README.md:1: docs/src/a.md#other: no heading #other",
            "ARCHITECTURE.md:1: b.md: no such file",
            "docs/src/c.md: not in SUMMARY.md",
        ];
        assert_eq!(broken, expected);
        assert_eq!(generated.len(), 4, "{generated:?}");
    }
}
