//! Explanations in Chinese: verdicts with their values, findings and remedies. The English ones are those of `hub_core`.

use hub_core::{
    error::Setting,
    traces::{
        DeliveryState, Explanation, Finding, OfHub, Remedy, ReplyDelay, SinkKind, Verdict, WebhookField,
        WebhookSetting,
    },
};
use maud::{Markup, html};

use super::zh::WORDS;
use crate::console::parts::cause::cause as stored_cause;

/// A reason that is stored in English.
fn stored(text: &str) -> Markup {
    stored_cause(&WORDS, text)
}

/// The verdict with its values.
pub(super) fn verdict(explained: &Explanation) -> Markup {
    let target = html! {
        @match &explained.channel_name {
            Some(name) => { "频道 " bdi { (name) } " " }
            None => "应用"
        }
    };
    let cause = html! {
        @match &explained.cause {
            Some(cause) => (finding(cause)),
            None => "原因未知"
        }
    };
    let because = html! { @if let Some(reason) = explained.reason() { "：" (stored(reason)) } };
    html! {
        @match explained.verdict {
            Verdict::Delivered => (delivered(explained, &target, &cause)),
            Verdict::LogOnly => { "消息已存入" (target) "的记录，供客户端读取；没有开启其他出口。" }
            Verdict::Unreadable => "服务器无法读取这条消息，已保存原始内容。",
            Verdict::NoUserMessage => { "这不是由人发送的消息（" (cause) "），不会投递。" }
            Verdict::NoChannel => "收到消息时机器人没有频道，或者追踪已被删除。",
            Verdict::OlderThanChannel => { (target) "在收到消息之后才创建，只接收之后的消息。" }
            Verdict::NoTrace => { (target) "里没有这条消息的追踪：追踪到期后会被删除。" }
            Verdict::ChannelOff => { "收到消息时，" (target) "已关闭。" }
            Verdict::NotAddressed => { "消息没有提到" (target) "的代号。" }
            Verdict::Filtered => { (target) "的过滤器没有放行：" (cause) "。" }
            Verdict::FilterBroken => { (target) "的过滤器无法运行，因此没有消息通过：" (cause) "。" }
            Verdict::SkippedByPlugin => { (cause) "。" }
            Verdict::IgnoredBySink => { (target) "的出口不处理这条消息：" (cause) "。" }
            Verdict::PluginFailed
            | Verdict::SinkOff
            | Verdict::Gone
            | Verdict::ReceiverError
            | Verdict::Unreachable
            | Verdict::Failed => {
                "投递到" (target) "在 " (explained.attempts) " 次尝试后失败：" (cause) "。"
            }
            Verdict::ReplyFailed => { "接收方已收到消息，但回复没有发出：" (cause) "。" }
            Verdict::Retrying => (retrying(explained, &target, &cause)),
            Verdict::Waiting => { "投递到" (target) "在等待：" (cause) "。" }
            Verdict::Queued if explained.delivery_state.is_none() => { "投递到" (target) "尚未结束。" }
            Verdict::Queued => {
                "消息在等待向" (target) "的第一次投递，前面还有同一会话或频道的消息。"
            }
            Verdict::NoNode => "没有节点负责这个机器人，投递在等待。",
            Verdict::Sent => "聊天网络已收到消息。",
            Verdict::Sending => { "消息在等待聊天网络" (because) "。" }
            Verdict::WindowClosed => { "消息在等待：" (cause) "。" }
            Verdict::LoginExpired => "消息在等待：聊天网络要求机器人重新登录。",
            Verdict::SendFailed => { "聊天网络拒绝了消息" (because) "。" }
            Verdict::SendUnknown if explained.is_unconfirmed() => {
                "聊天网络接收了消息，但没有返回 ID：对方可能看不到。"
            }
            Verdict::SendUnknown => { "不确定聊天网络是否收到了消息" (because) "。" }
            Verdict::SendExpired => { "消息等待过久，没有发送" (because) "。" }
        }
    }
}

fn delivered(explained: &Explanation, target: &Markup, cause: &Markup) -> Markup {
    html! {
        @if explained.cause == Some(Finding::Clients) {
            (target) "的客户端在线，已收到消息。"
        } @else {
            @if explained.attempts > 1 { "消息在第 " (explained.attempts) " 次尝试时投递到" } @else { "消息已投递到" }
            (target) "：" (cause) "。"
            @match explained.reply() {
                Some(ReplyDelay::Waits(why)) => { "有一条回复在等待：" (stored(why)) "。" }
                Some(ReplyDelay::Skipped(why)) => { "没有发送回复：" (stored(why)) "。" }
                None => {}
            }
        }
    }
}

fn retrying(explained: &Explanation, target: &Markup, cause: &Markup) -> Markup {
    html! {
        "第 " (explained.attempts) " 次尝试"
        @if let Some(most) = explained.max_attempts { "（最多 " (most) " 次）" }
        "投递到" (target) "失败：" (cause) "。"
        @if let Some(at) = explained.next_attempt_at { "下一次在 " (at) }
        @if explained.delivery_state == Some(DeliveryState::Parked) { "；之后的消息不会等待它" }
        "。"
    }
}

