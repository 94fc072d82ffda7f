//! Words of replays of many deliveries.

use super::Text;

words! {
    /// Replays of many deliveries.
    Replays {
        select: fn(&str) -> String = |text| format!("Select: {text}"), |text| format!("选择：{text}");
        selection: Text = "Select", "选择";
        selected: Text = "Replay selected…", "重放所选…";
        matching: Text = "Replay all that match…", "重放所有符合条件的…";
        rule: Text = "Of a message with failed deliveries, only these are replayed. Deliveries in flight or waiting are left out.",
            "消息若有失败的投递，只重放失败的那些。投递中和等待中的不重放。";
        preview: Text = "Replay deliveries", "重放投递";
        count: fn(u64) -> String = |count| match count {
            1 => "1 delivery will be sent again through its channel, as the channel is configured now.".to_owned(),
            _ => format!("{count} deliveries will be sent again, each through its channel as the channel is configured now."),
        }, |count| format!("将重新投递 {count} 条，按各频道当前的配置进行。");
        effect: Text = "The receivers get these messages again, and people may receive replies again.",
            "接收方会再次收到这些消息，对方也可能再次收到回复。";
        none: Text = "None of these deliveries can be replayed.", "这些投递都不能重放。";
        url: Text = "Another URL", "其他 URL";
        url_help: Text = "Empty: the webhook of each channel. The credentials of the channels are not sent to another URL.",
            "留空则使用各频道的 webhook。频道的凭据不会发送到其他 URL。";
        supersede: fn(u64) -> String = |count| match count {
            1 => "Cancel 1 delivery that still waits, and replay it".to_owned(),
            _ => format!("Cancel {count} deliveries that still wait, and replay them"),
        }, |count| format!("取消 {count} 条等待中的投递，并重放它们");
        start: fn(u64) -> String = |count| match count {
            1 => "Replay 1 delivery".to_owned(),
            _ => format!("Replay {count} deliveries"),
        }, |count| format!("重放 {count} 条投递");
        started: Text = "The replay was started. It continues if you leave this page.", "重放已开始，离开本页也会继续。";
        title: Text = "Replay", "重放";
        progress: fn(u64, u64) -> String = |done, total| format!("{done} of {total} finished"),
            |done, total| format!("已完成 {done} / {total}");
        ok: Text = "Succeeded", "成功";
        failed: Text = "Failed", "失败";
        skipped: Text = "Skipped by a plugin", "被插件跳过";
        pending: Text = "In flight", "投递中";
        deleted: Text = "Deleted after the retention time", "超过保留时间已删除";
        refused: Text = "Not replayed", "未重放";
        reason: Text = "Reason", "原因";
        new_traces: Text = "New traces", "新的追踪";
        check: Text = "Check again", "再次检查";
    }
}
