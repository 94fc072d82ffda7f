//! Words of channels.

use super::Text;

words! {
    /// Channels.
    Channels {
        title: Text = "Channels", "频道";
        what: Text = "A channel passes the messages of this bot to your programs: by webhook, by WebSocket, or to a model.",
            "频道把这个机器人的消息交给你的程序：通过 webhook、WebSocket，或交给模型。";
        empty: Text = "No channel. Without one, messages are stored and passed to no program.",
            "还没有频道。没有频道时，消息只会保存，不会交给任何程序。";
        channel: Text = "Channel", "频道";
        sinks: Text = "Sinks", "出口";
        no_sink: Text = "none", "无";
        state: Text = "Status", "状态";
        on: Text = "On", "开启";
        off: Text = "Off", "关闭";
        failing: Text = "Webhook switched off", "webhook 已被关闭";
        nowhere: Text = "This channel delivers nowhere: every sink is off.", "这个频道不投递到任何地方：所有出口都已关闭。";
        is_off: Text = "This channel is off: it receives nothing, and its key is not valid.", "这个频道已关闭：不接收消息，密钥也无效。";
        new: Text = "New channel", "新建频道";
        name_help: Text = "For example: orders", "例如：orders";
        create: Text = "Create channel", "创建频道";
        created: Text = "Channel created", "频道已创建";
        key_once: Text = "Copy the key of the channel now. It is not shown again.", "现在就复制频道密钥，之后不再显示。";
        key_is_for: Text = "Programs use it to receive and send through this channel. To print messages as they arrive:",
            "程序用它通过这个频道收发消息。实时查看收到的消息：";
        saved_it: Text = "I have saved it, open the channel", "我已保存，打开频道";
        // Tabs
        tabs: Text = "Pages of the channel", "频道的页面";
        overview: Text = "Overview", "概览";
        filter: Text = "Filter", "过滤器";
        webhook: Text = "Webhook", "Webhook";
        websocket: Text = "WebSocket", "WebSocket";
        ilink: Text = "iLink", "iLink";
        ai: Text = "AI", "AI";
        plugins: Text = "Plugins", "插件";
        settings: Text = "Settings", "设置";
        // Overview
        flow: Text = "What happens to a message", "消息的流程";
        from_bot: Text = "Received by", "接收自";
        only_mentions: fn(&str) -> String =
            |handle| format!("Only messages that mention @{handle}."), |handle| format!("只接收提到 @{handle} 的消息。");
        no_plugins: Text = "No plugin changes it.", "没有插件修改它。";
        replies: Text = "Replies", "回复";
        auto_reply: Text = "A text reply in the response of the webhook is sent to the sender.", "webhook 响应中的 reply 文字会发给对方。";
        no_auto_reply: Text = "The response of the webhook is not sent to the sender.", "webhook 的响应不会发给对方。";
        reply_with_key: Text = "Programs reply with the key of the channel:", "程序用频道密钥回复：";
        numbers: Text = "Numbers", "数字";
        received: Text = "Received", "收到";
        delivered: Text = "Delivered", "已投递";
        failed: Text = "Failed", "失败";
        pending: Text = "Waiting", "等待中";
        switch_on: Text = "Switch on", "开启";
        switch_off: Text = "Switch off", "关闭";
        updated: Text = "The channel was changed.", "频道已更改。";
        key: Text = "API key of the channel", "频道密钥";
        key_prefix: Text = "Current key", "当前密钥";
        regenerate_help: Text = "Creates another key. Programs with the old key stop working, at once or after the hours given here.",
            "生成新的密钥。使用旧密钥的程序会立即失效，或在这里填写的小时数之后失效。";
        grace: Text = "Old key stays valid, in hours", "旧密钥继续有效的小时数";
        grace_help: Text = "1 to 72; empty to end it at once.", "1 至 72；留空则立即失效。";
        regenerate: Text = "Replace key", "更换密钥";
        regenerated: Text = "Key replaced", "密钥已更换";
        old_key_until: Text = "The old key stays valid until", "旧密钥有效至";
        old_key_ended: Text = "The old key is no longer valid.", "旧密钥已失效。";
        // Settings
        handle: Text = "Handle", "提及名";
        handle_help: Text = "2 to 32 of a-z, 0-9, _ and -. With a handle, the channel receives only messages that mention it. Empty: none.",
            "2 至 32 个字符，可用 a-z、0-9、_ 和 -。设置后只接收提到它的消息；留空则不设置。";
        enabled: Text = "The channel receives messages and its key is valid", "频道接收消息，密钥有效";
        on_plugin_error: Text = "If a plugin fails before the request", "插件在请求前失败时";
        retry: Text = "Retry the delivery later", "稍后重试投递";
        send_anyway: Text = "Send without the changes of the plugin", "不带插件的修改直接发送";
        drop: Text = "End the delivery, send nothing", "结束投递，不发送";
        lane_hold: Text = "A failing delivery blocks its conversation, in seconds", "失败的投递阻塞其会话的秒数";
        lane_hold_help: Text = "0 to 3600. Later messages of the same person wait for that long.", "0 至 3600。同一个人之后的消息最多等待这么久。";
        id: Text = "Channel ID", "频道 ID";
        changed: Text = "Last changed", "最近更改";
        delete: Text = "Delete channel…", "删除频道…";
        delete_named: fn(&str) -> String = |name| format!("Delete channel {name}"), |name| format!("删除频道 {name}");
        delete_help: Text =
            "This deletes the channel with its log, its traces and pending deliveries. Its key stops working at once. It cannot be undone.",
            "这会删除频道及其日志、追踪和待投递的内容，密钥立即失效，且无法撤销。";
        deleted: Text = "The channel was deleted.", "频道已删除。";
    }
}
