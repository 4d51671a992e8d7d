//! Short notation of molecules.
//!
//! `A5B5`: five beads of type A, then five of type B, each bonded to the one before. A type is a capital letter followed by
//! lowercase letters or `_`. `A4(B3)A4`: a branch at the bead before the parenthesis, from which the main chain also
//! continues. `{A2B}5`: five repeats of the part in braces. `A[1]A8A[1]`: beads with the same mark are bonded, here to a
//! ring of ten. Blanks are ignored.

/// A molecule: types of beads, and bonds that form a tree plus ring closures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Molecule {
    /// Type name of each bead.
    pub beads: Vec<String>,
    /// For each bead except the first, the earlier bead that it is bonded to.
    pub parents: Vec<usize>,
    /// Bonds that close rings; the second bead is the later one.
    pub closures: Vec<[usize; 2]>,
}

/// Maximum number of beads of a molecule.
const MAX_BEADS: usize = 1_000_000;

/// The parser.
struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    molecule: Molecule,
    /// Beads with an open mark.
    marks: std::collections::BTreeMap<u32, usize>,
}

impl Molecule {
    /// Parses the notation.
    ///
    /// # Errors
    /// Returns an error with the position of the character if the notation is invalid.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut p = Parser { text: text.as_bytes(), at: 0, molecule: Self::default(), marks: Default::default() };
        p.sequence(None)?;
        if let Some(c) = p.peek() {
            return Err(p.error(&format!("`{}` has no opening bracket", c as char)));
        }
        if let Some(mark) = p.marks.keys().next() {
            return Err(format!("`{text}`: only one bead has the mark [{mark}]; mark a second bead to close the ring"));
        }
        if p.molecule.beads.is_empty() {
            return Err("a molecule needs at least one bead, as in \"A10\"".into());
        }
        Ok(p.molecule)
    }

    /// Returns all bonds.
    pub fn bonds(&self) -> Vec<[usize; 2]> {
        let tree = (1..self.beads.len()).map(|i| [self.parents[i], i]);
        tree.chain(self.closures.iter().copied()).collect()
    }

    /// Returns for each bead the beads that it is bonded to, in ascending order.
    pub fn neighbors(&self) -> Vec<Vec<usize>> {
        let mut of = vec![vec![]; self.beads.len()];
        for [a, b] in self.bonds() {
            of[a].push(b);
            of[b].push(a);
        }
        of.iter_mut().for_each(|list: &mut Vec<usize>| list.sort_unstable());
        of
    }

    /// Returns all angles, each once; the second bead is the middle one.
    pub fn angles(&self) -> Vec<[usize; 3]> {
        let of = self.neighbors();
        let mut out = vec![];
        for (j, list) in of.iter().enumerate() {
            for (k, a) in list.iter().enumerate() {
                out.extend(list[k + 1..].iter().map(|b| [*a, j, *b]));
            }
        }
        out
    }

    /// Returns all dihedrals, each once.
    pub fn dihedrals(&self) -> Vec<[usize; 4]> {
        let of = self.neighbors();
        let mut out = vec![];
        for [b, c] in self.bonds() {
            for a in of[b].iter().filter(|a| **a != c) {
                out.extend(of[c].iter().filter(|d| **d != b && *d != a).map(|d| [*a, b, c, *d]));
            }
        }
        out
    }
}

