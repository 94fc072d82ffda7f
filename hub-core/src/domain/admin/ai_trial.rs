//! A test question to a model.

use std::time::Duration;

use crate::{
    ai::{self, AiFault, Dialects, Endpoint, Limits, Message, Prompt, Role, Usage},
    egress::Egress,
    secret::MASK,
    time::Clock,
};

/// Limit of a test call.
pub(crate) const TEST_DEADLINE: Duration = Duration::from_secs(30);
const TEST_QUESTION: &str = "Answer with one word: are you there?";
/// Longest part of the response that is returned, in bytes.
const MAX_SHOWN: usize = 500;

/// Result of a test call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AiTest {
    /// The model.
    pub model: String,
    /// Duration of the call.
    pub took: Duration,
    /// The response, or the class of the error and a sentence about it.
    pub outcome: std::result::Result<AiTestAnswer, (&'static str, String)>,
}

/// See [`AiTest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AiTestAnswer {
    /// The beginning of the response.
    pub text: String,
    /// Consumed tokens, when the endpoint reports them.
    pub usage: Option<Usage>,
}

/// Parameters of a test call.
#[derive(Debug)]
pub(crate) struct TestCall<'t> {
    pub endpoint: &'t Endpoint,
    pub model: &'t str,
    /// May be empty.
    pub system_prompt: &'t str,
    pub max_tokens: Option<u32>,
    pub temperature: Option<f64>,
    pub deadline: Duration,
    pub dialects: &'t Dialects,
    /// Whether the caller may read the endpoint's error text.
    pub shows_refusal: bool,
}

impl TestCall<'_> {
    /// Makes the test call once.
    pub(crate) async fn run(self, egress: &Egress, clock: &Clock) -> AiTest {
        let system =
            (!self.system_prompt.trim().is_empty()).then(|| Message::text(Role::System, self.system_prompt));
        let question = Message::text(Role::User, TEST_QUESTION);
        let prompt = Prompt {
            model: self.model.to_owned(),
            messages: system.into_iter().chain([question]).collect(),
            max_tokens: self.max_tokens,
            temperature: self.temperature,
            tools: Vec::new(),
        };
        let started = clock.instant();
        let limits = Limits { silence: self.deadline, total: self.deadline };
        let answered = ai::complete(egress, self.dialects, clock, self.endpoint, &prompt, limits).await;
        let took = clock.instant().since(started);
        // Endpoints repeat keys that they reject.
        let clean = |text: &str| match &self.endpoint.api_key {
            Some(key) => text.replace(key.expose(), MASK),
            None => text.to_owned(),
        };
        let outcome = match answered {
            Ok(completion) => {
                let text = ai::without_thinking(&completion.text);
                let text = text[..text.floor_char_boundary(MAX_SHOWN)].to_owned();
                Ok(AiTestAnswer { text: clean(&text), usage: completion.usage })
            }
            Err(AiFault { class, message, endpoint_message, .. }) => {
                let endpoint_message = endpoint_message.filter(|_| self.shows_refusal);
                let endpoint_message = endpoint_message
                    .map_or_else(String::new, |endpoint_message| format!(": {endpoint_message}"));
                Err((class.as_str(), clean(&format!("{message}{endpoint_message}"))))
            }
        };
        AiTest { model: prompt.model, took, outcome }
    }
}
