"""An agent that works in a machine, and goes on in the same one in a second run.

    pip install 'holt[pydantic-ai]' pydantic-ai-harness 'pydantic-ai-slim[anthropic]'
    export ANTHROPIC_API_KEY=...
    python agent.py [MODEL]
"""

import asyncio
import sys

from pydantic_ai import Agent
from pydantic_ai.models import Model
from pydantic_ai_harness.coder import Coder

from holt.pydantic_ai import HoltSandbox


async def main(model: Model | str) -> None:
    sandbox = HoltSandbox[object]()
    agent = Agent(model, capabilities=[sandbox, Coder()])
    result = await agent.run("Write a script that prints the first 10 primes, and run it.")
    print(result.output)
    again = await agent.run("Now make it print the first 100.", message_history=result.all_messages())
    print(again.output)
    if again.workspace.ref is not None:
        await sandbox.destroy(again.workspace.ref)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "anthropic:claude-opus-5-5"))
