//! Words of the plugins of a channel.

use hub_core::plugins::VersionState;

use super::Text;

words! {
    /// Plugins of a channel.
    ChannelPlugins {
        what: Text = "Plugins change the request before it is sent and read the response. They run in this order.",
            "插件在发送前修改请求，并读取响应。按以下顺序运行。";
        empty: Text = "No plugin. Install one by its ID; the marketplace lists those that were approved.", "还没有插件。用 ID 安装；已批准的插件列在市场中。";
        plugin: Text = "Plugin", "插件";
        version: Text = "Version", "版本";
        state: Text = "Status", "状态";
        on: Text = "On", "开启";
        off: Text = "Off", "关闭";
        paused: Text = "Stopped by the hub", "已被服务器停用";
        review: fn(VersionState) -> Text = |state| match state {
            VersionState::Pending => "not reviewed: runs only for you",
            VersionState::Approved => "approved",
            VersionState::Rejected => "rejected: does not run",
            VersionState::Superseded => "superseded",
            VersionState::Withdrawn => "withdrawn: does not run",
        }, |state| match state {
            VersionState::Pending => "未审核：仅供你使用",
            VersionState::Approved => "已批准",
            VersionState::Rejected => "已拒绝：不会运行",
            VersionState::Superseded => "已被新版本取代",
            VersionState::Withdrawn => "已撤回：不会运行",
        };
        order: Text = "Order", "顺序";
        up: fn(&str) -> String = |name| format!("Move {name} up"), |name| format!("上移 {name}");
        down: fn(&str) -> String = |name| format!("Move {name} down"), |name| format!("下移 {name}");
        switch_on: fn(&str) -> String = |name| format!("Switch {name} on"), |name| format!("开启 {name}");
        switch_off: fn(&str) -> String = |name| format!("Switch {name} off"), |name| format!("关闭 {name}");
        change: Text = "Change…", "更改…";
        change_named: fn(&str) -> String = |name| format!("Plugin {name}"), |name| format!("插件 {name}");
        version_help: Text = "Name or ID of another version; empty keeps the current one.", "另一个版本的名称或 ID；留空则保留当前版本。";
        position: Text = "Position", "位置";
        position_help: Text = "From 0, which runs first.", "从 0 开始，0 最先运行。";
        enabled: Text = "It runs", "运行";
        save: Text = "Save", "保存";
        changed: Text = "The plugin was changed.", "插件已更改。";
        uninstall: fn(&str) -> String = |name| format!("Uninstall {name}"), |name| format!("卸载 {name}");
        uninstall_help: Text = "Other channels are not affected; it can be installed again.", "不影响其他频道，之后可以重新安装。";
        uninstalled: Text = "The plugin was uninstalled.", "插件已卸载。";
        install: Text = "Install a plugin", "安装插件";
        id: Text = "Plugin ID", "插件 ID";
        install_version: Text = "Version", "版本";
        install_version_help: Text = "Name or ID; empty for the newest one that you may run. The version is pinned.", "名称或 ID；留空则安装你可运行的最新版本。版本会固定。";
        install_position_help: Text = "From 0; empty for the end.", "从 0 开始；留空则排在最后。";
        install_button: Text = "Install", "安装";
        installed: Text = "The plugin was installed.", "插件已安装。";
    }
}
