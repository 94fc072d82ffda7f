"""mcp 2.3.0, the official client of the Model Context Protocol, against a hub's /mcp."""

import asyncio
import sys

import httpx2
from events import tell
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

url, right, narrow = sys.argv[1:]


def connect(token, mode):
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, trust_env=False)
    return Client(streamable_http_client(url, http_client=http), mode=mode)


def answered(tool, result):
    text = result.content[0].text
    tell("answered", tool=tool, is_error=result.is_error, text=text, structured=result.structured_content)


async def call(client, tool, **arguments):
    answered(tool, await client.call_tool(tool, arguments))


async def refused(what, attempt):
    try:
        await attempt
    except BaseException as error:  # What it raises here is of its own kinds, and may be a group of them.
        tell("refused", what=what, code=getattr(getattr(error, "error", None), "code", None), told=repr(error))
    else:
        tell("passed", what=what)


async def tour(mode):
    async with connect(right, mode) as client:
        tell("hello", mode=mode, version=client.protocol_version, server=client.server_info.name)
        tools = await client.list_tools()
        tell("tools", names=[tool.name for tool in tools.tools])
        await call(client, "get_bot_info")
        await call(client, "list_contacts", limit=10)
        await call(client, "send_message", content=f"from {mode}")
        await call(client, "send_message", to_user_id="nobody@im.wechat", content="hi")
        await call(client, "send_message")
        await refused("unknown tool", client.call_tool("no_such_tool", {}))
        await refused("oversize", client.call_tool("send_message", {"content": "x" * 1_200_000}))
        await call(client, "get_bot_info")
    async with connect(narrow, mode) as client:
        await call(client, "list_contacts")


async def knock(token, mode):
    async with connect(token, mode) as client:
        await client.list_tools()


async def main():
    for mode in ("legacy", "auto"):
        await tour(mode)
        await refused("wrong token", knock("huba_wrong", mode))


asyncio.run(main())
