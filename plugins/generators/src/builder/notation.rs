//! Molecules from a short notation.
//!
//! `A5B5`: five beads of type A, then five of type B, each bonded to the one before. A type is a capital letter and small letters
//! or `_` behind it. `A4(B3)A4`: a branch at the bead in front of the bracket, after which the main chain goes on there.
//! `{A2B}5`: what is in the bracket five times. `A[1]A8A[1]`: beads with the same mark are bonded, here to a ring of ten.
//! Blanks may stand anywhere.

/// A molecule: types of beads and bonds between them, the first of which hold it together as a tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Molecule {
    /// Name of the type of each bead.
    pub beads: Vec<String>,
    /// For each bead but the first the bead that it is bonded to and that comes before it.
    pub parents: Vec<usize>,
    /// Bonds that close rings; the second bead comes later.
    pub closures: Vec<[usize; 2]>,
}

/// Beads of a molecule, at most.
const MOST: usize = 1_000_000;

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    made: Molecule,
    marks: std::collections::BTreeMap<u32, usize>,
}

impl Molecule {
    /// Reads the notation.
    ///
    /// # Errors
    /// What is wrong, and at which character.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut r = Reader { text: text.as_bytes(), at: 0, made: Self::default(), marks: Default::default() };
        r.sequence(None)?;
        if let Some(c) = r.peek() {
            return Err(r.error(&format!("`{}` has no counterpart", c as char)));
        }
        if let Some(mark) = r.marks.keys().next() {
            return Err(format!("`{text}`: the mark [{mark}] stands at one bead only"));
        }
        if r.made.beads.is_empty() {
            return Err("a molecule needs at least one bead, as in \"A10\"".into());
        }
        Ok(r.made)
    }

    /// All bonds.
    pub fn bonds(&self) -> Vec<[usize; 2]> {
        let tree = (1..self.beads.len()).map(|i| [self.parents[i], i]);
        tree.chain(self.closures.iter().copied()).collect()
    }

    /// For each bead the beads that it is bonded to, in rising order.
    pub fn neighbors(&self) -> Vec<Vec<usize>> {
        let mut of = vec![vec![]; self.beads.len()];
        for [a, b] in self.bonds() {
            of[a].push(b);
            of[b].push(a);
        }
        of.iter_mut().for_each(|list: &mut Vec<usize>| list.sort_unstable());
        of
    }

    /// All angles, each once, the second bead in the middle.
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

    /// All dihedrals, each once.
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

impl Reader<'_> {
    fn error(&self, what: &str) -> String {
        format!("`{}`, character {}: {what}", String::from_utf8_lossy(self.text), self.at + 1)
    }

    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

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
            Ok(n) if n > 0 && n as usize <= MOST => Ok(Some(n)),
            _ => Err(self.error(&format!("a number from 1 to {MOST} was expected, and not {digits}"))),
        }
    }

    fn add(&mut self, name: &str, to: Option<usize>) -> Result<usize, String> {
        if self.made.beads.len() >= MOST {
            return Err(self.error(&format!("a molecule has at most {MOST} beads")));
        }
        self.made.beads.push(name.into());
        self.made.parents.push(to.unwrap_or(0));
        Ok(self.made.beads.len() - 1)
    }

    /// Beads up to a closing bracket or the end, the first of them bonded to `last`; gives the last bead of the main chain.
    fn sequence(&mut self, mut last: Option<usize>) -> Result<Option<usize>, String> {
        while let Some(c) = self.peek() {
            match c {
                b'A'..=b'Z' => {
                    let begin = self.at;
                    self.at += 1;
                    while self.text.get(self.at).is_some_and(|c| c.is_ascii_lowercase() || *c == b'_') {
                        self.at += 1;
                    }
                    let name = String::from_utf8_lossy(&self.text[begin..self.at]).into_owned();
                    for _ in 0..self.number()?.unwrap_or(1) {
                        last = Some(self.add(&name, last)?);
                    }
                }
                b'(' => {
                    let Some(from) = last else { return Err(self.error("a branch needs a bead in front of it")) };
                    self.at += 1;
                    self.sequence(Some(from))?;
                    self.close(b')')?;
                }
                b'{' => {
                    let begin = self.at + 1;
                    let mut left = None;
                    loop {
                        self.at = begin;
                        let before = self.made.beads.len();
                        last = self.sequence(last)?;
                        if self.made.beads.len() == before {
                            return Err(self.error("there is no bead in the bracket"));
                        }
                        self.close(b'}')?;
                        let times = self.number()?.unwrap_or(1);
                        let todo = left.unwrap_or(times) - 1;
                        if todo == 0 {
                            break;
                        }
                        left = Some(todo);
                    }
                }
                b'[' => {
                    let Some(from) = last else { return Err(self.error("a mark needs a bead in front of it")) };
                    self.at += 1;
                    let Some(mark) = self.number()? else { return Err(self.error("a mark is a number, as in [1]")) };
                    self.close(b']')?;
                    match self.marks.remove(&mark) {
                        None => drop(self.marks.insert(mark, from)),
                        Some(to) if to == from || self.made.parents[from] == to => {
                            return Err(self.error("a ring has at least three beads"));
                        }
                        Some(to) => self.made.closures.push([to.min(from), to.max(from)]),
                    }
                }
                b')' | b'}' | b']' => return Ok(last),
                _ => return Err(self.error("a type (a capital letter), (, {, [ or their ends were expected")),
            }
        }
        Ok(last)
    }

    fn close(&mut self, bracket: u8) -> Result<(), String> {
        if self.peek() != Some(bracket) {
            return Err(self.error(&format!("`{}` was expected", bracket as char)));
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
    fn mistakes_are_told_with_their_place() {
        for (text, said) in [
            ("", "at least one bead"),
            ("A5b", "character 3: a type"),
            ("(A)", "character 1: a branch needs"),
            ("A(B", "`)` was expected"),
            ("A)B", "character 2: `)` has no counterpart"),
            ("A[1]A", "stands at one bead only"),
            ("A[1]A[1]", "at least three"),
            ("A0", "from 1 to"),
            ("A{}3", "no bead in the bracket"),
            ("{A}99999999", "from 1 to"),
        ] {
            let e = Molecule::read(text).expect_err(text);
            assert!(e.contains(said), "{text}: {e}");
        }
    }
}
