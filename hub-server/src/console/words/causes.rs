//! Causes in Chinese. The English ones are those of `hub_core`.

use hub_core::{
    time::Timestamp,
    traces::{Cause, FilterPart},
};
use maud::{Markup, html};

use crate::console::parts::{cause::commands, time::time};

/// A text that is not of this hub, marked as what it may be.
fn foreign(text: &str) -> Markup {
    html! { span lang="en" { bdi { (commands(text)) } } }
}

/// A name or another value as it is.
fn verbatim(text: impl std::fmt::Display) -> Markup {
    html! { bdi { (text.to_string()) } }
}

fn moment(at: Timestamp) -> Markup {
    time(Some(at), "")
}

fn json_kind(kind: &str) -> &str {
    match kind {
        "a text" => "文字",
        "an object" => "对象",
        "an array" => "数组",
        "a boolean" => "布尔值",
        "a number" => "数字",
        other => other,
    }
}

fn sink(name: &str) -> &str {
    match name {
        "webhook" => "Webhook",
        "ai" | "AI sink" => "AI",
        other => other,
    }
}

fn version(state: &str) -> &'static str {
    match state {
        "rejected" => "版本被拒绝",
        _ => "版本被撤回",
    }
}

fn part(part: FilterPart) -> &'static str {
    match part {
        FilterPart::Sender => "发送者不符",
        FilterPart::Keyword => "不含关键词",
        FilterPart::Type => "类型不符",
        FilterPart::Expression => "表达式不成立",
    }
}

