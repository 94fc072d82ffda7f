//! Words of live updates and of the search.

/// Words of live updates and of the search.
pub(in crate::console) struct Live {
    pub(in crate::console) connection: &'static str,
    pub(in crate::console) connecting: &'static str,
    pub(in crate::console) connected: &'static str,
    pub(in crate::console) polling: &'static str,
    pub(in crate::console) offline: &'static str,
    pub(in crate::console) signed_out: &'static str,
    /// `{count}` is the number of new rows.
    pub(in crate::console) new_rows: &'static str,
    pub(in crate::console) not_sent: &'static str,
    pub(in crate::console) find: &'static str,
    pub(in crate::console) find_label: &'static str,
    pub(in crate::console) find_help: &'static str,
    pub(in crate::console) bots_found: &'static str,
    pub(in crate::console) no_bot: fn(&str) -> String,
    pub(in crate::console) no_such_id: fn(&str) -> String,
    pub(in crate::console) in_messages: fn(&str) -> String,
}

pub(super) static EN: Live = Live {
    connection: "Live updates",
    connecting: "Connecting",
    connected: "Live",
    polling: "Updated every 5 s",
    offline: "No connection",
    signed_out: "Signed out",
    new_rows: "▲ {count} new",
    not_sent: "Nothing was sent: the hub cannot be reached. What you typed is still here.",
    find: "Find",
    find_label: "ID, bot or text",
    find_help: "An ID (tr_…, msg_…, bot_…, ch_…) opens its page. Other texts find bots by name and messages by text.",
    bots_found: "Bots",
    no_bot: |text| format!("No bot has \"{text}\" in its name."),
    no_such_id: |id| format!("There is nothing with the ID {id}, or it is not yours."),
    in_messages: |text| format!("Search messages for \"{text}\""),
};

pub(super) static ZH: Live = Live {
    connection: "实时更新",
    connecting: "连接中",
    connected: "实时",
    polling: "每 5 秒更新",
    offline: "连接已断开",
    signed_out: "已退出登录",
    new_rows: "▲ {count} 条新内容",
    not_sent: "没有发送：无法连接服务器。填写的内容仍在这里。",
    find: "查找",
    find_label: "ID、机器人或文本",
    find_help: "输入 ID（tr_…、msg_…、bot_…、ch_…）会打开对应页面；其他文本按名称查找机器人，按内容查找消息。",
    bots_found: "机器人",
    no_bot: |text| format!("没有名称包含“{text}”的机器人。"),
    no_such_id: |id| format!("没有 ID 为 {id} 的内容，或不属于你。"),
    in_messages: |text| format!("在消息中搜索“{text}”"),
};
