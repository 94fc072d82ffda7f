//! Words of the check of signatures.

use super::Text;

words! {
    /// The check of signatures. `{header}` is the name of a header, `{form}` the form of its value.
    Signatures {
        check: Text = "Check a request that you received", "检查收到的请求";
        check_help: Text = "Paste a request to find out why its signature does not match. The check runs in this browser; nothing is sent.",
            "粘贴一个请求，找出签名不一致的原因。检查只在此浏览器中进行，不发送任何内容。";
        elsewhere: Text = "The check needs JavaScript, and https or localhost. The same in a terminal:",
            "检查需要 JavaScript，以及 https 或 localhost。在终端中可以这样做：";
        headers: Text = "Headers of the request", "请求头";
        headers_help: Text = "One per line, as NAME: VALUE. Other lines are ignored.", "每行一个，格式为 名称: 值。其他行会被忽略。";
        body: Text = "Body, exactly as received", "请求体，与收到的完全一致";
        secret: Text = "Secret of the webhook", "webhook 的密钥";
        secret_help: Text = "It stays in this page.", "只留在本页面中。";
        check_now: Text = "Check", "检查";
        matches: Text = "{header} matches.", "{header} 一致。";
        none: Text = "The request has no signature: neither X-Signature nor webhook-signature.",
            "请求没有签名：既没有 X-Signature，也没有 webhook-signature。";
        absent: Text = "{header} is absent. It is part of what is signed.", "缺少 {header}，它是被签名内容的一部分。";
        malformed: Text = "{header} is not a signature of the hub: its form is {form}.", "{header} 不是本服务器的签名：格式应为{form}。";
        form_own: Text = "sha256= and 64 hexadecimal digits in lower case", " sha256= 加 64 位小写十六进制数字";
        form_standard: Text = "v1, and base64 of 32 bytes", " v1, 加 32 字节的 base64";
        upper_case: Text = "{header} is right but in upper case. The hub writes lower case: compare in lower case.",
            "{header} 的内容正确，但用了大写。服务器使用小写：请按小写比较。";
        no_prefix: Text = "{header} is right but lacks sha256= at its start.", "{header} 的内容正确，但开头缺少 sha256=。";
        is_base64: Text = "{header} is right but in base64. The hub writes hexadecimal digits.", "{header} 的内容正确，但用了 base64。服务器使用十六进制。";
        is_hex: Text = "{header} has hexadecimal digits. The hub writes base64 there.", "{header} 用了十六进制。服务器在这里使用 base64。";
        newline_lost: Text = "{header} does not match: the body lost the newline at its end.", "{header} 不一致：请求体末尾的换行丢失了。";
        newline_added: Text = "{header} does not match: the body has a newline at its end that was not signed.",
            "{header} 不一致：请求体末尾多了一个未被签名的换行。";
        line_ends: Text = "{header} does not match: the line ends of the body were changed from CRLF to LF.",
            "{header} 不一致：请求体的换行从 CRLF 变成了 LF。";
        serialized: Text = "{header} does not match: the body was parsed and serialized again. Compute over the bytes as received.",
            "{header} 不一致：请求体被解析后重新序列化。请对收到的原始字节计算。";
        key_text: Text = "{header} was made with the text of the secret. The key is the decoded base64 after whsec_.",
            "{header} 用了密钥的文本。应使用 whsec_ 之后 base64 解码的内容。";
        key_bare: Text = "{header} was made with the secret without whsec_.", "{header} 用了去掉 whsec_ 的密钥。";
        key_prefix: Text = "{header} was made with a secret that starts with whsec_; this one does not.",
            "{header} 用了以 whsec_ 开头的密钥，而这个没有。";
        key_space: Text = "{header} was made with the secret without the space around it.", "{header} 用了去掉首尾空白的密钥。";
        key_decoded: Text = "{header} was made with the secret decoded as base64. The key is its text.",
            "{header} 用了按 base64 解码的密钥。应使用其文本。";
        secret_or_body: Text = "{header} does not match: another secret, or another body. The signature covers the exact bytes of the body.",
            "{header} 不一致：密钥不同，或请求体不同。签名覆盖请求体的每个字节。";
        no_number: Text = "{header} is not a number of seconds.", "{header} 不是秒数。";
        too_old: Text = "{header} is {seconds} s old, 300 s are allowed: an old request, or a wrong clock.",
            "{header} 已过去 {seconds} 秒，允许 300 秒：请求太旧，或时钟有误。";
        too_early: Text = "{header} is {seconds} s ahead, 300 s are allowed: a wrong clock.", "{header} 超前 {seconds} 秒，允许 300 秒：时钟有误。";
        milliseconds: Text = "{header} is in milliseconds. The hub writes seconds.", "{header} 的单位是毫秒。服务器使用秒。";
        case: Text = "{header} arrived as {name}. Names of headers have no case: look them up regardless of it.",
            "{header} 以 {name} 的形式收到。请求头名称不区分大小写，查找时也不要区分。";
    }
}
