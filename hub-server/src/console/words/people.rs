//! Words of contacts, and of messages to them.

use hub_core::network::MessageKind;

use super::Text;

words! {
    /// Contacts and what is written to them.
    People {
        title: Text = "Contacts", "联系人";
        what: Text = "People who wrote to this bot or to whom it wrote, most recently active first.",
            "与这个机器人互发过消息的人，最近活跃的在前。";
        empty: Text = "No contact yet. A person appears here with the first message.", "还没有联系人。收到第一条消息后会出现在这里。";
        person: Text = "Person", "联系人";
        user_id: Text = "User ID", "用户 ID";
        remark: Text = "Remark", "备注";
        remark_help: Text = "At most 64 characters; empty to remove it.", "最多 64 个字符；留空则删除。";
        change_remark: Text = "Change remark…", "修改备注…";
        remark_of: fn(&str) -> String = |name| format!("Remark on {name}"), |name| format!("{name} 的备注");
        remark_saved: Text = "The remark was saved.", "备注已保存。";
        messages: Text = "Messages", "消息";
        last_message: Text = "Last message", "最近消息";
        sends_left: Text = "Sends left", "还可发送";
        unlimited: Text = "no limit", "不限";
        window: Text = "Window ends", "可发送至";
        next_send: Text = "next send at", "下次发送";
        no_end: Text = "–", "–";
        no_messages: Text = "No message with this person is kept.", "没有保留与此人的消息。";
        kind: fn(MessageKind) -> Text = |kind| match kind {
            MessageKind::Text => "text",
            MessageKind::Image => "image",
            MessageKind::Voice => "voice",
            MessageKind::Video => "video",
            MessageKind::File => "file",
            MessageKind::Other => "other",
        }, |kind| match kind {
            MessageKind::Text => "文字",
            MessageKind::Image => "图片",
            MessageKind::Voice => "语音",
            MessageKind::Video => "视频",
            MessageKind::File => "文件",
            MessageKind::Other => "其他",
        };
        time: Text = "Time", "时间";
        way: Text = "Direction", "方向";
        text: Text = "Text", "内容";
        state: Text = "Status", "状态";
        write: Text = "Send a message", "发送消息";
        to_owner: Text = "To the owner of the account. Open a contact to write to someone else.",
            "发给账号的主人。要写给其他人，请打开联系人。";
        disabled: Text = "Sending is not possible now:", "现在无法发送：";
        disabled_help: Text = "The person has to write first; the network closes the window after a while.",
            "需要对方先发来消息；网络会在一段时间后关闭窗口。";
        content: Text = "Text", "文字";
        content_help: Text = "A long text is sent in several parts, each of which counts as a send.",
            "较长的文字会分成几条发送，每条单独计数。";
        file: Text = "Picture or file", "图片或文件";
        file_help: fn(usize) -> String = |max| format!("At most {max} MiB; it counts as a separate send. Audio is sent as a file."),
            |max| format!("最大 {max} MiB；单独计为一次发送。音频作为文件发送。");
        file_too_large: Text = "The file is too large.", "文件太大。";
        media_url: Text = "File from a public URL", "公网地址上的文件";
        media_help: Text = "Downloaded now, at most 50 MiB; it counts as a separate send.", "立即下载，最大 50 MiB；单独计为一次发送。";
        format: Text = "Format", "格式";
        plain: Text = "Plain text", "纯文本";
        markdown: Text = "Markdown", "Markdown";
        send: Text = "Send", "发送";
        sent: Text = "The message was accepted and is queued. It is sent in order per person.", "消息已受理并排队，按联系人依次发送。";
    }
}
