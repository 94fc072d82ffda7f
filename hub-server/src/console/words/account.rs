//! The account of the signed-in user.

use super::Text;

words! {
    Account {
        profile: Text = "Profile", "个人资料";
        username: Text = "Username", "用户名";
        display_name: Text = "Display name", "显示名称";
        email: Text = "E-mail", "电子邮箱";
        role: fn(hub_core::access::Role) -> Text =
            |role| match role {
        hub_core::access::Role::Admin => "Administrator",
        hub_core::access::Role::Member => "Member",
    },
            |role| match role {
        hub_core::access::Role::Admin => "管理员",
        hub_core::access::Role::Member => "成员",
    };
        role_title: Text = "Role", "角色";
        save_profile: Text = "Save profile", "保存资料";
        profile_saved: Text = "The profile was saved.", "资料已保存。";
        security: Text = "Sign-in", "登录方式";
        password: Text = "Password", "密码";
        old_password: Text = "Current password", "当前密码";
        new_password: Text = "New password", "新密码";
        password_help: Text =
            "8 to 256 characters. All other sessions are signed out; API keys stay valid.",
            "8 至 256 个字符。其他会话都会退出登录；API 密钥仍然有效。";
        change_password: Text = "Change password", "更改密码";
        password_changed: Text = "The password was changed. All other sessions were signed out.", "密码已更改，其他会话已退出登录。";
        passkeys: Text = "Passkeys", "通行密钥";
        passkeys_help: Text =
            "A passkey signs you in without a password, with this device or a security key.",
            "通行密钥让你用本设备或安全密钥登录，无需密码。";
        no_passkey: Text = "No passkey.", "没有通行密钥。";
        add_passkey: Text = "Add a passkey", "添加通行密钥";
        passkey_name: Text = "Name of the passkey", "通行密钥的名称";
        passkey_name_help: Text = "For example: phone. At most 64 characters.", "例如：手机。最多 64 个字符。";
        passkey_added: Text = "The passkey was added.", "通行密钥已添加。";
        passkey_cancelled: Text = "Nothing was changed: the browser cancelled it, or it took too long.", "没有更改：浏览器取消了操作，或超时。";
        passkey_exists: Text = "This device has a passkey for this account already.", "此设备已有此账号的通行密钥。";
        passkey_too_old: Text = "Ways to sign in can be changed for 15 minutes after you signed in.", "登录后 15 分钟内可以更改登录方式。";
        passkey_unavailable: Text = "This browser does not allow passkeys at this address: they need JavaScript, and https or localhost.",
            "此浏览器不允许在此地址使用通行密钥：需要 JavaScript，以及 https 或 localhost。";
        added: Text = "Added", "添加时间";
        delete_named: fn(&str) -> String = |name| format!("Delete passkey {name}"), |name| format!("删除通行密钥 {name}");
        passkey_deleted: Text = "The passkey was deleted.", "通行密钥已删除。";
        providers: Text = "Linked accounts", "关联账号";
        provider: Text = "Provider", "服务提供方";
        linked: Text = "Linked", "关联时间";
        link_named: fn(&str) -> String = |name| format!("Link {name}"), |name| format!("关联 {name}");
        unlink_named: fn(&str) -> String = |name| format!("Unlink {name}"), |name| format!("取消关联 {name}");
        unlinked: Text = "The account was unlinked.", "已取消关联。";
        action: Text = "Action", "操作";
        sessions: Text = "Sessions", "会话";
        sessions_help: Text = "Browsers and programs that are signed in as you.", "以你的身份登录的浏览器和程序。";
        program: Text = "Program", "程序";
        address: Text = "Address", "地址";
        signed_in_at: Text = "Signed in", "登录时间";
        last_seen: Text = "Last seen", "最近使用";
        this_session: Text = "this session", "当前会话";
        end_session: Text = "Sign out", "退出登录";
        session_ended: Text = "The session was signed out.", "该会话已退出登录。";
        activity: Text = "Activity", "活动记录";
        activity_help: Text =
            "What was done with this account, and from where. Entries are retained for one year.",
            "此账号做过什么、来自哪里。记录保留一年。";
        at: Text = "Time", "时间";
        event: Text = "Event", "事件";
        act: fn(&str) -> Option<Text> = |act| super::events::find(act).map(|(english, _)| english),
            |act| super::events::find(act).map(|(_, chinese)| chinese);
        target: Text = "Target", "对象";
        confirm: Text = "Confirm it is you", "确认是你本人";
        confirm_help: Text =
            "For 15 minutes after you signed in, you can change how you sign in and let other devices in. Enter your password to go on.",
            "登录后 15 分钟内，你可以更改登录方式，也可以让其他设备登录。输入密码以继续。";
        confirm_button: Text = "Confirm", "确认";
        confirm_passkey: Text = "Confirm with a passkey", "用通行密钥确认";
        another_way: Text = "Sign in another way", "用其他方式登录";
        another_way_help: Text =
            "To confirm with a provider or another device, sign in again. You come back to the same page.",
            "要用服务提供方或其他设备确认，请重新登录。之后会回到同一页面。";
    }
}
