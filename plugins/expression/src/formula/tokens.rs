//! The words of a formula, each with its place.

/// A word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token<'a> {
    Number(f64),
    Name(&'a str),
    /// `+ - * / ^ ( ) , < <= > >=`
    Sign(&'a str),
    End,
}

impl Token<'_> {
    /// For messages.
    pub fn describe(&self) -> String {
        match self {
            Self::Number(x) => format!("`{x}`"),
            Self::Name(text) | Self::Sign(text) => format!("`{text}`"),
            Self::End => "the end of the formula".into(),
        }
    }
}

/// A mistake at a byte of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub at: usize,
    pub message: String,
}

impl Mistake {
    pub fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

/// The words of a text and the bytes at which they begin; the last one is [`Token::End`].
pub fn tokens(text: &str) -> Result<Vec<(Token<'_>, usize)>, Mistake> {
    let mut list = vec![];
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = |good: &dyn Fn(char) -> bool| rest.find(|c| !good(c)).unwrap_or(rest.len());
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        let (token, n) = if c.is_ascii_digit() || (c == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            let n = number_length(rest);
            let number = rest[..n].parse().map_err(|_| Mistake::new(at, format!("`{}` is no number", &rest[..n])))?;
            (Token::Number(number), n)
        } else if c.is_alphabetic() || c == '_' {
            let n = length(&|c| c.is_alphanumeric() || c == '_');
            (Token::Name(&rest[..n]), n)
        } else if rest.starts_with("<=") || rest.starts_with(">=") {
            (Token::Sign(&rest[..2]), 2)
        } else if "+-*/^(),<>".contains(c) {
            (Token::Sign(&rest[..1]), 1)
        } else {
            let hint = match c {
                '=' => "; a formula is the energy alone, without `U =`",
                '·' | '×' => "; multiply by `*`",
                '²' | '³' | '⁶' => "; powers are written as r^2",
                '[' | ']' | '{' | '}' => "; use round brackets",
                _ => "",
            };
            return Err(Mistake::new(at, format!("`{c}` has no meaning in a formula{hint}")));
        };
        list.push((token, at));
        at += n;
    }
    list.push((Token::End, text.len()));
    Ok(list)
}

/// Digits, a point, digits, and an exponent.
fn number_length(text: &str) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut n = digits(0);
    if text[n..].starts_with('.') {
        n += 1 + digits(n + 1);
    }
    if text[n..].starts_with(['e', 'E']) {
        let sign = usize::from(text[n + 1..].starts_with(['+', '-']));
        let exponent = digits(n + 1 + sign);
        // `2e` is the number 2 and the name e
        if exponent > 0 {
            n += 1 + sign + exponent;
        }
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_places() {
        let list = tokens("4*ε_1 <= 1.5e-3^.5").expect("words");
        let words: Vec<_> = list.iter().map(|(t, _)| t.describe()).collect();
        assert_eq!(words, ["`4`", "`*`", "`ε_1`", "`<=`", "`0.0015`", "`^`", "`0.5`", "the end of the formula"]);
        let at: Vec<_> = list.iter().map(|(_, at)| *at).collect();
        assert_eq!(at, [0, 1, 2, 7, 10, 16, 17, 19]);
        assert_eq!(tokens("r * [1]").expect_err("brackets").at, 4);
    }
}
