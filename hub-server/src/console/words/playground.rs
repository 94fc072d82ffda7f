//! The playground of the simulated network.

use super::Text;

words! {
    Playground {
        title: Text = "Playground", "试验场";
        what: Text =
            "Write to a bot of the simulated network as a person, and follow the message. Nothing here is a mock: the bot, \
        its channels and plugins are those of the other pages.",
            "以某人的身份给模拟网络中的机器人写消息，并跟踪这条消息。这里没有假数据：机器人、频道和插件就是其他页面里的那些。";
        absent: Text =
            "This hub does not run the simulated network. Start hub-server in development, without another address of \
        the simulator.",
            "本服务器没有运行模拟网络。请在开发模式下启动 hub-server，且不要另设模拟器地址。";
        no_bot: Text = "No bot on the simulated network. Bind one first.", "模拟网络中还没有机器人。先绑定一个。";
        bot: Text = "Bot", "机器人";
        choose: Text = "Show", "显示";
        conversation: Text = "Conversation", "对话";
        no_message: Text = "No message yet. Write one as Ada.", "还没有消息。以 Ada 的身份写一条。";
        person: Text = "Write as", "发送者";
        text: Text = "Message", "消息";
        write: Text = "Send", "发送";
        written: Text = "The message is on its way to the hub.", "消息正在送往服务器。";
        message: Text = "Message", "消息";
        receiver: Text = "Receiver of the demo", "演示接收方";
        receiver_help: Text =
            "The demo's channel posts to a receiver in this process, which checks the signature and replies. Let it \
        fail to see the hub retry.",
            "演示频道把消息发送到本进程内的接收方，由它校验签名并回复。让它失败，可以观察重试。";
        mode: Text = "The receiver", "接收方";
        modes: [Text; 4] =
            ["responds with a reply", "responds with 500", "does not respond", "closes the connection"],
            ["回复", "响应 500", "不响应", "断开连接"];
        times: Text = "For this many requests", "持续的请求数";
        times_help: Text = "Empty: until the next change.", "留空则直到下次更改。";
        change: Text = "Change", "更改";
        changed: Text = "The receiver was changed.", "接收方已更改。";
        requests: Text = "Last requests", "最近的请求";
        no_request: Text = "No request yet.", "还没有请求。";
        verified: Text = "valid", "有效";
        not_verified: Text = "not valid", "无效";
        attempt: Text = "Attempt", "尝试";
        reply: Text = "Reply", "回复";
        signature: Text = "Signature", "签名";
        own_code: Text = "Your own code", "你自己的程序";
        own_code_help: Text = "Forward the bot's messages to a program on this machine:", "把机器人的消息转发到本机的程序：";
    }
}
