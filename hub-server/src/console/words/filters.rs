//! Words of filters.

use super::Text;

words! {
    /// Filters of channels.
    Filters {
        what: Text = "The filter decides which messages this channel receives. A list matches if one of its entries matches; an empty list is ignored.",
            "过滤器决定这个频道接收哪些消息。列表中有一项符合即为符合；空列表不起作用。";
        now: Text = "Now", "当前";
        everything: Text = "Every message passes.", "所有消息都会通过。";
        passes_if_all: Text = "A message passes if all of this is true:", "同时满足以下各项的消息会通过：";
        passes_if_any: Text = "A message passes if one of this is true:", "满足以下任意一项的消息会通过：";
        sender_is: Text = "the sender is one of", "发送者是其中之一";
        contains: Text = "the text contains one of", "内容包含其中之一";
        type_is: Text = "the type is one of", "类型是其中之一";
        in_addition: Text = "In addition, this expression must be true:", "此外，以下表达式必须为真：";
        rules: Text = "Rules", "规则";
        user_ids: Text = "Senders", "发送者";
        user_ids_help: Text = "User IDs, one per line, at most 100. The page of contacts shows them.", "用户 ID，每行一个，最多 100 个；可在联系人页面查看。";
        keywords: Text = "Keywords", "关键词";
        keywords_help: Text = "One per line, at most 100. Case and width of letters do not matter.", "每行一个，最多 100 个；不区分大小写和全角半角。";
        types: Text = "Types", "类型";
        mode: Text = "The lists combine", "各列表的组合方式";
        all: Text = "All lists must match", "所有列表都须符合";
        any: Text = "One list must match", "任意一个列表符合即可";
        expression: Text = "CEL expression", "CEL 表达式";
        expression_help: Text =
            "Must be true in addition to the lists. Fields: content, sender.user_id, sender.user_name, message_type, msg_type, sessionID, timestamp, bot_id, channel_id. \
             Example: size(content) < 500",
            "除列表外还须为真。可用字段：content、sender.user_id、sender.user_name、message_type、msg_type、sessionID、timestamp、bot_id、channel_id。例如：size(content) < 500";
        try_on: Text = "Try on the last 50 messages", "用最近 50 条消息试试";
        tried: fn(usize, usize) -> String =
            |passed, all| format!("{passed} of {all} messages would pass"),
            |passed, all| format!("{all} 条消息中有 {passed} 条会通过");
        would_pass: Text = "Passes", "通过";
        would_not: Text = "Filtered", "被过滤";
        verdict: Text = "Filter", "过滤结果";
        save: Text = "Save filter", "保存过滤器";
        saved: Text = "The filter was saved. It applies to the next message.", "过滤器已保存，从下一条消息开始生效。";
    }
}
