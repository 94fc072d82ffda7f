//! Words of webhooks and of their test.

use hub_core::{
    channels::sinks::{AuthMethod, Ordering},
    egress::{EgressFault, Phase},
    traces::{StepName, TraceStatus},
};

use super::Text;

words! {
    /// The webhook of a channel.
    Webhooks {
        what: Text = "The hub posts each message to this URL and retries until the receiver confirms it with a status of 2xx.",
            "服务器把每条消息 POST 到这个 URL，并重试到接收方以 2xx 状态确认为止。";
        switched_off: Text = "The hub switched this webhook off:", "服务器关闭了这个 webhook：";
        switch_on_again: Text = "Correct the cause, then save: that switches it on again.", "排除原因后保存，即可重新开启。";
        configuration: Text = "Configuration", "配置";
        enabled: Text = "Deliver messages to this URL", "向这个 URL 投递消息";
        url: Text = "URL", "URL";
        url_help: Text = "Private addresses are refused unless the operator of this hub allowed them.", "私有地址会被拒绝，除非本服务器的管理员已允许。";
        auth: Text = "Authentication", "验证方式";
        method: Text = "Method", "方式";
        methods: fn(AuthMethod) -> Text = |method| match method {
            AuthMethod::None => "None",
            AuthMethod::Bearer => "Bearer token: Authorization: Bearer …",
            AuthMethod::Header => "A header of your choice",
            AuthMethod::Hmac => "HMAC signature: X-Signature",
        }, |method| match method {
            AuthMethod::None => "无",
            AuthMethod::Bearer => "Bearer 令牌：Authorization: Bearer …",
            AuthMethod::Header => "自定义请求头",
            AuthMethod::Hmac => "HMAC 签名：X-Signature",
        };
        header_name: Text = "Name of the header", "请求头名称";
        header_help: Text = "For the method with a header of your choice.", "仅用于自定义请求头。";
        secret: Text = "Secret", "密钥";
        secret_help: Text = "Empty keeps the current one, or generates one for HMAC. At least 16 bytes for signatures. whsec_ and base64: Standard Webhooks.",
            "留空则保留当前密钥；HMAC 没有密钥时会自动生成。签名密钥至少 16 字节。whsec_ 加 base64 为 Standard Webhooks 格式。";
        has_secret: Text = "A secret is set.", "已设置密钥。";
        no_secret: Text = "No secret is set.", "未设置密钥。";
        remove_secret: Text = "Remove the secret", "删除密钥";
        old_secret_until: Text = "The previous secret signs in addition until", "之前的密钥同时签名至";
        retries: Text = "Retries", "重试";
        schedule: Text = "Seconds before each retry", "每次重试前等待的秒数";
        schedule_help: Text = "One number per line, 1 to 20 of them. After the last retry the delivery is dead.",
            "每行一个数字，1 至 20 行。最后一次重试后放弃投递。";
        gives_up: fn(&str) -> String = |time| format!("Gives up after {time}."), |time| format!("{time}后放弃。");
        at_once: Text = "at once", "立即";
        seconds: fn(u64) -> String = |n| format!("{n} s"), |n| format!("{n} 秒");
        minutes: fn(u64) -> String = |n| format!("{n} min"), |n| format!("{n} 分钟");
        hours: fn(u64) -> String = |n| format!("{n} h"), |n| format!("{n} 小时");
        limits: Text = "Order and limits", "顺序与限制";
        timeout: Text = "Timeout of one attempt, in milliseconds", "单次尝试的超时（毫秒）";
        timeout_help: Text = "At most 30000.", "最大 30000。";
        ordering: Text = "Order of deliveries", "投递顺序";
        orderings: fn(Ordering) -> Text = |ordering| match ordering {
            Ordering::Conversation => "Per conversation, in order of arrival, one at a time",
            Ordering::None => "No order",
        }, |ordering| match ordering {
            Ordering::Conversation => "按会话依次投递",
            Ordering::None => "不保证顺序",
        };
        concurrency: Text = "Maximum requests in flight", "最大并发请求数";
        concurrency_help: Text = "1 to 64.", "1 至 64。";
        rate: Text = "Maximum requests per second", "每秒最大请求数";
        rate_help: Text = "1 to 1000; empty for no limit.", "1 至 1000；留空则不限。";
        auto_reply: Text = "Send a text reply in a JSON response to the sender", "把 JSON 响应中的 reply 文字发给对方";
        save: Text = "Save webhook", "保存 webhook";
        saved: Text = "The webhook was saved. Send a test to see that it works.", "webhook 已保存。发送测试，确认它可用。";
        secret_title: Text = "Secret generated", "已生成密钥";
        secret_once: Text = "Copy the secret of the webhook now. It is not shown again.", "现在就复制 webhook 的密钥，之后不再显示。";
        secret_use: Text = "Your receiver verifies the signatures with it. The recipes are on the page of the webhook.",
            "接收方用它验证签名，示例在 webhook 页面上。";
        saved_it: Text = "I have saved it", "我已保存";
        // The test
        test: Text = "Test", "测试";
        test_help: Text = "Sends a text ping through the plugins to the saved URL, once. Nothing is stored, and replies are not sent.",
            "把文字 ping 经过插件发送到已保存的 URL 一次。不保存任何内容，也不发送回复。";
        no_url: Text = "Save a URL first.", "请先保存 URL。";
        send_test: Text = "Send test", "发送测试";
        tested: Text = "The test was sent.", "测试已发送。";
        verdict: fn(TraceStatus) -> Text = |status| match status {
            TraceStatus::Ok => "The receiver confirmed the test",
            TraceStatus::Error => "The test was not delivered",
            TraceStatus::Skipped => "A plugin skipped the test",
            TraceStatus::Pending => "Not finished",
        }, |status| match status {
            TraceStatus::Ok => "接收方确认了测试",
            TraceStatus::Error => "测试未送达",
            TraceStatus::Skipped => "插件跳过了测试",
            TraceStatus::Pending => "未完成",
        };
        configured: Text = "Configuration saved", "配置保存于";
        phase: Text = "Phase", "阶段";
        outcome: Text = "Outcome", "结果";
        duration: Text = "Duration", "用时";
        details: Text = "Details", "详情";
        milliseconds: fn(u64) -> String = |n| format!("{n} ms"), |n| format!("{n} 毫秒");
        step: fn(StepName) -> Text = |step| match step {
            StepName::Received => "Received",
            StepName::Filter => "Filter",
            StepName::PluginOnRequest => "Plugin before the request",
            StepName::Request => "Request",
            StepName::Response => "Response",
            StepName::PluginOnResponse => "Plugin after the response",
            StepName::Reply => "Reply",
            StepName::Ai => "AI",
            StepName::Websocket => "WebSocket",
            StepName::Ilink => "iLink",
        }, |step| match step {
            StepName::Received => "接收",
            StepName::Filter => "过滤",
            StepName::PluginOnRequest => "请求前的插件",
            StepName::Request => "请求",
            StepName::Response => "响应",
            StepName::PluginOnResponse => "响应后的插件",
            StepName::Reply => "回复",
            StepName::Ai => "AI",
            StepName::Websocket => "WebSocket",
            StepName::Ilink => "iLink",
        };
        status: fn(TraceStatus) -> Text = |status| match status {
            TraceStatus::Ok => "ok",
            TraceStatus::Error => "failed",
            TraceStatus::Skipped => "skipped",
            TraceStatus::Pending => "not finished",
        }, |status| match status {
            TraceStatus::Ok => "正常",
            TraceStatus::Error => "失败",
            TraceStatus::Skipped => "跳过",
            TraceStatus::Pending => "未完成",
        };
        fault: fn(EgressFault) -> Text = |fault| match fault {
            EgressFault::BlockedAddress => "Failed at the address: private, and not allowed",
            EgressFault::Dns => "Failed at DNS: the name does not resolve",
            EgressFault::Connect => "Failed at the connection: nothing listens there, or a firewall refuses",
            EgressFault::Tls => "Failed at TLS: the handshake or the certificate",
            EgressFault::Timeout => "Failed by the timeout: no response in time",
            EgressFault::TooLarge => "Failed at the response: larger than its limit",
            EgressFault::Broken => "Failed at HTTP: the connection broke, or the response is not HTTP",
        }, |fault| match fault {
            EgressFault::BlockedAddress => "失败于地址：私有地址，且未被允许",
            EgressFault::Dns => "失败于 DNS：无法解析域名",
            EgressFault::Connect => "失败于连接：没有程序监听，或被防火墙拒绝",
            EgressFault::Tls => "失败于 TLS：握手或证书有误",
            EgressFault::Timeout => "失败于超时：没有及时响应",
            EgressFault::TooLarge => "失败于响应：超过大小上限",
            EgressFault::Broken => "失败于 HTTP：连接中断，或响应不是 HTTP",
        };
        dns: Text = "DNS", "DNS";
        connect: Text = "connection and TLS", "连接和 TLS";
        first_byte: Text = "first byte", "首字节";
        in_phase: fn(Phase) -> Text = |phase| match phase {
            Phase::Address | Phase::Dns => "while resolving the name",
            Phase::Connect | Phase::Tls => "while connecting",
            Phase::FirstByte => "connected, but no response began",
            Phase::Response => "while reading the response",
        }, |phase| match phase {
            Phase::Address | Phase::Dns => "解析域名时",
            Phase::Connect | Phase::Tls => "建立连接时",
            Phase::FirstByte => "已连接，但没有开始响应",
            Phase::Response => "读取响应时",
        };
        // Signatures
        verify: Text = "Verify the signature", "验证签名";
        verify_help: Text =
            "X-Signature is sha256= and the HMAC of the body in hex. Compute it over the exact bytes that were received, before parsing. \
             The examples expect the secret in WEBHOOK_SECRET.",
            "X-Signature 的值是 sha256= 加请求体 HMAC 的十六进制。请对收到的原始字节计算，不要先解析。示例从 WEBHOOK_SECRET 读取密钥。";
        verify_none: Text = "With the method HMAC, receivers can verify that a request comes from this hub.",
            "使用 HMAC 方式时，接收方可以验证请求来自本服务器。";
        local: Text = "Develop on your own machine, without a public URL:", "在自己的电脑上开发，无需公网 URL：";
    }
}