/// A cause as a sentence, without its full stop.
#[expect(clippy::too_many_lines, reason = "one line for each cause")]
pub(super) fn chinese(cause: &Cause) -> Markup {
    html! {
        @match cause {
            Cause::Disabled => "已关闭",
            Cause::Passed => "通过",
            Cause::NotAddressed => "没有提到代号",
            Cause::NotMatched { parts } => @for (place, one) in parts.0.iter().enumerate() {
                @if place > 0 { "、" } (part(*one))
            },
            Cause::ExpressionFails { error } => { "表达式出错：" (foreign(error)) }
            Cause::FilterFails { cause } => { "过滤器无法运行：" (chinese(cause)) }
            Cause::Filtered { cause } => { "被过滤：" (chinese(cause)) }
            Cause::Unreadable => "无法读取消息，已保存原始内容",
            Cause::Quarantined => "已隔离：无法读取消息",
            Cause::Queued => "排队中",
            Cause::InLog => "已存入频道的记录",
            Cause::QueuedForChat => "等待发送到聊天",
            Cause::QueuedForApp { app } => { "等待应用 " (verbatim(app)) }
            Cause::QueuedForMore { sink: name } => { "等待 " (sink(name)) " 和其他出口" }
            Cause::QueuedForSink { sink: name } => { "等待 " (sink(name)) }
            Cause::SkippedByPlugin => "被插件跳过",
            Cause::NotKnown => "原因未知",
            Cause::Failed { attempts, cause } => { (attempts) " 次尝试后失败：" (chinese(cause)) }
            Cause::Retrying { attempt, cause, next_at } => {
                "第 " (attempt) " 次尝试失败：" (chinese(cause)) "；下次尝试：" (moment(*next_at))
            }
            Cause::Abandoned { attempts, cause } => { (attempts) " 次尝试后放弃：" (chinese(cause)) }
            Cause::NotStored => "无法保存一次尝试的结果",
            Cause::ReplyNotSent { summary, message } => { (chinese(summary)) "；回复没有发出：" (chinese(message)) }
            Cause::PluginFailedAfterwards { summary, plugin, kind } => {
                (chinese(summary)) "；插件 " (verbatim(plugin)) " 在请求之后失败：" code { (kind) }
            }
            Cause::PluginFailed { plugin, kind } => { "插件 " (verbatim(plugin)) "：" code { (kind) } }
            Cause::PluginStopped { overruns } => { "连续 " (overruns) " 次运行没有自行结束" }
            Cause::PluginNotMatched => { code { "@match" } " 与消息不符" }
            Cause::PluginMatchFails { error } => { code { "@match" } "：" (foreign(error)) }
            Cause::PluginHasNoHook => {
                "插件没有函数 " code { "onRequest" } " 或 " code { "onResponse" }
            }
            Cause::PluginSourceGone => "插件的源代码已不存在",
            Cause::VersionRejected { state, reason } => { (version(state)) "：" (verbatim(reason)) }
            Cause::VersionStopped { state } => (version(state)),
            Cause::SinkOff { sink: name } => { "频道的 " (sink(name)) " 出口已关闭" }
            Cause::InternalError => "服务器内部错误",
            Cause::Cancelled => "已取消",
            Cause::Superseded => "已由重放代替",
            Cause::Replay => "重放",
            Cause::NoSuchTrace => "没有这条追踪",
            Cause::TraceWithoutChannel => "它不属于任何频道",
            Cause::TraceOfSend => "它是一次发送的追踪",
            Cause::Refused { cause } => { (chinese(cause)) "：接收方不再接收消息" }
            Cause::Redirected { status, location } => {
                "状态 " (status) "：不跟随重定向；Location：" (verbatim(location))
            }
            Cause::Status { status } => { "状态 " (status) }
            Cause::BlockedAddress { message } => { "地址被禁止：" (chinese(message)) }
            Cause::Dns { message } => { "域名解析失败：" (chinese(message)) }
            Cause::Tls { message } => { "TLS 失败：" (chinese(message)) }
            Cause::Timeout { message } => { "超时：" (chinese(message)) }
            Cause::Connect { message } => { "无法连接：" (chinese(message)) }
            Cause::TooLarge { message } => { "响应过大：" (chinese(message)) }
            Cause::Broken { message } => { "连接中断：" (chinese(message)) }
            Cause::GoneReceiver => "接收方返回了 410 Gone",
            Cause::FailingForDays => "连续几天，每次投递都失败",
            Cause::BodyCut { kib } => { "正文超过 " (kib) " KiB，已截断" }
            Cause::BodyEndedEarly { error } => { "正文提前结束：" (foreign(error)) }
            Cause::NoEndpoint => "服务器没有设置 AI 端点，等待管理员设置",
            Cause::CommandIgnored => "不回答命令和提及",
            Cause::MaybeLoop => "一分钟内向这个会话回复了 20 次，可能是循环",
            Cause::Answered { model, tokens } => { "由 " (verbatim(model)) " 回答，" (tokens) " 个 token" }
            Cause::AnsweredUncounted { model } => { "由 " (verbatim(model)) " 回答" }
            Cause::ModelBadUrl { message } => { "模型地址无效：" (chinese(message)) }
            Cause::ModelRateLimited { message } => { "模型限制了频率：" (chinese(message)) }
            Cause::ModelRefused { message } => { "模型拒绝了请求：" (chinese(message)) }
            Cause::ModelFailed { message } => { "模型出错：" (chinese(message)) }
            Cause::ModelMalformed { message } => { "无法理解模型的响应：" (chinese(message)) }
            Cause::ModelCut { message } => { "模型的响应不完整：" (chinese(message)) }
            Cause::ModelNotOffered { model } => { "管理员没有提供模型 " (verbatim(model)) }
            Cause::TokensUsedUp => "频道今天的 token 已用完",
            Cause::ToolTimeout => "工具没有及时响应",
            Cause::NoSuchTool { name } => { "没有名为 " (verbatim(name)) " 的工具" }
            Cause::AppDelivered => "已投递给应用",
            Cause::WaitsForSocket => "应用没有 Webhook，事件正在等待应用建立 WebSocket 连接",
            Cause::NoSocket => "应用没有 Webhook，也没有 WebSocket 连接来接收事件",
            Cause::AppOff => "应用已从机器人上移除，或已停用",
            Cause::EventWithoutPerson => "事件与人无关",
            Cause::AppGone => "应用已不在机器人上",
            Cause::RepliesLater => { "设置了 " code { "reply_async" } "，应用通过 Bot API 回复" }
            Cause::NoAutoReply | Cause::NoAutoReplyIn { .. } => {
                "Webhook 的 " code { "auto_reply" } " 已关闭"
            }
            Cause::PluginReplied => "插件已代替响应回复",
            Cause::ReplyTooLong { bytes, max_bytes } => { "回复有 " (bytes) " 字节，最多发送 " (max_bytes) " 字节" }
            Cause::ReplyWithFailure { status } => {
                "状态是 " (status) "，只发送 2xx 响应里的 " code { "reply" }
            }
            Cause::ReplyEmpty => { code { "reply" } " 是空的" }
            Cause::MemberNotText { name, found } => { code { (name) } " 是" (json_kind(found)) "，不是文字" }
            Cause::MemberUnreadable { name, error } => { "无法读取 " code { (name) } "：" (foreign(error)) }
            Cause::ReplyNested => { code { "reply" } " 不在响应的最外层" }
            Cause::ReplyMisspelled { name } => { "响应里是 " (verbatim(name)) "，名称应为 " code { "reply" } }
            Cause::NotJsonCut { error, kib } => {
                "响应不是 JSON：" (foreign(error)) "；正文超过 " (kib) " KiB，已截断"
            }
            Cause::NotJsonBroken { error, reason } => {
                "响应不是 JSON：" (foreign(error)) "；正文提前结束：" (foreign(reason))
            }
            Cause::NotJsonPreceded { error } => { "响应不是 JSON：" (foreign(error)) "；JSON 前面有文字" }
            Cause::NotJson { error } => { "响应不是 JSON：" (foreign(error)) }
            Cause::NotObject { found } => { "响应是 JSON 的" (json_kind(found)) "，不是对象" }
            Cause::NotText { media_type } => {
                "响应（" (verbatim(media_type)) "）不是其字符集的文字；Content-Type 没有指定时为 UTF-8"
            }
            Cause::NotTextUntyped => "响应不是其字符集的文字；Content-Type 没有指定时为 UTF-8",
            Cause::OnlyTest => "这是测试；真正的来信者会收到回复",
            Cause::TextBlank => "文字是空白的",
            Cause::NoGroups => "聊天网络不接收发给群的消息",
            Cause::FileNotBase64 => "文件不是 base64",
            Cause::DataUriUnreadable => "无法读取 data: URI",
            Cause::DataUriNotBase64 => "data: URI 不是 base64",
            Cause::NothingToForward => "请求之前没有可以转发的响应",
            Cause::ForwardTooLarge => "响应过大，无法转发",
            Cause::ForwardIncomplete => "要转发的响应不完整",
            Cause::NeverWrote => "对方还没有给机器人来信，需要对方先来信",
            Cause::NotSinceBound { at } => {
                "机器人在 " (moment(*at)) " 重新绑定之后，对方还没有来信，需要对方先来信"
            }
            Cause::WroteTooLongAgo { at } => {
                "对方的上一条消息（" (moment(*at)) "）过久，需要对方再次来信"
            }
            Cause::SendsUsedUp => "对方上次来信之后的发送次数已用完，需要对方再次来信",
            Cause::ClosedByNetwork { message } => { "在对方再次来信之前，聊天网络拒绝发送：" (chinese(message)) }
            Cause::Paced { until, sends } => {
                "等到 " (moment(*until)) "：5 分钟内已向对方发送 " (sends) " 条消息，达到上限"
            }
            Cause::PersonWrote => "对方来信了，现在发送",
            Cause::NoMessageId => "聊天网络接收了消息，但没有返回 ID",
            Cause::Sending => "正在发送",
            Cause::Sent => "已发送",
            Cause::Unconfirmed => "未确认",
            Cause::Uncertain => "不确定",
            Cause::SendFailed => "失败",
            Cause::Expired => "已过期",
            Cause::ExpiredWaiting => "在等待对方来信时过期",
            Cause::NotRetried => "不确定聊天网络是否已接收，不再重试",
            Cause::FileNotSent { cause } => { "文件没有发出：" (chinese(cause)) }
            Cause::FileTooLarge { max_bytes } => { "文件超过 " (max_bytes) " 字节" }
            Cause::FileGone => "文件已不存在",
            Cause::FileMissing => "文件不在服务器上",
            Cause::FileWithoutReference => "没有文件的引用",
            Cause::FileReferenceUnreadable => "无法读取文件的引用",
            Cause::FileReferenceSealed => "无法解密文件的引用",
            Cause::FileHostForbidden => "文件的引用里没有允许访问的主机",
            Cause::FileKeyMissing => "没有能解密文件的密钥",
            Cause::FileStatus { status } => { "CDN 返回了 HTTP " (status) }
            Cause::FileUnanswered { kind } => { "CDN 没有响应（" (verbatim(kind)) "）" }
            Cause::FileUploadFailed { kind } => { "上传到 CDN 失败（" (verbatim(kind)) "）" }
            Cause::FileUploadRefused { message, status } => {
                "CDN 拒绝了文件：" (chinese(message)) "（HTTP " (status) "）"
            }
            Cause::FileAddressForbidden { message } => { "CDN 的地址被禁止：" (chinese(message)) }
            Cause::FilesNotServed => "聊天网络没有文件",
            Cause::FilesNotAccepted => "聊天网络不接收文件",
            Cause::NewLogin => "聊天网络要求重新登录",
            Cause::OtherNetwork { network } => { "服务器不支持网络 " (verbatim(network)) }
            Cause::LoginExpired { message } => { "聊天网络要求重新登录：" (chinese(message)) }
            Cause::SessionTimeout { network_code } => { "会话超时（代码 " (network_code) "）" }
            Cause::Throttled { message } => { "聊天网络限制了频率：" (chinese(message)) }
            Cause::RefusedByNetwork { message, network_code } => {
                "聊天网络拒绝：" (chinese(message)) "（代码 " (network_code) "）"
            }
            Cause::Unreachable { message } => { "聊天网络没有返回有效的响应：" (chinese(message)) }
            Cause::EmptyPolls => "聊天网络总是立即返回空结果，登录可能已失效",
            Cause::NoMessageIds => "聊天网络接收消息但不返回 ID，对方可能看不到",
            Cause::NoPollResponse => "聊天网络没有响应轮询",
            Cause::VerifyingLogin => "聊天网络报告登录已过期，正在确认",
            Cause::BindAgain { cause } => { (chinese(cause)) "；请重新绑定机器人" }
            Cause::OwnerDisabled => "机器人的所有者已停用",
            Cause::NetworkNotServed { network } => { "没有服务器节点支持网络 " (verbatim(network)) }
            Cause::LogWentBackwards => "频道的记录倒退了，详情见服务器日志",
            Cause::WrongNumber => "数字不正确",
            Cause::CodesExpired => "三个二维码都过期了，没有被扫描",
            Cause::BindExpired => "登录已过期",
            Cause::BindRedirected => "聊天网络把登录重定向到了不允许的主机",
            Cause::BindWithoutCredentials => "聊天网络确认了登录，但没有返回凭据",
            Cause::BoundElsewhere => {
                "账号已绑定，但服务器没有它的登录；请在聊天应用里移除该连接，然后重新扫码"
            }
            Cause::Other { text } => (foreign(text)),
        }
    }
}
