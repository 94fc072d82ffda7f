//! Words of the iLink sink.

use super::Text;

words! {
    /// The iLink sink, and logins of its clients.
    Ilink {
        what: Text = "Programs that speak the protocol of the chat network use the hub in place of the network: agent hosts, SDKs, bridges. Each receives every message of this channel.",
            "使用聊天网络协议的程序（智能体主机、SDK、桥接器）可以用本服务器代替网络。每个程序都会收到本频道的所有消息。";
        configuration: Text = "Configuration", "配置";
        enabled: Text = "Programs may log in and receive messages", "允许程序登录并接收消息";
        max_clients: Text = "Maximum number of programs", "程序数量上限";
        max_clients_help: Text = "1 to 20. Programs that are logged in stay so.", "1 到 20。已登录的程序不受影响。";
        idle_days: Text = "Idle limit in days", "闲置天数上限";
        idle_days_help: Text = "1 to 365. A program without a request for longer is logged out.", "1 到 365。超过此时间没有请求的程序会被退出登录。";
        save: Text = "Save", "保存";
        saved: Text = "The iLink sink was saved.", "iLink 出口已保存。";
        clients: Text = "Programs", "程序";
        no_clients: Text = "No program is logged in.", "没有程序登录。";
        address: Text = "Address", "地址";
        program: Text = "Program", "程序";
        since: Text = "Logged in", "登录于";
        last_used: Text = "Last request", "最近请求";
        acknowledged: Text = "Acknowledged up to", "已确认至";
        action: Text = "Action", "操作";
        log_out: Text = "Log out", "退出登录";
        logged_out: Text = "The program was logged out.", "程序已退出登录。";
        connect: Text = "Log a program in", "让程序登录";
        base_url: Text = "Give the program this base URL, start its login, and open the link in the QR code that it shows:",
            "在程序中填写以下基础地址，开始登录，然后打开它显示的二维码中的链接：";
        cdn_url: Text = "If it asks for the address of the CDN:", "如果程序需要 CDN 地址：";
        title: Text = "Log a program in", "让程序登录";
        login_what: Text = "A program that shows a QR code of this hub becomes a client of one of your channels.", "显示本服务器二维码的程序会成为你某个频道的客户端。";
        login: Text = "Link in the QR code", "二维码中的链接";
        login_help: Text = "It looks like https://…/ilink/login?login=…", "形如 https://…/ilink/login?login=…";
        open: Text = "Open", "打开";
        opened: Text = "The code was opened.", "二维码已打开。";
        question: Text = "Is this your program? It will receive the messages of the channel, with their files, and send messages and files to the people who wrote.",
            "这是你的程序吗？它将收到该频道的消息和文件，并能向写信的人发送消息和文件。";
        requested: Text = "Requested", "请求时间";
        expires: Text = "Expires", "到期时间";
        channel: Text = "Channel", "频道";
        channel_help: Text = "Channels whose iLink sink is on, or a new one. Confirm only if you started the login yourself.",
            "iLink 出口已开启的频道，或新建频道。只有你自己发起登录时才确认。";
        new_channel: Text = "new channel", "新频道";
        no_bot: Text = "You have no bot yet. Bind one, then open the link again.", "你还没有机器人。请先绑定，然后再次打开链接。";
        confirm: Text = "Log it in", "允许登录";
        confirmed: Text = "The program is logged in.", "程序已登录。";
        refuse: Text = "Refuse", "拒绝";
        refused: Text = "The login was refused.", "已拒绝登录。";
    }
}
