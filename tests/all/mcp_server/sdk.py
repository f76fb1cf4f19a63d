"""A client of the official Python SDK. It prints one JSON object with what it saw; the test judges it.

    python3 sdk.py stdio PROGRAM ARGS…
    python3 sdk.py http URL TOKEN
"""
import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def see(read, write):
    seen = {}
    async with ClientSession(read, write) as session:
        await session.initialize()
        tools = await session.list_tools()
        seen["tools"] = [tool.name for tool in tools.tools]

        async def line(command):
            result = await session.call_tool("run_command", {"command": command})
            error = getattr(result, "is_error", None)
            error = result.isError if error is None else error
            return {"isError": bool(error), "text": "".join(part.text for part in result.content)}

        seen["allowed"] = await line("cat name.txt")
        seen["denied"] = await line("rm name.txt")
        seen["running"] = await line("for i in 1 2 3; do echo line $i; sleep 1; done")
        prompt = await session.get_prompt("how_to_work_here")
        seen["prompt"] = prompt.messages[0].content.text
    print(json.dumps(seen))


async def main():
    how, *rest = sys.argv[1:]
    if how == "stdio":
        server = StdioServerParameters(command=rest[0], args=rest[1:], env=dict(os.environ))
        async with stdio_client(server) as (read, write):
            await see(read, write)
    else:
        import httpx2 as httpx
        from mcp.client.streamable_http import streamable_http_client

        headers = {"Authorization": "Bearer " + rest[1]}
        async with httpx.AsyncClient(headers=headers, timeout=60) as client:
            async with streamable_http_client(rest[0], http_client=client) as streams:
                await see(streams[0], streams[1])


asyncio.run(main())
