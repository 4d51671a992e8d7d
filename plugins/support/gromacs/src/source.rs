//! The text of a topology: follows `#include`, `#define` and `#ifdef`, and splits lines into words.

use galamost_plugin_api::error::{InputError, Position, nearest};
use galamost_plugin_api::input;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// The deepest nesting of included files.
const MAX_DEPTH: usize = 32;
/// The largest number of `#include` lines that are followed.
const MAX_INCLUDES: usize = 10_000;
/// The largest number of bytes of all files together.
const MAX_BYTES: usize = 256 << 20;
/// The largest number of words of a line with all macros expanded.
const MAX_WORDS: usize = 10_000;
/// The deepest nesting of macros in macros.
const MAX_MACROS: usize = 32;

/// Where a word or a line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At {
    file: u32,
    line: u32,
    column: u32,
}

/// A word. If a macro expands to it, its position is that of the macro's name.
#[derive(Clone, Debug)]
pub struct Word {
    pub text: String,
    pub at: At,
}

/// A line with words, or the directive `[ name ]`.
#[derive(Clone, Debug)]
pub struct Line {
    pub at: At,
    pub directive: Option<String>,
    pub words: Vec<Word>,
}

/// A topology with all its files.
#[derive(Debug, Default)]
pub struct Source {
    files: Vec<PathBuf>,
    pub lines: Vec<Line>,
    /// Names of the macros of the settings that neither a condition nor a line uses.
    unused: BTreeSet<String>,
    /// Names of conditions.
    conditions: BTreeSet<String>,
}

/// Where included files are searched, and what is defined from the start.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub folders: Vec<PathBuf>,
    /// `NAME` or `NAME=VALUE`.
    pub defines: Vec<String>,
}

type Result<T> = std::result::Result<T, InputError>;

impl Source {
    /// Reads a topology and all files that it includes.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, or a line of the preprocessor is invalid.
    pub fn read(path: &Path, settings: &Settings) -> Result<Self> {
        let mut macros = HashMap::new();
        for define in &settings.defines {
            let (name, value) = define.split_once('=').unwrap_or((define, ""));
            macros.insert(name.to_string(), value.split_whitespace().map(String::from).collect());
        }
        let source = Self { unused: macros.keys().cloned().collect(), ..Self::default() };
        let mut reader = Reader { source, macros, folders: &settings.folders, open: vec![], includes: 0, bytes: 0 };
        reader.file(path, None)?;
        Ok(reader.source)
    }

    /// Returns a warning for each macro of the settings that nothing uses.
    pub fn unused(&self) -> Vec<InputError> {
        let one = |name: &String| {
            let near = nearest(name, self.conditions.iter().map(String::as_str));
            let near = near.map_or(String::new(), |n| format!("; did you mean {n}?"));
            let message =
                format!("the macro {name} has no effect: neither a condition (#ifdef) nor a line uses it{near}");
            InputError::in_file(self.files.first().map_or(Path::new("topology"), PathBuf::as_path), None, message)
        };
        self.unused.iter().map(one).collect()
    }

    /// Returns an error at a position.
    pub fn error(&self, at: At, message: impl Into<String>) -> InputError {
        // a file without lines has no position
        let position = (at.line > 0).then_some(Position { line: at.line, column: at.column });
        let file = self.files.get(at.file as usize).map(PathBuf::as_path).unwrap_or(Path::new("topology"));
        InputError::in_file(file, position, message)
    }
}

impl Word {
    /// Returns the word as a finite number.
    ///
    /// # Errors
    /// Returns an error if it is none.
    pub fn real(&self, source: &Source) -> Result<f64> {
        let number = self.text.parse::<f64>().ok().filter(|x| x.is_finite());
        number.ok_or_else(|| source.error(self.at, format!("expected a number, found `{}`", self.text)))
    }

    /// Returns the word as a whole number that is not negative.
    ///
    /// # Errors
    /// Returns an error if it is none.
    pub fn whole(&self, source: &Source) -> Result<u32> {
        let number = self.text.parse::<u32>().ok();
        number.ok_or_else(|| source.error(self.at, format!("expected a whole number, found `{}`", self.text)))
    }
}

