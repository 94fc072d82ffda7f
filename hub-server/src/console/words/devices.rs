//! Words of letting another device in.

use super::Text;

words! {
    /// Another device is signed in.
    Devices {
        title: Text = "Let another device in", "让其他设备登录";
        what: Text = "A device without your password or passkey can be signed in as you: choose \"Sign in with another device\" on its sign-in page. It shows a QR code with a link.",
            "没有你的密码或通行密钥的设备也可以以你的身份登录：在那台设备的登录页选择用其他设备登录，它会显示二维码和链接。";
        too_old: Text = "Other devices can be let in for 15 minutes after you signed in.", "登录后 15 分钟内可以让其他设备登录。";
        code: Text = "Link in the QR code", "二维码中的链接";
        code_help: Text = "It looks like https://…/login?qr=…", "形如 https://…/login?qr=…";
        open: Text = "Open", "打开";
        opened: Text = "The code was opened.", "二维码已打开。";
        question: Text = "Is this your device? It will be able to do everything that you can do.",
            "这是你的设备吗？它将能做你能做的一切。";
        requested: Text = "Requested", "请求时间";
        user_code: Text = "Code that the device shows", "那台设备显示的代码";
        user_code_help: Text = "A wrong code ends the login. Continue only if you started it yourself.",
            "代码错误会终止登录。只有你自己发起时才继续。";
        approve: Text = "Let it in", "允许登录";
        refuse: Text = "Refuse", "拒绝";
        decided: Text = "That device is signed in. You can sign it out under Sessions.", "那台设备已登录。可以在会话中让它退出。";
    }
}