impl Parser<'_> {
    /// Returns an error message at the current character.
    fn error(&self, what: &str) -> String {
        format!("`{}`, character {}: {what}", String::from_utf8_lossy(self.text), self.at + 1)
    }

    /// Returns the next character that is not blank.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    /// Parses a number, if there is one.
    fn number(&mut self) -> Result<Option<u32>, String> {
        let begin = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if begin == self.at {
            return Ok(None);
        }
        let digits = String::from_utf8_lossy(&self.text[begin..self.at]).into_owned();
        match digits.parse() {
            Ok(n) if n > 0 && n as usize <= MAX_BEADS => Ok(Some(n)),
            _ => Err(self.error(&format!("expected a number from 1 to {MAX_BEADS}, found {digits}"))),
        }
    }

    /// Adds a bead, bonded to `to`, and returns its index.
    fn add(&mut self, name: &str, to: Option<usize>) -> Result<usize, String> {
        if self.molecule.beads.len() >= MAX_BEADS {
            return Err(self.error(&format!("a molecule has at most {MAX_BEADS} beads")));
        }
        self.molecule.beads.push(name.into());
        self.molecule.parents.push(to.unwrap_or(0));
        Ok(self.molecule.beads.len() - 1)
    }

    /// Parses up to a closing bracket or the end; the first bead is bonded to `last`. Returns the last bead of the main chain.
    fn sequence(&mut self, mut last: Option<usize>) -> Result<Option<usize>, String> {
        while let Some(c) = self.peek() {
            match c {
                b'A'..=b'Z' => last = self.beads(last)?,
                b'(' => {
                    let Some(from) = last else { return Err(self.error("a branch needs a bead before it")) };
                    self.at += 1;
                    self.sequence(Some(from))?;
                    self.close(b')')?;
                }
                b'{' => last = self.repeat(last)?,
                b'[' => self.mark(last)?,
                b')' | b'}' | b']' => return Ok(last),
                _ => return Err(self.error("expected a type (a capital letter), or one of ( ) { } [ ]")),
            }
        }
        Ok(last)
    }

    /// Parses a type with an optional number of beads.
    fn beads(&mut self, mut last: Option<usize>) -> Result<Option<usize>, String> {
        let begin = self.at;
        self.at += 1;
        while self.text.get(self.at).is_some_and(|c| c.is_ascii_lowercase() || *c == b'_') {
            self.at += 1;
        }
        let name = String::from_utf8_lossy(&self.text[begin..self.at]).into_owned();
        for _ in 0..self.number()?.unwrap_or(1) {
            last = Some(self.add(&name, last)?);
        }
        Ok(last)
    }

    /// Parses a part in braces as often as the number after it says.
    fn repeat(&mut self, mut last: Option<usize>) -> Result<Option<usize>, String> {
        let begin = self.at + 1;
        let mut left = None;
        loop {
            self.at = begin;
            let before = self.molecule.beads.len();
            last = self.sequence(last)?;
            if self.molecule.beads.len() == before {
                return Err(self.error("the braces contain no bead"));
            }
            self.close(b'}')?;
            let times = self.number()?.unwrap_or(1);
            let todo = left.unwrap_or(times) - 1;
            if todo == 0 {
                return Ok(last);
            }
            left = Some(todo);
        }
    }

    /// Parses a mark at the bead `last`; the second bead with a mark closes a ring.
    fn mark(&mut self, last: Option<usize>) -> Result<(), String> {
        let Some(from) = last else { return Err(self.error("a mark needs a bead before it")) };
        self.at += 1;
        let Some(mark) = self.number()? else { return Err(self.error("a mark must be a number, as in [1]")) };
        self.close(b']')?;
        match self.marks.remove(&mark) {
            None => drop(self.marks.insert(mark, from)),
            Some(to) if to == from || self.molecule.parents[from] == to => {
                return Err(self.error("a ring needs at least three beads"));
            }
            Some(to) => self.molecule.closures.push([to.min(from), to.max(from)]),
        }
        Ok(())
    }

    /// Consumes a closing bracket.
    fn close(&mut self, bracket: u8) -> Result<(), String> {
        if self.peek() != Some(bracket) {
            return Err(self.error(&format!("expected `{}`", bracket as char)));
        }
        self.at += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Molecule {
        Molecule::read(text).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn chains_branches_rings_and_repeats_are_read() {
        let m = read("A2 Bb3");
        assert_eq!(m.beads, ["A", "A", "Bb", "Bb", "Bb"]);
        assert_eq!(m.bonds(), [[0, 1], [1, 2], [2, 3], [3, 4]]);
        let m = read("NPG(C4)GC4");
        assert_eq!((m.beads.len(), m.bonds()[6], m.bonds()[10]), (12, [2, 7], [10, 11]));
        assert_eq!(m.angles().len(), 11);
        let ring = read("A[1]A8A[1]");
        assert_eq!(
            (ring.beads.len(), ring.bonds().len(), ring.angles().len(), ring.dihedrals().len()),
            (10, 10, 10, 10)
        );
        assert_eq!(read("{A2B}3").beads.concat(), "AABAABAAB");
        assert_eq!(read("A{A(B2)}2A").parents, [0, 0, 1, 2, 1, 4, 5, 4]);
        // a star
        assert_eq!(read("C(A2)(A2)(A2)").neighbors()[0], [1, 3, 5]);
    }

    #[test]
    fn errors_contain_the_position() {
        for (text, message) in [
            ("", "at least one bead"),
            ("A5b", "character 3: expected a type"),
            ("(A)", "character 1: a branch needs"),
            ("A(B", "expected `)`"),
            ("A)B", "character 2: `)` has no opening bracket"),
            ("A[1]A", "only one bead has the mark"),
            ("A[1]A[1]", "at least three"),
            ("A0", "from 1 to"),
            ("A{}3", "braces contain no bead"),
            ("{A}99999999", "from 1 to"),
        ] {
            let e = Molecule::read(text).expect_err(text);
            assert!(e.contains(message), "{text}: {e}");
        }
    }
}
