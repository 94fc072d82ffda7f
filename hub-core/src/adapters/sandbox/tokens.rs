//! The words of a JavaScript source, without its comments and texts: enough to find names, not to understand them.

use std::{iter::Peekable, str::CharIndices};

/// A word of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'s> {
    /// A name, a keyword or one character of punctuation; a text, a number or a regular expression is `""`.
    pub text: &'s str,
    /// Line, from 1.
    pub line: u32,
    /// Column in that line, in characters from 1.
    pub column: u32,
    /// Brackets that are open around it.
    pub depth: usize,
}

impl Token<'_> {
    /// Whether it is a name or a keyword.
    pub fn is_name(&self) -> bool {
        self.text.starts_with(is_name_start)
    }
}

/// Keywords after which a slash begins a regular expression.
const BEFORE_EXPRESSION: [&str; 12] =
    ["return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "else", "do", "await"];

/// Reads a source. Whether a slash behind a closing bracket divides is a guess; so is what follows then.
pub fn tokens(source: &str) -> Vec<Token<'_>> {
    let chars = source.char_indices().peekable();
    let mut reader = Reader { source, chars, line: 1, column: 1, found: Vec::new(), open: Vec::new() };
    reader.read();
    reader.found
}

struct Reader<'s> {
    source: &'s str,
    chars: Peekable<CharIndices<'s>>,
    /// Place of the next character.
    line: u32,
    column: u32,
    found: Vec<Token<'s>>,
    /// Open brackets; `$` for the code in a template.
    open: Vec<char>,
}

impl Reader<'_> {
    fn read(&mut self) {
        while let Some(&(at, c)) = self.chars.peek() {
            let (line, column) = (self.line, self.column);
            let depth = self.open.len();
            self.next();
            let text = match c {
                _ if c.is_whitespace() => continue,
                '/' if self.is_next('/') => {
                    self.skip_while(|c| c != '\n');
                    continue;
                }
                '/' if self.is_next('*') => {
                    self.skip_comment();
                    continue;
                }
                '/' if self.is_expression_due() => {
                    self.skip_pattern();
                    ""
                }
                '"' | '\'' => {
                    self.skip_text(c);
                    ""
                }
                '`' => {
                    self.skip_template();
                    ""
                }
                '}' if self.open.last() == Some(&'$') => {
                    self.open.pop();
                    self.skip_template();
                    ""
                }
                _ if is_name_start(c) => {
                    self.skip_while(|c| is_name_start(c) || c.is_ascii_digit());
                    let end = self.place();
                    &self.source[at..end]
                }
                _ if c.is_ascii_digit() => {
                    self.skip_while(|c| c.is_alphanumeric() || c == '.' || c == '_');
                    ""
                }
                _ => {
                    match c {
                        '(' | '[' | '{' => self.open.push(c),
                        ')' | ']' | '}' => drop(self.open.pop()),
                        _ => {}
                    }
                    &self.source[at..at + c.len_utf8()]
                }
            };
            self.found.push(Token { text, line, column, depth });
        }
    }

    /// Byte of the next character.
    fn place(&mut self) -> usize {
        self.chars.peek().map_or(self.source.len(), |(at, _)| *at)
    }

    fn next(&mut self) -> Option<char> {
        let (_, c) = self.chars.next()?;
        if c == '\n' {
            (self.line, self.column) = (self.line + 1, 1);
        } else {
            self.column += 1;
        }
        Some(c)
    }

    fn is_next(&mut self, wanted: char) -> bool {
        self.chars.peek().is_some_and(|(_, c)| *c == wanted)
    }

    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        while self.chars.peek().is_some_and(|(_, c)| wanted(*c)) {
            self.next();
        }
    }

    fn skip_comment(&mut self) {
        self.next();
        while let Some(c) = self.next() {
            if c == '*' && self.is_next('/') {
                self.next();
                return;
            }
        }
    }

    /// Up to its end or that of the line, where a text that is not closed ends.
    fn skip_text(&mut self, quote: char) {
        while let Some(c) = self.next() {
            match c {
                '\\' => drop(self.next()),
                '\n' => return,
                _ if c == quote => return,
                _ => {}
            }
        }
    }

    /// Up to its end or the code within it.
    fn skip_template(&mut self) {
        while let Some(c) = self.next() {
            match c {
                '\\' => drop(self.next()),
                '`' => return,
                '$' if self.is_next('{') => {
                    self.next();
                    self.open.push('$');
                    return;
                }
                _ => {}
            }
        }
    }

    fn skip_pattern(&mut self) {
        let mut in_class = false;
        while let Some(c) = self.next() {
            match c {
                '\\' => drop(self.next()),
                '\n' => return,
                '[' => in_class = true,
                ']' => in_class = false,
                '/' if !in_class => break,
                _ => {}
            }
        }
        self.skip_while(char::is_alphabetic);
    }

    /// Whether an expression begins next, so that a slash does not divide.
    fn is_expression_due(&self) -> bool {
        self.found.last().is_none_or(|last| match last.text {
            "" | ")" | "]" | "}" => false,
            _ => !last.is_name() || BEFORE_EXPRESSION.contains(&last.text),
        })
    }
}

fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | '$')
}

/// Finds the first static `import`, which no plugin may use.
pub(super) fn static_import<'t, 's>(tokens: &'t [Token<'s>]) -> Option<&'t Token<'s>> {
    let follows = |at: usize| tokens.get(at + 1).map_or("", |token| token.text);
    let at = (0..tokens.len()).find(|at| {
        let is_statement = tokens[*at].text == "import" && tokens[*at].depth == 0;
        is_statement && !matches!(follows(*at), "(" | ".")
    })?;
    tokens.get(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str) -> Vec<String> {
        let found = tokens(source).into_iter().filter(Token::is_name);
        found.map(|token| format!("{}@{}:{}", token.text, token.line, token.column)).collect()
    }

    #[test]
    fn names_are_found_outside_of_comments_and_texts() {
        assert_eq!(
            names("// a b\nlet x = 'c \\' d' + \"e\"; /* f\ng */ é(1e3.x)\n"),
            ["let@2:1", "x@2:5", "é@3:6"]
        );
        assert_eq!(
            names("`a ${b + `c ${d}` + {e}.f} g` + h"),
            ["b@1:6", "d@1:15", "e@1:22", "f@1:25", "h@1:33"]
        );
        assert_eq!(
            names("x = /'[/]`/g.test(y) / z / w"),
            ["x@1:1", "test@1:14", "y@1:19", "z@1:24", "w@1:28"]
        );
        assert_eq!(
            names("return /a/; b(c) / d[0] / e"),
            ["return@1:1", "b@1:13", "c@1:15", "d@1:20", "e@1:27"]
        );
        assert_eq!(names("'open\nx `open"), ["x@2:1"]);
    }

    #[test]
    fn a_static_import_differs_from_a_call() {
        let place = |source: &str| {
            let tokens = tokens(source);
            static_import(&tokens).map(|token| (token.line, token.column))
        };
        assert_eq!(place("// import x\nx = 1;\n  import fs from 'fs'"), Some((3, 3)));
        assert_eq!(place("import 'x'"), Some((1, 1)));
        assert_eq!(place("import('x'); import.meta; f({ import: 1 })"), None);
    }
}
