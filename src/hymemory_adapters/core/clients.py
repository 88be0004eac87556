"""The OpenAI clients of one server: one for threads, one for each event loop, and nothing of the app's own in them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hymemory_adapters.settings import WriterSettings

NO_KEY = "EMPTY"  # what vLLM's own examples send; the SDK insists on some key


class Clients:
    """What one server is asked through; connections stay open from one request to the next."""

    def __init__(self, settings: WriterSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._for_threads: Any = None
        self._for_loops: dict[asyncio.AbstractEventLoop, tuple[Any, AsyncGenerator[None, None]]] = {}

    def for_threads(self) -> Any:
        """Return the OpenAI client that all threads share."""
        if self._for_threads is None:
            import openai

            with self._lock:
                if self._for_threads is None:
                    trust = self._trust
                    http_client = openai.DefaultHttpxClient(**trust) if trust else None
                    self._for_threads = self._isolated(openai.OpenAI, http_client)
        return self._for_threads

    async def for_this_loop(self) -> Any:
        """Return the AsyncOpenAI client of the running event loop; it is closed with the loop.

        A connection that stays open holds its loop. So the client ends as the loop's async generators do, which
        ``asyncio.run`` and every other runner close before the loop (``loop.shutdown_asyncgens``). Who closes a loop
        by hand and leaves that out has one loop and its connections kept until a next loop asks for a client.
        """
        loop = asyncio.get_running_loop()
        if loop not in self._for_loops:
            import openai

            for other in list(self._for_loops):
                if other.is_closed():
                    self._for_loops.pop(other, None)
            # One that the SDK makes by itself would close itself in whichever loop it is collected.
            client = self._isolated(openai.AsyncOpenAI, openai.DefaultAsyncHttpxClient(**self._trust))

            async def close_at_the_end() -> AsyncGenerator[None, None]:
                try:
                    yield
                finally:
                    self._for_loops.pop(loop, None)
                    await client.close()

            closing = close_at_the_end()
            self._for_loops[loop] = client, closing
            await anext(closing)  # the loop knows a generator from its first step on
        return self._for_loops[loop][0]

    @property
    def _trust(self) -> dict[str, Any]:
        """What an HTTP client is told of the certificates that it trusts."""
        if self._settings.ca_bundle is None:
            return {}
        import ssl

        return {"verify": ssl.create_default_context(cafile=self._settings.ca_bundle)}

    def _isolated(self, factory: Any, http_client: Any) -> Any:
        """Make a client that has nothing from OPENAI_* variables, which belong to the app's own LLM."""
        settings = self._settings
        client = factory(
            api_key=settings.api_key.get_secret_value() if settings.api_key else NO_KEY,
            base_url=settings.base_url,
            default_headers=dict(settings.headers),
            max_retries=0,
            http_client=http_client,
        )
        # The constructor takes them from the environment, and "" in their place would go out as empty headers.
        client.organization = client.project = None
        # OPENAI_CUSTOM_HEADERS (openai >= 2) is merged in by the constructor: put ours back alone.
        client._custom_headers = dict(settings.headers)
        return client
