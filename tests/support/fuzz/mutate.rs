//! Changes of an input: of its bytes, and of the tokens of a text. An input depends only on the seed, the target and its
//! number, so that a finding can be made again.

/// Numbers of a generator that needs no seed from the clock.
#[derive(Clone, Debug)]
pub struct Draws(u64);

impl Draws {
    /// The numbers of an input.
    pub fn new(seed: u64, target: &str, number: u64) -> Self {
        let name =
            target.bytes().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        let mut d = Self(0);
        for word in [seed, name, number] {
            d.0 = (d.0 ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
            d.0 = (d.0 ^ (d.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            d.0 = (d.0 ^ (d.0 >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            d.0 ^= d.0 >> 31;
        }
        d.0 = d.0.max(1);
        d
    }

    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }

    /// One of a list.
    pub fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// Words that are wrong in most places.
const WORDS: [&[u8]; 16] = [
    b"nan",
    b"-1",
    b"0",
    b"1e308",
    b"4294967296",
    b"99999999999999999999",
    b"\"",
    b"(",
    b")",
    b"<",
    b"[]",
    b"{}",
    b"\0",
    b"\n",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\xc3\x28",
];

/// Numbers at the limits of what a field may take.
const NUMBERS: [&[u8]; 26] = [
    b"0",
    b"-0",
    b"-1",
    b"1",
    b"2",
    b"3.5",
    b"1e-320",
    b"-1e-9",
    b"1e-9",
    b"0.1",
    b"1e9",
    b"1e18",
    b"1e38",
    b"1e39",
    b"1e308",
    b"-1e308",
    b"1e999",
    b"NaN",
    b"inf",
    b"-inf",
    b"2147483648",
    b"4294967295",
    b"9007199254740993",
    b"18446744073709551615",
    b"99999999999999999999",
    b"0x7f",
];

/// One to four changes of a seed.
pub fn mutated(seed: &[u8], others: &[Vec<u8>], draws: &mut Draws) -> Vec<u8> {
    let mut out = seed.to_vec();
    let text = std::str::from_utf8(seed).is_ok();
    for _ in 0..1 + draws.below(4) {
        if text && draws.below(3) > 0 {
            change_tokens(&mut out, others, draws);
        } else {
            change_bytes(&mut out, others, draws);
        }
    }
    out
}

/// Changes bytes, pieces, words, the end.
fn change_bytes(out: &mut Vec<u8>, others: &[Vec<u8>], draws: &mut Draws) {
    let at = draws.below(out.len());
    match draws.below(7) {
        0 if !out.is_empty() => out[at] ^= 1 << draws.below(8),
        1 if !out.is_empty() => out[at] = draws.below(256) as u8,
        2 => out.truncate(at),
        3 => {
            let end = (at + draws.below(40)).min(out.len());
            out.drain(at..end);
        }
        4 => {
            let word = draws.of(&WORDS);
            let end = (at + draws.below(word.len() + 1)).min(out.len());
            out.splice(at..end, word.iter().copied());
        }
        5 => {
            let piece: Vec<u8> = out[at..(at + draws.below(60)).min(out.len())].to_vec();
            let to = draws.below(out.len());
            out.splice(to..to, piece);
        }
        _ => {
            let other = draws.of(others);
            let from = draws.below(other.len());
            let piece = &other[from..(from + draws.below(80)).min(other.len())];
            out.splice(at..at, piece.iter().copied());
        }
    }
}

/// A word, a number, a text in quotation marks, or a single other byte.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Token {
    begin: usize,
    end: usize,
    first: u8,
}

impl Token {
    fn is_number(self) -> bool {
        self.first.is_ascii_digit() || self.first == b'-'
    }
    fn closing(self) -> Option<u8> {
        [(b'(', b')'), (b'[', b']'), (b'{', b'}'), (b'<', b'>')].iter().find(|p| p.0 == self.first).map(|p| p.1)
    }
}

fn tokens(text: &[u8]) -> Vec<Token> {
    let word = |b: u8| b.is_ascii_alphanumeric() || b"_.+-".contains(&b);
    let (mut all, mut k) = (vec![], 0);
    while k < text.len() {
        let first = text[k];
        let length = match first {
            b if word(b) => text[k..].iter().take_while(|b| word(**b)).count(),
            b'"' => text[k + 1..].iter().position(|b| *b == b'"').map_or(1, |n| n + 2),
            _ => 1,
        };
        if !first.is_ascii_whitespace() {
            all.push(Token { begin: k, end: k + length, first });
        }
        k += length;
    }
    all
}

/// The token that closes a bracket.
fn partner(all: &[Token], open: usize) -> Option<usize> {
    let close = all[open].closing()?;
    let mut depth = 0usize;
    for (k, t) in all.iter().enumerate().skip(open) {
        if t.first == all[open].first {
            depth += 1;
        } else if t.first == close {
            depth -= 1;
            if depth == 0 {
                return Some(k);
            }
        }
    }
    None
}

/// Changes numbers, names and brackets.
fn change_tokens(out: &mut Vec<u8>, others: &[Vec<u8>], draws: &mut Draws) {
    let all = tokens(out);
    if all.is_empty() {
        return;
    }
    let pick = |draws: &mut Draws, good: &dyn Fn(&Token) -> bool| {
        let start = draws.below(all.len());
        (0..all.len()).map(|k| (start + k) % all.len()).find(|k| good(&all[*k]))
    };
    match draws.below(8) {
        // weighted: numbers are what fields check
        0..=2 => {
            let Some(k) = pick(draws, &|t| t.is_number()) else { return };
            let number = draws.of(&NUMBERS);
            out.splice(all[k].begin..all[k].end, number.iter().copied());
        }
        3 => {
            let mut two = [draws.below(all.len()), draws.below(all.len())];
            two.sort_unstable();
            let [a, b] = two.map(|k| all[k]);
            if a != b {
                let (x, y) = (out[a.begin..a.end].to_vec(), out[b.begin..b.end].to_vec());
                out.splice(b.begin..b.end, x);
                out.splice(a.begin..a.end, y);
            }
        }
        4 => {
            // a word of another input of the same kind
            let other = draws.of(others);
            let theirs = tokens(other);
            let mine = all[draws.below(all.len())];
            if !theirs.is_empty() {
                let t = draws.of(&theirs);
                out.splice(mine.begin..mine.end, other[t.begin..t.end].iter().copied());
            }
        }
        operation => {
            let Some(open) = pick(draws, &|t| t.closing().is_some()) else { return };
            let Some(close) = partner(&all, open) else { return };
            let (begin, end) = (all[open].begin, all[close].end);
            let group = out[begin..end].to_vec();
            match operation {
                // an empty list
                5 => drop(out.drain(all[open].end..all[close].begin)),
                // the same again
                6 => {
                    let comma = *draws.of(&[&b","[..], b"", b"\n"]);
                    out.splice(end..end, comma.iter().copied().chain(group));
                }
                _ => {
                    // deep nesting takes long, so it is rare
                    let depth = if draws.below(256) == 0 { 20_000 } else { *draws.of(&[1, 1, 2, 2, 5, 100]) };
                    let (left, right) = (vec![group[0]; depth], vec![group[group.len() - 1]; depth]);
                    out.splice(end..end, right);
                    out.splice(begin..begin, left);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_made_again_and_differ() {
        let seed = b"(a: 1, b: [(\"x y\", -2.5e3)], c: {\"k\": (d: 4)})".to_vec();
        let others = vec![seed.clone(), b"Lattice(cells: [1, 2])".to_vec()];
        let make = |k| mutated(&seed, &others, &mut Draws::new(7, "pipeline", k));
        let all: std::collections::BTreeSet<Vec<u8>> = (0..500).map(make).collect();
        assert!(all.len() > 350, "{}", all.len());
        assert_eq!(make(123), make(123));
        let list = tokens(&seed);
        let words: Vec<&[u8]> = list.iter().map(|t| &seed[t.begin..t.end]).collect();
        assert_eq!(&words[..8], [&b"("[..], b"a", b":", b"1", b",", b"b", b":", b"["]);
        assert!(words.contains(&&b"\"x y\""[..]) && words.contains(&&b"-2.5e3"[..]));
        assert_eq!(partner(&list, 0), Some(list.len() - 1));
    }
}
