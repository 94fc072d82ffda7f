//! The words of the sign-in page, in English and in Simplified Chinese.

/// Everything the page says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Texts {
    pub(super) lang: &'static str,
    pub(super) title: &'static str,
    pub(super) other_language: (&'static str, &'static str),
    pub(super) needs_script: &'static str,
    pub(super) username: &'static str,
    pub(super) password: &'static str,
    pub(super) sign_in: &'static str,
    pub(super) other_ways: &'static str,
    pub(super) with_passkey: &'static str,
    pub(super) with: &'static str,
    pub(super) show_qr: &'static str,
    pub(super) new_account: &'static str,
    pub(super) password_hint: &'static str,
    pub(super) setup_token: &'static str,
    pub(super) setup_token_hint: &'static str,
    pub(super) create: &'static str,
    pub(super) create_with_passkey: &'static str,
    pub(super) qr_title: &'static str,
    pub(super) qr_help: &'static str,
    pub(super) qr_alt: &'static str,
    pub(super) qr_code: &'static str,
    pub(super) signed_in_as: &'static str,
    pub(super) go_on: &'static str,
    pub(super) let_in: &'static str,
    pub(super) passkey_name: &'static str,
    pub(super) add_passkey: &'static str,
    pub(super) sign_out: &'static str,
    pub(super) confirm_title: &'static str,
    pub(super) confirm_help: &'static str,
    pub(super) asker_address: &'static str,
    pub(super) asker_program: &'static str,
    pub(super) asker_time: &'static str,
    pub(super) code_there: &'static str,
    pub(super) approve: &'static str,
    pub(super) refuse: &'static str,
    /// What the script says, by name.
    pub(super) spoken: &'static [(&'static str, &'static str)],
}

pub(super) const ENGLISH: Texts = Texts {
    lang: "en",
    title: "Sign in",
    other_language: ("zh", "简体中文"),
    needs_script: "This page needs JavaScript.",
    username: "Username",
    password: "Password",
    sign_in: "Sign in",
    other_ways: "Other ways",
    with_passkey: "Sign in with a passkey",
    with: "Sign in with",
    show_qr: "Sign in with another device",
    new_account: "Create an account",
    password_hint: "At least 8 characters.",
    setup_token: "Setup token",
    setup_token_hint: "Only for the first account of a hub: the server printed it when it started.",
    create: "Create with password",
    create_with_passkey: "Create with a passkey",
    qr_title: "Scan with a device that is signed in",
    qr_help: "Open the link of this code on a device that is signed in, and type there what stands below.",
    qr_alt: "QR code of the link below",
    qr_code: "Code",
    signed_in_as: "You are signed in as",
    go_on: "Continue",
    let_in: "Let in with a QR code lately. Was it not you? End it, and change how you sign in.",
    passkey_name: "Name of the passkey",
    add_passkey: "Add a passkey",
    sign_out: "Sign out",
    confirm_title: "Sign in another device?",
    confirm_help: "Another device asks to be signed in as you. Go on only if it is yours and stands in front of \
        you. Nobody may send you this code.",
    asker_address: "Address",
    asker_program: "Program",
    asker_time: "Asked at",
    code_there: "Code shown by that device",
    approve: "Sign it in",
    refuse: "Refuse",
    spoken: &[
        ("working", "One moment…"),
        ("signedIn", "You are signed in."),
        ("signedOut", "You are signed out."),
        ("added", "The passkey was added."),
        ("cancelled", "Nothing was changed: the passkey was not used."),
        ("exists", "This device has a passkey for this account already."),
        ("insecure", "This browser does not allow passkeys at this address."),
        ("unreachable", "The hub cannot be reached. Try again."),
        ("waiting", "Waiting for the other device."),
        ("scanned", "The other device has opened the code."),
        ("expired", "This code has expired. Show a new one."),
        ("refused", "The other device has refused."),
        ("confirmed", "That device is signed in."),
        ("cancelledLogin", "That device was refused."),
        ("end", "End it"),
        ("ended", "That device is signed out."),
        ("error_expired", "This sign-in took too long, or was begun in another browser. Try again."),
        ("error_declined", "The provider did not sign you in."),
        ("error_provider_failed", "The provider could not be asked. Try again later."),
        ("error_conflict", "This account is linked to somebody else."),
        ("error_forbidden", "This account may not sign in here."),
    ],
};

