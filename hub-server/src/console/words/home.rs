//! The first page.

use super::Text;

words! {
    Home {
        title: Text = "Home", "首页";
        attention: Text = "Needs attention", "需要处理";
        all_well: Text = "Nothing needs you.", "一切正常，无需处理。";
        failing: Text = "Deliveries fail since", "投递持续失败，始于";
        last_delivered: Text = "Last delivered:", "最近成功投递：";
        next_attempt: Text = "next attempt:", "下次尝试：";
        key_expires: Text = "Expires", "即将到期";
        last_hour: Text = "Last hour", "最近一小时";
        received: Text = "Received", "收到";
        sent: Text = "Sent", "发出";
        delivered: Text = "Delivered", "已投递";
        failed: Text = "Failed", "失败";
        first_steps: Text = "First steps", "入门步骤";
        done: Text = "Done", "完成";
        open: Text = "Open", "待办";
        step_bot: Text = "Bind a chat account: it becomes a bot", "绑定一个聊天账号，它就是机器人";
        step_message: Text = "Receive a message and look at its trace", "收到一条消息，查看它的追踪";
        step_channel: Text = "Create a channel that delivers to your program", "创建一个投递到你的程序的频道";
        step_key: Text = "Create an API key for your program", "为你的程序创建 API 密钥";
        try_it: Text = "Try it", "试一试";
        try_help: Text =
            "This hub runs a simulated chat network: write to a bot as a person, and see what happens to the message.",
            "本服务器带有模拟聊天网络：以某人的身份给机器人写一条消息，看看它会怎样处理。";
    }
}
