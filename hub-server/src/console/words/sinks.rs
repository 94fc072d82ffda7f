//! Words of the WebSocket and the AI sink.

use super::Text;

words! {
    /// The WebSocket sink.
    Sockets {
        what: Text = "Programs connect and receive each message as a JSON frame. Several may connect; each receives every message.",
            "程序连接后，以 JSON 帧接收每条消息。可以有多个连接，每个都会收到所有消息。";
        configuration: Text = "Configuration", "配置";
        enabled: Text = "Accept connections", "接受连接";
        include_outbound: Text = "Clients also receive what the bot sends", "客户端也接收机器人发出的消息";
        origins: Text = "Allowed origins", "允许的来源";
        origins_help: Text =
            "Origins of pages, in addition to this hub, from which a browser may connect: one per line, at most 20, such as https://app.example; \
             * for any. Programs outside a browser need none.",
            "除本服务器外，允许浏览器从哪些页面来源连接：每行一个，最多 20 个，例如 https://app.example；* 表示任意来源。浏览器以外的程序无需设置。";
        save: Text = "Save", "保存";
        saved: Text = "The WebSocket sink was saved.", "WebSocket 出口已保存。";
        clients: Text = "Connected clients", "已连接的客户端";
        no_clients: Text = "No client is connected to this node.", "没有客户端连接到本节点。";
        elsewhere: fn(u64) -> String = |count| match count {
            1 => "1 more client is connected to another node of this hub. It is not listed here.".to_owned(),
            _ => format!("{count} more clients are connected to other nodes of this hub. They are not listed here."),
        }, |count| format!("另有 {count} 个客户端连接到其他节点，未列在这里。");
        address: Text = "Address", "地址";
        program: Text = "Program", "程序";
        since: Text = "Connected", "连接于";
        sent: Text = "Sent up to", "已发送至";
        acknowledged: Text = "Acknowledged up to", "已确认至";
        never_acknowledged: Text = "never", "从未";
        lag: Text = "Not sent yet", "尚未发送";
        action: Text = "Action", "操作";
        close: Text = "Disconnect", "断开";
        closed: Text = "The client was disconnected. It may connect again.", "已断开该客户端，它可能会重新连接。";
        connect: Text = "Connect", "连接";
        with_key: Text = "With the key of this channel in HUB_CHANNEL_KEY:", "把频道密钥放入 HUB_CHANNEL_KEY：";
        without_socket: Text = "The same messages without a WebSocket, by long polling:", "不用 WebSocket，以长轮询接收同样的消息：";
        forward: Text = "Or forward them to a program on your machine:", "或转发给自己电脑上的程序：";
    }
}

words! {
    /// The AI sink.
    Models {
        what: Text = "A model responds to each message. It receives the last turns of the conversation.", "由模型回复每条消息。模型会收到最近几轮对话。";
        configuration: Text = "Configuration", "配置";
        enabled: Text = "A model responds to messages", "由模型回复消息";
        endpoint: Text = "Endpoint", "端点";
        source: Text = "Endpoint to use", "使用的端点";
        global: Text = "The one that the administrator configured", "管理员配置的端点";
        custom: Text = "One of this channel", "本频道自己的端点";
        base_url: Text = "Base URL", "基础 URL";
        base_url_help: Text = "For an endpoint of this channel, with or without /chat/completions.", "用于本频道自己的端点，可含或不含 /chat/completions。";
        key_header: Text = "Header of the key", "密钥的请求头";
        key_header_help: Text = "For example api-key for Azure; empty for Authorization: Bearer.", "例如 Azure 使用 api-key；留空则为 Authorization: Bearer。";
        api_key: Text = "Key of the endpoint", "端点密钥";
        has_key: Text = "A key is set. Empty keeps it.", "已设置密钥，留空则保留。";
        no_key: Text = "No key is set.", "未设置密钥。";
        remove_key: Text = "Remove the key", "删除密钥";
        model: Text = "Model", "模型";
        model_help: Text = "Required for an endpoint of this channel; empty for the default of the administrator.", "使用本频道自己的端点时必填；留空则使用管理员的默认模型。";
        prompt: Text = "Behaviour", "行为";
        system_prompt: Text = "System prompt", "系统提示词";
        max_history: Text = "Turns of the conversation that the model receives", "模型收到的对话轮数";
        max_history_help: Text = "1 to 100.", "1 至 100。";
        max_tokens: Text = "Maximum tokens of a response", "回复的最大 token 数";
        max_tokens_help: Text = "1 to 131072; empty for the default of the model.", "1 至 131072；留空则用模型的默认值。";
        temperature: Text = "Temperature", "温度";
        temperature_help: Text = "0 to 2; empty for the default of the model.", "0 至 2；留空则用模型的默认值。";
        hide_thinking: Text = "Remove the reasoning of the model from the response", "从回复中去掉模型的思考过程";
        strip_markdown: Text = "Remove Markdown from the response", "去掉回复中的 Markdown";
        tools: Text = "The model may use tools of installed apps", "模型可以使用已安装应用的工具";
        limits: Text = "Failures", "失败时";
        timeout: Text = "Longest silence of the model, in milliseconds", "模型无输出的最长时间（毫秒）";
        timeout_help: Text = "Also the limit of one tool; at most 120000. A response takes at most 10 minutes.", "也是单个工具的时限，最大 120000。一次回复总共不超过 10 分钟。";
        error_reply: Text = "Reply if the model fails permanently", "模型彻底失败时的回复";
        error_reply_help: Text = "At most 1,000 characters; empty to send nothing.", "最多 1000 个字符；留空则不发送。";
        save: Text = "Save", "保存";
        saved: Text = "The AI sink was saved.", "AI 出口已保存。";
        test: Text = "Test", "测试";
        test_help: Text = "Asks the model one question with the saved settings. Nothing is sent to anyone; the tokens count.",
            "用已保存的设置向模型提一个问题。不会发送给任何人，但会消耗 token。";
        send_test: Text = "Ask the model", "询问模型";
        tested: Text = "The model was asked.", "已询问模型。";
        responded: Text = "The model responded", "模型已回复";
        not_responded: Text = "The model did not respond", "模型没有回复";
        tokens: fn(u64, u64) -> String = |prompt, completion| format!("{prompt} + {completion} tokens"),
            |prompt, completion| format!("{prompt} + {completion} token");
        milliseconds: fn(u128) -> String = |n| format!("{n} ms"), |n| format!("{n} 毫秒");
        warning: Text = "The model cannot respond yet:", "模型还不能回复：";
    }
}
