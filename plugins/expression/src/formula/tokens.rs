//! Tokens of a formula with their positions.

/// A token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token<'a> {
    Number(f64),
    Name(&'a str),
    /// `+ - * / ^ ( ) , < <= > >=`
    Sign(&'a str),
    End,
}

impl Token<'_> {
    /// Returns the token as messages show it.
    pub fn describe(&self) -> String {
        match self {
            Self::Number(x) => format!("`{x}`"),
            Self::Name(text) | Self::Sign(text) => format!("`{text}`"),
            Self::End => "the end of the formula".into(),
        }
    }
}

/// A syntax error at a byte offset of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormulaError {
    /// Byte offset.
    pub at: usize,
    pub message: String,
}

impl FormulaError {
    /// Creates an error at a byte offset.
    pub fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

/// Returns the tokens of a text with their byte offsets; the last one is [`Token::End`].
///
/// # Errors
/// Returns an error for an invalid character or number.
pub fn tokens(text: &str) -> Result<Vec<(Token<'_>, usize)>, FormulaError> {
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
            let number =
                rest[..n].parse().map_err(|_| FormulaError::new(at, format!("`{}` is not a number", &rest[..n])))?;
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
                '=' => "; write only the energy, without `U =`",
                '·' | '×' => "; multiply with `*`",
                '²' | '³' | '⁶' => "; write powers as r^2",
                '[' | ']' | '{' | '}' => "; use parentheses",
                _ => "",
            };
            return Err(FormulaError::new(at, format!("unexpected character `{c}` in a formula{hint}")));
        };
        list.push((token, at));
        at += n;
    }
    list.push((Token::End, text.len()));
    Ok(list)
}

/// Returns the length of a number: digits, a point, digits and an exponent.
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
    fn tokens_and_positions() {
        let list = tokens("4*ε_1 <= 1.5e-3^.5").expect("words");
        let words: Vec<_> = list.iter().map(|(t, _)| t.describe()).collect();
        assert_eq!(words, ["`4`", "`*`", "`ε_1`", "`<=`", "`0.0015`", "`^`", "`0.5`", "the end of the formula"]);
        let at: Vec<_> = list.iter().map(|(_, at)| *at).collect();
        assert_eq!(at, [0, 1, 2, 7, 10, 16, 17, 19]);
        assert_eq!(tokens("r * [1]").expect_err("brackets").at, 4);
    }
}
