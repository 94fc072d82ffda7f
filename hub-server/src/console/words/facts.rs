//! Words for the fields of a step's detail.

/// Fields of `StepDetail` with their names in English and Chinese.
const FACTS: &[(&str, &str, &str)] = &[
    ("reason", "Reason", "原因"),
    ("msg_type", "Message type", "消息类型"),
    ("items", "Parts of the message", "消息的部分"),
    ("app", "App", "应用"),
    ("handle", "Handle", "代号"),
    ("replay_of", "Replay of", "重放自"),
    ("to", "To", "发往"),
    ("method", "Method", "方法"),
    ("url", "URL", "网址"),
    ("status", "HTTP status", "HTTP 状态"),
    ("phases", "Phases", "阶段"),
    ("next_attempt_at", "Next attempt", "下次尝试"),
    ("parked", "Parked: later messages do not wait", "已搁置，之后的消息不再等待"),
    ("plugin_id", "Plugin ID", "插件 ID"),
    ("plugin", "Plugin", "插件"),
    ("version", "Version", "版本"),
    ("hook", "Has this hook", "有这个钩子"),
    ("duration_us", "Run time, µs", "运行时间（µs）"),
    ("wait_ms", "Waited for a worker, ms", "等待工作进程（ms）"),
    ("memory_bytes", "Memory, bytes", "内存（字节）"),
    ("skipped", "Skipped the message", "跳过了消息"),
    ("replies", "Replies", "回复数"),
    ("paused", "Disabled because", "停用原因"),
    ("message_id", "Message ID", "消息 ID"),
    ("state", "State", "状态"),
    ("part", "Part", "第几部分"),
    ("parts", "Parts to send", "发送的部分"),
    ("file", "File", "文件"),
    ("size", "Size, bytes", "大小（字节）"),
    ("network_id", "ID on the chat network", "聊天网络上的 ID"),
    ("source", "Settings of the model", "模型设置的来源"),
    ("model", "Model", "模型"),
    ("round", "Call of this attempt", "本次尝试的调用"),
    ("messages", "Messages sent to the model", "发给模型的消息"),
    ("images", "Images sent to the model", "发给模型的图片"),
    ("tools", "Tools offered", "可用工具"),
    ("left_out", "Not sent, because the endpoint refuses it", "端点不接受而未发送"),
    ("finish_reason", "Why the model stopped", "模型停止的原因"),
    ("usage", "Tokens", "token 数"),
    ("tool_calls", "Tools requested", "请求的工具"),
    ("tool", "Tool", "工具"),
    ("arguments", "Arguments", "参数"),
    ("clients", "Connected clients", "已连接的客户端"),
    ("ilink_client", "Program", "程序"),
    ("event_id", "Event ID", "事件 ID"),
];

/// The name of a field in English and in Chinese.
pub(super) fn find(field: &str) -> Option<(&'static str, &'static str)> {
    FACTS.iter().find(|(name, ..)| *name == field).map(|(_, english, chinese)| (*english, *chinese))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{console::traces::step::SHOWN_APART, openapi};

    #[test]
    fn every_field_of_a_step_has_words_or_a_place_of_its_own() {
        let document = openapi::document("http://localhost");
        let fields = document["components"]["schemas"]["StepDetail"]["properties"].as_object().unwrap();
        // Pages render the cause of a sentence in its place.
        let fields = fields.keys().map(String::as_str).filter(|field| !field.ends_with("_cause"));
        let fields: BTreeSet<&str> = fields.collect();
        let shown = SHOWN_APART.into_iter().chain(FACTS.iter().map(|(name, ..)| *name));
        assert_eq!(shown.collect::<BTreeSet<_>>(), fields);
    }
}