pub(super) fn finding(found: &Finding) -> Markup {
    let because = |reason: &Option<String>| html! { @if let Some(reason) = reason { "：" (stored(reason)) } };
    html! {
        @match found {
            Finding::Message { reason: Some(reason), .. } => (stored(reason)),
            Finding::Message { message_status, reason: None } => ((WORDS.messages.statuses)(*message_status)),
            Finding::Bot { bot_status, reason, has_node } => {
                "机器人" ((WORDS.bots.status)(*bot_status)) (because(reason))
                @if !has_node { "；没有节点负责它" }
            }
            Finding::Channel { enabled: true } => "频道已打开",
            Finding::Channel { enabled: false } => "频道已关闭",
            Finding::Filter { reason: None } => "已通过",
            Finding::Filter { reason: Some(reason) } => (stored(reason)),
            Finding::PluginRan { plugin } => { "最后运行的是插件 " bdi { (plugin) } }
            Finding::PluginSkipped { plugin } => { "插件 " bdi { (plugin) } " 跳过了这条消息" }
            Finding::PluginFailed { plugin, reason } => { "插件 " bdi { (plugin) } " 出错：" (stored(reason)) }
            Finding::Sink { reason: Some(reason), .. } => { "服务器关闭了 Webhook：" (stored(reason)) }
            Finding::Sink { sink, enabled, reason: None } => {
                (sink_name((*sink).into())) @if *enabled { "已打开" } @else { "已关闭" }
            }
            Finding::NoSink => "Webhook 和模型都没有打开",
            Finding::Delivery { sink, state, attempts, reason } => {
                (sink_name(*sink)) "：" (delivery_state(*state)) "，尝试 " (attempts) " 次" (because(reason))
            }
            Finding::Clients => "客户端在线",
            Finding::Response { http_status: 410 } => "接收方返回 410：不再接收消息",
            Finding::Response { http_status: status @ 300..400 } => {
                "接收方返回状态 " (status) "，而服务器不跟随重定向"
            }
            Finding::Response { http_status } => { "接收方返回状态 " (http_status) }
            Finding::NoResponse { fault, reason } => { ((WORDS.webhooks.fault)(*fault)) "（" (stored(reason)) "）" }
            Finding::Reply { reason: Some(reason), .. } => (stored(reason)),
            Finding::Reply { reason: None, outcome } => ((WORDS.traces.status)(*outcome)),
            Finding::Reason { reason } => (stored(reason)),
        }
    }
}

fn sink_name(sink: SinkKind) -> &'static str {
    match sink {
        SinkKind::Webhook => "Webhook ",
        SinkKind::Ai => "模型",
        SinkKind::App => "应用",
    }
}

fn delivery_state(state: DeliveryState) -> &'static str {
    match state {
        DeliveryState::Pending => "等待中",
        DeliveryState::Parked => "已搁置",
        DeliveryState::Done => "已完成",
        DeliveryState::Skipped => "已跳过",
        DeliveryState::Dead => "已放弃",
    }
}

/// A remedy as a sentence, without its full stop.
pub(super) fn remedy(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Wait => "等待",
        Remedy::Attempt(_) => "立即再试",
        Remedy::Replay(_) => "然后重放消息",
        Remedy::OpenTrace(_) => "查看追踪的步骤",
        Remedy::DebugPlugin(_) => "修正插件：可以用记录下来的消息在调试器中再运行一次",
        Remedy::CreateChannel(_) => "创建一个频道",
        Remedy::EnableChannel(_) => "打开频道",
        Remedy::MentionHandle => "在消息开头提到代号",
        Remedy::RemoveHandle(_) => "或者去掉频道的代号",
        Remedy::SetFilter(_) => "修改过滤器",
        Remedy::SetExpression(_) => "重新设置过滤器的表达式",
        Remedy::ConnectClient(_) => "连接一个客户端",
        Remedy::SetWebhook(WebhookSetting { field, .. }) => match field {
            WebhookField::Url => "设置 Webhook 的网址",
            WebhookField::Auth => "设置接收方要求的密钥",
            WebhookField::TimeoutMs => "延长 Webhook 的超时（`timeout_ms`），或加快响应",
            WebhookField::RateLimitPerS => "降低请求频率（Webhook 的 `rate_limit_per_s`）",
            WebhookField::MaxConcurrency => "提高 Webhook 的 `max_concurrency`",
            WebhookField::AutoReply => "要发送回复，请打开 Webhook 的 `auto_reply`",
        },
        Remedy::EnableSink(of) => return format!("打开{}", sink_name(of.sink.into()).trim_end()),
        Remedy::SetModel(_) => "设置模型的端点：全局的，或这个频道的",
        Remedy::TestModel(_) => "检查模型",
        Remedy::EnablePlugin(of) => return format!("安装 {} 的可用版本，或重新启用", of.plugin),
        Remedy::DisablePlugin(of) => return format!("修改或停用插件 {}", of.plugin),
        Remedy::OpenApps(_) => "检查机器人上的应用",
        Remedy::OpenBot(_) => "检查机器人的状态",
        Remedy::BindBot(_) => "重新绑定同一个账号",
        Remedy::Send(_) => "重新发送消息",
        Remedy::CheckPhone => "查看账号所在的手机",
        Remedy::Write => "需要对方给机器人来信",
        Remedy::WriteText => "请发送者改用文本再写一次",
        Remedy::CorrectReceiver => "修正接收方：原因在它的日志里",
        Remedy::StartReceiver => "启动接收方",
        Remedy::RenewCertificate => "更新或修正接收方的证书",
        Remedy::StartNode => "启动一个节点",
        Remedy::UpdateHub => "更新服务器：新版本也许能读取这类消息",
        Remedy::ChangeSetting(OfHub { setting }) => match setting {
            Setting::TraceRetention => "追踪默认保留 7 天，由配置项 `trace_retention` 决定",
            Setting::EgressAllow => "或用配置项 `egress_allow` 允许这个地址",
            Setting::SandboxFilter => {
                "在可以过滤系统调用的环境中运行服务器，或把配置项 `sandbox_filter` 设为 `optional`"
            }
            Setting::SecretKey | Setting::BackupPassphrase | Setting::DataDir | Setting::PublicUrl => {
                return format!("修正配置项 `{setting}`");
            }
        },
    }
    .to_owned()
}
