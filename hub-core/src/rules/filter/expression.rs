//! Filter expressions in CEL, bounded before they ever run.
//!
//! CEL always ends, but nested macros can make it take arbitrarily long, and the crate's parser and evaluator
//! recurse: a deep expression would overflow the stack, which no handler catches. So an expression is parsed on
//! a thread with a stack for the worst case, and is refused unless its [cost] and depth are small.
//!
//! [cost]: super::cost

use std::{
    collections::HashMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock},
    thread,
};

use cel::{Context, Env, ExecutionError, Program, Value};

use crate::{
    filter::{FilterInput, cost},
    network::MessageKind,
    text::is_within,
};

/// Longest expression, in bytes.
pub const MAX_EXPRESSION: usize = 1024;
/// Most opening brackets. The parser limits the depth of some of its rules, and not of all.
const MAX_BRACKETS: usize = 96;
/// Enough for the parser at [`MAX_BRACKETS`] and [`MAX_EXPRESSION`] without optimisation; only what is used of
/// it becomes memory.
const PARSER_STACK: usize = 64 * 1024 * 1024;
/// Longest error text, in characters: the crate prints the values at fault.
const MAX_ERROR: usize = 200;

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// Message that expressions are tried on before they are accepted.
const SAMPLE: FilterInput<'static> = FilterInput {
    content: "hello",
    user_id: "user",
    user_name: "name",
    session_id: "session",
    kind: MessageKind::Text,
    timestamp: 1_700_000_000,
    bot_id: "bot_0",
    channel_id: "ch_0",
};

/// A compiled expression that is true or false for a message.
pub struct Expression(Program);

impl Expression {
    /// Compiles an expression.
    ///
    /// # Errors
    /// The reason, as it follows the name of a field.
    pub fn compile(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() || !is_within(text, MAX_EXPRESSION) {
            return Err(format!("must be 1 to {MAX_EXPRESSION} characters"));
        }
        if text.bytes().filter(|b| matches!(b, b'(' | b'[' | b'{')).count() > MAX_BRACKETS {
            return Err(format!("must have at most {MAX_BRACKETS} opening brackets"));
        }
        let text = text.to_owned();
        let parser = thread::Builder::new().name("expression".into()).stack_size(PARSER_STACK);
        let parser = parser.spawn(move || Self::parse(&text)).map_err(|_| "cannot be read now".to_owned())?;
        parser.join().unwrap_or_else(|_| Err("cannot be read".to_owned()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let program = ENV.compile(text).map_err(|errors| {
            let first = errors.errors.first();
            let ((line, column), reason) =
                first.map_or(((0, 0), ""), |error| (error.pos, error.msg.as_str()));
            format!("does not compile (line {line}, column {column}): {}", short(reason))
        })?;
        cost::check(&program.expression().expr)?;
        let expression = Self(program);
        match expression.evaluate(&SAMPLE) {
            // The errors depend on the values, and the sample's are not those of real messages.
            Ok(Value::Bool(_))
            | Err(
                ExecutionError::DivisionByZero(_)
                | ExecutionError::RemainderByZero(_)
                | ExecutionError::Overflow(..)
                | ExecutionError::IndexOutOfBounds(_)
                | ExecutionError::FunctionError { .. },
            ) => Ok(expression),
            Ok(other) => Err(format!("must be true or false, and is a {}", other.type_of())),
            Err(error) => Err(format!("does not fit a message: {}", short(&error.to_string()))),
        }
    }

    /// Whether the expression is true for a message.
    ///
    /// # Errors
    /// The reason why it could not be evaluated, in at most 200 characters.
    pub fn matches(&self, input: &FilterInput<'_>) -> Result<bool, String> {
        // The crate has code paths that panic; none is known to be reachable.
        match catch_unwind(AssertUnwindSafe(|| self.evaluate(input))) {
            Ok(Ok(Value::Bool(passed))) => Ok(passed),
            Ok(Ok(other)) => Err(format!("is not true or false but a {}", other.type_of())),
            Ok(Err(error)) => Err(short(&error.to_string())),
            Err(_) => Err("the evaluation broke".to_owned()),
        }
    }

    fn evaluate(&self, input: &FilterInput<'_>) -> Result<Value, ExecutionError> {
        let mut context = Context::with_env(Arc::clone(&ENV));
        context.add_variable_from_value("type", "message");
        context.add_variable_from_value("content", input.content);
        let sender = HashMap::from([("user_id", input.user_id), ("user_name", input.user_name)]);
        context.add_variable_from_value("sender", sender);
        context.add_variable_from_value("sessionID", input.session_id);
        context.add_variable_from_value("msg_type", input.kind.msg_type());
        context.add_variable_from_value("message_type", input.kind.as_str());
        context.add_variable_from_value("timestamp", input.timestamp);
        context.add_variable_from_value("bot_id", input.bot_id);
        context.add_variable_from_value("channel_id", input.channel_id);
        self.0.execute(&context)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Expression")
    }
}

/// The first line, cut.
fn short(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(MAX_ERROR).collect()
}
