//! The reasons that `hub_core` stores in English, in Chinese. `{}` is any text; in the translation, `{0}` is the
//! translation of the first such text and `[0]` the text as it is. The first pattern that matches counts.

/// The reasons with their translations.
pub(super) static ZH: &[(&str, &str)] = &[
    // Why a delivery failed, or is waiting.
    ("the filter does not work: {}", "过滤器无法运行：{0}"),
    ("the filter does not work{}", "过滤器无法运行{0}"),
    ("disabled", "已关闭"),
    ("handle", "没有提到代号"),
    ("no reason is known", "原因未知"),
    ("status {}: redirects are not followed; Location: {}", "状态 [0]：不跟随重定向；Location：[1]"),
    ("status {}", "状态 [0]"),
    ("blocked_address: {}", "地址被禁止：{0}"),
    ("dns: {}", "域名解析失败：{0}"),
    ("tls: {}", "TLS 失败：{0}"),
    ("timeout: {}", "超时：{0}"),
    ("connect: {}", "无法连接：{0}"),
    ("too_large: {}", "响应过大：{0}"),
    // Replies that are not sent.
    ("auto_reply of the webhook is off", "Webhook 的 auto_reply 已关闭"),
    // As earlier versions stored it.
    ("auto_reply of the webhook is off; {}", "Webhook 的 auto_reply 已关闭"),
    ("a plugin replied in place of the response", "插件已代替响应回复"),
    ("the status is {}, and only the {} of a 2xx response is sent", "状态是 [0]，只发送 2xx 响应里的 [1]"),
    ("`reply` is empty", "`reply` 是空的"),
    ("`reply` is {}, not a text", "`reply` 是{0}，不是文字"),
    ("`reply` cannot be read: {}", "无法读取 `reply`：{0}"),
    ("`reply` is not at the top level of the response", "`reply` 不在响应的最外层"),
    ("the response has {}; the name is `reply`", "响应里是 [0]，名称应为 `reply`"),
    ("the response is not JSON: {}; there is text before the JSON", "响应不是 JSON：{0}；JSON 前面有文字"),
    (
        "the response is not JSON: {}; the body is cut: it is larger than {}",
        "响应不是 JSON：{0}；正文超过 [1]，已截断",
    ),
    ("the response is not JSON: {}; the body ended early: {}", "响应不是 JSON：{0}；正文提前结束：{1}"),
    ("the response is not JSON: {}", "响应不是 JSON：{0}"),
    ("the response is {} in JSON, not an object", "响应是 JSON 的{0}，不是对象"),
    (
        "the response ({}) is not text in its charset, which is UTF-8 unless Content-Type names another",
        "响应（[0]）不是其字符集的文字；Content-Type 没有指定时为 UTF-8",
    ),
    (
        "the response is not text in its charset, which is UTF-8 unless Content-Type names another",
        "响应不是其字符集的文字；Content-Type 没有指定时为 UTF-8",
    ),
    ("this is a test; the sender of a message gets the reply", "这是测试；真正的来信者会收到回复"),
    ("the reply has {} bytes, and at most {} are sent", "回复有 [0] 字节，最多发送 [1] 字节"),
    ("the event is about no person", "事件与人无关"),
    ("the app is not on the bot any more", "应用已不在机器人上"),
    ("{} is set, so that the app replies through the bot API", "设置了 [0]，应用通过 Bot API 回复"),
    ("the body is cut: it is larger than {}", "正文超过 [0]，已截断"),
    ("the body ended early: {}", "正文提前结束：{0}"),
    ("a text", "文字"),
    ("an object", "对象"),
    ("an array", "数组"),
    ("a boolean", "布尔值"),
    ("a number", "数字"),
    // The sending window.
    (
        "this person has not written to the bot yet; they have to write first",
        "对方还没有给机器人来信，需要对方先来信",
    ),
    (
        "this person has not written since the bot was bound again on {}; they have to write first",
        "机器人在 [0] 重新绑定之后，对方还没有来信，需要对方先来信",
    ),
    (
        "this person's last message, of {}, is too old; they have to write again",
        "对方的上一条消息（[0]）过久，需要对方再次来信",
    ),
    (
        "every send since this person's last message is used up; they have to write again",
        "对方上次来信之后的发送次数已用完，需要对方再次来信",
    ),
    (
        "the network refuses sends until this person writes again: {}",
        "在对方再次来信之前，聊天网络拒绝发送：{0}",
    ),
    ("the network requires a new login", "聊天网络要求重新登录"),
    // The status of a bot.
    (
        "the network answers polls at once and with nothing; the login may have lapsed",
        "聊天网络总是立即返回空结果，登录可能已失效",
    ),
    (
        "the network accepts messages without ids; people may not see them",
        "聊天网络接收消息但不返回 ID，对方可能看不到",
    ),
    ("the network does not respond to polls", "聊天网络没有响应轮询"),
    ("the network reports an expired login; verifying", "聊天网络报告登录已过期，正在确认"),
    ("{}; bind the bot again", "{0}；请重新绑定机器人"),
    ("session timeout (code {})", "会话超时（代码 [0]）"),
    ("the network requires a new login: {}", "聊天网络要求重新登录：{0}"),
    ("the network throttles: {}", "聊天网络限制了频率：{0}"),
    ("the network refused: {} (code {})", "聊天网络拒绝：{0}（代码 [1]）"),
    ("no usable response from the network: {}", "聊天网络没有返回有效的响应：{0}"),
    ("this hub does not serve the network {}", "服务器不支持网络 [0]"),
    // The state of a reply.
    ("queued", "排队中"),
    ("sending", "正在发送"),
    ("sent", "已发送"),
    ("unconfirmed", "未确认"),
    ("unknown", "不确定"),
    ("failed", "失败"),
    ("expired", "已过期"),
];
