//! The texts of the authorization page, in English and in Simplified Chinese.

use hub_core::apps::AppScope;

use crate::appearance::Appearance;

/// The texts of the page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Texts {
    pub(super) lang: &'static str,
    /// Title of the page.
    pub(super) title: &'static str,
    /// Before and after the name of the app.
    pub(super) question: (&'static str, &'static str),
    /// Before and after the name of the author.
    pub(super) author: (&'static str, &'static str),
    pub(super) no_bot: &'static str,
    pub(super) bot: &'static str,
    pub(super) no_ability: &'static str,
    pub(super) abilities: &'static str,
    /// Before and after the address of the app.
    pub(super) leads_to: (&'static str, &'static str),
    pub(super) deny: &'static str,
    pub(super) allow: &'static str,
    pub(super) problem_title: &'static str,
    pub(super) problem: &'static str,
    pub(super) problem_help: &'static str,
    /// Description of a scope.
    pub(super) ability: fn(AppScope) -> &'static str,
}

const ENGLISH: Texts = Texts {
    lang: "en",
    title: "Install an app on your bot",
    question: ("Install ", " on your bot?"),
    author: ("An app by the user ", "."),
    no_bot: "You have no bot yet. Bind one first, then come back.",
    bot: "Bot",
    no_ability: "It requests no permissions.",
    abilities: "It will be able to",
    leads_to: ("Either choice returns you to ", "."),
    deny: "Deny",
    allow: "Allow",
    problem_title: "Authorization",
    problem: "This authorization request is invalid",
    problem_help: "Report this to the author of the app. Nothing was changed.",
    ability: AppScope::in_words,
};

const CHINESE: Texts = Texts {
    lang: "zh-CN",
    title: "将应用安装到您的机器人",
    question: ("要将 ", " 安装到您的机器人吗？"),
    author: ("由用户 ", " 开发的应用。"),
    no_bot: "您还没有机器人。请先绑定一个，然后再回到此页面。",
    bot: "机器人",
    no_ability: "它没有申请任何权限。",
    abilities: "它将能够",
    leads_to: ("无论允许还是拒绝，您都将前往 ", "。"),
    deny: "拒绝",
    allow: "允许",
    problem_title: "授权",
    problem: "此授权请求无效",
    problem_help: "请告知应用的开发者。未作任何更改。",
    ability: |scope| match scope {
        AppScope::MessageRead => "读取他人发给此机器人的消息",
        AppScope::MessageWrite => "以此机器人的身份发送消息",
        AppScope::ContactRead => "查看此机器人的联系人",
        AppScope::BotRead => "查看此机器人的名称和状态",
        AppScope::ToolsWrite => "更改它在此处提供的命令和工具",
        AppScope::ConfigRead => "读取您在此处为它设置的配置",
    },
};

/// The texts in the language of a browser's pages.
pub(super) fn choose(appearance: Appearance) -> &'static Texts {
    if appearance.is_chinese() { &CHINESE } else { &ENGLISH }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ability_is_named_in_both_languages() {
        for scope in AppScope::ALL {
            assert!((ENGLISH.ability)(scope).is_ascii() && !(CHINESE.ability)(scope).is_ascii(), "{scope:?}");
        }
    }
}