/// The branch of an `#ifdef`.
struct Branch {
    at: At,
    /// Whether lines are read.
    active: bool,
    otherwise: bool,
}

struct Reader<'a> {
    source: Source,
    macros: HashMap<String, Vec<String>>,
    folders: &'a [PathBuf],
    /// Files that are being read.
    open: Vec<PathBuf>,
    includes: usize,
    bytes: usize,
}

impl Reader<'_> {
    /// Reads a file, which `from` includes.
    fn file(&mut self, path: &Path, from: Option<At>) -> Result<()> {
        let refuse = |source: &Source, message: String| match from {
            Some(at) => source.error(at, message),
            None => InputError::in_file(path, None, message),
        };
        let text = input::text(path).map_err(|e| match e.at {
            Some(at) => InputError::in_file(path, Some(at), e.message),
            None => refuse(&self.source, format!("{}: {}", path.display(), e.message)),
        })?;
        let identity = std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
        if self.open.contains(&identity) {
            return Err(refuse(&self.source, format!("{} includes itself", path.display())));
        }
        self.bytes += text.len();
        if self.open.len() >= MAX_DEPTH || self.bytes > MAX_BYTES || self.includes > MAX_INCLUDES {
            let message =
                format!("too many included files: at most {MAX_INCLUDES}, {MAX_DEPTH} levels, and {MAX_BYTES} bytes");
            return Err(refuse(&self.source, message));
        }
        self.open.push(identity);
        let file = self.source.files.len() as u32;
        self.source.files.push(path.into());
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        self.text(&text, file, &folder)?;
        self.open.pop();
        Ok(())
    }

    /// Reads the text of a file.
    fn text(&mut self, text: &str, file: u32, folder: &Path) -> Result<()> {
        let mut branches: Vec<Branch> = vec![];
        let mut lines = text.lines().zip(1..);
        while let Some((line, number)) = lines.next() {
            let mut words = split(line, At { file, line: number, column: 0 });
            let mut last = line;
            // a backslash at the end continues the line
            while uncommented(last).trim_end().ends_with('\\') {
                if let Some(word) = words.last_mut() {
                    word.text.pop();
                }
                words.retain(|w| !w.text.is_empty());
                let Some((next, number)) = lines.next() else { break };
                words.extend(split(next, At { file, line: number, column: 0 }));
                last = next;
            }
            let Some(first) = words.first() else { continue };
            let at = first.at;
            if let Some(command) = first.text.strip_prefix('#') {
                // `# define` as `#define`
                let (command, rest) = match command {
                    "" => (words.get(1).map_or(String::new(), |w| w.text.clone()), words.get(2..).unwrap_or_default()),
                    _ => (command.to_string(), &words[1..]),
                };
                self.command(&command, rest, at, folder, &mut branches)?;
            } else if branches.iter().all(|b| b.active) {
                self.line(words, at)?;
            }
        }
        match branches.last() {
            Some(open) => Err(self.source.error(open.at, "this condition has no #endif in its file")),
            None => Ok(()),
        }
    }

    /// Adds a line of data or a directive.
    fn line(&mut self, words: Vec<Word>, at: At) -> Result<()> {
        let joined = || words.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ");
        if words[0].text.starts_with('[') {
            let all = joined();
            let name = all.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let Some((name, _)) = name else { return Err(self.source.error(at, "expected `]` in this line")) };
            let directive = Some(name.trim().to_string());
            self.source.lines.push(Line { at, directive, words: vec![] });
            return Ok(());
        }
        let mut expanded = vec![];
        for word in words {
            self.expand(word, 0, &mut expanded)?;
        }
        self.source.lines.push(Line { at, directive: None, words: expanded });
        Ok(())
    }

    /// Replaces a word by the value of its macro.
    fn expand(&mut self, word: Word, depth: usize, out: &mut Vec<Word>) -> Result<()> {
        let Some(value) = self.macros.get(&word.text).cloned() else {
            out.push(word);
            return Ok(());
        };
        self.source.unused.remove(&word.text);
        if depth == MAX_MACROS || out.len() + value.len() > MAX_WORDS {
            return Err(self.source.error(word.at, format!("the macro `{}` expands without end", word.text)));
        }
        for text in value {
            // as in C, a macro is not expanded in its own value
            let same = text == word.text;
            let inner = Word { text, at: word.at };
            if same { out.push(inner) } else { self.expand(inner, depth + 1, out)? }
        }
        Ok(())
    }

    /// Obeys a line of the preprocessor.
    fn command(
        &mut self,
        command: &str,
        words: &[Word],
        at: At,
        folder: &Path,
        branches: &mut Vec<Branch>,
    ) -> Result<()> {
        let active = branches.iter().all(|b| b.active);
        match command {
            "ifdef" | "ifndef" => {
                let name = self.name(words, command, at)?;
                let defined = self.macros.contains_key(&name.text);
                self.source.unused.remove(&name.text);
                self.source.conditions.insert(name.text.clone());
                branches.push(Branch { at, active: defined == (command == "ifdef"), otherwise: false });
            }
            "else" => match branches.last_mut() {
                Some(branch) if !branch.otherwise => (branch.active, branch.otherwise) = (!branch.active, true),
                _ => return Err(self.source.error(at, "#else without #ifdef or #ifndef")),
            },
            "endif" => match branches.pop() {
                Some(_) => {}
                None => return Err(self.source.error(at, "#endif without #ifdef or #ifndef")),
            },
            "define" if active => {
                let name = self.name(words, command, at)?.text.clone();
                self.macros.insert(name, words[1..].iter().map(|w| w.text.clone()).collect());
            }
            "undef" if active => {
                let name = self.name(words, command, at)?.text.clone();
                self.macros.remove(&name);
            }
            "include" if active => self.include(words, at, folder)?,
            "define" | "undef" | "include" => {}
            "error" if active => {
                let text = words.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ");
                return Err(self.source.error(at, format!("#error {text}")));
            }
            _ if active => {
                let message = format!(
                    "`#{command}` is not supported; the commands are #include, #define, #undef, #ifdef, #ifndef, #else and #endif"
                );
                return Err(self.source.error(at, message));
            }
            _ => {}
        }
        Ok(())
    }

    fn name<'w>(&self, words: &'w [Word], command: &str, at: At) -> Result<&'w Word> {
        words.first().ok_or_else(|| self.source.error(at, format!("#{command} needs a name")))
    }

    fn include(&mut self, words: &[Word], at: At, folder: &Path) -> Result<()> {
        let name = words.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ");
        let name = name.trim_matches(['"', '<', '>', '\'']);
        if name.is_empty() {
            return Err(self.source.error(at, "#include needs the name of a file"));
        }
        self.includes += 1;
        let places = std::iter::once(folder).chain(self.folders.iter().map(PathBuf::as_path));
        let found = places.map(|place| place.join(name)).find(|path| path.is_file());
        match found {
            Some(path) => self.file(&path, Some(at)),
            None => {
                let message =
                    format!("`{name}` is neither in the folder of this file nor in a folder of `include` (-I)");
                Err(self.source.error(at, message))
            }
        }
    }
}

