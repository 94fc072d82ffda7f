//! Words for a form that was not sent: what its action does, and the names of its fields.

use super::Text;

words! {
    /// A form that was not sent.
    Actions {
        /// Title of the operation of an action.
        title: fn(&str) -> Option<Text> = |operation| found(TITLES, operation).map(|(english, _)| english),
            |operation| found(TITLES, operation).map(|(_, chinese)| chinese);
        /// The name of a field.
        field: fn(&str) -> Option<Text> = |name| found(FIELDS, name).map(|(english, _)| english),
            |name| found(FIELDS, name).map(|(_, chinese)| chinese);
        unsent: Text = "This was not sent:", "尚未发送：";
        open_again: Text = "Open the page again", "重新打开页面";
        open_again_help: Text = "This form cannot be sent again. Sign in in a new tab, then open its page again.",
            "此表单不能再次发送。请在新标签页登录，然后重新打开页面。";
    }
}

type Table = &'static [(&'static str, Text, Text)];

fn found(table: Table, name: &str) -> Option<(Text, Text)> {
    let row = table.iter().find(|(known, _, _)| *known == name);
    row.map(|(_, english, chinese)| (*english, *chinese))
}

/// Each operation in English and in Chinese.
const TITLES: Table = &[
    ("attemptTrace", "Try the delivery now", "立即尝试投递"),
    ("cancelTrace", "Give up the delivery", "放弃投递"),
    ("changeChannelPlugin", "Change a plugin of the channel", "更改频道的插件"),
    ("changePassword", "Change the password", "更改密码"),
    ("confirmBind", "Continue binding a bot", "继续绑定机器人"),
    ("confirmIlinkLogin", "Log a program in", "让程序登录"),
    ("confirmQrLogin", "Decide about another device", "决定是否让其他设备登录"),
    ("createApiKey", "Create an API key", "创建 API 密钥"),
    ("createChannel", "Create a channel", "创建频道"),
    ("deleteApiKey", "Revoke an API key", "撤销 API 密钥"),
    ("deleteBot", "Delete the bot", "删除机器人"),
    ("deleteChannel", "Delete the channel", "删除频道"),
    ("deleteChannelClient", "Close a connection of the channel", "关闭频道的一个连接"),
    ("deleteIlinkClient", "Log a program out", "让程序退出登录"),
    ("deletePasskey", "Delete a passkey", "删除通行密钥"),
    ("deleteSession", "Sign out a session", "让一个会话退出登录"),
    ("installPlugin", "Install a plugin", "安装插件"),
    ("login", "Confirm it is you", "确认是你本人"),
    ("logout", "Sign out", "退出登录"),
    ("openIlinkLogin", "Open the login of a program", "打开程序的登录请求"),
    ("openQrLogin", "Open the code of another device", "打开其他设备的二维码"),
    ("reconnectBot", "Reconnect the bot", "重新连接机器人"),
    ("regenerateChannelKey", "Replace the key of the channel", "更换频道的密钥"),
    ("rejectIlinkLogin", "Refuse the login of a program", "拒绝程序登录"),
    ("renameBot", "Rename the bot", "重命名机器人"),
    ("replayTrace", "Replay a message", "重放消息"),
    ("retryMedia", "Download the files of a message again", "重新下载消息的文件"),
    ("scanSimBind", "Scan the QR code as a simulated person", "以模拟用户扫描二维码"),
    ("sendMessage", "Send a message", "发送消息"),
    ("sendSimMessage", "Write to the bot as a simulated person", "以模拟用户给机器人发消息"),
    ("setAiSink", "Configure the AI sink", "配置 AI 出口"),
    ("setChannelFilter", "Set the filter of the channel", "设置频道的过滤条件"),
    ("setContactRemark", "Set a remark", "设置备注"),
    ("setIlinkSink", "Configure the iLink sink", "配置 iLink 出口"),
    ("setSimReceiver", "Change the receiver of the playground", "更改试验场的接收方"),
    ("setWebSocketSink", "Configure the WebSocket sink", "配置 WebSocket 出口"),
    ("setWebhookSink", "Configure the webhook", "配置 Webhook"),
    ("startBind", "Bind a bot", "绑定机器人"),
    ("startReplay", "Replay messages", "批量重放消息"),
    ("testAiSink", "Test the AI sink", "测试 AI 出口"),
    ("testChannelFilter", "Try the filter", "试用过滤条件"),
    ("testWebhookSink", "Test the webhook", "测试 Webhook"),
    ("uninstallPlugin", "Remove a plugin from the channel", "从频道移除插件"),
    ("unlinkAccount", "Unlink an account", "取消关联账号"),
    ("updateChannel", "Change the channel", "更改频道"),
    ("updateProfile", "Save the profile", "保存个人资料"),
];

/// Fields that people fill in; others keep their name in the API.
const FIELDS: Table = &[
    ("content", "Text", "文字"),
    ("display_name", "Display name", "显示名称"),
    ("email", "E-mail", "电子邮箱"),
    ("enabled", "On", "启用"),
    ("expires_in_days", "Lifetime in days", "有效天数"),
    ("expression", "Expression", "表达式"),
    ("handle", "Handle", "提及名"),
    ("keywords", "Keywords", "关键词"),
    ("model", "Model", "模型"),
    ("name", "Name", "名称"),
    ("network", "Network", "网络"),
    ("remark", "Remark", "备注"),
    ("system_prompt", "System prompt", "系统提示词"),
    ("text", "Text", "文字"),
    ("to_user_id", "To", "收件人"),
    ("url", "URL", "URL"),
];
