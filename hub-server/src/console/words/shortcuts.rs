//! Words of the keyboard: single keys, the palette, announcements.

use super::Text;

words! {
    /// The keyboard.
    Shortcuts {
        title: Text = "Keyboard", "键盘";
        what: Text = "Single keys work outside fields and dialogs.", "单个按键在输入框和对话框之外有效。";
        switch: Text = "Switch them off in the profile", "在个人资料中关闭";
        key: Text = "Key", "按键";
        action: Text = "Action", "作用";
        everywhere: Text = "Everywhere", "所有页面";
        palette: Text = "Open the command palette", "打开命令面板";
        filter: Text = "Go to the filter of the list, or to the search", "转到列表的筛选框，或转到搜索";
        help: Text = "Show these keys", "显示这些按键";
        go_home: Text = "Go to Home", "转到首页";
        go_messages: Text = "Go to Messages", "转到消息";
        go_bots: Text = "Go to Bots", "转到机器人";
        go_plugins: Text = "Go to Plugins", "转到插件";
        go_account: Text = "Go to Account", "转到账号";
        close: Text = "Close a dialog or a menu", "关闭对话框或菜单";
        in_lists: Text = "In lists", "列表";
        next: Text = "Next row", "下一行";
        previous: Text = "Previous row", "上一行";
        open: Text = "Open the row", "打开这一行";
        select: Text = "Select the row, where rows can be selected", "选中这一行（可选择时）";
        show_new: Text = "Show new rows", "显示新内容";
        newest: Text = "First page", "第一页";
        older: Text = "Next page", "下一页";
        in_messages: Text = "Messages", "消息";
        failed: Text = "Only failed messages", "只看失败的消息";
        replay: Text = "Go to the button that replays", "转到重放按钮";
        copy_trace: Text = "Copy the trace ID", "复制追踪 ID";
        in_traces: Text = "Trace", "追踪";
        steps: Text = "Next or previous step", "下一步骤或上一步骤";
        difference: Text = "Go to the changes of the step", "转到步骤的改动";
        // What the browser remembers
        look: Text = "Keyboard and announcements", "键盘与播报";
        look_help: Text = "This browser remembers it.", "由此浏览器记住。";
        single_keys: Text = "Single keys are commands", "启用单键命令";
        announcements: Text = "Announce new rows to screen readers", "向屏幕阅读器播报新内容";
        // What scripts say
        palette_title: Text = "Command palette", "命令面板";
        palette_help: Text = "Command, page, bot, text or ID", "命令、页面、机器人、文本或 ID";
        on_page: Text = "On this page", "本页";
        go_to: Text = "Go to", "转到";
        found: Text = "Found", "查找结果";
        nothing: Text = "No match.", "没有匹配项。";
        dismiss: Text = "Close", "关闭";
        // `{count}` and `{failed}` are numbers of rows.
        announced: Text = "New: {count}. Failed: {failed}.", "新增 {count} 条，失败 {failed} 条。";
    }
}
