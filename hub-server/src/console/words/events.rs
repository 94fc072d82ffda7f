//! Words of the events of an account: the acts of the audit log.

/// Acts, each with its English and its Chinese words.
const ACTS: &[(&str, &str, &str)] = &[
    ("user.registered", "Account created", "创建账号"),
    ("user.created", "Account created by the operator", "由运维人员创建账号"),
    ("user.updated", "Account changed by an administrator", "管理员修改账号"),
    ("user.deleted", "Account deleted", "删除账号"),
    ("user.login", "Signed in", "登录"),
    ("user.login_failed", "Sign-in failed", "登录失败"),
    ("user.logout", "Signed out", "退出登录"),
    ("session.ended", "Session signed out", "结束会话"),
    ("user.sessions_ended", "Sessions ended by an administrator", "管理员结束会话"),
    ("password.changed", "Password changed", "更改密码"),
    ("reset_link.created", "Link for a new password created", "生成重设密码链接"),
    ("password.reset", "Password set with a link", "通过链接重设密码"),
    ("passkey.added", "Passkey added", "添加通行密钥"),
    ("passkey.deleted", "Passkey deleted", "删除通行密钥"),
    ("external_account.linked", "Account linked", "关联外部账号"),
    ("external_account.unlinked", "Account unlinked", "取消关联外部账号"),
    ("qr_login.decided", "Sign-in of another device decided", "处理其他设备的登录请求"),
    ("api_key.created", "API key created", "创建 API 密钥"),
    ("api_key.deleted", "API key deleted", "删除 API 密钥"),
    ("bot.bound", "Bot bound", "绑定机器人"),
    ("bot.logged_in", "Bot logged in again", "机器人重新登录"),
    ("bot.deleted", "Bot deleted", "删除机器人"),
    ("channel.created", "Channel created", "创建频道"),
    ("channel.updated", "Channel changed", "修改频道"),
    ("channel.deleted", "Channel deleted", "删除频道"),
    ("channel_filter.changed", "Filter changed", "修改过滤器"),
    ("webhook_sink.changed", "Webhook changed", "修改 webhook"),
    ("ai_sink.changed", "AI sink changed", "修改 AI 出口"),
    ("websocket_sink.changed", "WebSocket sink changed", "修改 WebSocket 出口"),
    ("ilink_sink.changed", "iLink sink changed", "修改 iLink 出口"),
    ("replay.redirected", "Messages replayed to another URL", "向其他网址重放消息"),
    ("channel_key.regenerated", "Channel key replaced", "更换频道密钥"),
    ("ilink_client.added", "Program logged in to a channel", "程序登录频道"),
    ("ilink_client.revoked", "Program logged out of a channel", "程序退出频道"),
    ("app.created", "App created", "创建应用"),
    ("app.updated", "App changed", "修改应用"),
    ("app.deleted", "App deleted", "删除应用"),
    ("app.reviewed", "Listing of an app decided", "审核应用上架"),
    ("app.installed", "App installed", "安装应用"),
    ("app.installation_changed", "Installed app changed", "修改已安装的应用"),
    ("app.uninstalled", "App uninstalled", "卸载应用"),
    ("app_token.regenerated", "App token replaced", "更换应用令牌"),
    ("invite.created", "Invitation created", "创建邀请"),
    ("plugin.submitted", "Plugin submitted", "提交插件"),
    ("plugin.approved", "Plugin approved", "批准插件"),
    ("plugin.rejected", "Plugin rejected", "驳回插件"),
    ("plugin.withdrawn", "Plugin withdrawn", "撤回插件"),
    ("plugin.deleted", "Plugin deleted", "删除插件"),
    ("channel_plugin.installed", "Plugin installed in a channel", "在频道中安装插件"),
    ("channel_plugin.changed", "Plugin of a channel changed", "修改频道的插件"),
    ("channel_plugin.uninstalled", "Plugin uninstalled from a channel", "从频道卸载插件"),
    ("ai_config.changed", "AI endpoint of the hub changed", "修改服务器的 AI 接口"),
];

/// The English and the Chinese words of an act.
pub(super) fn find(act: &str) -> Option<(&'static str, &'static str)> {
    let found = ACTS.iter().find(|(word, ..)| *word == act);
    found.map(|(_, english, chinese)| (*english, *chinese))
}

#[cfg(test)]
mod tests {
    use hub_core::audit::Action;

    use super::*;

    #[test]
    fn every_act_has_words() {
        for action in Action::ALL {
            assert!(find(action.as_str()).is_some(), "{action}");
        }
        assert_eq!(ACTS.len(), Action::ALL.len(), "words of acts that are not logged");
    }
}