pub(super) const CHINESE: Texts = Texts {
    lang: "zh-CN",
    title: "登录",
    other_language: ("en", "English"),
    needs_script: "此页面需要 JavaScript。",
    username: "用户名",
    password: "密码",
    sign_in: "登录",
    other_ways: "其他方式",
    with_passkey: "使用通行密钥登录",
    with: "使用以下账号登录：",
    show_qr: "用其他设备登录",
    new_account: "创建账号",
    password_hint: "至少 8 个字符。",
    setup_token: "初始化令牌",
    setup_token_hint: "仅用于创建第一个账号：服务器启动时已显示。",
    create: "用密码创建",
    create_with_passkey: "用通行密钥创建",
    qr_title: "用已登录的设备扫码",
    qr_help: "在已登录的设备上打开此二维码的链接，并输入下面的验证码。",
    qr_alt: "下方链接的二维码",
    qr_code: "验证码",
    signed_in_as: "当前登录用户：",
    go_on: "继续",
    let_in: "最近通过二维码登录的设备。如果不是您本人操作，请将其退出，并更改您的登录方式。",
    passkey_name: "通行密钥名称",
    add_passkey: "添加通行密钥",
    sign_out: "退出登录",
    confirm_title: "要让另一台设备登录吗？",
    confirm_help: "另一台设备请求以您的身份登录。只有当它属于您并且就在您面前时才继续。任何人都不应把此验证码发给您。",
    asker_address: "地址",
    asker_program: "程序",
    asker_time: "请求时间",
    code_there: "那台设备显示的验证码",
    approve: "允许登录",
    refuse: "拒绝",
    spoken: &[
        ("working", "请稍候…"),
        ("signedIn", "您已登录。"),
        ("signedOut", "您已退出登录。"),
        ("added", "通行密钥已添加。"),
        ("cancelled", "未作更改：没有使用通行密钥。"),
        ("exists", "此设备已有该账号的通行密钥。"),
        ("insecure", "浏览器不允许在此地址使用通行密钥。"),
        ("unreachable", "无法连接服务器，请重试。"),
        ("waiting", "正在等待另一台设备。"),
        ("scanned", "另一台设备已打开二维码。"),
        ("expired", "二维码已过期，请重新显示。"),
        ("refused", "另一台设备已拒绝。"),
        ("confirmed", "那台设备已登录。"),
        ("cancelledLogin", "已拒绝那台设备。"),
        ("end", "使其退出"),
        ("ended", "那台设备已退出登录。"),
        ("error_expired", "登录超时，或是在另一个浏览器中开始的，请重试。"),
        ("error_declined", "服务提供方未完成登录。"),
        ("error_provider_failed", "暂时无法连接服务提供方，请稍后再试。"),
        ("error_conflict", "该账号已关联到其他用户。"),
        ("error_forbidden", "该账号不能在此登录。"),
    ],
};

/// The language of a page: what the address asks for, else what the browser prefers.
pub(super) fn choose(asked: Option<&str>, accepted: Option<&str>) -> &'static Texts {
    let chinese = |text: &str| text.trim_start().to_ascii_lowercase().starts_with("zh");
    match asked {
        Some(asked) => {
            if chinese(asked) {
                &CHINESE
            } else {
                &ENGLISH
            }
        }
        None if accepted.is_some_and(chinese) => &CHINESE,
        None => &ENGLISH,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_languages_say_the_same() {
        let names = |texts: &Texts| texts.spoken.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        assert_eq!(names(&ENGLISH), names(&CHINESE));
        assert!(CHINESE.spoken.iter().all(|(_, text)| !text.is_ascii()));
    }

    #[test]
    fn the_address_decides_before_the_browser() {
        for (asked, accepted, lang) in [
            (None, None, "en"),
            (None, Some("zh-CN,zh;q=0.9,en;q=0.8"), "zh-CN"),
            (None, Some("de,zh;q=0.5"), "en"),
            (Some("en"), Some("zh-CN"), "en"),
            (Some("zh"), Some("en"), "zh-CN"),
        ] {
            assert_eq!(choose(asked, accepted).lang, lang, "{asked:?} {accepted:?}");
        }
    }
}
