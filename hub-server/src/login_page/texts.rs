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
    pub(super) first_account: &'static str,
    pub(super) password_hint: &'static str,
    /// Why there are no passkeys; `None` says it in the words of the hub.
    pub(super) no_passkeys: Option<&'static str>,
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
    pub(super) reset_title: &'static str,
    pub(super) reset_help: &'static str,
    pub(super) new_password: &'static str,
    pub(super) again: &'static str,
    pub(super) set_password: &'static str,
    pub(super) set_for: &'static str,
    pub(super) to_sign_in: &'static str,
    /// What the script says, by name.
    pub(super) spoken: &'static [(&'static str, &'static str)],
    /// What the hub says of a refusal, by its sentence or else by its code.
    pub(super) told: &'static [(&'static str, &'static str)],
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
    with: "Sign in with ",
    show_qr: "Sign in with another device",
    new_account: "Create an account",
    first_account: "Nobody has an account here yet. Create the first one below: it is the administrator's.",
    password_hint: "At least 8 characters.",
    no_passkeys: None,
    setup_token: "Invitation or setup token",
    setup_token_hint: "Only where the hub asks for one: an administrator gives you an invitation; for the first account \
        the server printed a setup token when it started.",
    create: "Create with password",
    create_with_passkey: "Create with a passkey",
    qr_title: "Scan with a device that is signed in",
    qr_help: "Open the link of this code on a device that is signed in, and type there what stands below.",
    qr_alt: "QR code of the link below",
    qr_code: "Code",
    signed_in_as: "You are signed in as ",
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
    reset_title: "Set a new password",
    reset_help: "This link works once. You are signed out everywhere when the new password is set.",
    new_password: "New password",
    again: "New password again",
    set_password: "Set the password",
    set_for: "The new password is that of ",
    to_sign_in: "Sign in",
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
        ("passwordSet", "The password is set."),
        ("unequal", "The two passwords are not the same."),
        ("noToken", "This link is not complete. Open it as you got it, or ask for another one."),
        ("error_expired", "This sign-in took too long, or was begun in another browser. Try again."),
        ("error_declined", "The provider did not sign you in."),
        ("error_provider_failed", "The provider could not be asked. Try again later."),
        ("error_conflict", "This account is linked to somebody else."),
        ("error_forbidden", "This account may not sign in here."),
    ],
    told: &[("RATE_LIMITED", "Too many tries. Wait a minute.")],
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
    first_account: "这里还没有任何账号。请在下方创建第一个账号，它将成为管理员账号。",
    password_hint: "至少 8 个字符。",
    no_passkeys: Some("此地址不能使用通行密钥：需要带域名的 https 地址，或 http://localhost。"),
    setup_token: "邀请码或初始化令牌",
    setup_token_hint: "仅在需要时填写：邀请码由管理员提供；创建第一个账号时，使用服务器启动时显示的初始化令牌。",
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
    reset_title: "设置新密码",
    reset_help: "此链接只能使用一次。设置新密码后，您在所有设备上都会退出登录。",
    new_password: "新密码",
    again: "再次输入新密码",
    set_password: "设置密码",
    set_for: "新密码所属用户：",
    to_sign_in: "去登录",
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
        ("passwordSet", "密码已设置。"),
        ("unequal", "两次输入的密码不一致。"),
        ("noToken", "链接不完整。请原样打开收到的链接，或向管理员索取新的链接。"),
        ("error_expired", "登录超时，或是在另一个浏览器中开始的，请重试。"),
        ("error_declined", "服务提供方未完成登录。"),
        ("error_provider_failed", "暂时无法连接服务提供方，请稍后再试。"),
        ("error_conflict", "该账号已关联到其他用户。"),
        ("error_forbidden", "该账号不能在此登录。"),
    ],
    told: &[
        ("username or password is wrong", "用户名或密码不正确。"),
        ("the link is wrong, used or expired", "链接不正确、已使用或已过期。"),
        ("registration is closed", "此服务器不开放注册。"),
        ("registering needs an invitation", "注册需要邀请码。"),
        ("the invitation is wrong, used or expired", "邀请码不正确、已使用或已过期。"),
        ("the setup token is wrong, used or expired", "初始化令牌不正确、已使用或已过期。"),
        (
            "this hub has no administrator yet: register with the setup token that the server printed at its start",
            "此服务器还没有管理员：请使用服务器启动时显示的初始化令牌注册。",
        ),
        ("this passkey is not accepted", "不接受此通行密钥。"),
        ("this passkey is in use already", "此通行密钥已被使用。"),
        ("the code is wrong; this login has ended", "验证码不正确，本次登录已结束。"),
        ("this QR login is unknown, used, expired or over", "此二维码登录无效、已使用或已过期。"),
        ("sign in again to change how you sign in", "请重新登录后再更改登录方式。"),
        ("must be 8 to 256 characters", "须为 8 至 256 个字符"),
        ("must not be the username", "不能与用户名相同"),
        ("is too easy to guess", "太容易被猜到"),
        (
            "must be 2 to 32 letters a-z, digits, underscores or hyphens",
            "须为 2 至 32 个字母 a-z、数字、下划线或连字符",
        ),
        ("is reserved", "是保留名称"),
        ("UNAUTHORIZED", "请先登录。"),
        ("INVALID_TOKEN", "登录已失效，请重新开始。"),
        ("FORBIDDEN", "不允许此操作。"),
        ("NOT_FOUND", "未找到。"),
        ("CONFLICT", "已被占用，或与现有内容冲突。"),
        ("RATE_LIMITED", "尝试次数过多，请稍后再试。"),
        ("INTERNAL_ERROR", "服务器出错，请稍后再试。"),
        ("UNAVAILABLE", "服务器暂时不可用，请稍后再试。"),
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
        assert!(CHINESE.spoken.iter().chain(CHINESE.told).all(|(_, text)| !text.is_ascii()));
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
