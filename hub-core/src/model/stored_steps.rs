//! Steps as they are stored: an array that grows as text, without the values that most steps have.

use serde::Serialize;
use serde_with::skip_serializing_none;

use super::{
    step::{Step, StepDetail, StepKind, StepName},
    trace::TraceStatus,
};
use crate::text::json_of_size;

/// What is missing is as [`Step`] reads it; the time is in Unix milliseconds.
#[skip_serializing_none]
#[derive(Serialize)]
struct Stored<'s> {
    name: StepName,
    kind: StepKind,
    status: Option<TraceStatus>,
    at: i64,
    duration_ms: Option<u64>,
    attempt: Option<u32>,
    detail: Option<&'s StepDetail>,
}

impl<'s> From<&'s Step> for Stored<'s> {
    fn from(step: &'s Step) -> Self {
        Self {
            name: step.name,
            kind: step.kind,
            status: Some(step.status).filter(|status| *status != TraceStatus::Ok),
            at: step.started_at.as_millis(),
            duration_ms: Some(step.duration_ms).filter(|ms| *ms > 0),
            attempt: step.attempt,
            detail: Some(&step.detail).filter(|detail| **detail != StepDetail::default()),
        }
    }
}

/// The array of steps that is stored.
pub(crate) fn steps_array(steps: &[Step]) -> String {
    let bodies: usize = steps.iter().filter_map(|step| step.detail.body.as_ref()).map(String::len).sum();
    let stored: Vec<Stored<'_>> = steps.iter().map(Stored::from).collect();
    json_of_size(&stored, 384 * steps.len() + bodies + bodies / 4)
}

/// Steps as the text that is appended to a stored array: without its brackets.
pub(crate) fn steps_text(steps: &[Step]) -> String {
    let mut array = steps_array(steps);
    array.pop();
    array.remove(0);
    array
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{super::step::StepError, *};
    use crate::time::Timestamp;

    #[test]
    fn unknown_fields_of_a_step_are_not_stored() {
        let at = Timestamp::from_millis(0);
        let step = |detail| Step::new(StepName::Filter, StepKind::Filter, TraceStatus::Ok, at, at, detail);
        let stored = |step: Step| serde_json::from_str::<Value>(&steps_text(&[step])).unwrap();
        let shortest = stored(step(StepDetail::default()));
        assert_eq!(shortest, json!({ "name": "filter", "kind": "filter", "at": 0 }));
        assert_eq!(serde_json::from_value::<Step>(shortest).unwrap(), step(StepDetail::default()));
        let error = StepError::new("no");
        let detail = StepDetail { error: Some(error), status: Some(410), ..StepDetail::default() };
        let with = stored(step(detail.clone()).of_attempt(3));
        assert_eq!(
            (&with["detail"], &with["attempt"]),
            (&json!({ "error": { "message": "no" }, "status": 410 }), &json!(3))
        );
        assert_eq!(serde_json::from_value::<Step>(with).unwrap().detail, detail);
    }
}
