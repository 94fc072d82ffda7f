//! Words of binding an account.

use hub_core::bots::BindStatus;

use super::Text;

words! {
    /// Binding an account.
    Bind {
        title: Text = "Bind an account", "绑定账号";
        what: Text =
            "The hub shows a code. Scan it with the account that is to become a bot, and confirm on the phone. An account that was bound \
             before keeps its channels and messages.",
            "页面会显示一个二维码。用要作为机器人的账号扫码，并在手机上确认。曾经绑定过的账号会保留频道和消息。";
        name_help: Text = "Empty: a new bot gets a generated name, a known one keeps its name.",
            "留空时，新机器人自动命名，已有的机器人保留原名。";
        start: Text = "Show the code", "显示二维码";
        started: Text = "Scan the code.", "请扫描二维码。";
        state: fn(BindStatus) -> Text = |status| match status {
            BindStatus::Waiting => "Scan the code",
            BindStatus::Scanned => "Confirm on the phone",
            BindStatus::NeedCode => "Type the number",
            BindStatus::Confirmed => "Bound",
            BindStatus::Expired => "The code expired",
            BindStatus::AlreadyBound => "Already bound",
            BindStatus::Refused => "Refused",
        }, |status| match status {
            BindStatus::Waiting => "扫描二维码",
            BindStatus::Scanned => "在手机上确认",
            BindStatus::NeedCode => "输入数字",
            BindStatus::Confirmed => "绑定完成",
            BindStatus::Expired => "二维码已过期",
            BindStatus::AlreadyBound => "已经绑定",
            BindStatus::Refused => "被拒绝",
        };
        sentence: fn(BindStatus) -> Text = |status| match status {
            BindStatus::Waiting => "Scan it with the chat app of the account. The page shows the next step by itself.",
            BindStatus::Scanned => "The code was scanned. Confirm the login in the chat app.",
            BindStatus::NeedCode => "The phone shows a number. Type it here.",
            BindStatus::Confirmed => "The account is a bot now. Write it a message to see it arrive.",
            BindStatus::Expired => "No one confirmed in time. Nothing was changed.",
            BindStatus::AlreadyBound => "This account is a bot of yours. Its channels and messages stay.",
            BindStatus::Refused => "The network or the hub refused the login. Nothing was changed.",
        }, |status| match status {
            BindStatus::Waiting => "用该账号的聊天应用扫码，页面会自动显示下一步。",
            BindStatus::Scanned => "已扫码。请在聊天应用中确认登录。",
            BindStatus::NeedCode => "手机上显示了一个数字，请在这里输入。",
            BindStatus::Confirmed => "该账号现在是机器人了。给它发一条消息，看它到达。",
            BindStatus::Expired => "没有及时确认，没有作任何更改。",
            BindStatus::AlreadyBound => "该账号已是你的机器人，频道和消息都会保留。",
            BindStatus::Refused => "网络或服务器拒绝了这次登录，没有作任何更改。",
        };
        code: Text = "QR code of the login; the link is below", "登录二维码，链接在下方";
        link: Text = "The code as a link, for example to open on the phone itself:",
            "二维码对应的链接，可直接在手机上打开：";
        person: Text = "Simulated person who scans the code", "扫码的模拟用户";
        person_help: Text = "A name, such as Cleo. Empty: a new person. A person whose bot is bound already keeps that bot.",
            "一个名字，例如 Cleo。留空则为新用户。已绑定机器人的用户会保留原机器人。";
        scan: Text = "Scan with a simulated phone", "用模拟手机扫码";
        scanned: Text = "The code was scanned.", "已扫码。";
        simulated: Text = "On the simulated network, this command also scans the code and confirms:",
            "在模拟网络中，这条命令也可以扫码并确认：";
        age: Text = "Started", "开始于";
        check: Text = "Check again", "再次检查";
        sent: Text = "The number was sent.", "数字已发送。";
        number: Text = "Number on the phone", "手机上的数字";
        send: Text = "Send number", "发送数字";
        again: Text = "Show a new code", "显示新的二维码";
        open: Text = "Open the bot", "打开机器人";
        no_message: Text = "No message yet.", "还没有消息。";
        first_message: Text = "A message arrived. The bot works.", "收到消息，机器人工作正常。";
    }
}
