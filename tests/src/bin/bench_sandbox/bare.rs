//! The engine alone: the source evaluated in a new runtime with everything in it, the hook called, its body printed.

use rquickjs::{CatchResultExt as _, Context, Function, Object, Runtime, context::EvalOptions};

use super::Result;

/// One run; answers with the body as JSON.
pub(super) fn evaluate(source: &str, message: &str, body: &str) -> Result<String> {
    let runtime = Runtime::new()?;
    let context = Context::full(&runtime)?;
    context.with(|ctx| {
        let mut options = EvalOptions::default();
        options.strict = false;
        let made = (|| {
            ctx.eval_with_options::<(), _>(source, options)?;
            let hook: Function = ctx.globals().get("onRequest")?;
            let request = Object::new(ctx.clone())?;
            request.set("url", "https://desk.example/hook")?;
            request.set("headers", Object::new(ctx.clone())?)?;
            request.set("body", ctx.json_parse(body)?)?;
            let argument = Object::new(ctx.clone())?;
            argument.set("msg", ctx.json_parse(message)?)?;
            argument.set("req", request.clone())?;
            argument.set("reply", Function::new(ctx.clone(), |_: String| ())?)?;
            hook.call::<_, ()>((argument,))?;
            let body: rquickjs::Value = request.get("body")?;
            ctx.json_stringify(body)?.map_or_else(|| Ok(String::new()), |text| text.to_string())
        })();
        made.catch(&ctx).map_err(|error| error.to_string().into())
    })
}
