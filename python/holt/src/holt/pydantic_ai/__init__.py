"""A microVM of this host as the workspace of a Pydantic AI agent, with all that the engine offers.

    from holt.pydantic_ai import HoltSandbox
    from pydantic_ai import Agent
    from pydantic_ai_harness.coder import Coder

    agent = Agent('anthropic:claude-opus-5-5', capabilities=[HoltSandbox(image='python:3.12-alpine'), Coder()])
    result = agent.run_sync('Write a script that prints the first 10 primes, and run it.')

The refs and machine names are those of `pydantic_ai_harness.smol_sandbox.SmolSandbox`, so either opens the other's
machines, and so does holt's C++ `SmolSandbox`. Files go through the machine's file channel: they need no shell and
no programs in the image. Works under asyncio and Trio.

Depends on `holt` and `pydantic-ai-slim`.
"""

try:
    import pydantic_ai.workspaces as _workspaces
except ImportError as _error:
    raise ImportError(
        "holt.pydantic_ai needs pydantic-ai-slim 2.62 or newer; install it with `pip install holt[pydantic-ai]`."
    ) from _error

from holt.pydantic_ai._backend import HoltSandboxBackend
from holt.pydantic_ai._capability import HoltSandbox

del _workspaces

__all__ = ["HoltSandbox", "HoltSandboxBackend"]