/// Returns a line without its comment.
fn uncommented(line: &str) -> &str {
    line.split_once(';').map_or(line, |(before, _)| before)
}

/// Splits a line into words. `at` is the position of the line.
fn split(line: &str, at: At) -> Vec<Word> {
    let line = uncommented(line);
    let mut words: Vec<Word> = vec![];
    let mut inside = false;
    for (c, column) in line.chars().zip(1..) {
        if c.is_whitespace() {
            inside = false;
            continue;
        }
        if !inside {
            words.push(Word { text: String::new(), at: At { column, ..at } });
            inside = true;
        }
        if let Some(word) = words.last_mut() {
            word.text.push(c);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a topology of these files, lines joined with `|`.
    fn words(files: &[(&str, &str)], settings: &Settings) -> std::result::Result<String, String> {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("written");
        }
        let folders = settings.folders.iter().map(|f| folder.path().join(f)).collect();
        let settings = Settings { folders, ..settings.clone() };
        let source = Source::read(&folder.path().join(files[0].0), &settings);
        let line = |l: &Line| {
            let words: Vec<&str> = l.words.iter().map(|w| w.text.as_str()).collect();
            l.directive.clone().unwrap_or_else(|| words.join(" "))
        };
        let text = |d: InputError| d.to_string().replace(&format!("{}/", folder.path().display()), "");
        source.map(|s| s.lines.iter().map(line).collect::<Vec<_>>().join("|")).map_err(text)
    }

    #[test]
    fn conditions_and_macros() {
        let top = "#define BOND 1 0.5 k ; comment\n#define k 1250\n[ bonds ]\n 1 2 BOND\n#ifdef FLEX\nyes\n#ifdef NO\nno\n#else\n\
                   also\n#endif\n#else\nelse\n#endif\n#ifndef FLEX\n#unknown\nno\n#endif\nlong \\\nline\n#undef k\nk";
        let flexible = Settings { defines: vec!["FLEX".into()], ..Settings::default() };
        assert_eq!(words(&[("a.top", top)], &flexible).expect("read"), "bonds|1 2 1 0.5 1250|yes|also|long line|k");
        let e = words(&[("a.top", top)], &Settings::default()).expect_err("an unknown command");
        assert!(e.starts_with("a.top:16:1: `#unknown` is not supported"), "{e}");
        let stiff = Settings { defines: vec!["K=3 4".into()], ..Settings::default() };
        assert_eq!(words(&[("a.top", "K K K2")], &stiff).expect("read"), "3 4 3 4 K2");
    }

    #[test]
    fn included_files_are_found_and_bounded() {
        let folders = Settings { folders: vec!["ff".into()], ..Settings::default() };
        let all = [
            ("a.top", "#include \"sub/b.itp\"\n#include <d.itp>\nend"),
            ("sub/b.itp", "b\n#include \"c.itp\""),
            ("sub/c.itp", "c"),
            ("ff/d.itp", "d"),
        ];
        assert_eq!(words(&all, &folders).expect("read"), "b|c|d|end");
        for (files, message) in [
            (&[("a.top", "x\n #include \"b.itp\"")][..], "a.top:2:2: `b.itp` is neither in the folder of this file"),
            (&[("a.top", "#include \"a.top\"")], "a.top:1:1: a.top includes itself"),
            (&[("a.top", "#include \"b\""), ("b", "#include \"a.top\"")], "b:1:1: a.top includes itself"),
            (&[("a.top", "#include")], "a.top:1:1: #include needs the name of a file"),
            (&[("a.top", "#ifdef A\n#else\n#else\n#endif")], "a.top:3:1: #else without"),
            (&[("a.top", "#endif")], "a.top:1:1: #endif without"),
            (&[("a.top", "x\n#ifdef A\n")], "a.top:2:1: this condition has no #endif"),
            (&[("a.top", "#define a b\n#define b a\nx a")], "a.top:3:3: the macro `a` expands without end"),
            (&[("a.top", "[ bonds")], "a.top:1:1: expected `]`"),
        ] {
            let e = words(files, &Settings::default()).expect_err(message);
            assert!(e.contains(message), "{e}\n{message}");
        }
        // each file includes the next one ten times: 10³² lines
        let names: Vec<String> = (0..40).map(|k| format!("f{k}")).collect();
        let texts: Vec<String> = (1..41).map(|k| format!("#include \"f{k}\"\n").repeat(10)).collect();
        let deep: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
        assert!(words(&deep, &Settings::default()).expect_err("too deep").contains("too many included files"));
        let texts: Vec<String> =
            (1..9).map(|k| format!("#include \"f{k}\"\n").repeat(10)).chain(["x".into()]).collect();
        let wide: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
        assert!(words(&wide, &Settings::default()).expect_err("too many").contains("too many included files"));
        // a macro that doubles 32 times
        let bomb: String = (0..31).map(|k| format!("#define m{k} m{0} m{0}\n", k + 1)).collect();
        let e = words(&[("a.top", &format!("{bomb}m0"))], &Settings::default()).expect_err("a bomb");
        assert!(e.contains("expands without end"), "{e}");
    }
}
